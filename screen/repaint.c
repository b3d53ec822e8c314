/*
 * A screen as the bytes that make another terminal show it and behave like it;
 * see screen_repaint(). Nothing is known about that terminal, so the order
 * matters: first everything is as in a new one (reset.c), then colours and
 * titles, then the buffer that is hidden and the one that is shown, each
 * with its saved cursor and its kitty stack, then what moves the cursor (tab
 * stops, margins, origin mode), the cursor, and last the modes under which the
 * painting would have gone wrong. Pure.
 */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "screen/emit.h"
#include "screen/reset.h"
#include "screen/screen.h"
#include "screen/state.h"

/* So many lines are passed over one by one. */
#define REPAINT_LINES_MAX 8

#define REPAINT_WIDE_SPACE 0x3000
#define REPAINT_FLAGS      (EMIT_LINKS | EMIT_PROTECTED | EMIT_PLACED)

/* ---- colours, titles ---- */

static void
repaint_colour(struct buf *out, uint32_t c)
{
	static const char digits[] = "0123456789abcdef";
	char text[16] = "rgb:";
	unsigned n = 4;

	for (int shift = 16; shift >= 0; shift -= 8) {
		text[n++] = digits[c >> (shift + 4) & 0xf];
		text[n++] = digits[c >> shift & 0xf];
		text[n++] = '/';
	}
	text[n - 1] = '\0';
	emit_put(out, "%s\033\\", text);
}

static void
repaint_colours(const struct screen *s, struct buf *out)
{
	emit_put(out, "\033]104\033\\");
	for (unsigned i = 0; s->palette && i < PALETTE_COLOURS; i++) {
		if (s->palette[i] == SCREEN_NO_COLOUR)
			continue;
		emit_put(out, "\033]4;%u;", i);
		repaint_colour(out, s->palette[i]);
	}
	for (unsigned i = 0; i < DYNAMIC_COLOURS; i++) {
		if (s->dynamic[i] == SCREEN_NO_COLOUR) {
			emit_put(out, "\033]%u\033\\", 110 + i);
			continue;
		}
		emit_put(out, "\033]%u;", 10 + i);
		repaint_colour(out, s->dynamic[i]);
	}
}

static void
repaint_title(struct buf *out, const char *title, const char *icon)
{
	emit_put(out, "\033]2;%s\033\\", title ? title : "");
	emit_put(out, "\033]1;%s\033\\", icon ? icon : "");
}

/* The stack is emptied first: what it held belongs to nobody any more. */
static void
repaint_titles(const struct screen *s, struct buf *out)
{
	const struct titles *t = &s->titles;

	for (unsigned i = 0; i < TITLE_DEPTH; i++)
		emit_put(out, "\033[23;0t");
	for (unsigned i = 0; i < t->depth; i++) {
		repaint_title(out, t->stack[i].title, t->stack[i].icon);
		emit_put(out, "\033[22;0t");
	}
	repaint_title(out, t->title, t->icon);
	emit_put(out, "\033]7;%s\033\\", s->cwd ? s->cwd : "");
}

/* ---- what XTSAVE saved ---- */

static bool
repaint_is_on(uint64_t modes, enum mode m)
{
	return modes >> m & 1;
}

/* Every mode is as in a new terminal now, and saved as it was for S. */
static void
repaint_saved_modes(const struct screen *s, struct buf *out)
{
	struct reset_list l = { .out = out, .final = 's' };

	for (unsigned m = 0; m < MODE_COUNT; m++)
		if (mode_info(m)->is_private && mode_info(m)->is_shown &&
		    !reset_is_preference(m))
			reset_list_add(&l, mode_info(m)->number);
	reset_list_add(&l, 1000);
	reset_list_add(&l, 1006);
	reset_list_end(&l);
	for (unsigned m = 0; m < MODE_COUNT; m++) {
		const struct mode_info *info = mode_info(m);

		if (!info->is_private || !info->is_shown ||
		    repaint_is_on(s->saved_modes, m) == info->is_on)
			continue;
		reset_mode(out, m, !info->is_on);
		emit_put(out, "\033[?%us", info->number);
		reset_mode(out, m, info->is_on);
	}
	if (s->saved_mouse)
		emit_put(out, "\033[?%uh\033[?%us\033[?%ul", s->saved_mouse,
		    s->saved_mouse, s->saved_mouse);
	if (s->saved_encoding)
		emit_put(out, "\033[?%uh\033[?%us\033[?%ul", s->saved_encoding,
		    s->saved_encoding, s->saved_encoding);
}

/* ---- rows ---- */

/* Blanks both ends of which are known; the cursor stands before or behind. */
static void
repaint_blanks(
    struct emit *e, const struct cell *c, unsigned n, bool is_row_end)
{
	if (c->bg) {
		emit_background(e, c->bg);
		if (is_row_end)
			emit_put(e->out, "\033[K");
		else
			emit_put(e->out, "\033[%uX", n);
	}
	if (!is_row_end)
		emit_put(e->out, "\033[%uC", n);
}

/* The first N cells of a row that is blank so far, from its beginning on. */
static void
repaint_cells(
    struct emit *e, const struct cell *cells, unsigned n, unsigned cols)
{
	unsigned i = 0, from;

	while (i < n) {
		bool is_blank = emit_is_blank(&cells[i]);

		from = i;
		while (i < n && emit_is_blank(&cells[i]) == is_blank &&
		       (!is_blank || cells[i].bg == cells[from].bg))
			i++;
		if (!is_blank)
			emit_cells(e, cells + from, i - from, from);
		else
			repaint_blanks(e, cells + from, i - from, i == cols);
	}
}

/* How the cursor came to the row that is drawn next. */
enum repaint_way {
	REPAINT_PLACED, /* not at all: it is sent there */
	REPAINT_WRAPS,  /* the next character makes it wrap */
	REPAINT_WRAPPED /* it stands at the row's beginning */
};

/*
 * Puts the cursor from row FROM to where the row's first cell will be drawn. New
 * lines, where a few will do: who reads the bytes and has no screen sees lines
 * then. Text that goes on from one row to the next is not placed there: only a
 * terminal that wraps it itself knows that both are one line.
 */
static void
repaint_row_start(struct emit *e, const struct cell *cells, unsigned from,
    unsigned row, enum repaint_way way)
{
	if (way == REPAINT_PLACED && row - from > REPAINT_LINES_MAX) {
		emit_put(e->out, "\033[%uH", row + 1);
		from = row;
	}
	for (; way == REPAINT_PLACED && from < row; from++)
		emit_put(e->out, "\r\n");
	if (way != REPAINT_WRAPS || !emit_is_blank(&cells[0]))
		return; /* the character itself does it */
	emit_put(e->out, " \r");
	emit_background(e, COLOUR_DEFAULT);
	emit_put(e->out, "\033[X");
}

/*
 * The row ends in a blank, because a wide character had no room there, and goes
 * on with NEXT. The same character does it again; if it is gone, a wide space.
 */
static enum repaint_way
repaint_wide_wrap(const struct screen *s, struct emit *e,
    const struct cell *cells, const struct cell *next)
{
	uint32_t bg = cells[s->cols - 1].bg;

	repaint_cells(e, cells, s->cols - 1, s->cols);
	if (next->attr & CELL_WIDE && next->bg == bg)
		return REPAINT_WRAPS;
	emit_background(e, bg);
	emit_char(e->out, REPAINT_WIDE_SPACE);
	emit_background(e, COLOUR_DEFAULT);
	emit_put(e->out, "\r\033[2X");
	return REPAINT_WRAPPED;
}

static void
repaint_rows(const struct screen *s, const struct buffer *b, struct emit *e)
{
	enum repaint_way way = REPAINT_PLACED;
	unsigned at = 0;

	emit_put(e->out, "\033[H");
	for (unsigned i = 0; i < s->rows; i++) {
		const struct cell *cells = buffer_row(s, b, i);
		unsigned n = emit_used(cells, s->cols);
		bool goes_on = b->rows[i].is_wrapped && i + 1 < s->rows;

		if (!n && !goes_on && way == REPAINT_PLACED)
			continue;
		repaint_row_start(e, cells, at, i, way);
		at = i;
		if (goes_on && emit_is_blank(&cells[s->cols - 1])) {
			way = repaint_wide_wrap(
			    s, e, cells, buffer_row(s, b, i + 1));
		} else {
			repaint_cells(e, cells, n, s->cols);
			way = goes_on ? REPAINT_WRAPS : REPAINT_PLACED;
		}
	}
}

/* Row by row: some terminals move what ED erases into their history. */
static void
repaint_erase(const struct screen *s, struct buf *out)
{
	emit_put(out, "\033[H\033[K");
	for (unsigned i = 1; i < s->rows; i++)
		emit_put(out, "\n\033[K");
}

/* ---- cursors ---- */

static void
repaint_charsets(const struct cursor *c, struct buf *out)
{
	static const char *const shifts[] = { "\017", "\016", "\033n",
		"\033o" };

	for (unsigned i = 0; i < 4; i++) {
		if (c->g[i] == CHARSET_ASCII)
			continue;
		buf_put_u8(out, 0x1b);
		buf_put_u8(out, (uint8_t)('(' + i));
		buf_put_u8(out, c->g[i]);
	}
	if (c->gl)
		emit_put(out, "%s", shifts[c->gl & 3]);
}

/*
 * Sets margins where the wrap of C can be pending, if it is not at the edge;
 * true when they have to be taken away again.
 */
static bool
repaint_narrow(const struct screen *s, const struct cursor *c, struct buf *out)
{
	bool is_narrow = c->is_wrap_pending && c->col + 1u < s->cols && c->col;

	if (is_narrow)
		emit_put(out, "\033[?69h\033[1;%us", c->col + 1u);
	return is_narrow;
}

/*
 * Fills the DECSC slot of the blank buffer in use. A pending wrap is made with
 * a blank, which is erased again.
 */
static void
repaint_saved(const struct screen *s, const struct buffer *b, struct emit *e)
{
	struct cursor c = { .g = { 'B', 'B', 'B', 'B' } };
	bool is_narrow;

	if (b->has_saved)
		c = b->saved;
	is_narrow = repaint_narrow(s, &c, e->out);
	if (c.is_origin)
		emit_put(e->out, "\033[?6h");
	emit_put(e->out, "\033[%u;%uH", c.row + 1u, c.col + 1u);
	if (c.is_wrap_pending)
		buf_put_u8(e->out, ' ');
	emit_pen(e, &c.pen);
	repaint_charsets(&c, e->out);
	emit_put(e->out, "\0337");
	reset_pen(e);
	if (is_narrow)
		emit_put(e->out, "\033[?69l");
	if (c.is_wrap_pending)
		emit_put(e->out, "\033[%uH\033[K", c.row + 1u);
}

static void
repaint_kitty(const struct kitty *k, struct buf *out)
{
	reset_kitty(out);
	if (k->base)
		emit_put(out, "\033[=%u;1u", k->base);
	for (unsigned i = 0; i < k->n; i++)
		emit_put(out, "\033[>%uu", k->flags[i]);
}

/* Everything of the buffer B, which is in use and whose pen is neutral. */
static void
repaint_buffer(const struct screen *s, const struct buffer *b, struct emit *e)
{
	repaint_erase(s, e->out);
	repaint_saved(s, b, e);
	if (b->rows)
		repaint_rows(s, b, e);
	repaint_kitty(&b->kitty, e->out);
	emit_background(e, COLOUR_DEFAULT);
}

/* As screen_prologue() left it; going there and back would be seen. */
static bool
repaint_is_unused(const struct buffer *b)
{
	return !b->rows && !b->has_saved && !b->kitty.n && !b->kitty.base;
}

/*
 * Both buffers; the one that is shown last. A 1049 saves the cursor of the main
 * screen: it is made to stand where it was saved before.
 */
static void
repaint_buffers(const struct screen *s, struct emit *e)
{
	if (s->now == &s->main && repaint_is_unused(&s->alt)) {
		emit_put(e->out, "\033[?1049l");
		reset_pen(e);
		repaint_buffer(s, &s->main, e);
		return;
	}
	if (s->now == &s->main) {
		emit_put(e->out, "\033[?1049h");
		repaint_buffer(s, &s->alt, e);
		emit_put(e->out, "\033[?1049l");
		reset_pen(e);
		repaint_buffer(s, &s->main, e);
		return;
	}
	emit_put(e->out, "\033[?1049l");
	reset_pen(e);
	repaint_buffer(s, &s->main, e);
	if (s->is_alt_cursor_kept) {
		bool is_narrow = repaint_narrow(s, &s->main.saved, e->out);

		emit_put(e->out, "\0338\033[?1049h");
		if (is_narrow)
			emit_put(e->out, "\033[?69l");
	} else {
		emit_put(e->out, "\033[%u;%uH\033[?1047h",
		    s->main_cursor.row + 1u, s->main_cursor.col + 1u);
	}
	reset_pen(e);
	repaint_buffer(s, &s->alt, e);
}

/* ---- the end ---- */

static void
repaint_tabs(const struct screen *s, struct buf *out)
{
	emit_put(out, "\033[3g");
	for (unsigned i = 0; i < s->cols; i++)
		if (s->tabs[i])
			emit_put(out, "\033[%uG\033H", i + 1);
}

static void
repaint_margins(const struct screen *s, struct buf *out)
{
	if (mode_is_on(s, MODE_MARGINS))
		reset_mode(out, MODE_MARGINS, true);
	if (s->left || s->right + 1u < s->cols)
		emit_put(out, "\033[%u;%us", s->left + 1u, s->right + 1u);
	if (s->top || s->bottom + 1u < s->rows)
		emit_put(out, "\033[%u;%ur", s->top + 1u, s->bottom + 1u);
	if (s->cursor.is_origin)
		emit_put(out, "\033[?6h");
}

/* The parameters for a position, which origin mode counts from the margins. */
static void
repaint_place(
    const struct screen *s, unsigned col, unsigned row, struct buf *out)
{
	unsigned top = s->cursor.is_origin ? s->top : 0;
	unsigned left = s->cursor.is_origin ? s->left : 0;

	emit_put(out, "%u;%u", row - top + 1, col - left + 1);
}

static void
repaint_move(
    const struct screen *s, unsigned col, unsigned row, struct buf *out)
{
	emit_put(out, "\033[");
	repaint_place(s, col, row, out);
	buf_put_u8(out, 'H');
}

/*
 * The column where the character begins that the cursor stands behind, if
 * writing it once more changes nothing but the cursor; else the cursor's.
 */
static unsigned
repaint_again(const struct screen *s, const struct cell *cells)
{
	const struct cursor *c = &s->cursor;
	unsigned col = c->col, width;

	if (!c->is_wrap_pending) {
		/* only for the sake of REP */
		if (!s->last_ch || !col || col == s->left ||
		    col == s->right + 1u)
			return c->col;
		col--;
	}
	if (cells[col].attr & CELL_TAIL && col)
		col--;
	if (emit_is_blank(&cells[col]))
		return c->col;
	width = cells[col].attr & CELL_WIDE ? 2 : 1;
	if (!c->is_wrap_pending &&
	    (cells[col].ch != s->last_ch || col + width != c->col ||
		(c->is_origin && col < s->left)))
		return c->col;
	return col;
}

/* True when the saved cursor of the buffer in use stands where it does now. */
static bool
repaint_is_at_saved(const struct screen *s)
{
	const struct cursor *a = &s->cursor, *b = &s->now->saved;

	return s->now->has_saved && a->col == b->col && a->row == b->row &&
	       a->is_wrap_pending == b->is_wrap_pending &&
	       a->is_origin == b->is_origin;
}

/* The wrap is pending behind a cell that shows nothing. */
static void
repaint_pending_blank(const struct screen *s, struct emit *e, uint32_t bg)
{
	const struct cursor *c = &s->cursor;
	struct buf *out = e->out;

	repaint_move(s, c->col, c->row, out);
	buf_put_u8(out, ' ');
	emit_background(e, bg);
	emit_put(out, "\033[");
	repaint_place(s, c->col, c->row, out);
	buf_put_u8(out, ';');
	/* DECERA leaves the cursor alone */
	repaint_place(s, c->col, c->row, out);
	emit_put(out, "$z");
}

/* A wrap is pending only behind a character that was just written. */
static void
repaint_cursor(const struct screen *s, struct emit *e)
{
	const struct cursor *c = &s->cursor;
	const struct cell *cells = buffer_row(s, s->now, c->row);
	unsigned col = repaint_again(s, cells);
	bool is_wrapped = s->now->rows && s->now->rows[c->row].is_wrapped &&
			  c->col + 1u == s->cols;
	bool is_drawn = col != c->col || c->is_wrap_pending;

	if (c->is_wrap_pending && (is_wrapped || emit_is_blank(&cells[col]))) {
		if (repaint_is_at_saved(s)) {
			emit_put(e->out, "\0338");
			reset_charsets(e->out);
			emit_neutral(e);
		} else {
			repaint_pending_blank(s, e, cells[col].bg);
		}
	} else {
		repaint_move(s, col, c->row, e->out);
		if (is_drawn)
			emit_cells(e, &cells[col],
			    cells[col].attr & CELL_WIDE ? 2 : 1, col);
	}
	emit_pen(e, &c->pen);
	repaint_charsets(c, e->out);
}

static void
repaint_modes(const struct screen *s, struct buf *out)
{
	for (unsigned m = 0; m < MODE_COUNT; m++) {
		const struct mode_info *info = mode_info(m);

		/* the cursor is shown last, margins are there already */
		if (info->is_shown && mode_is_on(s, m) != info->is_on &&
		    m != MODE_CURSOR && m != MODE_MARGINS)
			reset_mode(out, m, !info->is_on);
	}
	if (s->mouse)
		emit_put(out, "\033[?%uh", s->mouse);
	if (s->mouse_encoding)
		emit_put(out, "\033[?%uh", s->mouse_encoding);
	for (unsigned i = 0; i < ARRAY_LEN(s->modify_keys); i++)
		if (s->modify_keys[i])
			emit_put(out, "\033[>%u;%um", i, s->modify_keys[i]);
	if (s->cursor_shape)
		emit_put(out, "\033[%u q", s->cursor_shape);
}

void
screen_repaint(const struct screen *s, struct buf *out)
{
	struct emit e;

	emit_init(&e, out, screen_tables(s), REPAINT_FLAGS);
	emit_put(out, "\033[?2026h");
	reset_terminal(&e);
	repaint_saved_modes(s, out);
	emit_put(out, "\033[?25l");
	repaint_colours(s, out);
	repaint_titles(s, out);
	repaint_buffers(s, &e);
	repaint_tabs(s, out);
	repaint_margins(s, out);
	repaint_cursor(s, &e);
	repaint_modes(s, out);
	if (mode_is_on(s, MODE_CURSOR))
		emit_put(out, "\033[?25h");
	emit_put(out, "\033[?2026l");
	if (s->single_shift)
		emit_put(out, s->single_shift == 2 ? "\033N" : "\033O");
}
