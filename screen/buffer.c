/*
 * The grid of a screen; see buffer.h. A row's cells never move when the screen
 * scrolls over its full width, only the rows do. Pure.
 */
#include "screen/buffer.h"

#include <stdlib.h>

#include "base/mem.h"
#include "screen/history.h"

static const struct cell buffer_blanks[SCREEN_COLS_MAX];

void
buffer_alloc(struct buffer *b, unsigned cols, unsigned rows)
{
	b->rows = xcalloc((size_t)rows * 2, sizeof(*b->rows));
	b->cells = xcalloc((size_t)rows * cols, sizeof(*b->cells));
	for (unsigned i = 0; i < rows; i++)
		b->rows[i].cells = b->cells + (size_t)i * cols;
}

void
buffer_release(struct buffer *b)
{
	free(b->rows);
	free(b->cells);
	b->rows = NULL;
	b->cells = NULL;
}

void
buffer_use(struct screen *s)
{
	if (!s->now->rows)
		buffer_alloc(s->now, s->cols, s->rows);
}

const struct cell *
buffer_row(const struct screen *s, const struct buffer *b, unsigned row)
{
	(void)s;
	return b->rows ? b->rows[row].cells : buffer_blanks;
}

static bool
buffer_is_zero(const struct cell *c)
{
	return !c->ch && !c->fg && !c->bg && !c->attr && !c->ext;
}

/* As row_fill(), but what is around may be halves already. */
static void
buffer_fill(struct row *r, unsigned from, unsigned to, struct cell blank)
{
	if (!buffer_is_zero(&blank)) {
		for (unsigned i = from; i < to; i++)
			r->cells[i] = blank;
		if (from < to && r->used < to)
			r->used = (uint16_t)to;
		return;
	}
	if (to > r->used)
		to = r->used;
	if (from >= to)
		return;
	memset(r->cells + from, 0, (to - from) * sizeof(*r->cells));
	if (to == r->used)
		r->used = (uint16_t)from;
}

void
row_fill(
    struct row *r, unsigned cols, unsigned from, unsigned to, struct cell blank)
{
	row_split(r, cols, from);
	row_split(r, cols, to);
	buffer_fill(r, from, to, blank);
}

void
buffer_erase(struct screen *s, unsigned row, unsigned from, unsigned to)
{
	struct row *r = buffer_at(s, row);

	row_fill(r, s->cols, from, to, buffer_blank(s));
	if (to == s->cols)
		r->is_wrapped = false;
}

void
buffer_erase_selective(
    struct screen *s, unsigned row, unsigned from, unsigned to)
{
	struct row *r = buffer_at(s, row);

	for (unsigned i = from; i < to; i++)
		if (!(r->cells[i].attr & CELL_PROTECTED))
			row_fill(r, s->cols, i, i + 1, buffer_blank(s));
	if (to == s->cols && !(r->cells[to - 1].attr & CELL_PROTECTED))
		r->is_wrapped = false;
}

static void
buffer_keep(struct screen *s, unsigned n)
{
	struct cell_tables t = screen_tables(s);

	for (unsigned i = 0; i < n; i++)
		history_push(s->history, buffer_at(s, i), s->cols, &t);
}

/* Rows whose text went on in a row that is another one now. */
static void
buffer_unwrap(struct screen *s, unsigned row)
{
	buffer_at(s, row)->is_wrapped = false;
}

/* Turns the rows [TOP, BOTTOM] by N < their number, the first ones last. */
static void
buffer_turn(struct screen *s, unsigned top, unsigned bottom, unsigned n)
{
	struct row *rows = s->now->rows;
	struct row *spare = rows + s->rows;
	unsigned left = bottom + 1 - top - n;

	if (n == 1) {
		struct row first = rows[top];

		memmove(rows + top, rows + top + 1, left * sizeof(*rows));
		rows[bottom] = first;
		return;
	}
	memcpy(spare, rows + top, n * sizeof(*rows));
	memmove(rows + top, rows + top + n, left * sizeof(*rows));
	memcpy(rows + top + left, spare, n * sizeof(*rows));
}

static void
buffer_clear_rows(struct screen *s, unsigned first, unsigned n)
{
	for (unsigned i = first; i < first + n; i++)
		buffer_erase(s, i, 0, s->cols);
}

void
buffer_copy_cells(struct screen *s, unsigned from, unsigned from_col,
    unsigned to, unsigned to_col, unsigned n)
{
	struct row *src = buffer_at(s, from), *dst = buffer_at(s, to);

	row_split(dst, s->cols, to_col);
	row_split(dst, s->cols, to_col + n);
	memmove(dst->cells + to_col, src->cells + from_col,
	    n * sizeof(*dst->cells));
	if (dst->used < to_col + n)
		dst->used = (uint16_t)(to_col + n);
	/* halves that were cut off at the ends of the copy */
	if (n && dst->cells[to_col].attr & CELL_TAIL) {
		dst->cells[to_col].attr &= CELL_STYLE;
		dst->cells[to_col].ch = ' ';
	}
	if (n && dst->cells[to_col + n - 1].attr & CELL_WIDE) {
		dst->cells[to_col + n - 1].attr &= CELL_STYLE;
		dst->cells[to_col + n - 1].ch = ' ';
	}
}

/* The part of a scroll by N between left and right margins. */
static void
buffer_scroll_columns(
    struct screen *s, unsigned top, unsigned bottom, unsigned n, bool is_up)
{
	unsigned width = s->right + 1u - s->left;

	for (unsigned i = 0; i < bottom + 1 - top - n; i++) {
		unsigned to = is_up ? top + i : bottom - i;
		unsigned from = is_up ? to + n : to - n;

		buffer_copy_cells(s, from, s->left, to, s->left, width);
	}
	for (unsigned i = 0; i < n; i++)
		buffer_erase(
		    s, is_up ? bottom - i : top + i, s->left, s->right + 1u);
}

void
buffer_scroll_up(
    struct screen *s, unsigned top, unsigned bottom, unsigned n, bool is_kept)
{
	unsigned height = bottom + 1 - top;

	if (n > height)
		n = height;
	if (!n)
		return;
	if (!buffer_is_full_width(s)) {
		buffer_scroll_columns(s, top, bottom, n, true);
		return;
	}
	if (is_kept && top == 0 && s->now == &s->main)
		buffer_keep(s, n);
	else if (top > 0)
		buffer_unwrap(s, top - 1);
	if (n < height)
		buffer_turn(s, top, bottom, n);
	buffer_clear_rows(s, bottom + 1 - n, n);
}

void
buffer_scroll_down(struct screen *s, unsigned top, unsigned bottom, unsigned n)
{
	unsigned height = bottom + 1 - top;

	if (n > height)
		n = height;
	if (!n)
		return;
	if (!buffer_is_full_width(s)) {
		buffer_scroll_columns(s, top, bottom, n, false);
		return;
	}
	if (top > 0)
		buffer_unwrap(s, top - 1);
	if (n < height)
		buffer_turn(s, top, bottom, height - n);
	buffer_unwrap(s, bottom);
	buffer_clear_rows(s, top, n);
}

/*
 * Moves N cells within a row. The characters around of what moves and of where
 * it goes are whole; the rest of both places is filled by the caller.
 */
static void
buffer_shift(struct row *r, unsigned from, unsigned to, unsigned n)
{
	memmove(r->cells + to, r->cells + from, n * sizeof(*r->cells));
	if (r->used < to + n)
		r->used = (uint16_t)(to + n);
}

void
buffer_insert_cells(struct screen *s, unsigned row, unsigned col, unsigned n)
{
	struct row *r = buffer_at(s, row);
	unsigned end = s->right + 1u;

	if (n > end - col)
		n = end - col;
	row_split(r, s->cols, col);
	row_split(r, s->cols, end);
	row_split(r, s->cols, end - n);
	buffer_shift(r, col, col + n, end - col - n);
	buffer_fill(r, col, col + n, buffer_blank(s));
	r->is_wrapped = false;
}

void
buffer_delete_cells(struct screen *s, unsigned row, unsigned col, unsigned n)
{
	struct row *r = buffer_at(s, row);
	unsigned end = s->right + 1u;

	if (n > end - col)
		n = end - col;
	row_split(r, s->cols, col);
	row_split(r, s->cols, end);
	row_split(r, s->cols, col + n);
	buffer_shift(r, col + n, col, end - col - n);
	buffer_fill(r, end - n, end, buffer_blank(s));
	r->is_wrapped = false;
}
