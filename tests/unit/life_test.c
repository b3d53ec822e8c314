/*
 * When a sandbox sleeps and when it goes, by figures: idle and lifetime, clocks
 * that jump, limits that are not there.
 */
#include <string.h>

#include "base/mem.h"
#include "sessions/manager/life.h"
#include "tests/unit/unit.h"

#define NEVER (-1)

static void
what_is_due_is_the_gravest_and_else_the_next_is_named(void **state)
{
	static const struct {
		uint64_t suspend, teardown, lifetime;
		bool is_busy, has_dozed;
		int64_t idle_for, age;
		enum life_due due;
		int64_t in;
	} rows[] = {
		/* No rules: nothing, and nobody looks. */
		{ 0, 0, 0, false, false, 1 << 30, 1 << 30, LIFE_NONE, NEVER },
		/* Idle alone. */
		{ 1000, 0, 0, false, false, 0, 5000, LIFE_NONE, 1000 },
		{ 1000, 0, 0, false, false, 999, 5000, LIFE_NONE, 1 },
		{ 1000, 0, 0, false, false, 1000, 5000, LIFE_SUSPEND, NEVER },
		{ 1000, 0, 0, false, true, 1000, 5000, LIFE_NONE, NEVER },
		{ 1000, 0, 0, true, false, 1000, 5000, LIFE_NONE, NEVER },
		/* It sleeps, and its end comes nearer. */
		{ 1000, 3000, 0, false, false, 500, 0, LIFE_NONE, 500 },
		{ 1000, 3000, 0, false, true, 1500, 0, LIFE_NONE, 1500 },
		{ 1000, 3000, 0, false, true, 3000, 0, LIFE_IDLE, NEVER },
		{ 1000, 1000, 0, false, false, 1000, 0, LIFE_IDLE, NEVER },
		/* A lifetime knows no idleness. */
		{ 0, 0, 2000, true, false, 0, 1999, LIFE_NONE, 1 },
		{ 0, 0, 2000, true, false, 0, 2000, LIFE_OVER, NEVER },
		{ 1, 1, 2000, false, false, 9, 9000, LIFE_OVER, NEVER },
		{ 1000, 3000, 1500, false, true, 1400, 1400, LIFE_NONE, 100 },
		/* The wall clock was set back: it is as young as can be. */
		{ 0, 0, 2000, true, false, 0, -90000, LIFE_NONE, 2000 },
		/* Nobody sleeps longer than a clock may be wrong. */
		{ 0, 0, 86400000, true, false, 0, 0, LIFE_NONE,
		    LIFE_LOOK_MAX_MS },
		{ UINT64_MAX, UINT64_MAX, UINT64_MAX, false, false, 0, 0,
		    LIFE_NONE, NEVER },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct life l = {
			.rules = { .idle_suspend_ms = rows[i].suspend,
			    .idle_teardown_ms = rows[i].teardown,
			    .lifetime_ms = rows[i].lifetime },
			.created_ms = 100000000,
			.idle_since_ms = 7000,
			.is_busy = rows[i].is_busy,
			.has_dozed = rows[i].has_dozed,
		};
		int64_t in = 0;

		assert_int_equal(life_next(&l, 7000 + rows[i].idle_for,
				     100000000 + rows[i].age, &in),
		    rows[i].due);
		assert_int_equal(in, rows[i].in);
	}
}

static void
idle_counts_from_the_last_who_left(void **state)
{
	struct life l = { .rules.idle_suspend_ms = 100 };
	int64_t in;

	(void)state;
	assert_false(life_set_busy(&l, false, 50));
	assert_int_equal(l.idle_since_ms, 0);
	assert_true(life_set_busy(&l, true, 60));
	assert_int_equal(life_next(&l, 5000, 0, &in), LIFE_NONE);
	assert_int_equal(in, NEVER);
	l.has_dozed = true;
	assert_true(life_set_busy(&l, false, 5000));
	assert_false(l.has_dozed);
	assert_int_equal(life_next(&l, 5099, 0, &in), LIFE_NONE);
	assert_int_equal(in, 1);
	assert_int_equal(life_next(&l, 5100, 0, &in), LIFE_SUSPEND);
	/* Woken by nobody who stays: it gets its time again. */
	l.has_dozed = true;
	life_restart(&l, 6000);
	assert_int_equal(life_next(&l, 6000, 0, &in), LIFE_NONE);
	assert_int_equal(in, 100);
}

static void
reasons_are_words_and_sentences(void **state)
{
	const struct life_rules r = { .idle_suspend_ms = 1500,
		.idle_teardown_ms = 1800000,
		.lifetime_ms = 7200000 };
	char text[128];

	(void)state;
	life_sentence(&r, LIFE_SUSPEND, "x", text, sizeof(text));
	assert_string_equal(
	    text, "sandbox x is suspended: it was idle for 1500ms");
	life_sentence(&r, LIFE_IDLE, "x", text, sizeof(text));
	assert_string_equal(text, "sandbox x is removed: it was idle for 30m");
	life_sentence(&r, LIFE_OVER, "x", text, sizeof(text));
	assert_string_equal(
	    text, "sandbox x is removed: its lifetime of 2h is over");
	assert_string_equal(life_reason(LIFE_IDLE), "idle");
	assert_string_equal(life_reason(LIFE_OVER), "lifetime");
	assert_string_equal(life_reason(LIFE_SUSPEND), "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    what_is_due_is_the_gravest_and_else_the_next_is_named),
		cmocka_unit_test(idle_counts_from_the_last_who_left),
		cmocka_unit_test(reasons_are_words_and_sentences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
