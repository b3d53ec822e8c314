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
	uint8_t *text;

	b->rows = xcalloc((size_t)rows * 2, sizeof(*b->rows));
	b->cells = xcalloc((size_t)rows * cols, sizeof(*b->cells) + 1);
	text = (uint8_t *)(b->cells + (size_t)rows * cols);
	for (unsigned i = 0; i < rows; i++) {
		b->rows[i].cells = b->cells + (size_t)i * cols;
		b->rows[i].text = text + (size_t)i * cols;
	}
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
	return b->rows ? row_cells(&b->rows[row]) : buffer_blanks;
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
	const struct cell *c = row_cells(r);

	for (unsigned i = from; i < to; i++)
		if (!(c[i].attr & CELL_PROTECTED))
			row_fill(r, s->cols, i, i + 1, buffer_blank(s));
	if (to == s->cols && !(c[to - 1].attr & CELL_PROTECTED))
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
	const struct cell *src = row_cells(buffer_at(s, from)) + from_col;
	struct row *r = buffer_at(s, to);
	struct cell *dst = row_cells(r) + to_col;

	row_split(r, s->cols, to_col);
	row_split(r, s->cols, to_col + n);
	memmove(dst, src, n * sizeof(*dst));
	if (r->used < to_col + n)
		r->used = (uint16_t)(to_col + n);
	/* halves that were cut off at the ends of the copy */
	if (n && dst[0].attr & CELL_TAIL) {
		dst[0].attr &= CELL_STYLE;
		dst[0].ch = ' ';
	}
	if (n && dst[n - 1].attr & CELL_WIDE) {
		dst[n - 1].attr &= CELL_STYLE;
		dst[n - 1].ch = ' ';
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
	row_shift(r, col, col + n, end - col - n);
	row_put(r, col, col + n, buffer_blank(s));
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
	row_shift(r, col + n, col, end - col - n);
	row_put(r, end - n, end, buffer_blank(s));
	r->is_wrapped = false;
}
