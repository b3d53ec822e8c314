/*
 * The recorder while somebody sets the clock: CASES D8. clock_gettime() of this
 * program is the kernel's, but for a wall clock that the tests move.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <time.h>

#include "tests/unit/recorder_fixture.h"

#define CLOCK_PAUSE_MS 150

static _Atomic int64_t clock_shift_s;

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);

	if (rc == 0 && id == CLOCK_REALTIME)
		ts->tv_sec += clock_shift_s;
	return rc;
}

static int
clock_reset(void **state)
{
	clock_shift_s = 0;
	return disk_reset(state);
}

/* Moves the wall clock by SHIFT_S from where it belongs, and time passes. */
static void
clock_set(int64_t shift_s)
{
	int64_t before = clock_wall_ms(),
		want = before + (shift_s - clock_shift_s) * 1000;

	clock_shift_s = shift_s;
	assert_true(llabs(clock_wall_ms() - want) < 60000);
	poll(NULL, 0, CLOCK_PAUSE_MS);
}

/* The field NAME of the header of F. */
static int64_t
clock_header(const struct rec_file *f, const char *name)
{
	autofree char *key = xasprintf("\"%s\": ", name);
	const char *at = strstr(f->data, key);

	assert_non_null(at);
	assert_true(at < strchr(f->data, '\n'));
	return strtoll(at + strlen(key), NULL, 10);
}

static void
a_clock_that_jumps_moves_no_event(void **state)
{
	static const int64_t shifts_s[] = { 0, -3600, 86400, -400 * 86400L, 0 };
	struct recorder_config c = rec_config();
	int64_t start_s = clock_wall_ms() / 1000, before;
	struct rec_file f;
	struct rec t;

	(void)state;
	c.wall_s = start_s;
	c.index_ms = 1;
	before = c.start_us;
	rec_start(&t, &c);
	for (size_t i = 0; i < ARRAY_LEN(shifts_s); i++) {
		clock_set(shifts_s[i]);
		rec_puts(&t, "x");
		rec_flush(&t);
		assert_in_range(t.report.duration_ms, (i + 1) * CLOCK_PAUSE_MS,
		    (clock_mono_us() - before) / 1000);
	}
	f = rec_finish(&t, "xxxxx");
	assert_int_equal(clock_header(&f, "timestamp"), start_s);
	assert_int_equal(f.n_events, ARRAY_LEN(shifts_s));
	for (size_t i = 0; i < f.n_events; i++) {
		uint64_t last_us = i ? f.events[i - 1].t_us : 0;

		/* rec_read() has seen that none goes back. */
		assert_true(
		    f.events[i].t_us - last_us >= CLOCK_PAUSE_MS * 1000);
	}
	assert_true(
	    (int64_t)f.events[f.n_events - 1].t_us <= clock_mono_us() - before);
	assert_true(t.report.is_complete);
	assert_true(t.n_rows > 0);
	for (unsigned i = 1; i < t.n_rows; i++)
		assert_true(t.rows[i].t_ms >= t.rows[i - 1].t_ms);
	rec_file_free(&f);
}

/* Waiting is not by the wall clock either: nothing is written early or late. */
static void
a_clock_that_jumps_delays_no_write(void **state)
{
	static const int64_t shifts_s[] = { -3600, 86400 };
	struct recorder_config c = rec_config();
	struct rec_file f;
	struct rec t;

	(void)state;
	rec_start(&t, &c);
	rec_flush(&t);
	for (size_t i = 0; i < ARRAY_LEN(shifts_s); i++) {
		int64_t end = clock_mono_ms() + 5000;
		uint64_t bytes = t.report.bytes;

		rec_puts(&t, "y");
		clock_shift_s = shifts_s[i];
		while (t.report.bytes == bytes) {
			assert_true(clock_mono_ms() < end);
			poll(NULL, 0, 5);
			rec_poll(&t);
		}
	}
	f = rec_finish(&t, "yy");
	assert_true(t.report.is_complete);
	assert_int_equal(t.report.gaps, 0);
	rec_file_free(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
		    a_clock_that_jumps_moves_no_event, clock_reset),
		cmocka_unit_test_teardown(
		    a_clock_that_jumps_delays_no_write, clock_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
