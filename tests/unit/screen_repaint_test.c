/*
 * A repaint makes another terminal equal, whatever that was before, in few bytes
 * and without a question; history arrives whole and without blank lines; what is
 * given back to a shell is as a shell expects it, and no more is sent than that
 * needs. tests/fuzz/repaint_fuzz.c does the same for any input.
 */
#include "tests/unit/screen_equal.h"
#include "tests/unit/screen_fixture.h"
#include "tests/unit/unit.h"

#define COLS 20
#define ROWS 6

/* Each a state that a repaint has to bring back. */
static const char *const repaint_states[] = {
	"",
	"plain\r\ntext",
	"12345678901234567890",
	"12345678901234567890and on",
	"1234567890123456789\346\274\242\346\274\242",
	"1234567890123456789\346\274\242\r\033[2K",
	"12345678901234567890x\r\033[K",
	"\033[44m\033[2J\033[3;4H\033[41mx\033[K",
	"e\314\201\360\237\221\251\342\200\215\360\237\221\251x",
	"\033[1;2;3;5;7;8;9;53;4:3;58:2::1:2:3;38;5;99;48;2;4;5;6mall",
	"\033]8;id=a;http://a\033\\link\033]8;;http://b\033\\other",
	"\033[1\"qprotected\033[0\"qnot",
	"\033[2;5r\033[4;9H",
	"\033[?69h\033[3;9s\033[2;5r\033[?6h\033[2;3Hx",
	"\033[?69h\033[3;9s1234567",
	"\033[3g\033[5G\033H\033[11G\033H",
	"\033(0lqk\033)A\016#",
	"\033*0\033n",
	"\033[3;5H\033[1;31m\0337\033[m\033[H",
	"12345678901234567890\0337\r\nx",
	"12345678901234567890\0337and on\0338",
	"\033[?69h\033[3;9s1234567\0337\033[?69l",
	"main\r\n\033[?1049h\033[2;2Halt\033[1m",
	"main\033[?47halt",
	"\033[>1u\033[>5u\033[=8;2u\033[?1049h\033[>3u\033[=1u",
	"\033[?1049h\033[>3u\033[=1u\0337\033[?1049l",
	"\033[?1h\033=\033[?5h\033[?7l\033[?12h\033[?25l\033[?45h",
	"\033[?1002h\033[?1006h\033[?1004h\033[?2004h\033[?2031h\033[4h\033[20h",
	"\033[?1007h\033[?1034h\033[?1036h\033[?67h",
	"\033[?1;1000s\033[?1h\033[?1s\033[?1l\033[?1000h\033[?1001s",
	"\033[>4;2m\033[>1;3m\033[5 q",
	"\033]0;title\033\\\033[22;0t\033]2;two\033\\\033[22t\033]1;icon\033\\",
	"\033]7;file:///tmp\033\\\033]4;1;#123456;200;red\033\\",
	"\033]10;#111111\033\\\033]11;#222222\033\\\033]19;#333333\033\\",
	"abc\033N",
};

static void
repaint_check(const char *in, const char *before, unsigned flags)
{
	struct screen *x = screen_of(COLS, ROWS), *to = screen_of(COLS, ROWS);
	struct buf b = { 0 };

	screen_put(x, in);
	screen_put(to, before);
	screen_prologue(ROWS, &b);
	screen_repaint(x, &b);
	screen_write(to, buf_head(&b), buf_len(&b));
	if (!screen_equal(x, to, flags | SCREEN_EQUAL_NO_LAST))
		print_message("%s: %s\n", in, screen_equal_where);
	assert_true(screen_equal(x, to, flags | SCREEN_EQUAL_NO_LAST));
	buf_release(&b);
	screen_free(x);
	screen_free(to);
}

static void
repaint_brings_every_state_to_a_new_terminal(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(repaint_states); i++)
		repaint_check(repaint_states[i], "", 0);
}

static void
repaint_brings_every_state_to_every_other(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(repaint_states); i++)
		for (size_t k = 0; k < ARRAY_LEN(repaint_states); k++)
			repaint_check(repaint_states[i], repaint_states[k],
			    SCREEN_EQUAL_NO_PREFERENCES);
}

/* REP goes on where the program left off. */
static void
repaint_lets_a_character_be_repeated(void **state)
{
	struct screen *x = screen_of(COLS, ROWS), *to = screen_of(COLS, ROWS);
	struct buf b = { 0 };

	(void)state;
	screen_put(x, "ab");
	screen_repaint(x, &b);
	screen_write(to, buf_head(&b), buf_len(&b));
	screen_put(x, "\033[3b");
	screen_put(to, "\033[3b");
	assert_true(screen_equal(x, to, 0));
	buf_release(&b);
	screen_free(x);
	screen_free(to);
}

static void
repaint_of_a_shell_is_small(void **state)
{
	struct screen *x = screen_of(80, 24);
	struct buf b = { 0 };

	(void)state;
	screen_put(x, "$ ls\r\nfile\r\n$ ");
	screen_repaint(x, &b);
	assert_true(buf_len(&b) < 1024);
	assert_memory_equal(buf_head(&b), "\033[?2026h", 8);
	assert_memory_equal(buf_head(&b) + buf_len(&b) - 8, "\033[?2026l", 8);
	buf_release(&b);
	screen_free(x);
}

/* ---- the way in ---- */

static void
history_arrives_whole(void **state)
{
	struct screen *x = screen_of(COLS, ROWS), *to = screen_of(COLS, ROWS);
	struct buf b = { 0 };
	char *wanted, *got;

	(void)state;
	for (unsigned i = 0; i < 30; i++)
		screen_put(x,
		    i % 3 ? "short\r\n" : "long lines of more than a row\r\n");
	screen_put(to, "$ ssh here\r\n");
	screen_prologue(ROWS, &b);
	screen_history(x, 0, (size_t)-1, &b);
	screen_push(ROWS, screen_history_end(x), &b);
	screen_repaint(x, &b);
	screen_write(to, buf_head(&b), buf_len(&b));
	assert_true(screen_equal(x, to, SCREEN_EQUAL_NO_LAST));
	wanted = history_text(x);
	got = history_text(to);
	assert_memory_equal(got, "$ ssh here||", 12);
	assert_string_equal(got + 12, wanted);
	free(wanted);
	free(got);
	buf_release(&b);
	screen_free(x);
	screen_free(to);
}

/* Fewer lines than rows: no blank ones between them and the screen. */
static void
push_scrolls_lines_and_no_blanks(void **state)
{
	for (unsigned n = 0; n < 10; n++) {
		struct screen *to = screen_of(COLS, ROWS);
		struct buf b = { 0 };

		(void)state;
		for (unsigned i = 0; i < n; i++)
			screen_put(to, "x\r\n");
		screen_push(ROWS, n, &b);
		screen_write(to, buf_head(&b), buf_len(&b));
		assert_int_equal(screen_history_end(to), n);
		assert_int_equal(to->cursor.row, 0);
		buf_release(&b);
		screen_free(to);
	}
}

/* ---- the way out ---- */

struct restore_row {
	const char *in, *out;
};

static const struct restore_row restore_rows[] = {
	{ "", "" },
	{ "$ exit\r\n", "" },
	{ "$ ", "\r\n" },
	{ "\033[3Hx\033[H", "\033[3H\r\n" },
	{ "\033[1m", "\033[?6l\033(B\033)B\033*B\033+B\017\033[m\033[0\"q"
		     "\033]8;;\033\\\033[1H" },
	{ "\033[?2004h", "\033[?2004l\033[1H" },
	{ "\033[?1000h\033[?1006h", "\033[?1006l\033[?1000l\033[1H" },
	{ "\033[?25l\033=", "\033[?25h\033>\033[1H" },
	{ "\033[?2026h", "\033[?2026l\033[1H" },
	{ "\033[2;4r", "\033[r\033[1H" },
	{ "\033N", " \r\033[K" },
	{ "\033[>1u", "\033[<99u\033[=0;1u\033[1H" },
	{ "\033]11;red\033\\", "\033]111\033\\\033[1H" },
	{ "$ vi\r\n\033[?1049htext", "\033[?1049l\033[2H" },
};

static void
restore_sends_what_is_needed_and_no_more(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(restore_rows); i++) {
		struct screen *x = screen_of(COLS, ROWS);
		struct buf b = { 0 };

		screen_put(x, restore_rows[i].in);
		screen_restore(x, &b);
		buf_put_u8(&b, 0);
		assert_string_equal(buf_head(&b), restore_rows[i].out);
		buf_release(&b);
		screen_free(x);
	}
}

static void
restore_leaves_nothing_on(void **state)
{
	struct screen *fresh = screen_of(COLS, ROWS);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(repaint_states) * 2; i++) {
		struct screen *x = screen_of(COLS, ROWS);
		bool is_known = i < ARRAY_LEN(repaint_states);
		struct buf b = { 0 };

		screen_put(x, repaint_states[i % ARRAY_LEN(repaint_states)]);
		if (is_known)
			screen_restore(x, &b);
		else
			screen_restore_unknown(&b);
		if (buf_len(&b))
			screen_write(x, buf_head(&b), buf_len(&b));
		x->saved_modes = fresh->saved_modes;
		x->saved_mouse = 0;
		assert_true(screen_equal_modes(
		    fresh, x, is_known ? 0 : SCREEN_EQUAL_NO_PREFERENCES));
		assert_false(screen_is_alternate(x));
		assert_int_equal(x->cursor.col, 0);
		assert_int_equal(x->cursor.pen.attr, 0);
		assert_int_equal(kitty_flags(&x->main.kitty), 0);
		assert_int_equal(x->bottom, ROWS - 1);
		buf_release(&b);
		screen_free(x);
	}
	screen_free(fresh);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repaint_brings_every_state_to_a_new_terminal),
		cmocka_unit_test(repaint_brings_every_state_to_every_other),
		cmocka_unit_test(repaint_lets_a_character_be_repeated),
		cmocka_unit_test(repaint_of_a_shell_is_small),
		cmocka_unit_test(history_arrives_whole),
		cmocka_unit_test(push_scrolls_lines_and_no_blanks),
		cmocka_unit_test(restore_sends_what_is_needed_and_no_more),
		cmocka_unit_test(restore_leaves_nothing_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
