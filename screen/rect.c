/* Rectangles; see rect.h. Pure. */
#include "screen/rect.h"

#include "screen/buffer.h"
#include "screen/parser.h"

/* Rows and columns from 0; the ends are outside. */
struct rect {
	unsigned top, left, bottom, right;
};

static unsigned
rect_edge(unsigned v, unsigned base, unsigned limit)
{
	return v + base < limit ? v + base : limit;
}

/* The rectangle at parameter I; an empty one is not one. */
static bool
rect_parse(const struct screen *s, const struct parser *p, unsigned i,
    struct rect *out)
{
	bool is_origin = s->cursor.is_origin;
	unsigned row = is_origin ? s->top : 0, col = is_origin ? s->left : 0;
	unsigned rows = is_origin ? s->bottom + 1u : s->rows;
	unsigned cols = is_origin ? s->right + 1u : s->cols;

	*out = (struct rect){
		.top = rect_edge(parser_param(p, i, 1) - 1, row, rows),
		.left = rect_edge(parser_param(p, i + 1, 1) - 1, col, cols),
		.bottom = rect_edge(parser_param(p, i + 2, rows), row, rows),
		.right = rect_edge(parser_param(p, i + 3, cols), col, cols),
	};
	return out->top < out->bottom && out->left < out->right;
}

void
rect_fill(struct screen *s, const struct parser *p)
{
	struct cell c = s->cursor.pen;
	unsigned ch = parser_param(p, 0, ' ');
	struct rect r;

	if (ch < 0x20 || ch > 0x7e || !rect_parse(s, p, 1, &r))
		return;
	c.ch = ch;
	for (unsigned i = r.top; i < r.bottom; i++)
		row_fill(buffer_at(s, i), s->cols, r.left, r.right, c);
}

void
rect_erase(struct screen *s, const struct parser *p)
{
	struct rect r;

	if (!rect_parse(s, p, 0, &r))
		return;
	for (unsigned i = r.top; i < r.bottom; i++)
		buffer_erase(s, i, r.left, r.right);
}

void
rect_erase_selective(struct screen *s, const struct parser *p)
{
	struct rect r;

	if (!rect_parse(s, p, 0, &r))
		return;
	for (unsigned i = r.top; i < r.bottom; i++)
		buffer_erase_selective(s, i, r.left, r.right);
}

void
rect_copy(struct screen *s, const struct parser *p)
{
	bool is_origin = s->cursor.is_origin;
	unsigned rows = is_origin ? s->bottom + 1u : s->rows;
	unsigned cols = is_origin ? s->right + 1u : s->cols;
	unsigned to_row, to_col, n, width;
	struct rect r;

	if (!rect_parse(s, p, 0, &r))
		return;
	to_row =
	    rect_edge(parser_param(p, 5, 1) - 1, is_origin ? s->top : 0, rows);
	to_col =
	    rect_edge(parser_param(p, 6, 1) - 1, is_origin ? s->left : 0, cols);
	n = r.bottom - r.top < rows - to_row ? r.bottom - r.top : rows - to_row;
	width =
	    r.right - r.left < cols - to_col ? r.right - r.left : cols - to_col;
	if (!width)
		return;
	for (unsigned i = 0; i < n; i++) {
		/* downwards the last row goes first */
		unsigned k = to_row > r.top ? n - 1 - i : i;

		buffer_copy_cells(
		    s, r.top + k, r.left, to_row + k, to_col, width);
	}
}
