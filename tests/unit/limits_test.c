/* Counting connections: what is let in, and that every count comes back. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/mem.h"
#include "sshd/listener/gate.h"
#include "sshd/listener/limits.h"
#include "tests/unit/unit.h"

static struct sockaddr_storage
address(const char *text)
{
	struct sockaddr_storage sa = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&sa;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&sa;

	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		sa.ss_family = AF_INET;
		return sa;
	}
	assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
	sa.ss_family = AF_INET6;
	return sa;
}

static enum limits_verdict
enter(
    struct limits *l, const char *from, uint32_t dice, struct limits_slot *slot)
{
	struct sockaddr_storage sa = address(from);

	return limits_enter(l, (struct sockaddr *)&sa, dice, slot);
}

static void
assert_empty(struct limits *l)
{
	assert_int_equal(l->total, 0);
	assert_int_equal(l->startups, 0);
	assert_true(list_empty(&l->sources));
	limits_release(l);
}

static void
limits_source_over_its_share_is_refused(void **state)
{
	const struct limits_max max = { 100, 100, 2 };
	struct limits_slot a = { 0 }, b = { 0 }, c = { 0 }, d = { 0 };
	struct limits l;

	(void)state;
	limits_init(&l, &max);
	assert_int_equal(enter(&l, "10.0.0.1", 0, &a), LIMITS_ADMIT);
	assert_int_equal(enter(&l, "::ffff:10.0.0.1", 0, &b), LIMITS_ADMIT);
	assert_int_equal(enter(&l, "10.0.0.1", 0, &c), LIMITS_SOURCE);
	assert_false(c.is_counted);
	assert_int_equal(enter(&l, "10.0.0.2", 0, &d), LIMITS_ADMIT);
	limits_authenticated(&l, &a);
	assert_int_equal(enter(&l, "10.0.0.1", 0, &c), LIMITS_ADMIT);
	limits_leave(&l, &a);
	limits_leave(&l, &b);
	limits_leave(&l, &c);
	limits_leave(&l, &d);
	assert_empty(&l);
}

static void
limits_total_counts_the_authenticated_too(void **state)
{
	const struct limits_max max = { 2, 100, 100 };
	struct limits_slot a = { 0 }, b = { 0 }, c = { 0 };
	struct limits l;

	(void)state;
	limits_init(&l, &max);
	assert_int_equal(enter(&l, "::1", 0, &a), LIMITS_ADMIT);
	limits_authenticated(&l, &a);
	assert_int_equal(enter(&l, "::1", 0, &b), LIMITS_ADMIT);
	assert_int_equal(enter(&l, "::1", 0, &c), LIMITS_TOTAL);
	limits_leave(&l, &a);
	assert_int_equal(enter(&l, "::1", 0, &c), LIMITS_ADMIT);
	limits_leave(&l, &b);
	limits_leave(&l, &c);
	assert_empty(&l);
}

static void
limits_leaving_twice_counts_once(void **state)
{
	const struct limits_max max = { 10, 10, 10 };
	struct limits_slot a = { 0 }, b = { 0 };
	struct limits l;

	(void)state;
	limits_init(&l, &max);
	assert_int_equal(enter(&l, "10.0.0.1", 0, &a), LIMITS_ADMIT);
	assert_int_equal(enter(&l, "10.0.0.1", 0, &b), LIMITS_ADMIT);
	limits_authenticated(&l, &a);
	limits_authenticated(&l, &a);
	assert_int_equal(l.startups, 1);
	limits_leave(&l, &a);
	limits_leave(&l, &a);
	assert_int_equal(l.total, 1);
	limits_leave(&l, &b);
	assert_empty(&l);
}

/* The share that is refused grows from none at half to all at the limit. */
static void
limits_startups_drop_early_above_half(void **state)
{
	static const struct {
		unsigned already, refused_of_50;
	} rows[] = { { 0, 0 }, { 49, 0 }, { 50, 0 }, { 60, 10 }, { 99, 49 },
		{ 100, 50 } };
	const struct limits_max max = { 1000, 100, 1000 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct limits_slot slots[101] = { 0 };
		struct limits l;
		unsigned refused = 0;

		limits_init(&l, &max);
		/* The highest dice are the lucky ones. */
		for (unsigned k = 0; k < rows[i].already; k++)
			assert_int_equal(
			    enter(&l, "10.0.0.1", 49, &slots[k]), LIMITS_ADMIT);
		for (uint32_t dice = 0; dice < 50; dice++) {
			struct limits_slot one = { 0 };

			if (enter(&l, "10.0.0.2", dice, &one) != LIMITS_ADMIT)
				refused++;
			limits_leave(&l, &one);
		}
		assert_int_equal(refused, rows[i].refused_of_50);
		for (unsigned k = 0; k < rows[i].already; k++)
			limits_leave(&l, &slots[k]);
		assert_empty(&l);
	}
}

static void
limits_of_one_startup_admit_one(void **state)
{
	const struct limits_max max = { 10, 1, 10 };
	struct limits_slot a = { 0 }, b = { 0 };
	struct limits l;

	(void)state;
	limits_init(&l, &max);
	assert_int_equal(enter(&l, "10.0.0.1", 0, &a), LIMITS_ADMIT);
	assert_int_equal(enter(&l, "10.0.0.2", 0, &b), LIMITS_STARTUPS);
	limits_leave(&l, &a);
	assert_empty(&l);
}

static void
gate_holds_a_flood_and_opens_with_time(void **state)
{
	struct gate g = { 0 };
	uint64_t dropped = 0;
	int passed = 0;

	(void)state;
	for (int i = 0; i < 1000; i++)
		passed += gate_pass(&g, 5000, &dropped);
	assert_int_equal(passed, GATE_BURST);
	assert_true(gate_pass(&g, 5100, &dropped));
	assert_int_equal(dropped, 1000 - GATE_BURST);
	assert_false(gate_pass(&g, 5100, &dropped));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits_source_over_its_share_is_refused),
		cmocka_unit_test(limits_total_counts_the_authenticated_too),
		cmocka_unit_test(limits_leaving_twice_counts_once),
		cmocka_unit_test(limits_startups_drop_early_above_half),
		cmocka_unit_test(limits_of_one_startup_admit_one),
		cmocka_unit_test(gate_holds_a_flood_and_opens_with_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
