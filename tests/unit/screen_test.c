/*
 * The terminal engine by what a program prints and what the screen shows then.
 */
#include <gnu/libc-version.h>
#include <locale.h>
#include <stdio.h>
#include <wchar.h>

#include "tests/unit/screen_fixture.h"
#include "tests/unit/unit.h"

struct screen_row {
	const char *what; /* the claim */
	const char *in;
	const char *text;  /* of a screen of 10 x 4, rows divided by | */
	unsigned col, row; /* of the cursor, from 0 */
	bool is_pending;
};

static void
screen_check(const struct screen_row *rows, size_t n)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < n; i++) {
		const struct screen_row *r = &rows[i];
		struct screen *s = screen_of(10, 4);
		char *text;

		screen_put(s, r->in);
		text = buffer_text(s, s->now);
		if (strcmp(text, r->text) != 0 || s->cursor.col != r->col ||
		    s->cursor.row != r->row ||
		    s->cursor.is_wrap_pending != r->is_pending) {
			wrong++;
			print_error(
			    "%s: [%s] at %u,%u%s, not [%s] at %u,%u%s\n",
			    r->what, text, s->cursor.col, s->cursor.row,
			    s->cursor.is_wrap_pending ? " pending" : "",
			    r->text, r->col, r->row,
			    r->is_pending ? " pending" : "");
		}
		free(text);
		screen_free(s);
	}
	assert_int_equal(wrong, 0);
}

static const struct screen_row screen_prints[] = {
	{ "text appears", "abc", "abc", 3, 0, false },
	{ "CR LF begins a line", "a\r\nb", "a|b", 1, 1, false },
	{ "LF keeps the column", "a\nb", "a| b", 2, 1, false },
	{ "the last column waits", "0123456789", "0123456789", 9, 0, true },
	{ "then text wraps", "0123456789a", "0123456789|a", 1, 1, false },
	{ "CR ends the wait", "0123456789\ra", "a123456789", 1, 0, false },
	{ "BS ends the wait", "0123456789\b\ba", "0123456a89", 8, 0, false },
	{ "without DECAWM the last cell is overwritten", "\033[?7l0123456789ab",
	    "012345678b", 9, 0, true },
	{ "text scrolls", "1\r\n2\r\n3\r\n4\r\n5", "2|3|4|5", 1, 3, false },
	{ "wide characters take two cells", "\346\274\242a", "\346\274\242a", 3,
	    0, false },
	{ "a wide one wraps whole", "012345678\346\274\242",
	    "012345678|\346\274\242", 2, 1, false },
	{ "half of a wide one overwritten blanks the other",
	    "\346\274\242\033[2Gx", " x", 2, 0, false },
	{ "its left half likewise", "\346\274\242b\033[Gx", "x b", 1, 0,
	    false },
	{ "combining marks join", "e\314\201x", "e\314\201x", 2, 0, false },
	{ "an accent joins a blank as well", "ab\033[2K\314\201x",
	    "  \314\201x", 3, 0, false },
	{ "nothing is before the first column", "\314\201x", "x", 1, 0, false },
	{ "a spacing mark takes a column", "\340\244\225\340\244\276x",
	    "\340\244\225\340\244\276x", 3, 0, false },
	{ "invalid bytes show", "a\377b", "a\357\277\275b", 3, 0, false },
	{ "REP repeats", "ab\033[3b", "abbbb", 5, 0, false },
	{ "REP without a character does nothing", "\033[5b", "", 0, 0, false },
	{ "IRM pushes aside", "abc\033[4h\033[Gx", "xabc", 1, 0, false },
	{ "line drawing", "\033(0q\033(Bq", "\342\224\200q", 2, 0, false },
	{ "SO and SI", "\033)0q\016q\017q", "q\342\224\200q", 3, 0, false },
	{ "SS2 is for one", "\033*0\033Nqq", "\342\224\200q", 2, 0, false },
};

#define W "\346\274\242" /* a wide character */

static const struct screen_row screen_moves[] = {
	{ "CUP counts from 1", "\033[2;3Hx", "|  x", 3, 1, false },
	{ "CUP without parameters goes home", "ab\033[Hx", "xb", 1, 0, false },
	{ "moves stop at the edges", "\033[99;99H\033[99A\033[99Dx", "x", 1, 0,
	    false },
	{ "huge parameters saturate", "\033[99999999999;99999999999Hx",
	    "|||         x", 9, 3, true },
	{ "CUF and CUB", "abc\033[2Dx\033[2Cy", "axc y", 5, 0, false },
	{ "CUU and CUD keep the column", "\n\nab\033[Ax\033[2By",
	    "|  x|ab|   y", 4, 3, false },
	{ "CNL and CPL return", "ab\033[Ex\033[Fy", "yb|x", 1, 0, false },
	{ "CHA, HPA, VPA", "\033[3Ga\033[5`b\033[2dc", "  a b|     c", 6, 1,
	    false },
	{ "HPR and VPR", "\033[3aa\033[1eb", "   a|    b", 5, 1, false },
	{ "tabs are every eight", "\tx", "        x", 9, 0, false },
	{ "the last tab stops at the edge", "\t\t\tx", "         x", 9, 0,
	    true },
	{ "a tab is set and cleared", "\033[3G\033H\r\tx\r\033[3G\033[g\r\ty",
	    "  x     y", 9, 0, false },
	{ "all tabs cleared", "\033[3g\tx", "         x", 9, 0, true },
	{ "CHT and CBT", "\033[I\033[Zx", "x", 1, 0, false },
	{ "DECSC keeps place and pen", "ab\0337\033[3;3H\0338c", "abc", 3, 0,
	    false },
	{ "DECRC without DECSC goes home", "ab\0338c", "cb", 1, 0, false },
	{ "SCOSC and SCORC", "ab\033[s\033[3;3H\033[uc", "abc", 3, 0, false },
	{ "DECSC keeps the pending wrap", "0123456789\0337\r\0338a",
	    "0123456789|a", 1, 1, false },
	{ "NEL", "ab\033Ec", "ab|c", 1, 1, false },
	{ "IND", "ab\033Dc", "ab|  c", 3, 1, false },
	{ "RI scrolls at the top", "ab\r\033Mc", "c|ab", 1, 0, false },
	{ "LNM", "\033[20hab\nc", "ab|c", 1, 1, false },
	{ "reverse wrap goes back over a wrap", "\033[?45h0123456789ab\b\b\bx",
	    "012345678x|ab", 9, 0, true },
	{ "VT and FF are line feeds", "a\vb\fc", "a| b|  c", 3, 2, false },
	{ "C1 controls in UTF-8", "ab\302\205c\302\2332Cd", "ab|c  d", 4, 1,
	    false },
	{ "C0 inside a CSI sequence", "ab\033[\r2Cc", "abc", 3, 0, false },
	{ "CAN ends a sequence", "ab\033[2\030C", "abC", 3, 0, false },
	{ "ESC ends a sequence", "ab\033[2\033[Cc", "ab c", 4, 0, false },
	{ "two intermediates mean nothing", "ab\033[2 !pc", "abc", 3, 0,
	    false },
	{ "a late prefix means nothing", "ab\033[2?Cc", "abc", 3, 0, false },
};

static const struct screen_row screen_erasures[] = {
	{ "EL to the end", "abcdef\033[3G\033[K", "ab", 2, 0, false },
	{ "EL to the beginning", "abcdef\033[3G\033[1K", "   def", 2, 0,
	    false },
	{ "EL of all", "abcdef\033[2Kx", "      x", 7, 0, false },
	{ "EL leaves a full row alone, and the wait", "0123456789\033[Kx",
	    "0123456789|x", 1, 1, false },
	{ "so does ED", "0123456789\r\n\n\033[A\033[A0123456789\033[Jx",
	    "0123456789|x", 1, 1, false },
	{ "EL of what is before takes it", "0123456789\033[1Kx", "|x", 1, 1,
	    false },
	{ "ECH ends the wait", "0123456789\033[Xx", "012345678x", 9, 0, true },
	{ "ED to the end", "a\r\nb\r\nc\033[2H\033[J", "a", 0, 1, false },
	{ "ED to the beginning", "a\r\nb\r\ncd\033[1J", "", 2, 2, false },
	{ "ED of all keeps the cursor", "a\r\nb\033[2J", "", 1, 1, false },
	{ "ECH", "abcdef\033[2G\033[2X", "a  def", 1, 0, false },
	{ "ECH of half a wide character takes it whole", W W "\033[2G\033[2X",
	    "", 1, 0, false },
	{ "ICH", "abcdef\033[2G\033[2@", "a  bcdef", 1, 0, false },
	{ "ICH drops what goes over the edge", "0123456789\033[2G\033[3@",
	    "0   123456", 1, 0, false },
	{ "ICH cuts a wide character at the edge", "0123456" W "9\033[G\033[2@",
	    "  0123456", 0, 0, false },
	{ "DCH", "abcdef\033[2G\033[2P", "adef", 1, 0, false },
	{ "DCH moves wide characters whole", "abc" W "\033[G\033[P", "bc" W, 0,
	    0, false },
	{ "DCH of half a wide character", "a" W "b\033[2G\033[P", "a b", 1, 0,
	    false },
	{ "IL", "a\r\nb\r\nc\033[2H\033[L", "a||b|c", 0, 1, false },
	{ "IL drops at the bottom", "a\r\nb\r\nc\r\nd\033[2H\033[9L", "a", 0, 1,
	    false },
	{ "DL", "a\r\nb\r\nc\033[1;1H\033[2M", "c", 0, 0, false },
	{ "SU", "a\r\nb\033[S", "b", 1, 1, false },
	{ "SD", "a\r\nb\033[T", "|a|b", 1, 1, false },
	{ "SL and SR", "abc\r\n\033[A\033[2 @\033[ A", " c", 0, 0, false },
	{ "DECALN", "\033#8\033[Hx",
	    "xEEEEEEEEE|EEEEEEEEEE|EEEEEEEEEE"
	    "|EEEEEEEEEE",
	    1, 0, false },
	{ "protected cells stay", "a\033[1\"qb\033[\"qc\033[?2Kd", " b d", 4, 0,
	    false },
	{ "but not from EL", "a\033[1\"qb\033[\"qc\033[2K", "", 3, 0, false },
	{ "DECFRA", "\033[120;1;2;2;3$x", " xx| xx", 0, 0, false },
	{ "DECERA", "abcd\033[1;2;1;3$z", "a  d", 4, 0, false },
	{ "DECCRA", "abcd\033[1;1;1;3;1;2;2;1$v", "abcd| abc", 4, 0, false },
	{ "DECCRA over itself", "abcdef\033[1;1;1;4;1;1;3;1$v", "ababcd", 6, 0,
	    false },
};

static const struct screen_row screen_margins[] = {
	{ "DECSTBM scrolls between", "a\r\nb\r\nc\r\nd\033[2;3r\033[3H\nx",
	    "a|c|x|d", 1, 2, false },
	{ "and homes", "ab\033[2;3rx", "xb", 1, 0, false },
	{ "below the margins nothing scrolls", "a\033[1;2r\033[4H\n\nx",
	    "a|||x", 1, 3, false },
	{ "an empty region is refused", "a\033[3;3r\nx", "a| x", 2, 1, false },
	{ "RI scrolls at the top margin", "a\r\nb\r\nc\033[2;3r\033[2H\033Mx",
	    "a|x|b", 1, 1, false },
	{ "origin mode counts from the margins", "\033[2;3r\033[?6h\033[Hx",
	    "|x", 1, 1, false },
	{ "and stays within", "\033[2;3r\033[?6h\033[9Hx", "||x", 1, 2, false },
	{ "IL outside does nothing", "a\r\nb\033[3;4r\033[1H\033[L", "a|b", 0,
	    0, false },
	{ "DECSLRM wraps within", "\033[?69h\033[3;5s\033[1;3Habcd",
	    "  abc|  d", 3, 1, false },
	{ "DECSLRM scrolls within",
	    "0123456789\033[4;1Habcdefghij\033[?69h\033[3;5s\033[4;3H\n",
	    "01   56789||  cde|ab   fghij", 2, 3, false },
	{ "DCH within", "0123456789\033[?69h\033[3;5s\033[1;3H\033[P",
	    "0134 56789", 2, 0, false },
	{ "ICH and IRM outside of them push nothing",
	    "0123456789\033[?69h\033[3;5s\033[1;1H\033[@\033[4hx", "x123456789",
	    1, 0, false },
	{ "DECIC and DECDC", "0123456789\033[1;3H\033[2'}\033[1;8H\033['~",
	    "01  23467", 7, 0, false },
	{ "DECBI and DECFI move", "abc\0336x\033[G\0339y", "ayx", 2, 0, false },
	{ "DECBI at the margin makes room", "ab\r\ncd\033[H\0336x", "xab| cd",
	    1, 0, false },
	{ "DECFI at the margin takes the first",
	    "0123456789\r\nab\033[H\033[?69h\033[2;5s\033[1;5H\0339x",
	    "0234x56789|a", 4, 0, true },
	{ "without ?69 `s` saves", "ab\033[3;5s\033[H\033[ux", "abx", 3, 0,
	    false },
};

static const struct screen_row screen_buffers[] = {
	{ "1049 shows an empty one", "abc\033[?1049h", "", 3, 0, false },
	{ "and brings back text and cursor", "abc\033[?1049h\033[Hx\033[?1049l",
	    "abc", 3, 0, false },
	{ "47 keeps what was there", "\033[?47hx\033[?47l\033[?47h", "x", 1, 0,
	    false },
	{ "1047 clears on leaving", "\033[?1047hx\033[?1047l\033[?1047h", "", 1,
	    0, false },
	{ "1048 saves the cursor", "ab\033[?1048h\033[H\033[?1048lx", "abx", 3,
	    0, false },
	{ "RIS", "ab\033[2;3r\033[?6h\033cx", "x", 1, 0, false },
	{ "DECSTR keeps text and place", "ab\033[4h\033[!pcd\033[Ge", "ebcd", 1,
	    0, false },
};

static const struct screen_row screen_strings[] = {
	{ "OSC shows nothing", "a\033]0;title\007b", "ab", 2, 0, false },
	{ "nor with ST", "a\033]0;title\033\\b", "ab", 2, 0, false },
	{ "nor with C1", "a\302\2350;title\302\234b", "ab", 2, 0, false },
	{ "DCS, APC, PM, SOS neither",
	    "a\033Pq#1\007\033\\\033_x\033\\\033^y\033\\\033Xz\033\\b", "ab", 2,
	    0, false },
	{ "CAN ends a string", "a\033]0;t\030b", "ab", 2, 0, false },
};

#undef W

static void
text_goes_where_a_terminal_puts_it(void **state)
{
	(void)state;
	screen_check(screen_prints, ARRAY_LEN(screen_prints));
}

static void
the_cursor_moves_as_xterms_does(void **state)
{
	(void)state;
	screen_check(screen_moves, ARRAY_LEN(screen_moves));
}

static void
erasing_inserting_deleting(void **state)
{
	(void)state;
	screen_check(screen_erasures, ARRAY_LEN(screen_erasures));
}

static void
margins_hold_what_is_inside(void **state)
{
	(void)state;
	screen_check(screen_margins, ARRAY_LEN(screen_margins));
}

static void
both_screens_are_kept(void **state)
{
	(void)state;
	screen_check(screen_buffers, ARRAY_LEN(screen_buffers));
}

static void
control_strings_leave_no_trace(void **state)
{
	(void)state;
	screen_check(screen_strings, ARRAY_LEN(screen_strings));
}

static void
pending_counts_from_the_last_ground_position(void **state)
{
	static const struct {
		const char *in;
		unsigned pending;
	} rows[] = { { "abc", 0 }, { "ab\033", 1 }, { "ab\033[12", 4 },
		{ "ab\033[1m", 0 }, { "\033]0;title", 9 },
		{ "\033]0;title\033", 10 }, { "x\343\201", 2 },
		{ "\033[1\033", 1 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct screen *s = screen_of(10, 4);

		screen_put(s, rows[i].in);
		assert_int_equal(screen_pending(s), rows[i].pending);
		screen_free(s);
	}
}

static void
an_endless_repeat_ends_at_the_size_of_the_screen(void **state)
{
	struct screen *s = screen_of(1000, 1000);

	(void)state;
	screen_put(s, "x");
	for (unsigned i = 0; i < 5; i++)
		screen_put(s, "\033[99999999b\033[65535S\033[65535T\033[65535@"
			      "\033[65535P\033[65535L\033[65535M\033[65535X");
	/* a parameter is 65535 at most; IL and DL return */
	assert_int_equal(s->cursor.row, 5 * (65535 / 1000));
	screen_free(s);
}

/* Another resize or a copy would tear apart what goes on below. */
static void
text_up_to_a_margin_leaves_the_wrap_of_its_row(void **state)
{
	struct screen *s = screen_of(10, 4);

	(void)state;
	screen_put(s, "0123456789ab\033[?69h\033[2;5s\033[Hxxxxx");
	assert_true(s->cursor.is_wrap_pending);
	assert_true(s->now->rows[0].is_wrapped);
	screen_put(s, "\033[?69l\033[10Gx");
	assert_false(s->now->rows[0].is_wrapped);
	screen_free(s);
}

/* What programs count with; -1 there: too new for the C library. */
static void
a_character_is_as_wide_as_for_the_c_library(void **state)
{
	unsigned wrong = 0;

	(void)state;
	if (strcmp(gnu_get_libc_version(), "2.36") != 0 ||
	    !setlocale(LC_CTYPE, "C.UTF-8")) {
		print_message("explained: widths are those of glibc 2.36\n");
		skip();
	}
	for (uint32_t c = 0xa0; c < 0x110000; c++) {
		int w = wcwidth((wchar_t)c);

		if (w < 0 || w == (int)print_width(c))
			continue;
		wrong++;
		print_error("U+%04X: %u, not %d\n", c, print_width(c), w);
	}
	assert_int_equal(wrong, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    text_up_to_a_margin_leaves_the_wrap_of_its_row),
		cmocka_unit_test(a_character_is_as_wide_as_for_the_c_library),
		cmocka_unit_test(text_goes_where_a_terminal_puts_it),
		cmocka_unit_test(the_cursor_moves_as_xterms_does),
		cmocka_unit_test(erasing_inserting_deleting),
		cmocka_unit_test(margins_hold_what_is_inside),
		cmocka_unit_test(both_screens_are_kept),
		cmocka_unit_test(control_strings_leave_no_trace),
		cmocka_unit_test(pending_counts_from_the_last_ground_position),
		cmocka_unit_test(
		    an_endless_repeat_ends_at_the_size_of_the_screen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
