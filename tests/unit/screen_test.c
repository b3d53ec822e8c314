/*
 * The terminal engine by what a program prints and what the screen shows then.
 */
#include <stdio.h>

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
	for (size_t i = 0; i < n; i++) {
		const struct screen_row *r = &rows[i];
		struct screen *s = screen_of(10, 4);
		char *text;

		screen_put(s, r->in);
		text = buffer_text(s, s->now);
		if (strcmp(text, r->text) != 0 || s->cursor.col != r->col ||
		    s->cursor.row != r->row ||
		    s->cursor.is_wrap_pending != r->is_pending)
			fail_msg("%s: [%s] at %u,%u%s, not [%s] at %u,%u%s",
			    r->what, text, s->cursor.col, s->cursor.row,
			    s->cursor.is_wrap_pending ? " pending" : "",
			    r->text, r->col, r->row,
			    r->is_pending ? " pending" : "");
		free(text);
		screen_free(s);
	}
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
	{ "invalid bytes show", "a\377b", "a\357\277\275b", 3, 0, false },
	{ "REP repeats", "ab\033[3b", "abbbb", 5, 0, false },
	{ "REP without a character does nothing", "\033[5b", "", 0, 0, false },
	{ "IRM pushes aside", "abc\033[4h\033[Gx", "xabc", 1, 0, false },
	{ "line drawing", "\033(0q\033(Bq", "\342\224\200q", 2, 0, false },
	{ "SO and SI", "\033)0q\016q\017q", "q\342\224\200q", 3, 0, false },
	{ "SS2 is for one", "\033*0\033Nqq", "\342\224\200q", 2, 0, false },
};

static void
text_goes_where_a_terminal_puts_it(void **state)
{
	(void)state;
	screen_check(screen_prints, ARRAY_LEN(screen_prints));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_goes_where_a_terminal_puts_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
