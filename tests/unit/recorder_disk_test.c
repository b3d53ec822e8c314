/* The recorder when the disk is full, small, slow or stuck. CASES D7. */
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>

#include "tests/unit/recorder_fixture.h"

/* The number in a gap marker of F; exactly one is expected. */
static uint64_t
rec_gap(const struct rec_file *f)
{
	uint64_t n = 0;
	unsigned found = 0;

	for (size_t i = 0; i < f->n_events; i++)
		if (f->events[i].code == 'm') {
			assert_int_equal(sscanf(f->events[i].text,
					     "gap: %" SCNu64 " bytes", &n),
			    1);
			found++;
		}
	assert_int_equal(found, 1);
	return n;
}

static void
a_full_disk_makes_one_gap_and_recording_goes_on(void **state)
{
	struct recorder_config c = rec_config();
	size_t n = 3 << 20;
	autofree char *all = xmalloc(n), *plain = NULL, *others = NULL;
	struct rec t;
	struct rec_file f;
	size_t kept;

	(void)state;
	memset(all, 'a', n);
	disk_set(1 << 20, false);
	rec_start(&t, &c);
	rec_put(&t, all, n);
	recorder_resize(t.r, 100, 30);
	rec_flush(&t);
	assert_int_equal(t.report.gaps, 1);
	assert_false(t.report.has_failed);
	assert_non_null(strstr(t.report.error, "No space left"));
	f = rec_read(&t); /* whole lines, though the write was cut */
	rec_file_free(&f);
	disk_set(UINT64_MAX, false);
	rec_flush(&t);
	rec_puts(&t, "back again");
	f = rec_finish(&t, NULL);
	plain = rec_plain(&f);
	kept = strlen(plain);
	assert_string_equal(plain + kept - 10, "back again");
	assert_true(kept > (1 << 20) * 9 / 10);
	assert_int_equal(kept - 10 + rec_gap(&f), n);
	others = rec_others(&f);
	assert_non_null(strstr(others, "not recorded;r 100x30;"));
	assert_int_equal(t.report.gaps, 1);
	assert_false(t.report.is_complete);
	rec_file_free(&f);
}

static void
a_disk_full_from_the_start_gets_its_header_later(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;

	(void)state;
	disk_set(0, false);
	rec_start(&t, &c);
	rec_puts(&t, "lost\343\201");
	rec_flush(&t);
	assert_int_equal(t.report.bytes, 0);
	disk_set(UINT64_MAX, false);
	rec_flush(&t);
	rec_puts(&t, "kept");
	f = rec_finish(&t, "kept");
	assert_int_equal(rec_gap(&f), 6);
	rec_file_free(&f);
}

static void
a_gap_ends_by_itself_when_space_is_back(void **state)
{
	struct recorder_config c = rec_config();
	int64_t end = clock_mono_ms() + DEADLINE_MS;
	struct rec t;
	struct rec_file f;
	uint64_t before;

	(void)state;
	disk_set(200, false);
	rec_start(&t, &c);
	rec_puts(&t, "this line is too much for the disk, whatever it takes "
		     "to bring it there, so it is lost");
	rec_flush(&t);
	before = t.report.bytes;
	disk_set(UINT64_MAX, false);
	while (t.report.bytes == before) {
		assert_true(clock_mono_ms() < end);
		poll(NULL, 0, 20);
		rec_poll(&t);
	}
	f = rec_finish(&t, "");
	assert_true(rec_gap(&f) > 60);
	rec_file_free(&f);
}

static void
a_full_disk_fails_the_recording_if_told_so(void **state)
{
	struct recorder_config c = rec_config();
	size_t n = 1 << 20;
	autofree char *all = xcalloc(n, 1);
	struct rec t;
	struct rec_file f;

	(void)state;
	c.is_stop_on_error = true;
	disk_set(100000, false);
	rec_start(&t, &c);
	rec_put(&t, all, n);
	rec_flush(&t);
	assert_true(t.report.has_failed);
	assert_true(t.report.error[0]);
	disk_set(UINT64_MAX, false);
	rec_puts(&t, "too late");
	f = rec_finish(&t, NULL);
	assert_false(t.report.is_complete);
	assert_true(f.n <= 100000);
	assert_int_equal(t.report.gaps, 1);
	rec_file_free(&f);
}

static void
below_min_free_nothing_but_header_and_marker_is_written(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;

	(void)state;
	c.min_free = UINT64_MAX / 2;
	rec_start_at(
	    &t, open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), &c);
	rec_flush(&t);
	rec_puts(&t, "secret");
	rec_flush(&t);
	assert_int_equal(t.report.gaps, 1);
	f = rec_finish(&t, "");
	assert_int_equal(rec_gap(&f), 6);
	rec_file_free(&f);
}

static void
a_capped_file_ends_with_a_marker_below_the_cap(void **state)
{
	struct recorder_config c = rec_config();
	size_t n = 1 << 20;
	autofree char *all = xmalloc(n), *others = NULL;
	struct rec t;
	struct rec_file f;

	(void)state;
	memset(all, 'a', n);
	c.max_bytes = 100000;
	rec_start(&t, &c);
	rec_put(&t, all, n);
	f = rec_finish(&t, NULL);
	others = rec_others(&f);
	assert_string_equal(others, "m end: limit of 100000 bytes reached;");
	assert_int_equal(f.events[f.n_events - 1].code, 'm');
	assert_in_range(f.n, 90000, 100000);
	assert_int_equal(t.report.gaps, 1);
	assert_false(t.report.has_failed);
	assert_false(t.report.is_complete);
	rec_file_free(&f);
}

/* Fills the queue of T while the disk is stuck; returns the bytes. */
static size_t
rec_fill(struct rec *t)
{
	static const char line[1000] = "filling";
	size_t n = 0, room;

	while ((room = recorder_room(t->r)) > 0) {
		if (room > sizeof(line))
			room = sizeof(line);
		recorder_output(t->r, line, room);
		n += room;
	}
	return n;
}

static void
a_slow_disk_holds_back_and_room_is_told(void **state)
{
	struct recorder_config c = rec_config();
	int64_t end = clock_mono_ms() + DEADLINE_MS;
	struct rec t;
	struct rec_file f;

	(void)state;
	disk_set(UINT64_MAX, true);
	rec_start(&t, &c);
	assert_in_range(
	    rec_fill(&t), RECORDER_QUEUE / 10 * 9, RECORDER_QUEUE * 2);
	assert_int_equal(recorder_room(t.r), 0);
	recorder_resize(t.r, 99, 33); /* waits for room as well */
	disk_set(UINT64_MAX, false);
	while (recorder_room(t.r) == 0)
		rec_wait(&t, end);
	rec_puts(&t, "end");
	f = rec_finish(&t, NULL);
	assert_true(t.report.is_complete);
	assert_string_equal(f.events[f.n_events - 2].text, "99x33");
	assert_string_equal(f.events[f.n_events - 1].text, "end");
	rec_file_free(&f);
}

/* Each piece has a head of its own, for a millisecond passes before it. */
static void
what_there_is_room_for_may_come_in_pieces(void **state)
{
	struct timespec pause = { 0, 1100000 };
	struct recorder_config c = rec_config();
	char text[RECORDER_QUEUE];
	size_t room, most;
	struct rec t;
	struct rec_file f;

	(void)state;
	memset(text, 'x', sizeof(text));
	disk_set(UINT64_MAX, true);
	rec_start(&t, &c);
	/* Until there is little more than none. */
	while ((room = recorder_room(t.r)) > 16384) {
		most = room - 16384 < 32768 ? room - 16384 : 32768;
		recorder_output(t.r, text, most);
	}
	assert_true(room > 0);
	for (unsigned i = 0; i < RECORDER_CALLS; i++) {
		nanosleep(&pause, NULL);
		recorder_output(t.r, text, room / RECORDER_CALLS);
	}
	disk_set(UINT64_MAX, false);
	f = rec_finish(&t, NULL);
	assert_int_equal(t.report.gaps, 0);
	assert_true(t.report.is_complete);
	rec_file_free(&f);
}

/* Who comes while the disk hangs is recorded, and a crowd does no harm. */
static void
markers_have_room_of_their_own(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;
	autofree char *others = NULL;
	unsigned n = 0;

	(void)state;
	disk_set(UINT64_MAX, true);
	rec_start(&t, &c);
	rec_fill(&t);
	recorder_resize(t.r, 99, 33);
	for (unsigned i = 0; i < 1000; i++)
		recorder_marker(t.r, "somebody with a name of some length");
	assert_int_equal(recorder_room(t.r), 0);
	disk_set(UINT64_MAX, false);
	f = rec_finish(&t, NULL);
	assert_true(t.report.is_complete);
	others = rec_others(&f);
	assert_memory_equal(others, "r 99x33;m some", 14);
	for (const char *p = others; (p = strstr(p, "m some")); p++)
		n++;
	assert_in_range(n, 16, 999);
	rec_file_free(&f);
}

/*
 * Three recorders on one stuck disk, so that the 5 s pass once: one goes on
 * with a gap, one fails, one is given up by recorder_free().
 */
static void
a_stuck_disk_holds_nobody_longer_than_5_s(void **state)
{
	struct recorder_config c = rec_config();
	int64_t begin, end = clock_mono_ms() + DEADLINE_MS;
	struct rec go, stop, left;
	struct rec_file f;
	size_t n;

	(void)state;
	disk_set(UINT64_MAX, true);
	rec_start(&go, &c);
	rec_start(&left, &c);
	c.is_stop_on_error = true;
	rec_start(&stop, &c);
	rec_puts(&left, "left");
	recorder_close(left.r);
	begin = clock_mono_ms();
	n = rec_fill(&go);
	rec_fill(&stop);
	while (recorder_room(go.r) == 0)
		rec_wait(&go, end);
	assert_in_range(clock_mono_ms() - begin, 4000, 7000);
	assert_int_equal(recorder_room(go.r), RECORDER_QUEUE);
	recorder_output(go.r, "dropped", 7);
	recorder_output(go.r, "dropped", 7);
	rec_wait(&go, end);
	assert_int_equal(go.report.gaps, 1);
	assert_false(go.report.has_failed);

	while (recorder_room(stop.r) == 0)
		rec_wait(&stop, end);
	recorder_output(stop.r, "dropped", 7);
	rec_wait(&stop, end);
	assert_true(stop.report.has_failed);
	assert_non_null(strstr(stop.report.error, "no progress"));

	recorder_free(left.r);
	assert_true(clock_mono_ms() - begin < 8000);

	disk_set(UINT64_MAX, false);
	rec_flush(&go);
	rec_puts(&go, "on");
	f = rec_finish(&go, NULL);
	assert_int_equal(rec_gap(&f), 14);
	assert_string_equal(f.events[f.n_events - 1].text, "on");
	assert_true(f.n > n);
	rec_file_free(&f);
	f = rec_finish(&stop, NULL);
	rec_file_free(&f);
	close(left.fd);
}

static void
a_real_small_disk_keeps_whole_lines(void **state)
{
	char dir[] = "/tmp/berth-recorder-XXXXXX";
	struct recorder_config c = rec_config();
	size_t n = 20 << 20;
	autofree char *all = xmalloc(n), *path = NULL, *plain = NULL;
	struct rec t;
	struct rec_file f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", dir, "tmpfs", 0, "size=2m") < 0) {
		rmdir(dir);
		print_message("explained: no tmpfs can be mounted here (%s)\n",
		    strerror(errno));
		skip();
	}
	memset(all, 'y', n);
	path = xasprintf("%s/a.cast", dir);
	rec_start_at(&t, open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), &c);
	rec_put(&t, all, n);
	f = rec_finish(&t, NULL);
	plain = rec_plain(&f);
	assert_int_equal(t.report.gaps, 1);
	assert_in_range(f.n, 1 << 20, 2 << 20);
	if (strstr(f.events[f.n_events - 1].text, "gap"))
		assert_int_equal(strlen(plain) + rec_gap(&f), n);
	rec_file_free(&f);
	assert_int_equal(umount2(dir, MNT_DETACH), 0);
	rmdir(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
		    a_full_disk_makes_one_gap_and_recording_goes_on,
		    disk_reset),
		cmocka_unit_test_teardown(
		    a_disk_full_from_the_start_gets_its_header_later,
		    disk_reset),
		cmocka_unit_test_teardown(
		    a_gap_ends_by_itself_when_space_is_back, disk_reset),
		cmocka_unit_test_teardown(
		    a_full_disk_fails_the_recording_if_told_so, disk_reset),
		cmocka_unit_test_teardown(
		    below_min_free_nothing_but_header_and_marker_is_written,
		    disk_reset),
		cmocka_unit_test_teardown(
		    a_capped_file_ends_with_a_marker_below_the_cap, disk_reset),
		cmocka_unit_test_teardown(
		    a_slow_disk_holds_back_and_room_is_told, disk_reset),
		cmocka_unit_test_teardown(
		    what_there_is_room_for_may_come_in_pieces, disk_reset),
		cmocka_unit_test_teardown(
		    markers_have_room_of_their_own, disk_reset),
		cmocka_unit_test_teardown(
		    a_stuck_disk_holds_nobody_longer_than_5_s, disk_reset),
		cmocka_unit_test_teardown(
		    a_real_small_disk_keeps_whole_lines, disk_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
