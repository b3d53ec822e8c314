/*
 * The terminal engine beside libtsm, a second opinion: the same streams, made of
 * what both implement, must show the same text and leave the cursor at the same
 * place, after every piece. Comments say where libtsm departs from xterm.
 */
#include <libtsm.h>
#include <stdio.h>

#include "tests/unit/screen_fixture.h"
#include "tests/unit/unit.h"

/* %u is a small number. Without margins, with which libtsm moves as it likes. */
static const char *const tsm_edits[] = {
	"some words of text ",
	"x",
	"\303\251\303\270",
	"\r\n",
	"\r\n",
	"\r",
	"\n",
	"\033[%u;%uH",
	"\033[%u;%uf",
	"\033[H",
	"\033[%uA",
	"\033[%uB",
	"\033[%uC",
	"\033[%uD",
	"\033[%uG",
	"\033[%ud",
	"\033[K",
	"\033[1K",
	"\033[2K",
	"\033[J",
	"\033[1J",
	"\033[2J",
	"\033[%uX",
	"\033[%u@",
	"\033[%uP",
	"\r\033[%uL",
	"\r\033[%uM",
	"\033D",
	"\033M",
	"\033E",
	"\b",
	"\t",
	"\033[%uI",
	"\r\033[2I\033[%uZ",
	"\033H",
	"\033[g",
	"\0337\033[%u;%uHthere and\0338",
	"\033[?1049h\033[2J\033[Hfull\r\nscreen\033[K\033[?1049l",
	"\033[?7l",
	"\033[?7h",
	"\033[4h",
	"\033[4l",
	"\033[%um",
	"\033[38;5;%um",
	"\033[48;2;1;2;%um",
	"\033[m",
	"\033(0lqqqk\033(B",
	"\033]2;title\007",
	"\033P1$r0m\033\\",
	"\033[?25l",
	"\033[?25h",
	"\033[?2004h",
};

/* The cursor stays within the margins: outside libtsm scrolls all the same. */
static const char *const tsm_margins[] = {
	"\033[2;5r\033[3;1H",
	"\033[3;6r\033[4;1H",
	"\033[r\033[H",
	"some words of text ",
	"x",
	"\r\n",
	"\n",
	"\033D",
	"\033M",
	"\033E",
	"\r\033[%uL",
	"\r\033[%uM",
	"\033[K",
	"\033[%uG",
	"\033[%uC",
	"\033[%uD",
	"\033[%uX",
	"\033[%uP",
	"\033[%u@",
	"\033[m",
};

/* Lines that end early: libtsm cuts wide characters at the edge. */
static const char *const tsm_wide[] = {
	"\r\346\274\242\345\255\227 and kana \343\201\213\r\n",
	"\r\355\225\234\352\270\200 \360\237\231\202x\r\n",
	"\rplain\r\n",
	"\033[K",
	"\n",
	"\033[m",
	"\033[%u;1H\033[K",
	"\033[H\033[J",
	"\r\033[%uL",
	"\r\033[%uM",
	"\033[H\033M\033[K",
	"\033[31m",
};

static const struct tsm_list {
	const char *const *pieces;
	size_t n;
} tsm_lists[] = {
	{ tsm_edits, ARRAY_LEN(tsm_edits) },
	{ tsm_margins, ARRAY_LEN(tsm_margins) },
	{ tsm_wide, ARRAY_LEN(tsm_wide) },
};

struct tsm_pair {
	struct screen *ours;
	struct tsm_screen *screen;
	struct tsm_vte *vte;
	unsigned cols, rows;
	uint32_t *text; /* of libtsm: rows * cols */
	bool is_tail;   /* the next cell is the right half of a wide one */
};

static void
tsm_answer(struct tsm_vte *vte, const char *u8, size_t len, void *data)
{
	(void)vte;
	(void)u8;
	(void)len;
	(void)data;
}

static struct tsm_pair
tsm_begin(unsigned cols, unsigned rows)
{
	struct tsm_pair p = { .cols = cols, .rows = rows };

	p.ours = screen_of(cols, rows);
	assert_int_equal(tsm_screen_new(&p.screen, NULL, NULL), 0);
	assert_int_equal(
	    tsm_vte_new(&p.vte, p.screen, tsm_answer, NULL, NULL, NULL), 0);
	assert_int_equal(tsm_screen_resize(p.screen, cols, rows), 0);
	p.text = xcalloc((size_t)rows * cols, sizeof(*p.text));
	return p;
}

static void
tsm_end(struct tsm_pair *p)
{
	screen_free(p->ours);
	tsm_vte_unref(p->vte);
	tsm_screen_unref(p->screen);
	free(p->text);
}

static void
tsm_put(struct tsm_pair *p, const char *text, size_t n)
{
	screen_write(p->ours, text, n);
	tsm_vte_input(p->vte, text, n);
}

static int
tsm_cell(struct tsm_screen *con, uint64_t id, const uint32_t *ch, size_t len,
    unsigned int width, unsigned int col, unsigned int row,
    const struct tsm_screen_attr *attr, tsm_age_t age, void *data)
{
	struct tsm_pair *p = data;

	(void)con;
	(void)id;
	(void)attr;
	(void)age;
	if (row >= p->rows || col >= p->cols)
		return 0;
	/* the cell behind a wide character still has what was there before */
	if (!p->is_tail)
		p->text[row * p->cols + col] = len ? ch[0] : ' ';
	else
		p->text[row * p->cols + col] = ' ';
	p->is_tail = width == 2;
	return 0;
}

/* True when text and cursor are the same; says what is not. */
static bool
tsm_is_same(struct tsm_pair *p)
{
	const struct cursor *c = &p->ours->cursor;
	unsigned col = tsm_screen_get_cursor_x(p->screen);
	unsigned row = tsm_screen_get_cursor_y(p->screen);

	tsm_screen_draw(p->screen, tsm_cell, p);
	for (unsigned i = 0; i < p->rows * p->cols; i++) {
		const struct cell *at =
		    buffer_row(p->ours, p->ours->now, i / p->cols) +
		    i % p->cols;
		uint32_t ours = at->ch ? at->ch : ' ';
		uint32_t theirs = p->text[i] ? p->text[i] : ' ';

		if (ours != theirs) {
			print_error(
			    "row %u, column %u: U+%04x, libtsm U+%04x\n",
			    i / p->cols, i % p->cols, ours, theirs);
			return false;
		}
	}
	if (col >= p->cols)
		col = p->cols - 1; /* its pending wrap */
	if (c->col != col || c->row != row)
		print_error("cursor at %u,%u, libtsm %u,%u\n", c->col, c->row,
		    col, row);
	return c->col == col && c->row == row;
}

static void
tsm_print_piece(const char *p)
{
	for (; *p; p++)
		if (*p < 0x20 || *p > 0x7e)
			print_error("\\%03o", (uint8_t)*p);
		else
			print_error("%c", *p);
	print_error(" ");
}

/* A stream of N pieces; false at the first difference, after showing it. */
static bool
tsm_compare(const struct tsm_list *list, unsigned seed, unsigned n)
{
	struct tsm_pair p = tsm_begin(20 + seed % 3 * 30, 6 + seed % 5 * 4);
	char last[12][64] = { 0 };
	bool is_same = true;

	for (unsigned i = 0; i < n && is_same; i++) {
		char *piece = last[i % 12];
		unsigned a, b;

		seed = seed * 1103515245 + 12345;
		a = 1 + (seed >> 20) % 12;
		b = 1 + (seed >> 26) % 50;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(piece, sizeof(last[0]),
		    list->pieces[(seed >> 9) % list->n], a, b);
#pragma GCC diagnostic pop
		/* libtsm waits at the edge through moves, xterm does not */
		if (p.ours->cursor.is_wrap_pending && (uint8_t)*piece < 0x20)
			tsm_put(&p, "\r", 1);
		tsm_put(&p, piece, strlen(piece));
		is_same = tsm_is_same(&p);
		if (is_same)
			continue;
		print_error("%ux%u, piece %u, behind: ", p.cols, p.rows, i);
		for (unsigned k = i >= 11 ? i - 11 : 0; k <= i; k++)
			tsm_print_piece(last[k % 12]);
		print_error("\n");
	}
	tsm_end(&p);
	return is_same;
}

static void
generated_streams_look_the_same(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (unsigned seed = 0; seed < 300; seed++)
		wrong += !tsm_compare(&tsm_lists[seed % 3], seed, 200);
	assert_int_equal(wrong, 0);
}

/* A screen of some pieces, painted onto a libtsm that has seen others. */
static bool
tsm_repaint(const struct tsm_list *list, unsigned seed)
{
	struct tsm_pair p = tsm_begin(20 + seed % 3 * 30, 6 + seed % 5 * 4);
	struct screen *x = screen_of(p.cols, p.rows);
	struct buf b = { 0 };
	bool is_same;

	for (unsigned i = 0; i < 120; i++) {
		char piece[64];

		seed = seed * 1103515245 + 12345;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(piece, sizeof(piece),
		    list->pieces[(seed >> 9) % list->n], 1 + (seed >> 20) % 12,
		    1 + (seed >> 26) % 50);
#pragma GCC diagnostic pop
		/* once G1 is designated, libtsm takes Latin-1 for it */
		if (list->pieces == tsm_edits && (uint8_t)*piece >= 0x80)
			continue;
		screen_put(x, piece);
		if (i < 40)
			tsm_put(&p, piece, strlen(piece));
	}
	screen_prologue(0, &b);
	screen_repaint(x, &b);
	tsm_put(&p, (const char *)buf_head(&b), buf_len(&b));
	is_same = tsm_is_same(&p);
	/* ours is what x is: see tests/fuzz/repaint_fuzz.c */
	assert_int_equal(p.ours->cursor.col, x->cursor.col);
	assert_int_equal(p.ours->cursor.row, x->cursor.row);
	screen_free(x);
	tsm_end(&p);
	buf_release(&b);
	return is_same;
}

static void
a_repaint_looks_the_same(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (unsigned seed = 0; seed < 300; seed++)
		wrong += !tsm_repaint(&tsm_lists[seed % 3], seed);
	assert_int_equal(wrong, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generated_streams_look_the_same),
		cmocka_unit_test(a_repaint_looks_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
