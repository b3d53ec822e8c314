/*
 * A new size. Pure.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "screen/buffer.h"
#include "screen/cursor.h"
#include "screen/history.h"
#include "screen/screen.h"
#include "screen/state.h"

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
		unsigned n = from->used < cols ? from->used : cols;

		row_split(from, s->cols, cols);
		memcpy(to.rows[i].cells, from->cells, n * sizeof(struct cell));
		to.rows[i].used = (uint16_t)n;
	}
	buffer_release(b);
	*b = to;
}

static void
resize_clamp(struct cursor *c, unsigned cols, unsigned rows)
{
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
	resize_cut(s, &s->main, cols, rows);
	resize_cut(s, &s->alt, cols, rows);
	s->tabs = xrealloc(s->tabs, cols);
	if (cols > s->cols)
		cursor_default_tabs(s->tabs, s->cols, cols);
	s->cols = cols;
	s->rows = rows;
	resize_clamp(&s->cursor, cols, rows);
	resize_clamp(&s->main_cursor, cols, rows);
	resize_clamp(&s->main.saved, cols, rows);
	resize_clamp(&s->alt.saved, cols, rows);
	cursor_reset_margins(s);
}
