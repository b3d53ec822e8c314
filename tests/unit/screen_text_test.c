/*
 * Screens and histories as text: what is cut, what is not, the shortest way from
 * one rendition to the next.
 */
#include "tests/unit/screen_fixture.h"
#include "tests/unit/unit.h"

struct text_row {
	const char *in, *out;
};

static const struct text_row text_plain[] = {
	{ "", "" },
	{ "a", "a\n" },
	{ "a  \r\n\r\n b \r\n", "a\n\n b\n" },
	{ "\033[5Gx", "    x\n" },
	{ "\033[1;31mred\033[m", "red\n" },
	{ "\346\274\242e\314\201", "\346\274\242e\314\201\n" },
	{ "\033[44m\033[K", "" },
	{ "main\033[?1049h\033[Halt", "alt\n" },
	{ "123456789012345", "1234567890\n12345\n" },
};

static const struct text_row text_ansi[] = {
	{ "a\033[1;31mb\033[mc", "a\033[1;31mb\033[mc\n" },
	{ "\033[1;31mb\033[22mc", "\033[1;31mb\033[22mc\033[m\n" },
	{ "\033[1;2mb\033[22;2mc", "\033[1;2mb\033[0;2mc\033[m\n" },
	{ "\033[1;3;4;7;38;5;99mb\033[0;3mc",
	    "\033[1;3;7;4;38;5;99mb\033[0;3mc\033[m\n" },
	{ "\033[94;103mb", "\033[94;103mb\033[m\n" },
	{ "\033[38;2;1;2;3mb\033[39mc", "\033[38;2;1;2;3mb\033[mc\n" },
	{ "\033[31;4:3;58:2::1:2:3mb",
	    "\033[31m\033[4:3;58:2::1:2:3mb\033[m\n" },
	{ "\033[4;58;5;7mb\033[59mc", "\033[4m\033[58:5:7mb\033[59mc\033[m\n" },
	{ "\033[8;9;53;5mb", "\033[5;8;9;53mb\033[m\n" },
	{ "\033]8;id=x;http://a\033\\b\033]8;;\033\\c",
	    "\033]8;id=x;http://a\033\\b\033]8;;\033\\c\n" },
	{ "\033[44ma\033[K", "\033[44ma         \033[m\n" },
	{ "\033[1\"qb", "b\n" },
};

static void
text_check(const struct text_row *rows, size_t n, unsigned flags)
{
	for (size_t i = 0; i < n; i++) {
		struct screen *s = screen_of(10, 4);
		struct buf out = { 0 };

		screen_put(s, rows[i].in);
		screen_text(s, flags, &out);
		buf_put_u8(&out, 0);
		assert_string_equal(buf_head(&out), rows[i].out);
		buf_release(&out);
		screen_free(s);
	}
}

static void
text_leaves_out_blank_ends(void **state)
{
	(void)state;
	text_check(text_plain, ARRAY_LEN(text_plain), 0);
}

static void
text_takes_the_shortest_sgr(void **state)
{
	(void)state;
	text_check(text_ansi, ARRAY_LEN(text_ansi), SCREEN_TEXT_ANSI);
}

static void
text_begins_with_the_history_if_asked(void **state)
{
	struct screen *s = screen_of(10, 2);
	struct buf out = { 0 };

	(void)state;
	screen_put(s, "1\r\n\033[1m2\r\n\033[m3\r\n4");
	screen_text(s, SCREEN_TEXT_HISTORY, &out);
	buf_put_u8(&out, 0);
	assert_string_equal(buf_head(&out), "1\n2\n3\n4\n");
	buf_release(&out);
	screen_free(s);
}

/* A wrapped line has no end, and the last one makes the terminal wrap. */
static void
text_history_flows_as_it_was_wrapped(void **state)
{
	struct screen *s = screen_of(4, 2);
	struct buf out = { 0 };
	uint64_t next;

	(void)state;
	screen_put(s, "ab\r\n\033[1mcdefgh\033[m\r\nijklmnopq");
	next = screen_history(s, 0, 1, &out);
	assert_int_equal(next, 1);
	next = screen_history(s, next, 1000, &out);
	assert_int_equal(next, screen_history_end(s));
	assert_int_equal(next, screen_history(s, next, 1000, &out));
	buf_put_u8(&out, 0);
	assert_string_equal(buf_head(&out),
	    "ab\r\n\033[1mcdef\033[m\033[1mgh\033[m\r\nijkl \r");
	buf_release(&out);
	screen_free(s);
}

/*
 * Rows whose place only a blank can hold: the rest of a wrapped line is blank,
 * a wide character had no room; and one that came in with a background.
 */
static void
text_history_keeps_every_row(void **state)
{
	static const struct {
		const char *printed, *sent;
	} rows[] = {
		{ "abcd \r\nx\r\ny\r\n", "abcd \r\nx\r\n" },
		{ "abc\xe6\xbc\xa2\r\nx", "abc  \r" },
		{ "abcd\033[41m \033[m\r\nx\r\ny",
		    "abcd\033[41m \033[m\033[K\r\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct screen *s = screen_of(4, 2);
		struct buf out = { 0 };

		screen_put(s, rows[i].printed);
		/* a line at a time, as a session may ask */
		for (uint64_t n = 0; n < screen_history_end(s);)
			n = screen_history(s, n, 1, &out);
		buf_put_u8(&out, 0);
		assert_string_equal(buf_head(&out), rows[i].sent);
		buf_release(&out);
		screen_free(s);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_leaves_out_blank_ends),
		cmocka_unit_test(text_takes_the_shortest_sgr),
		cmocka_unit_test(text_begins_with_the_history_if_asked),
		cmocka_unit_test(text_history_flows_as_it_was_wrapped),
		cmocka_unit_test(text_history_keeps_every_row),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
