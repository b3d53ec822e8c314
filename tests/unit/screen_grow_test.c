/*
 * A taller screen takes lines back from the history: as many as it has grown
 * by, rewrapped with the rest, with all that their cells had; nothing is lost
 * or there twice, and what scrolls off again gets the same number.
 */
#include <stdio.h>

#include "screen/intern.h"
#include "tests/unit/screen_equal.h"
#include "tests/unit/screen_fixture.h"
#include "tests/unit/unit.h"

#define W "\346\274\242"

struct grow_size {
	unsigned cols, rows;
};

struct grow_row {
	const char *what, *in;
	struct grow_size sizes[4]; /* from 10 x 4; up to the first 0 x 0 */
	const char *text, *kept;
	unsigned col, row;
	bool is_pending;
};

#define SIX "1\r\n2\r\n3\r\n4\r\n5\r\n6"

static const struct grow_row grow_rows[] = {
	{ "one line", SIX, { { 10, 5 } }, "2|3|4|5|6", "1|", 1, 4, false },
	{ "all lines", SIX, { { 10, 6 } }, "1|2|3|4|5|6", "", 1, 5, false },
	{ "more than there are", SIX, { { 10, 9 } }, "1|2|3|4|5|6", "", 1, 5,
	    false },
	{ "one after the other", SIX, { { 10, 5 }, { 10, 6 }, { 10, 7 } },
	    "1|2|3|4|5|6", "", 1, 5, false },
	{ "none without a history", "1\r\n2", { { 10, 6 } }, "1|2", "", 1, 1,
	    false },
	{ "none for another width", SIX, { { 20, 4 } }, "3|4|5|6", "1|2|", 1, 3,
	    false },
	{ "none that was cleared", SIX "\033[3J", { { 10, 6 } }, "3|4|5|6", "",
	    1, 3, false },
	{ "also above blank rows", SIX "\033[2;2H\033[J", { { 10, 6 } },
	    "1|2|3|4", "", 1, 3, false },
	{ "above a blank screen", SIX "\033[H\033[2J", { { 10, 5 } }, "2", "1|",
	    0, 1, false },
	{ "blank lines count", "1\r\n\r\n\r\n4\r\n5\r\n6", { { 10, 5 } },
	    "||4|5|6", "1|", 1, 4, false },
	{ "a pending wrap stays", SIX "\r\n0123456789", { { 10, 5 } },
	    "3|4|5|6|0123456789", "1|2|", 9, 4, true },
	{ "a wrapped line in whole", "0123456789ab\r\n1\r\n2\r\n3\r\n4",
	    { { 10, 6 } }, "0123456789|ab|1|2|3|4", "", 1, 5, false },
	{ "a wrapped line in part", "0123456789ab\r\n1\r\n2\r\n3\r\n4",
	    { { 10, 5 } }, "ab|1|2|3|4", "0123456789>", 1, 4, false },
	{ "it goes on in the first row", "0123456789ab\r\n1\r\n2\r\n3",
	    { { 10, 5 } }, "0123456789|ab|1|2|3", "", 1, 4, false },
	{ "and comes together when wider", "0123456789ab\r\n1\r\n2\r\n3",
	    { { 20, 5 } }, "0123456789ab|1|2|3", "", 1, 3, false },
	{ "also with the cursor on it", "0123456789ab\r\n1\r\n2\r\n3\033[H",
	    { { 20, 5 } }, "0123456789ab|1|2|3", "", 10, 0, false },
	{ "narrower and taller", "abcdefgh\r\n01234567\r\n1\r\n2\r\n3\r\n4",
	    { { 5, 5 } }, "567|1|2|3|4", "abcdefgh|01234>", 1, 4, false },
	{ "of a wider screen: not more rows than grown",
	    "0123456789\r\n1\r\n2\r\n3\r\n4", { { 5, 4 }, { 5, 5 } },
	    "56789|1|2|3|4", "01234>", 1, 4, false },
	{ "of a wider screen: as far as it fits",
	    "0123456789\r\n1\r\n2\r\n3\r\n4", { { 4, 4 }, { 4, 6 } },
	    "4567|89|1|2|3|4", "0123>", 1, 5, false },
	{ "wide characters", W W W "\r\n1\r\n2\r\n3\r\n4", { { 10, 5 } },
	    W W W "|1|2|3|4", "", 1, 4, false },
	{ "their gap at the edge stays", "012345678" W "x\r\n1\r\n2\r\n3\r\n4",
	    { { 10, 6 } }, "012345678|" W "x|1|2|3|4", "", 1, 5, false },
	{ "in the first row, too", "012345678" W "x\r\n1\r\n2\r\n3",
	    { { 10, 5 } }, "012345678|" W "x|1|2|3", "", 1, 4, false },
	{ "and is closed when wider", "012345678" W "x\r\n1\r\n2\r\n3\r\n4",
	    { { 20, 6 } }, "012345678" W "x|1|2|3|4", "", 1, 4, false },
	{ "a gap that is none any more is a blank",
	    "012345678" W "x\033[2Hab\r\n1\r\n2\r\n3\r\n4", { { 10, 6 } },
	    "012345678|abx|1|2|3|4", "", 1, 5, false },
	{ "blanks before a wrapped character",
	    "\033[10G" W "\r\n1\r\n2\r\n3\r\n4", { { 10, 6 } },
	    "|" W "|1|2|3|4", "", 1, 5, false },
	{ "one column has no wide ones", W "\r\n1\r\n2\r\n3\r\n4",
	    { { 1, 4 }, { 1, 5 } }, "|1|2|3|4", "", 0, 4, true },
	{ "an erased part of a line is a blank row",
	    "0123456789ab\r\nx\033[2H\033[2K", { { 10, 5 } }, "0123456789||x",
	    "", 0, 1, false },
	{ "also when it comes back",
	    "0123456789ab\r\nx\033[2H\033[2K\033[4H\n\n", { { 10, 6 } },
	    "0123456789||x", "", 0, 5, false },
	{ "shorter and taller", SIX, { { 10, 2 }, { 10, 4 } }, "3|4|5|6",
	    "1|2|", 1, 3, false },
	{ "as small as can be", SIX, { { 1, 1 }, { 10, 6 } }, "1|2|3|4|5|6", "",
	    1, 5, false },
	{ "there and back", "0123456789ab\r\nxyz",
	    { { 1, 1 }, { 10, 15 }, { 10, 4 } }, "0123456789|ab|xyz", "", 3, 2,
	    false },
	{ "behind the alternate screen", SIX "\033[?1049hfull", { { 10, 6 } },
	    "||| full", "", 5, 3, false },
};

static void
lines_come_back(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(grow_rows); i++) {
		const struct grow_row *r = &grow_rows[i];
		struct screen *s = screen_of(10, 4);
		char *text, *kept;

		screen_put(s, r->in);
		for (unsigned k = 0; k < 4 && r->sizes[k].cols; k++)
			screen_resize(s, r->sizes[k].cols, r->sizes[k].rows);
		text = buffer_text(s, s->now);
		kept = history_text(s);
		if (strcmp(text, r->text) != 0 || strcmp(kept, r->kept) != 0 ||
		    s->cursor.col != r->col || s->cursor.row != r->row ||
		    s->cursor.is_wrap_pending != r->is_pending) {
			wrong++;
			print_error("%s: [%s] kept [%s] at %u,%u%s\n", r->what,
			    text, kept, s->cursor.col, s->cursor.row,
			    s->cursor.is_wrap_pending ? " pending" : "");
		}
		free(text);
		free(kept);
		screen_free(s);
	}
	assert_int_equal(wrong, 0);
}

static void
check_both(struct screen *s, const char *text, const char *kept)
{
	char *t = buffer_text(s, s->now), *k = history_text(s);

	assert_string_equal(t, text);
	assert_string_equal(k, kept);
	free(t);
	free(k);
}

static void
the_saved_cursor_goes_with_its_cell(void **state)
{
	struct screen *s = screen_of(10, 4);

	(void)state;
	screen_put(s, SIX "\033[2;2H\0337\033[H");
	screen_resize(s, 10, 6);
	assert_int_equal(s->cursor.row, 2);
	screen_put(s, "\0338x");
	check_both(s, "1|2|3|4x|5|6", "");
	/* on a blank row below the text */
	screen_put(s, "\033[H\033[2J" SIX "\r\n7\033[H\033[2J\033[5H\0337"
		      "\033[H");
	screen_resize(s, 10, 7);
	screen_put(s, "\0338x");
	check_both(s, "1|||||x", "");
	screen_free(s);
}

static void
the_main_screen_grows_behind_the_alternate_one(void **state)
{
	static const char *const modes[] = { "47", "1047", "1049" };

	struct screen *s;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		char text[32];

		s = screen_of(10, 4);
		screen_put(s, SIX);
		snprintf(text, sizeof(text), "\033[?%sh\033[Ha", modes[i]);
		screen_put(s, text);
		screen_resize(s, 10, 5);
		check_both(s, "a", "1|");
		snprintf(text, sizeof(text), "\033[?%sl", modes[i]);
		screen_put(s, text);
		check_both(s, "2|3|4|5|6", "1|");
		screen_free(s);
	}
	s = screen_of(10, 4);
	screen_put(s, SIX "\033[?1049h\033[H");
	screen_resize(s, 10, 5);
	screen_put(s, "\033[?1049lx");
	check_both(s, "2|3|4|5|6x", "1|");
	screen_free(s);
}

static void
numbers_are_given_again(void **state)
{
	struct screen *s = screen_of(10, 4);

	(void)state;
	screen_put(s, SIX);
	assert_int_equal(screen_history_end(s), 2);
	screen_resize(s, 10, 5);
	assert_int_equal(screen_history_start(s), 0);
	assert_int_equal(screen_history_end(s), 1);
	screen_put(s, "\r\n7");
	assert_int_equal(screen_history_end(s), 2);
	check_both(s, "3|4|5|6|7", "1|2|");
	screen_resize(s, 10, 4);
	assert_int_equal(screen_history_end(s), 3);
	check_both(s, "4|5|6|7", "1|2|3|");
	screen_free(s);
}

/* ---- what cells have ---- */

static const char *const grow_lines[] = {
	"plain",
	"",
	"\033[1;31mred\033[m and \033[38;2;1;2;3;48;5;9mrgb\033[m x",
	W "\345\255\227 \355\225\234 \360\237\231\202",
	"e\314\201 " W "\314\201\314\202 x\342\200\215",
	"a\033[5Cb\033[44m\033[3X\033[3Cc\033[m",
	"\033[4:3;58;5;9mcurly\033[58;2;1;2;3mrgb\033[m",
	"\033]8;id=1;http://h/1\007one\033]8;;\007 "
	"\033]8;id=1;http://h/1\007again\033]8;;http://h/2\007two"
	"\033[58;5;1;4mboth\033[m\033]8;;\007",
	"\033[1\"qprotected\033[0\"q \033[7;9;53mall\033[m",
	"a line that is wrapped because it is longer than forty cells, with "
	"\033]8;;http://h/3\007a link\033]8;;\007 and \033[7ma" W "e\314\201",
	"\033[m",
};

/* Shorter by any number of rows and taller again, nothing has changed. */
static void
cells_come_back_as_they_were(void **state)
{
	(void)state;
	for (unsigned rows = 1; rows < 12; rows++) {
		struct screen *s = screen_of(40, 12), *t = screen_of(40, 12);

		for (size_t i = 0; i < ARRAY_LEN(grow_lines); i++) {
			if (i) {
				screen_put(s, "\r\n");
				screen_put(t, "\r\n");
			}
			screen_put(s, grow_lines[i]);
			screen_put(t, grow_lines[i]);
		}
		screen_resize(s, 40, rows);
		assert_int_equal(
		    screen_history_end(s) - screen_history_end(t), 12 - rows);
		/* all numbers are others now */
		screen_put(s, "\033[?47h\033]8;;http://h/4\007x\314\203"
			      "\033]8;;\007\b\033[2J\033[?47l");
		screen_resize(s, 40, 12);
		assert_int_equal(screen_history_end(s), screen_history_end(t));
		t->alt = s->alt; /* not what this is about */
		if (!screen_equal(t, s, SCREEN_EQUAL_NO_LAST))
			fail_msg("%u rows: %s", rows, screen_equal_where);
		t->alt = (struct buffer){ 0 };
		screen_free(s);
		screen_free(t);
	}
}

/* ---- full tables ---- */

/* A cluster of its own for each I < 52 * 64 * 64. */
static void
grow_cluster(struct buf *b, unsigned i)
{
	static const char letters[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	uint8_t text[5] = { (uint8_t)letters[i / 4096], 0xcc,
		(uint8_t)(0x80 + i % 64), 0xcc, (uint8_t)(0x80 + i / 64 % 64) };

	buf_put(b, text, sizeof(text));
}

static void
without_room_the_rest_of_the_cell_stays(void **state)
{
	struct screen *s = screen_of(SCREEN_COLS_MAX, 70);
	struct buf b = { 0 };
	const struct cell *c;

	(void)state;
	/* one line with both, which leaves */
	screen_put(s, "Z\314\201\033[4:3;58;5;9m\033]8;;http://h/1\007L"
		      "\033]8;;\007\033[m\033[70H\n\033[H");
	assert_int_equal(screen_history_end(s), 1);
	for (unsigned i = 0; i < INTERN_CLUSTERS + 100; i++)
		grow_cluster(&b, i);
	buf_put(&b, "\r\n", 2);
	/* long ones, and short ones for what they leave */
	for (unsigned i = 0; i < 700; i++) {
		char link[2100];

		snprintf(link, sizeof(link), "\033]8;;http://%0*u\007l",
		    i < 600 ? 2000 : 3, i);
		buf_put(&b, link, strlen(link));
	}
	buf_put(&b, "\033]8;;\007", 6);
	screen_write(s, buf_head(&b), buf_len(&b));
	buf_release(&b);
	assert_int_equal(screen_history_end(s), 1);
	screen_resize(s, SCREEN_COLS_MAX, 71);
	assert_int_equal(screen_history_end(s), 0);
	c = buffer_row(s, &s->main, 0);
	assert_int_equal(c[0].ch, 'Z');
	assert_int_equal(c[1].ch, 'L');
	assert_int_equal(c[1].attr & CELL_UNDERLINE, 3 << CELL_UNDERLINE_SHIFT);
	assert_int_equal(s->exts[c[1].ext].underline, COLOUR_INDEXED | 9);
	assert_int_equal(s->exts[c[1].ext].link, 0);
	screen_free(s);
}

/* Lines with links and clusters of their own, while the tables are full of
 * those that nothing uses any more. */
static void
garbage_makes_room(void **state)
{
	struct screen *s = screen_of(80, 100);
	struct buf b = { 0 };

	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		char link[2100];

		snprintf(link, sizeof(link), "\033]8;;http://%01000u\007", i);
		buf_put(&b, link, strlen(link));
		grow_cluster(&b, i);
		buf_put(&b, "\r\n", 2);
	}
	buf_put(&b, "\033]8;;\007end", 9);
	screen_write(s, buf_head(&b), buf_len(&b));
	buf_release(&b);
	screen_resize(s, 80, 900);
	for (unsigned i = 0; i < 899; i++) {
		const struct cell *c = buffer_row(s, &s->main, i);
		unsigned number = 5000 - 899 + i;
		struct cluster k;
		char link[1100];

		grow_cluster(&b, number);
		k = s->clusters[c->ch & ~CELL_CLUSTER];
		assert_true(c->ch & CELL_CLUSTER);
		assert_int_equal(k.len, buf_len(&b));
		assert_memory_equal(k.text, buf_head(&b), k.len);
		buf_release(&b);
		snprintf(link, sizeof(link), "http://%01000u", number);
		assert_string_equal(s->links[s->exts[c->ext].link].uri, link);
	}
	screen_free(s);
}

/* ---- the history itself ---- */

static void
push_number(struct history *h, unsigned i)
{
	struct cell cells[100] = { 0 };
	struct row row = { .cells = cells, .used = (uint16_t)(i % 100) };
	struct cell_tables none = { 0 };

	for (unsigned c = 0; c < row.used; c++)
		cells[c].ch = 0x100 + i % 0x180;
	history_push(h, &row, 100, &none);
}

static void
check_numbers(const struct history *h, unsigned first, unsigned n)
{
	struct history_reader r = { 0 };

	assert_int_equal(history_end(h), n);
	assert_int_equal(history_start(h), first);
	for (unsigned i = first; i < n; i++) {
		assert_true(history_read(h, &r, i));
		assert_int_equal(r.n, i % 100);
		if (r.n)
			assert_int_equal(
			    r.cells[r.n - 1].ch, 0x100 + i % 0x180);
	}
	assert_false(history_read(h, &r, n));
	history_reader_release(&r);
}

static void
the_last_lines_are_forgotten(void **state)
{
	static const unsigned pops[] = { 0, 1, 2, 999, 1, 3000, 700 };
	struct history *h = history_new(10000, 16 << 20);
	size_t full, empty = history_bytes(h);
	unsigned n = 0;

	(void)state;
	while (n < 8000)
		push_number(h, n++);
	full = history_bytes(h);
	for (size_t i = 0; i < ARRAY_LEN(pops); i++) {
		history_pop(h, pops[i]);
		n -= pops[i];
		check_numbers(h, 0, n);
		push_number(h, n++);
		check_numbers(h, 0, n);
	}
	assert_true(history_bytes(h) < full);
	while (n < 12000)
		push_number(h, n++);
	check_numbers(h, 2000, 12000);
	history_pop(h, 9999);
	check_numbers(h, 2000, 2001);
	/* more than there are */
	history_pop(h, UINT64_MAX);
	check_numbers(h, 2000, 2000);
	assert_true(history_bytes(h) < empty + (64 << 10));
	history_pop(h, 1);
	for (n = 2000; n < 2100; n++)
		push_number(h, n);
	check_numbers(h, 2000, 2100);
	history_clear(h);
	history_pop(h, 1);
	check_numbers(h, 2100, 2100);
	history_free(h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_back),
		cmocka_unit_test(the_saved_cursor_goes_with_its_cell),
		cmocka_unit_test(
		    the_main_screen_grows_behind_the_alternate_one),
		cmocka_unit_test(numbers_are_given_again),
		cmocka_unit_test(cells_come_back_as_they_were),
		cmocka_unit_test(without_room_the_rest_of_the_cell_stays),
		cmocka_unit_test(garbage_makes_room),
		cmocka_unit_test(the_last_lines_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
