/*
 * What scrolled off, and what a new size does: the compact form gives back what
 * was stored, caps hold, long lines wrap anew, the cursor stays on its cell.
 */
#include <stdio.h>

#include "tests/unit/screen_fixture.h"
#include "tests/unit/unit.h"

static void
check_history(struct screen *s, const char *expected)
{
	char *text = history_text(s);

	assert_string_equal(text, expected);
	free(text);
}

static void
check_screen(struct screen *s, const char *expected)
{
	char *text = buffer_text(s, s->now);

	assert_string_equal(text, expected);
	free(text);
}

static void
lines_leave_at_the_top_of_the_main_screen_only(void **state)
{
	static const struct {
		const char *in, *kept;
	} rows[] = {
		{ "1\r\n2\r\n3\r\n4", "" },
		{ "1\r\n2\r\n3\r\n4\r\n5", "1|" },
		{ "1\r\n2\r\n3\r\n4\033[2S", "1|2|" },
		{ "1\r\n2\033[9S", "1|2|||" },
		{ "1\r\n2\033[H\033[M", "" },
		{ "1\r\n2\033[1;2r\033[2H\n", "1|" },
		{ "1\r\n2\r\n3\033[2;3r\033[3H\n", "" },
		{ "1\r\n2\033[?69h\033[2;9s\033[4H\n", "" },
		{ "1\033[?1049h\033[4H\n\n\033[?1049l", "" },
		{ "0123456789ab\r\n\n\n\n\n", "0123456789>ab||" },
		{ "1\r\n2\033[2J", "" },
		{ "1\033[4H\n\033[3J", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct screen *s = screen_of(10, 4);

		screen_put(s, rows[i].in);
		check_history(s, rows[i].kept);
		screen_free(s);
	}
}

/* The row that is about to leave and what the history says of it are equal. */
static void
check_round_trip(const char *line)
{
	struct screen *s = screen_of(40, 2);
	struct history_reader r = { 0 };
	struct cell_tables t;
	struct cell row[40];

	screen_put(s, line);
	memcpy(row, buffer_row(s, &s->main, 0), sizeof(row));
	screen_put(s, "\033[m\033[2H\n");
	t = screen_tables(s);
	assert_true(history_read(s->history, &r, 0));
	for (unsigned i = 0; i < 40; i++) {
		struct cell zero = { 0 };
		const struct cell *a = &row[i],
				  *b = i < r.n ? &r.cells[i] : &zero;

		assert_int_equal(a->fg, b->fg);
		assert_int_equal(a->bg, b->bg);
		assert_int_equal(a->attr, b->attr);
		assert_int_equal(a->ch & CELL_CLUSTER, b->ch & CELL_CLUSTER);
		if (a->ch & CELL_CLUSTER) {
			const struct cluster *k =
			    &t.clusters[a->ch & ~CELL_CLUSTER];
			const struct cluster *l =
			    &r.tables.clusters[b->ch & ~CELL_CLUSTER];

			assert_int_equal(k->len, l->len);
			assert_memory_equal(k->text, l->text, k->len);
		} else {
			assert_int_equal(a->ch, b->ch);
		}
		assert_int_equal(!a->ext, !b->ext);
		if (a->ext) {
			const struct cell_ext *e = &t.exts[a->ext];
			const struct cell_ext *f = &r.tables.exts[b->ext];

			assert_int_equal(e->underline, f->underline);
			assert_int_equal(!e->link, !f->link);
			if (e->link) {
				assert_string_equal(t.links[e->link].uri,
				    r.tables.links[f->link].uri);
				assert_string_equal(t.links[e->link].id,
				    r.tables.links[f->link].id);
			}
		}
	}
	history_reader_release(&r);
	screen_free(s);
}

static void
a_line_comes_back_as_it_was(void **state)
{
	static const char *const lines[] = {
		"",
		"plain",
		"a line of more than eight times two cells",
		"\033[1;31mred\033[m and \033[38;2;1;2;3;48;5;9mrgb\033[m x",
		"\346\274\242\345\255\227 \355\225\234 \360\237\231\202",
		"e\314\201 \346\274\242\314\201\314\202 x\342\200\215",
		"a\033[5Cb\033[44m\033[3X\033[3Cc\033[K",
		"\033[4:3;58;5;9mcurly\033[58;2;1;2;3mrgb\033[m",
		"\033]8;id=1;http://h/1\007one\033]8;;\007 "
		"\033]8;id=1;http://h/1\007again\033]8;;http://h/2\007two"
		"\033[58;5;1;4mboth\033]8;;\007",
		"\033[1\"qprotected\033[0\"q \033[7;9;53mall",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		check_round_trip(lines[i]);
}

static void
the_count_of_lines_is_capped(void **state)
{
	struct screen *s = screen_of(80, 24);

	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		char line[32];

		snprintf(line, sizeof(line), "%u\r\n", i);
		screen_put(s, line);
	}
	assert_int_equal(screen_history_end(s), 5000 - 23);
	assert_int_equal(screen_history_end(s) - screen_history_start(s), 1000);
	screen_put(s, "\033[3J");
	assert_int_equal(screen_history_start(s), 5000 - 23);
	screen_free(s);
}

static struct screen *
screen_with_history(unsigned cols, uint32_t lines, size_t bytes)
{
	struct screen_config c = { .cols = cols,
		.rows = 24,
		.history_lines = lines,
		.history_bytes = bytes };

	return screen_new(&c);
}

static void
no_history_is_none(void **state)
{
	struct screen *s = screen_with_history(80, 0, 1 << 20);
	struct screen *t = screen_with_history(80, 100, 0);

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		screen_put(s, "x\r\n");
		screen_put(t, "x\r\n");
	}
	assert_int_equal(screen_history_start(s), screen_history_end(s));
	assert_int_equal(screen_history_start(t), screen_history_end(t));
	screen_free(s);
	screen_free(t);
}

/* Lines that take the most: every cell with colours, marks and a link. */
static void
put_heavy_line(struct screen *s, unsigned cols, unsigned seed)
{
	char cell[200];

	for (unsigned i = 0; i < cols; i++) {
		seed = seed * 1103515245 + 12345;
		snprintf(cell, sizeof(cell),
		    "\033[38;2;%u;%u;7;48;2;%u;%u;%u;58;2;%u;1;1;%um"
		    "\033]8;;http://host.example/%u\007e\314\201\314\202",
		    seed >> 24, seed >> 16 & 255, seed >> 8 & 255, seed & 255,
		    seed >> 12 & 255, seed >> 20 & 255, 1 + i % 9, seed);
		screen_put(s, cell);
	}
}

static void
the_bytes_are_capped_for_the_heaviest_lines(void **state)
{
	const size_t cap = 1 << 20;
	struct screen *s = screen_with_history(80, 100000, cap);

	(void)state;
	for (unsigned i = 0; i < 400; i++) {
		put_heavy_line(s, 80, i);
		/* the cap, the ring of chunks and the scratch line */
		assert_true(history_bytes(s->history) <= cap + (64 << 10));
	}
	assert_true(screen_history_end(s) - screen_history_start(s) > 50);
	assert_true(screen_history_start(s) > 0);
	screen_free(s);
}

static void
ten_thousand_lines_are_under_four_megabytes(void **state)
{
	struct screen *s = screen_with_history(80, 10000, 64 << 20);
	char line[200];

	(void)state;
	for (unsigned i = 0; i < 10100; i++) {
		snprintf(line, sizeof(line),
		    "\033[32m2024-05-01T12:00:%02u\033[m \033[1mINFO\033[m "
		    "\033[38;5;%um%08x\033[m request from 10.0.0.%u took %u ms"
		    "\r\n",
		    i % 60, i % 256, i * 2654435761U, i % 255, i % 1000);
		screen_put(s, line);
	}
	assert_int_equal(
	    screen_history_end(s) - screen_history_start(s), 10000);
	assert_true(history_bytes(s->history) < 4 << 20);
	screen_free(s);
}

/* ---- a new size ---- */

struct resize_row {
	const char *what, *in;
	unsigned cols, rows; /* from 10 x 4 */
	const char *text, *kept;
	unsigned col, row;
	bool is_pending;
};

#define W "\346\274\242"

static const struct resize_row resize_rows[] = {
	{ "a long line wraps", "0123456789", 5, 4, "01234|56789", "", 4, 1,
	    true },
	{ "and comes together again", "0123456789ab", 20, 4, "0123456789ab", "",
	    12, 0, false },
	{ "a line that just ends does not join", "0123456789\r\nab", 20, 4,
	    "0123456789|ab", "", 2, 1, false },
	{ "the cursor stays on its cell", "0123456789\033[8G", 5, 4,
	    "01234|56789", "", 2, 1, false },
	{ "also behind the text", "ab\033[8G", 5, 4, "ab", "", 4, 0, false },
	{ "what does not fit goes to the history", "1\r\n2\r\n3\r\n0123456789",
	    5, 3, "3|01234|56789", "1|2|", 4, 2, true },
	{ "blank rows below the cursor go first", "1\r\n2", 10, 2, "1|2", "", 1,
	    1, false },
	{ "then rows at the top", "1\r\n2\r\n3\r\n4", 10, 2, "3|4", "1|2|", 1,
	    1, false },
	{ "rows below the cursor give way to it", "1\r\n2\r\n3\r\n4\033[2H", 10,
	    2, "2|3", "1|", 0, 0, false },
	{ "wide characters stay whole", "a" W W W W, 6, 4, "a" W W "|" W W, "",
	    4, 1, false },
	{ "and their gap is closed", "012345678" W "x", 20, 4,
	    "012345678" W "x", "", 12, 0, false },
	{ "one column has no wide ones", "a" W "b", 1, 4, "a||b", "", 0, 2,
	    true },
	{ "trailing blanks make no rows", "ab\033[44m\033[K", 5, 4, "ab", "", 2,
	    0, false },
	{ "nor do spaces", "ab      ", 5, 4, "ab", "", 4, 0, false },
	{ "zero is one", "a", 0, 0, "a", "", 0, 0, true },
	{ "the alternate screen is cut", "\033[?1049h0123456789\033[4Hx", 5, 2,
	    "01234", "", 1, 1, false },
};

#undef W

static void
long_lines_wrap_anew(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(resize_rows); i++) {
		const struct resize_row *r = &resize_rows[i];
		struct screen *s = screen_of(10, 4);
		char *text, *kept;

		screen_put(s, r->in);
		screen_resize(s, r->cols, r->rows);
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
there_and_back_the_text_is_the_same(void **state)
{
	struct screen *s = screen_of(40, 20);

	(void)state;
	screen_put(s,
	    "\033[31mThe quick brown fox jumps over the lazy dog, and "
	    "runs away.\033[m\r\n\tshort\r\n\r\nlast one here");
	for (unsigned cols = 11; cols < 200; cols += 7) {
		screen_resize(s, cols, 20);
		screen_resize(s, 40, 20);
		check_screen(s,
		    "The quick brown fox jumps over the lazy|dog, and runs "
		    "away.|        short||last one here");
		assert_int_equal(s->cursor.col, 13);
	}
	screen_free(s);
}

static void
margins_go_tabs_stay_sizes_are_clamped(void **state)
{
	struct screen *s = screen_of(10, 4);

	(void)state;
	screen_put(s, "\033[?69h\033[2;3r\033[2;5s\033[3g\033[3G\033H");
	screen_resize(s, 100000, 100000);
	assert_int_equal(screen_cols(s), SCREEN_COLS_MAX);
	assert_int_equal(screen_rows(s), SCREEN_ROWS_MAX);
	assert_int_equal(s->top, 0);
	assert_int_equal(s->bottom, SCREEN_ROWS_MAX - 1);
	assert_int_equal(s->left, 0);
	assert_int_equal(s->right, SCREEN_COLS_MAX - 1);
	assert_int_equal(s->tabs[0], 0);
	assert_int_equal(s->tabs[8], 0);
	assert_int_equal(s->tabs[16], 1);
	screen_resize(s, 1, 1);
	screen_put(s, "x\r\n\346\274\242\tyz");
	check_screen(s, "z");
	screen_free(s);
}

static void
the_main_cursor_follows_while_the_other_screen_is_shown(void **state)
{
	struct screen *s = screen_of(10, 4);

	(void)state;
	screen_put(s, "0123456789abc\033[?1049h");
	screen_resize(s, 20, 4);
	screen_put(s, "\033[?1049lx");
	check_screen(s, "0123456789abcx");
	screen_free(s);
	/* entered without saving the cursor */
	s = screen_of(10, 4);
	screen_put(s, "1\r\n2\r\n3\r\n4\033[?47h");
	screen_resize(s, 10, 2);
	screen_put(s, "\033[?47l");
	check_screen(s, "3|4");
	check_history(s, "1|2|");
	screen_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    lines_leave_at_the_top_of_the_main_screen_only),
		cmocka_unit_test(a_line_comes_back_as_it_was),
		cmocka_unit_test(the_count_of_lines_is_capped),
		cmocka_unit_test(no_history_is_none),
		cmocka_unit_test(the_bytes_are_capped_for_the_heaviest_lines),
		cmocka_unit_test(ten_thousand_lines_are_under_four_megabytes),
		cmocka_unit_test(long_lines_wrap_anew),
		cmocka_unit_test(there_and_back_the_text_is_the_same),
		cmocka_unit_test(margins_go_tabs_stay_sizes_are_clamped),
		cmocka_unit_test(
		    the_main_cursor_follows_while_the_other_screen_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
