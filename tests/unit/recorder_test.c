/*
 * The recorder: what reaches the file and in which order. CASES D1, D2, D3,
 * D10.
 */
#include "tests/unit/recorder_fixture.h"

static void
output_is_recorded_and_complete(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;

	(void)state;
	rec_start(&t, &c);
	rec_puts(&t, "hello \033[31mred\033[m \"q\" \\ \r\n");
	f = rec_finish(&t, "hello \033[31mred\033[m \"q\" \\ \r\n");
	assert_true(t.report.is_complete);
	assert_int_equal(t.report.bytes, f.n);
	assert_int_equal(t.report.gaps, 0);
	assert_string_equal(t.report.error, "");
	rec_file_free(&f);
}

static void
an_empty_recording_has_one_event(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;

	(void)state;
	rec_start(&t, &c);
	f = rec_finish(&t, "");
	assert_int_equal(f.n_events, 1);
	assert_true(t.report.is_complete);
	rec_file_free(&f);
}

static void
invalid_bytes_become_replacements_and_nothing_is_lost(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;
	autofree char *all = NULL;
	uint8_t noise[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)(i * 2654435761U >> 13);
	rec_start(&t, &c);
	rec_puts(&t, "A\377\376\300\200B\n");
	rec_put(&t, noise, sizeof(noise));
	rec_puts(&t, "\nEND\n");
	f = rec_finish(&t, NULL);
	all = rec_plain(&f);
	assert_memory_equal(all, "A" FFFD FFFD FFFD FFFD "B\n", 15);
	assert_true(t.report.is_complete);
	/* the noise has NUL bytes in it, so look from the end */
	assert_int_equal(f.events[f.n_events - 1].code, 'o');
	assert_memory_equal(
	    f.events[f.n_events - 1].text + f.events[f.n_events - 1].n - 5,
	    "\nEND\n", 5);
	rec_file_free(&f);
}

static void
a_character_in_three_writes_is_joined(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;

	(void)state;
	rec_start(&t, &c);
	rec_puts(&t, "\343");
	rec_flush(&t);
	rec_puts(&t, "\201");
	rec_flush(&t);
	rec_puts(&t, "\202\n");
	f = rec_finish(&t, "\343\201\202\n");
	assert_int_equal(f.n_events, 1);
	rec_file_free(&f);
}

static void
characters_cut_everywhere_survive(void **state)
{
	static const char unit[] = "\343\201\202\360\237\231\202\303\251\n";
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;
	autofree char *all = xmalloc(400 * 1000 + 1);

	(void)state;
	for (size_t i = 0; i < 400 * 1000; i++)
		all[i] = unit[i % (sizeof(unit) - 1)];
	all[400 * 1000] = '\0';
	rec_start(&t, &c);
	for (size_t at = 0, part = 1; at < 400 * 1000; at += part) {
		part = part % 4099 + 1;
		if (part > 400 * 1000 - at)
			part = 400 * 1000 - at;
		rec_put(&t, all + at, part);
	}
	f = rec_finish(&t, all);
	rec_file_free(&f);
}

static void
an_incomplete_tail_is_one_replacement(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;

	(void)state;
	rec_start(&t, &c);
	rec_puts(&t, "x\360\237\231");
	f = rec_finish(&t, "x" FFFD);
	assert_true(t.report.is_complete);
	rec_file_free(&f);
}

static void
a_resize_comes_before_the_output_at_that_size(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;
	autofree char *others = NULL;
	static const struct {
		char code;
		const char *text;
	} want[] = { { 'o', "one" }, { 'r', "132x50" }, { 'o', "two" },
		{ 'r', "40x10" } };

	(void)state;
	rec_start(&t, &c);
	recorder_resize(t.r, 80, 24);
	rec_puts(&t, "one");
	recorder_resize(t.r, 132, 50);
	recorder_resize(t.r, 132, 50);
	rec_puts(&t, "two");
	recorder_resize(t.r, 40, 10);
	f = rec_finish(&t, "onetwo");
	assert_int_equal(f.n_events, ARRAY_LEN(want));
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		assert_int_equal(f.events[i].code, want[i].code);
		assert_string_equal(f.events[i].text, want[i].text);
	}
	rec_file_free(&f);
}

static void
a_flood_without_newline_has_short_lines_and_all_bytes(void **state)
{
	struct recorder_config c = rec_config();
	size_t n = 8 << 20;
	autofree char *all = xmalloc(n + 1);
	struct rec t;
	struct rec_file f;

	(void)state;
	for (size_t i = 0; i < n; i++)
		all[i] = i % 1000 ? (char)('a' + i % 26) : '\001';
	all[n] = '\0';
	rec_start(&t, &c);
	rec_put(&t, all, n);
	f = rec_finish(&t, all);
	assert_true(f.n_longest < 64 << 10);
	assert_true(f.n < n + n / 10);
	rec_file_free(&f);
}

static void
tiny_events_stay_small(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;
	size_t n = 200 * 1000;

	(void)state;
	rec_start(&t, &c);
	for (size_t i = 0; i < n; i++)
		rec_puts(&t, "y");
	f = rec_finish(&t, NULL);
	assert_true(f.n < n * 3 / 2 + 4096);
	assert_true(t.report.is_complete);
	rec_file_free(&f);
}

static void
index_rows_are_line_starts_at_most_1_mib_apart(void **state)
{
	struct recorder_config c = rec_config();
	size_t n = 5 << 20, e = 0;
	autofree char *all = xmalloc(n);
	struct rec t;
	struct rec_file f;

	(void)state;
	memset(all, '\001', n);
	for (size_t i = 0; i < n; i += 3)
		all[i] = 'a';
	rec_start(&t, &c);
	rec_put(&t, all, n);
	f = rec_finish(&t, NULL);
	assert_true(t.n_rows > f.n >> 20);
	for (unsigned i = 0; i < t.n_rows; i++) {
		while (e < f.n_events && f.events[e].offset < t.rows[i].offset)
			e++;
		assert_true(e < f.n_events);
		assert_int_equal(f.events[e].offset, t.rows[i].offset);
		assert_int_equal(f.events[e].t_us / 1000, t.rows[i].t_ms);
		assert_int_equal(f.events[e].code, 'o');
		assert_true(t.rows[i].offset - (i ? t.rows[i - 1].offset : 0) <=
			    1 << 20);
	}
	assert_true(f.n - t.rows[t.n_rows - 1].offset <= 1 << 20);
	rec_file_free(&f);
}

static void
index_rows_come_by_time_too(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;
	uint64_t last = 0;

	(void)state;
	c.index_ms = 30;
	c.start_us -= 1000000;
	rec_start(&t, &c);
	while (clock_mono_us() - c.start_us < 1300000) {
		rec_puts(&t, "tick");
		poll(NULL, 0, 5);
	}
	f = rec_finish(&t, NULL);
	assert_in_range(t.n_rows, 2, 12);
	for (unsigned i = 0; i < t.n_rows; i++) {
		assert_true(t.rows[i].t_ms >= last + (i ? 30 : 1000));
		last = t.rows[i].t_ms;
	}
	rec_file_free(&f);
}

static void
markers_stand_where_they_happened(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;
	char want[] = "oomorom";

	(void)state;
	rec_start(&t, &c);
	recorder_marker(t.r, "");
	rec_puts(&t, "one");
	rec_flush(&t);
	rec_puts(&t, "two");
	recorder_marker(t.r, "al\303\253 joined");
	rec_puts(&t, "three");
	recorder_resize(t.r, 99, 33);
	rec_puts(&t, "four");
	recorder_marker(t.r, "al\303\253 left");
	f = rec_finish(&t, "onetwothreefour");
	assert_true(t.report.is_complete);
	assert_int_equal(f.n_events, strlen(want));
	for (size_t i = 0; i < f.n_events; i++)
		assert_int_equal(f.events[i].code, want[i]);
	assert_string_equal(f.events[2].text, "al\303\253 joined");
	assert_string_equal(f.events[6].text, "al\303\253 left");
	rec_file_free(&f);
}

static void
markers_are_harmless_and_short(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{ "a\033[2Jb", "a\\u001b[2Jb" },
		{ "a\nb\302\233c", "a\\nb\\u009bc" },
		{ "\342\200\256x", "\\u202ex" },
		{ "a\377b\303", "a\\ufffdb\\ufffd" },
	};
	struct recorder_config c = rec_config();
	char longest[1000];
	struct rec t;
	struct rec_file f;

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[255] = '\303';
	longest[256] = '\244';
	longest[sizeof(longest) - 1] = '\0';
	rec_start(&t, &c);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		recorder_marker(t.r, rows[i].in);
	recorder_marker(t.r, longest);
	f = rec_finish(&t, "");
	assert_int_equal(f.n_events, ARRAY_LEN(rows) + 1);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(f.events[i].code, 'm');
		assert_string_equal(f.events[i].text, rows[i].out);
	}
	assert_int_equal(f.events[ARRAY_LEN(rows)].n, 255);
	rec_file_free(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
		    output_is_recorded_and_complete, disk_reset),
		cmocka_unit_test_teardown(
		    an_empty_recording_has_one_event, disk_reset),
		cmocka_unit_test_teardown(
		    invalid_bytes_become_replacements_and_nothing_is_lost,
		    disk_reset),
		cmocka_unit_test_teardown(
		    a_character_in_three_writes_is_joined, disk_reset),
		cmocka_unit_test_teardown(
		    characters_cut_everywhere_survive, disk_reset),
		cmocka_unit_test_teardown(
		    an_incomplete_tail_is_one_replacement, disk_reset),
		cmocka_unit_test_teardown(
		    a_resize_comes_before_the_output_at_that_size, disk_reset),
		cmocka_unit_test_teardown(
		    a_flood_without_newline_has_short_lines_and_all_bytes,
		    disk_reset),
		cmocka_unit_test_teardown(tiny_events_stay_small, disk_reset),
		cmocka_unit_test_teardown(
		    index_rows_are_line_starts_at_most_1_mib_apart, disk_reset),
		cmocka_unit_test_teardown(
		    index_rows_come_by_time_too, disk_reset),
		cmocka_unit_test_teardown(
		    markers_stand_where_they_happened, disk_reset),
		cmocka_unit_test_teardown(
		    markers_are_harmless_and_short, disk_reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
