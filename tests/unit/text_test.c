/* Text: escapes are harmless, numbers exact, globs as promised. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "tests/unit/unit.h"

struct escape_row {
	const char *in;
	size_t n;
	const char *want;
};

#define ROW(in, want)                    \
	{                                \
		in, sizeof(in) - 1, want \
	}

static void
escape_leaves_one_line_of_printable_ascii(void **state)
{
	static const struct escape_row rows[] = {
		ROW("", ""),
		ROW("plain text", "plain text"),
		ROW("a\nb\rc\td", "a\\nb\\rc\\td"),
		ROW("\x1b[31m", "\\e[31m"),
		ROW("say \"hi\" \\o/", "say \\\"hi\\\" \\\\o/"),
		ROW("\0\x01\x7f\x9b", "\\x00\\x01\\x7f\\x9b"),
		ROW("\xc3\xa9", "\\xc3\\xa9"),
		ROW("\xe2\x80\xae", "\\xe2\\x80\\xae"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char out[64];

		assert_int_equal(
		    text_escape(rows[i].in, rows[i].n, out, sizeof(out)),
		    strlen(rows[i].want));
		assert_string_equal(out, rows[i].want);
	}
}

static void
json_escape_keeps_text_and_disarms_controls(void **state)
{
	static const struct escape_row rows[] = {
		ROW("caf\xc3\xa9", "caf\xc3\xa9"),
		ROW("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"),
		ROW("a\"b\\c\n", "a\\\"b\\\\c\\n"),
		ROW("\x1b\0", "\\u001b\\u0000"),
		ROW("\x7f\xc2\x9b", "\\u007f\\u009b"),
		ROW("\xe2\x80\xae"
		    "x",
		    "\\u202ex"),
		ROW("\xe2\x80\xa8", "\\u2028"),
		ROW("\xe2\x81\xa6", "\\u2066"),
		ROW("\xff", "\\ufffd"),
		ROW("\xc3", "\\ufffd"),
		ROW("\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char out[64];

		text_escape_json(rows[i].in, rows[i].n, out, sizeof(out));
		assert_string_equal(out, rows[i].want);
	}
}

static void
escapes_are_cut_whole(void **state)
{
	static const char in[] = "ab\x01\n\xff";

	(void)state;
	for (size_t size = 1; size < 24; size++) {
		struct {
			char out[24];
			char guard;
		} s = { .guard = 'g' };
		size_t n = text_escape(in, sizeof(in) - 1, s.out, size);

		assert_true(n < size);
		assert_int_equal(strlen(s.out), n);
		assert_true(
		    n == 0 || n == 1 || n == 2 || n == 6 || n == 8 || n == 12);
		n = text_escape_json(in, sizeof(in) - 1, s.out, size);
		assert_true(n < size);
		assert_true(
		    n == 0 || n == 1 || n == 2 || n == 8 || n == 10 || n == 16);
		assert_int_equal(s.guard, 'g');
	}
	assert_int_equal(text_escape("abc", 3, NULL, 0), 0);
}

static void
utf8_lengths_follow_the_standard(void **state)
{
	static const struct {
		const char *in;
		size_t n;
		int want;
	} rows[] = {
		{ "a", 1, 1 },
		{ "\0", 1, 1 },
		{ "\xc3\xa9", 2, 2 },
		{ "\xe2\x82\xac", 3, 3 },
		{ "\xf0\x9f\x98\x80", 4, 4 },
		{ "\xf4\x8f\xbf\xbf", 4, 4 },
		{ "\xc3", 1, -1 },
		{ "\xe2", 1, -2 },
		{ "\xe2\x82", 2, -1 },
		{ "\xf0", 1, -3 },
		{ "\xf0\x9f\x98", 3, -1 },
		{ "\x80", 1, 0 },
		{ "\xc0\x80", 2, 0 },
		{ "\xc1\xbf", 2, 0 },
		{ "\xe0\x80\x80", 3, 0 },
		{ "\xe0\x9f", 2, 0 },
		{ "\xed\xa0\x80", 3, 0 },
		{ "\xf0\x80\x80\x80", 4, 0 },
		{ "\xf4\x90\x80\x80", 4, 0 },
		{ "\xf5\x80\x80\x80", 4, 0 },
		{ "\xff", 1, 0 },
		{ "\xc3"
		  "a",
		    2, 0 },
		{ "\xe2\x82"
		  "a",
		    3, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(
		    text_utf8_len((const uint8_t *)rows[i].in, rows[i].n),
		    rows[i].want);
}

static void
numbers_are_whole_and_in_range(void **state)
{
	static const struct {
		const char *in;
		int rc;
		uint64_t want;
	} rows[] = {
		{ "1", 0, 1 },
		{ "100", 0, 100 },
		{ "007", 0, 7 },
		{ "0", -ERANGE, 0 },
		{ "101", -ERANGE, 0 },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 ", -EINVAL, 0 },
		{ "0x1", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t v = 4711;

		assert_int_equal(
		    text_parse_u64(rows[i].in, 1, 100, &v), rows[i].rc);
		assert_int_equal(v, rows[i].rc ? 4711 : rows[i].want);
	}
}

static void
sizes_and_durations_take_their_units(void **state)
{
	static const struct {
		int (*parse)(const char *s, uint64_t *out);
		const char *in;
		int rc;
		uint64_t want;
	} rows[] = {
		{ text_parse_size, "4096", 0, 4096 },
		{ text_parse_size, "16k", 0, 16384 },
		{ text_parse_size, "1M", 0, 1048576 },
		{ text_parse_size, "2G", 0, 2147483648 },
		{ text_parse_size, "0", 0, 0 },
		{ text_parse_size, "1K", -EINVAL, 0 },
		{ text_parse_size, "1T", -EINVAL, 0 },
		{ text_parse_size, "k", -EINVAL, 0 },
		{ text_parse_size, "1.5M", -EINVAL, 0 },
		{ text_parse_size, "99999999999G", -ERANGE, 0 },
		{ text_parse_size, "8589934592G", -ERANGE, 0 },
		{ text_parse_duration, "0", 0, 0 },
		{ text_parse_duration, "100ms", 0, 100 },
		{ text_parse_duration, "30s", 0, 30000 },
		{ text_parse_duration, "5m", 0, 300000 },
		{ text_parse_duration, "168h", 0, 604800000 },
		{ text_parse_duration, "7d", 0, 604800000 },
		{ text_parse_duration, "30", -EINVAL, 0 },
		{ text_parse_duration, "30S", -EINVAL, 0 },
		{ text_parse_duration, "-1s", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t v = 4711;

		assert_int_equal(rows[i].parse(rows[i].in, &v), rows[i].rc);
		assert_int_equal(v, rows[i].rc ? 4711 : rows[i].want);
	}
}

static void
formatted_values_parse_back(void **state)
{
	static const struct {
		uint64_t v;
		const char *size, *duration;
	} rows[] = {
		{ 0, "0", "0" },
		{ 1, "1", "1ms" },
		{ 1000, "1000", "1s" },
		{ 1024, "1k", "1024ms" },
		{ 1048576, "1M", "1048576ms" },
		{ 604800000, "590625k", "7d" },
		{ 90000, "90000", "90s" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char out[32];
		uint64_t v;

		text_format_size(rows[i].v, out, sizeof(out));
		assert_string_equal(out, rows[i].size);
		assert_int_equal(text_parse_size(out, &v), 0);
		assert_int_equal(v, rows[i].v);
		text_format_duration(rows[i].v, out, sizeof(out));
		assert_string_equal(out, rows[i].duration);
		assert_int_equal(text_parse_duration(out, &v), 0);
		assert_int_equal(v, rows[i].v);
	}
}

static void
window_sizes_have_both_numbers(void **state)
{
	static const struct {
		const char *in;
		bool ok;
	} rows[] = {
		{ "120x40", true },
		{ "1x1", true },
		{ "65535x65535", true },
		{ "0x40", false },
		{ "120x0", false },
		{ "65536x1", false },
		{ "1x65536", false },
		{ "120", false },
		{ "120x", false },
		{ "x40", false },
		{ "120X40", false },
		{ "120x40x1", false },
		{ "", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		unsigned cols = 7, rows_out = 7;
		int rc = text_parse_size2d(rows[i].in, &cols, &rows_out);

		assert_int_equal(rc == 0, rows[i].ok);
		assert_int_equal(cols == 7 && rows_out == 7, !rows[i].ok);
	}
}

static void
glob_lists_match_and_negate(void **state)
{
	static const struct {
		const char *list, *name;
		bool want;
	} rows[] = {
		{ "*", "anything", true },
		{ "*", "", true },
		{ "", "a", false },
		{ "TERM,LANG,LC_*", "LC_ALL", true },
		{ "TERM,LANG,LC_*", "LANGUAGE", false },
		{ "TERM,LANG,LC_*", "TERM", true },
		{ "a?c", "abc", true },
		{ "a?c", "ac", false },
		{ "a*b*c", "aXbYbZc", true },
		{ "a*b*c", "aXbYbZ", false },
		{ "*,!secret*", "secret1", false },
		{ "!secret*,*", "secret1", false },
		{ "*,!secret*", "public", true },
		{ "!secret", "public", false },
		{ "[a-z]", "b", false },
		{ "[a-z]", "[a-z]", true },
		{ "a,,b", "b", true },
		{ "A", "a", false },
		{ "***a", "bba", true },
		{ "*a*a*a*a*a*a*a*a*b",
		    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(
		    text_glob_list(rows[i].list, rows[i].name), rows[i].want);
}

static void
random_ids_have_their_shape_and_differ(void **state)
{
	char a[32], b[32], cut[8];

	(void)state;
	text_random_id("ses-", 8, a, sizeof(a));
	text_random_id("ses-", 8, b, sizeof(b));
	assert_int_equal(strlen(a), 20);
	assert_int_equal(strspn(a + 4, "0123456789abcdef"), 16);
	assert_string_not_equal(a, b);
	text_random_id("ses-", 8, cut, sizeof(cut));
	assert_int_equal(strlen(cut), 6);
}

static void
constant_time_comparison_compares(void **state)
{
	(void)state;
	assert_true(text_equal_ct("abc", "abc", 3));
	assert_false(text_equal_ct("abc", "abd", 3));
	assert_false(text_equal_ct("xbc", "abc", 3));
	assert_true(text_equal_ct("a", "b", 0));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escape_leaves_one_line_of_printable_ascii),
		cmocka_unit_test(json_escape_keeps_text_and_disarms_controls),
		cmocka_unit_test(escapes_are_cut_whole),
		cmocka_unit_test(utf8_lengths_follow_the_standard),
		cmocka_unit_test(numbers_are_whole_and_in_range),
		cmocka_unit_test(sizes_and_durations_take_their_units),
		cmocka_unit_test(formatted_values_parse_back),
		cmocka_unit_test(window_sizes_have_both_numbers),
		cmocka_unit_test(glob_lists_match_and_negate),
		cmocka_unit_test(random_ids_have_their_shape_and_differ),
		cmocka_unit_test(constant_time_comparison_compares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
