/*
 * Control sequences that erase, insert, delete and scroll; see csi_edit.h. Counts
 * are bounded by the screen in buffer.c. Pure.
 */
#include "screen/csi_edit.h"

#include "screen/buffer.h"
#include "screen/cursor.h"
#include "screen/history.h"
#include "screen/parser.h"
#include "screen/state.h"

static bool
csi_is_inside(const struct screen *s)
{
	const struct cursor *c = &s->cursor;

	return c->row >= s->top && c->row <= s->bottom && c->col >= s->left &&
	       c->col <= s->right;
}

static void
csi_erase_rows(struct screen *s, unsigned from, unsigned to, bool is_selective)
{
	for (unsigned i = from; i < to; i++)
		if (is_selective)
			buffer_erase_selective(s, i, 0, s->cols);
		else
			buffer_erase(s, i, 0, s->cols);
}

/*
 * While a wrap is pending nothing is left of the row to be erased. xterm takes
 * the last character then; VTE, kitty, alacritty and tmux do not, and programs
 * that end full lines with EL 0, such as top, rely on that.
 */
static void
csi_erase_line(struct screen *s, unsigned what, bool is_selective)
{
	const struct cursor *c = &s->cursor;
	unsigned from = what == 0 ? c->col : 0;
	unsigned to = what == 1 ? c->col + 1u : s->cols;

	if (what > 2 || (what == 0 && c->is_wrap_pending))
		return;
	if (is_selective)
		buffer_erase_selective(s, c->row, from, to);
	else
		buffer_erase(s, c->row, from, to);
}

static void
csi_erase_display(struct screen *s, unsigned what, bool is_selective)
{
	unsigned row = s->cursor.row;

	if (what == 0) {
		csi_erase_line(s, 0, is_selective);
		csi_erase_rows(s, row + 1, s->rows, is_selective);
	} else if (what == 1) {
		csi_erase_line(s, 1, is_selective);
		csi_erase_rows(s, 0, row, is_selective);
	} else if (what == 2) {
		csi_erase_rows(s, 0, s->rows, is_selective);
		s->cursor.is_wrap_pending = false;
	} else if (what == 3 && !is_selective) {
		history_clear(s->history);
	}
}

void
csi_ed(struct screen *s, const struct parser *p)
{
	csi_erase_display(s, parser_param(p, 0, 0), false);
}

void
csi_decsed(struct screen *s, const struct parser *p)
{
	csi_erase_display(s, parser_param(p, 0, 0), true);
}

void
csi_el(struct screen *s, const struct parser *p)
{
	csi_erase_line(s, parser_param(p, 0, 0), false);
}

void
csi_decsel(struct screen *s, const struct parser *p)
{
	csi_erase_line(s, parser_param(p, 0, 0), true);
}

void
csi_ech(struct screen *s, const struct parser *p)
{
	unsigned n = parser_param(p, 0, 1);
	unsigned col = s->cursor.col;

	if (n > s->cols - col)
		n = s->cols - col;
	buffer_erase(s, s->cursor.row, col, col + n);
	s->cursor.is_wrap_pending = false;
}

void
csi_ich(struct screen *s, const struct parser *p)
{
	s->cursor.is_wrap_pending = false;
	if (s->cursor.col >= s->left && s->cursor.col <= s->right)
		buffer_insert_cells(
		    s, s->cursor.row, s->cursor.col, parser_param(p, 0, 1));
}

void
csi_dch(struct screen *s, const struct parser *p)
{
	s->cursor.is_wrap_pending = false;
	if (s->cursor.col >= s->left && s->cursor.col <= s->right)
		buffer_delete_cells(
		    s, s->cursor.row, s->cursor.col, parser_param(p, 0, 1));
}

void
csi_il(struct screen *s, const struct parser *p)
{
	if (!csi_is_inside(s))
		return;
	buffer_scroll_down(s, s->cursor.row, s->bottom, parser_param(p, 0, 1));
	cursor_return(s);
}

void
csi_dl(struct screen *s, const struct parser *p)
{
	if (!csi_is_inside(s))
		return;
	buffer_at(s, s->bottom)->is_wrapped = false;
	buffer_scroll_up(
	    s, s->cursor.row, s->bottom, parser_param(p, 0, 1), false);
	cursor_return(s);
}

void
csi_su(struct screen *s, const struct parser *p)
{
	buffer_at(s, s->bottom)->is_wrapped = false;
	buffer_scroll_up(s, s->top, s->bottom, parser_param(p, 0, 1), true);
	s->cursor.is_wrap_pending = false;
}

void
csi_sd(struct screen *s, const struct parser *p)
{
	if (p->n_params > 1)
		return; /* xterm's mouse highlighting */
	buffer_scroll_down(s, s->top, s->bottom, parser_param(p, 0, 1));
	s->cursor.is_wrap_pending = false;
}

/* SL and SR move all columns within the margins. */
static void
csi_shift_columns(struct screen *s, unsigned col, unsigned n, bool is_insert)
{
	for (unsigned i = s->top; i <= s->bottom; i++)
		if (is_insert)
			buffer_insert_cells(s, i, col, n);
		else
			buffer_delete_cells(s, i, col, n);
	s->cursor.is_wrap_pending = false;
}

void
csi_sl(struct screen *s, const struct parser *p)
{
	csi_shift_columns(s, s->left, parser_param(p, 0, 1), false);
}

void
csi_sr(struct screen *s, const struct parser *p)
{
	csi_shift_columns(s, s->left, parser_param(p, 0, 1), true);
}

void
csi_decic(struct screen *s, const struct parser *p)
{
	if (csi_is_inside(s))
		csi_shift_columns(
		    s, s->cursor.col, parser_param(p, 0, 1), true);
}

void
csi_decdc(struct screen *s, const struct parser *p)
{
	if (csi_is_inside(s))
		csi_shift_columns(
		    s, s->cursor.col, parser_param(p, 0, 1), false);
}

void
csi_back_index(struct screen *s)
{
	if (csi_is_inside(s) && s->cursor.col == s->left)
		csi_shift_columns(s, s->left, 1, true);
	else
		cursor_left(s, 1);
}

void
csi_forward_index(struct screen *s)
{
	if (csi_is_inside(s) && s->cursor.col == s->right)
		csi_shift_columns(s, s->left, 1, false);
	else
		cursor_right(s, 1);
}
