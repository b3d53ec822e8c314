/*
 * A new size; see screen_resize(). The main screen, and before it what a taller
 * one takes back from the history, is written anew, logical line by logical
 * line, into a ring of rows of the new width: what it pushes out goes to the
 * history, until the cursor's row would. Pure.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "screen/buffer.h"
#include "screen/cursor.h"
#include "screen/history.h"
#include "screen/pull.h"
#include "screen/screen.h"
#include "screen/state.h"

/* A cursor that goes where its cell goes. */
struct resize_point {
	struct cursor *cursor;
	bool is_placed;
	unsigned col;
	int64_t row; /* of all that was written; less what was pushed out */
	bool is_pending;
};

/* Old rows are counted from the first one that was pulled. */
struct resize {
	const struct screen *s;
	struct pull pulled;
	unsigned above;   /* rows that came before those of the screen */
	struct row *rows; /* a ring */
	unsigned cols, n_rows;
	unsigned first, n; /* rows in use */
	unsigned col;      /* where the next cell goes, up to COLS */
	bool is_full;      /* the rest is cut */
	struct resize_point points[2]; /* the first one stays on the screen */
};

static struct row *
resize_row(struct resize *z, unsigned i)
{
	return &z->rows[(z->first + i) % z->n_rows];
}

/* The first row goes to the history. */
static void
resize_push(struct resize *z)
{
	struct row *r = resize_row(z, 0);
	struct cell_tables t = screen_tables(z->s);

	history_push(z->s->history, r, z->cols, &t);
	row_put(r, 0, r->used, (struct cell){ 0 });
	r->is_wrapped = false;
	z->first = (z->first + 1) % z->n_rows;
	z->n--;
	for (unsigned i = 0; i < ARRAY_LEN(z->points); i++)
		z->points[i].row--;
}

/* Begins another row; false when there is no room. */
static bool
resize_new_row(struct resize *z)
{
	z->col = 0;
	if (z->n == z->n_rows) {
		if (z->points[0].is_placed && z->points[0].row == 0) {
			z->is_full = true;
			return false;
		}
		resize_push(z);
	}
	z->n++;
	return true;
}

/* The old row I. */
static struct row *
resize_old(const struct resize *z, unsigned i)
{
	return i < z->pulled.n ? &z->pulled.rows[i]
			       : &z->s->main.rows[i - z->pulled.n];
}

/* True for a cursor that stood in the old row I. */
static bool
resize_is_in(const struct resize *z, const struct resize_point *p, unsigned i)
{
	return p->cursor->row + z->pulled.n == i;
}

/*
 * The rest of a line, which begins with NEXT, goes on in another row. The last
 * cell is as if it had been printed: a space, or what a wide character leaves.
 */
static bool
resize_wrap(struct resize *z, const struct cell *next)
{
	struct row *last = resize_row(z, z->n - 1);
	struct cell *end = &row_cells(last)[z->cols - 1];

	if (z->is_full)
		return false;
	if (z->col < z->cols)
		*end = (struct cell){ .bg = next->bg };
	else if (!end->ch && !(end->attr & CELL_TAIL))
		end->ch = ' ';
	if (end->ch || end->bg)
		last->used = (uint16_t)z->cols;
	last->is_wrapped = true;
	if (resize_new_row(z))
		return true;
	last->is_wrapped = false;
	return false;
}

/* Points at the old row ROW, column COL are here now. */
static void
resize_place(struct resize *z, unsigned row, unsigned col)
{
	for (unsigned i = 0; i < ARRAY_LEN(z->points); i++) {
		struct resize_point *p = &z->points[i];

		if (p->is_placed || !resize_is_in(z, p, row) ||
		    p->cursor->col != col)
			continue;
		p->is_placed = true;
		p->row = z->n - 1;
		p->col = z->col;
		if (p->cursor->is_wrap_pending) {
			/* behind this cell, which may have moved */
			p->is_pending = p->col + 1 == z->cols;
			p->col += !p->is_pending;
		}
	}
}

/* Those behind the text of row ROW, which ended before column END. */
static void
resize_place_behind(struct resize *z, unsigned row, unsigned end)
{
	for (unsigned i = 0; i < ARRAY_LEN(z->points); i++) {
		struct resize_point *p = &z->points[i];
		unsigned col;

		if (p->is_placed || !resize_is_in(z, p, row))
			continue;
		col = p->cursor->col >= end ? p->cursor->col - end : 0;
		p->is_placed = true;
		p->row = z->n - 1;
		p->is_pending = z->col == z->cols && col == 0;
		p->col = z->col + col < z->cols ? z->col + col : z->cols - 1;
	}
}

/* How much of the old row I is text that must not be lost. */
static unsigned
resize_text(const struct resize *z, unsigned i)
{
	bool is_last = i + 1 == z->pulled.n + z->s->rows;
	struct row *r = resize_old(z, i);
	struct row *next = is_last ? NULL : resize_old(z, i + 1);
	const struct cell *cells = row_cells(r);
	unsigned n = r->used;

	if (r->is_wrapped) {
		unsigned width = i < z->pulled.n ? r->used : z->s->cols;
		const struct cell *end = &cells[width - 1];
		/* the place that a wide character did not fit into */
		bool is_padded = !end->ch && !(end->attr & CELL_TAIL) && next &&
				 row_cells(next)[0].attr & CELL_WIDE;

		return width - is_padded;
	}
	while (n) {
		const struct cell *c = &cells[n - 1];
		bool is_plain = !c->fg && !c->bg && !c->attr && !c->ext;

		if (c->attr & CELL_TAIL ||
		    (c->ch && !(c->ch == ' ' && is_plain)))
			break;
		n--;
	}
	return n;
}

/* Where the row's blanks begin; row.used may lie behind that. */
static unsigned
resize_used(struct row *r)
{
	const struct cell *cells = row_cells(r);
	unsigned n = r->used;

	while (n && cell_is_zero(&cells[n - 1]))
		n--;
	return n;
}

/* Writes the old row I behind what is there. */
static void
resize_copy_row(struct resize *z, unsigned i)
{
	struct row *from = resize_old(z, i);
	const struct cell *cells = row_cells(from);
	unsigned text = resize_text(z, i);
	unsigned end = from->is_wrapped ? text : resize_used(from);
	unsigned c;

	for (c = 0; c < end; c++) {
		const struct cell *cell = &cells[c];
		unsigned width = cell->attr & CELL_WIDE ? 2 : 1;
		struct cell *at;
		struct row *to;

		if (width > z->cols)
			width = 1; /* one column has no room for it */
		if (z->col + width > z->cols &&
		    (c >= text || !resize_wrap(z, cell)))
			break; /* blanks do not make rows */
		to = resize_row(z, z->n - 1);
		resize_place(z, i, c);
		at = row_cells(to) + z->col;
		*at = *cell;
		if (cell->attr & CELL_WIDE && z->cols == 1)
			*at = (struct cell){ .bg = cell->bg };
		else if (width == 2)
			at[1] = cell[1];
		z->col += width;
		if (!cell_is_zero(&at[width - 1]))
			to->used = (uint16_t)z->col;
		if (cell->attr & CELL_WIDE) {
			z->col -= width == 2;
			resize_place(z, i, ++c);
			z->col += width == 2;
		}
	}
	if (!from->is_wrapped || z->is_full)
		resize_place_behind(z, i, c);
}

/* The old rows that are written: up to the cursor and the last one with text. */
static unsigned
resize_count(const struct resize *z)
{
	unsigned n = z->pulled.n + z->s->rows;
	unsigned least = z->pulled.n + z->points[0].cursor->row + 1u;

	while (n > least && !resize_text(z, n - 1))
		n--;
	return n;
}

/* The ring becomes the grid of the main screen. */
static void
resize_adopt(struct resize *z)
{
	struct row *spare = z->rows + z->n_rows;

	for (unsigned i = 0; i < z->n_rows; i++)
		spare[i] = *resize_row(z, i);
	memcpy(z->rows, spare, z->n_rows * sizeof(*spare));
	for (unsigned i = 0; i < ARRAY_LEN(z->points); i++) {
		struct resize_point *p = &z->points[i];
		int64_t row = p->is_placed ? p->row : p->cursor->row + z->above;
		unsigned col = p->is_placed ? p->col : p->cursor->col;

		row = row < 0 ? 0 : row;
		p->cursor->row =
		    (uint16_t)(row < z->n_rows ? row : z->n_rows - 1);
		p->cursor->col = (uint16_t)(col < z->cols ? col : z->cols - 1);
		p->cursor->is_wrap_pending = p->is_placed && p->is_pending;
	}
}

/*
 * The cursors of the main screen. First the one that is in force there, or will
 * be when the alternate screen is left.
 */
static void
resize_points(struct screen *s, struct resize_point *points)
{
	bool is_main = s->now == &s->main;
	bool is_kept = s->is_alt_cursor_kept && s->main.has_saved;

	points[0].cursor = is_main   ? &s->cursor
			   : is_kept ? &s->main.saved
				     : &s->main_cursor;
	points[1].cursor =
	    is_main || !is_kept ? &s->main.saved : &s->main_cursor;
}

/*
 * True when the old row I goes on with the line of the one before. Where lines
 * need not be wrapped anew a row that was erased since stays where it is.
 */
static bool
resize_is_more(const struct resize *z, unsigned i)
{
	return i && resize_old(z, i - 1)->is_wrapped &&
	       (z->cols != z->s->cols || resize_text(z, i));
}

/*
 * What was pulled is written: it gets no more rows than the screen has become
 * taller by. Lines that scrolled off a wider screen may take more.
 */
static void
resize_trim_pulled(struct resize *z)
{
	while (z->n > z->n_rows - z->s->rows)
		resize_push(z);
	z->above = z->n;
}

static void
resize_rewrap(struct screen *s, unsigned cols, unsigned rows)
{
	struct buffer to = s->main;
	struct resize z = { .s = s, .cols = cols, .n_rows = rows };
	unsigned n;

	if (rows > s->rows)
		pull_take(s, rows - s->rows, &z.pulled);
	resize_points(s, z.points);
	buffer_alloc(&to, cols, rows);
	z.rows = to.rows;
	n = resize_count(&z);
	for (unsigned i = 0; i < n && !z.is_full; i++) {
		bool is_more = resize_is_more(&z, i);

		if (i && i == z.pulled.n)
			resize_trim_pulled(&z);
		if (is_more || resize_new_row(&z))
			resize_copy_row(&z, i);
	}
	resize_adopt(&z);
	buffer_release(&s->main);
	s->main.rows = to.rows;
	s->main.cells = to.cells;
	pull_release(s, &z.pulled);
}

/* The new grid of the alternate screen: cut or padded at right and bottom. */
static void
resize_cut(struct screen *s, struct buffer *b, unsigned cols, unsigned rows)
{
	struct buffer to = *b;

	if (!b->rows)
		return;
	buffer_alloc(&to, cols, rows);
	for (unsigned i = 0; i < rows && i < s->rows; i++) {
		struct row *from = &b->rows[i];
		const struct cell *cells = row_cells(from);
		unsigned n = from->used < cols ? from->used : cols;

		row_split(from, s->cols, cols);
		memcpy(to.rows[i].cells, cells, n * sizeof(*cells));
		to.rows[i].used = (uint16_t)n;
	}
	buffer_release(b);
	*b = to;
}

static void
resize_clamp(struct cursor *c, unsigned cols, unsigned rows)
{
	c->is_wrap_pending = false;
	if (c->col >= cols)
		c->col = (uint16_t)(cols - 1);
	if (c->row >= rows)
		c->row = (uint16_t)(rows - 1);
}

void
screen_resize(struct screen *s, unsigned cols, unsigned rows)
{
	cols = cols < 1 ? 1 : cols > SCREEN_COLS_MAX ? SCREEN_COLS_MAX : cols;
	rows = rows < 1 ? 1 : rows > SCREEN_ROWS_MAX ? SCREEN_ROWS_MAX : rows;
	if (cols == s->cols && rows == s->rows)
		return;
	resize_rewrap(s, cols, rows);
	resize_cut(s, &s->alt, cols, rows);
	s->tabs = xrealloc(s->tabs, cols);
	if (cols > s->cols)
		cursor_default_tabs(s->tabs, s->cols, cols);
	s->cols = cols;
	s->rows = rows;
	if (s->now == &s->alt)
		resize_clamp(&s->cursor, cols, rows);
	else
		resize_clamp(&s->main_cursor, cols, rows);
	resize_clamp(&s->alt.saved, cols, rows);
	cursor_reset_margins(s);
}
