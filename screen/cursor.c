/*
 * Cursor movement; see cursor.h. Semantics are xterm's: a move ends a pending
 * wrap, margins hold the cursor only if it is inside of them. Pure.
 */
#include "screen/cursor.h"

#include <string.h>

#include "screen/buffer.h"

struct cursor
cursor_initial(void)
{
	return (struct cursor){
		.g = { CHARSET_ASCII, CHARSET_ASCII, CHARSET_ASCII,
		    CHARSET_ASCII },
	};
}

static unsigned
cursor_min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static unsigned
cursor_clamp(unsigned v, unsigned min, unsigned max)
{
	return v < min ? min : v > max ? max : v;
}

void
cursor_to_col(struct screen *s, unsigned col)
{
	struct cursor *c = &s->cursor;

	if (c->is_origin)
		c->col = (uint16_t)cursor_min(
		    cursor_min(col, s->cols) + s->left, s->right);
	else
		c->col = (uint16_t)cursor_min(col, s->cols - 1);
	c->is_wrap_pending = false;
}

void
cursor_to_row(struct screen *s, unsigned row)
{
	struct cursor *c = &s->cursor;

	if (c->is_origin)
		c->row = (uint16_t)cursor_min(
		    cursor_min(row, s->rows) + s->top, s->bottom);
	else
		c->row = (uint16_t)cursor_min(row, s->rows - 1);
	c->is_wrap_pending = false;
}

void
cursor_to(struct screen *s, unsigned col, unsigned row)
{
	cursor_to_col(s, col);
	cursor_to_row(s, row);
}

void
cursor_up(struct screen *s, unsigned n)
{
	struct cursor *c = &s->cursor;
	unsigned limit = c->row >= s->top ? s->top : 0;

	c->row = (uint16_t)(c->row - cursor_min(n, c->row - limit));
	c->is_wrap_pending = false;
}

void
cursor_down(struct screen *s, unsigned n)
{
	struct cursor *c = &s->cursor;
	unsigned limit = c->row <= s->bottom ? s->bottom : s->rows - 1;

	c->row = (uint16_t)(c->row + cursor_min(n, limit - c->row));
	c->is_wrap_pending = false;
}

void
cursor_left(struct screen *s, unsigned n)
{
	struct cursor *c = &s->cursor;
	unsigned limit = c->col >= s->left ? s->left : 0;

	c->col = (uint16_t)(c->col - cursor_min(n, c->col - limit));
	c->is_wrap_pending = false;
}

void
cursor_right(struct screen *s, unsigned n)
{
	struct cursor *c = &s->cursor;
	unsigned limit = c->col <= s->right ? s->right : s->cols - 1;

	c->col = (uint16_t)(c->col + cursor_min(n, limit - c->col));
	c->is_wrap_pending = false;
}

void
cursor_return(struct screen *s)
{
	struct cursor *c = &s->cursor;

	if (c->is_origin || c->col >= s->left)
		c->col = s->left;
	else
		c->col = 0;
	c->is_wrap_pending = false;
}

static bool
cursor_is_in_columns(const struct screen *s)
{
	return s->cursor.col >= s->left && s->cursor.col <= s->right;
}

void
cursor_index(struct screen *s, bool is_wrap)
{
	struct cursor *c = &s->cursor;

	c->is_wrap_pending = false;
	if (c->row != s->bottom) {
		if (c->row + 1u < s->rows) {
			if (is_wrap)
				buffer_at(s, c->row)->is_wrapped = true;
			c->row++;
		}
		return;
	}
	if (!cursor_is_in_columns(s))
		return;
	buffer_at(s, c->row)->is_wrapped = is_wrap;
	buffer_scroll_up(s, s->top, s->bottom, 1, true);
}

void
cursor_reverse_index(struct screen *s)
{
	struct cursor *c = &s->cursor;

	c->is_wrap_pending = false;
	if (c->row != s->top) {
		if (c->row > 0)
			c->row--;
	} else if (cursor_is_in_columns(s)) {
		buffer_scroll_down(s, s->top, s->bottom, 1);
	}
}

void
cursor_tab(struct screen *s, unsigned n)
{
	struct cursor *c = &s->cursor;
	unsigned limit = c->col <= s->right ? s->right : s->cols - 1;
	unsigned col = c->col;

	for (; n && col < limit; n--) {
		const uint8_t *at = memchr(s->tabs + col + 1, 1, limit - col);

		col = at ? (unsigned)(at - s->tabs) : limit;
	}
	c->col = (uint16_t)col;
}

void
cursor_back_tab(struct screen *s, unsigned n)
{
	struct cursor *c = &s->cursor;
	unsigned limit = c->is_origin ? s->left : 0;
	unsigned col = c->col;

	for (; n && col > limit; n--)
		for (col--; col > limit && !s->tabs[col];)
			col--;
	c->col = (uint16_t)col;
	c->is_wrap_pending = false;
}

void
cursor_default_tabs(uint8_t *tabs, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++)
		tabs[i] = i % 8 == 0;
}

void
cursor_save(struct screen *s)
{
	s->now->saved = s->cursor;
	s->now->has_saved = true;
}

void
cursor_restore(struct screen *s)
{
	struct cursor *c = &s->cursor;

	*c = s->now->has_saved ? s->now->saved : cursor_initial();
	if (c->is_origin) {
		/* as the position would be reached in origin mode */
		c->col = (uint16_t)cursor_clamp(c->col, s->left, s->right);
		c->row = (uint16_t)cursor_clamp(c->row, s->top, s->bottom);
	}
	/* the margins may be others now */
	if (c->col != s->right && c->col + 1u != s->cols)
		c->is_wrap_pending = false;
}

void
cursor_reset_margins(struct screen *s)
{
	s->top = 0;
	s->left = 0;
	s->bottom = (uint16_t)(s->rows - 1);
	s->right = (uint16_t)(s->cols - 1);
}
