/*
 * What frames a repaint: the way in, for a terminal that somebody else used
 * before, and the way out, back to that one's shell; see screen.h. Pure.
 */
#include "base/buf.h"
#include "base/mem.h"
#include "screen/emit.h"
#include "screen/reset.h"
#include "screen/screen.h"
#include "screen/state.h"

#define RESTORE_FLAGS (EMIT_LINKS | EMIT_PROTECTED)

/* N line feeds: what is above the cursor and it can see goes off the top. */
static void
restore_scroll(unsigned n, struct buf *out)
{
	for (unsigned i = 0; i < n; i++)
		buf_put_u8(out, '\n');
}

/*
 * CAN ends a sequence or string, ST the strings of those that do not heed CAN.
 * The cursor is saved and brought back, because leaving the alternate screen
 * and resetting the margins move it.
 */
static void
restore_begin(struct emit *e)
{
	emit_put(e->out,
	    "\030\033\\\033[?2026l\0337\033[?1049l\0337\033[?69l\033[r\0338");
}

void
screen_prologue(unsigned rows, struct buf *out)
{
	static const struct cell_tables none;
	struct emit e;

	emit_init(&e, out, none, RESTORE_FLAGS);
	restore_begin(&e);
	/*
	 * Lines that come in have the pen's background. Origin mode is left
	 * for later: its end would move the cursor.
	 */
	emit_neutral(&e);
	restore_scroll(rows, out);
	reset_terminal(&e);
	/* Who goes to the alternate screen finds it blank, and goes home. */
	emit_put(out, "\033[?1049h\033[H\0337");
	reset_kitty(out);
	emit_put(out, "\033[?1049l");
}

void
screen_push(unsigned rows, uint64_t lines, struct buf *out)
{
	/* from where the cursor is: that many rows scroll as are above it */
	if (lines && rows)
		restore_scroll(rows - 1, out);
	emit_put(out, "\033[H");
}

void
screen_restore_unknown(struct buf *out)
{
	static const struct cell_tables none;
	struct emit e;

	emit_init(&e, out, none, RESTORE_FLAGS);
	restore_begin(&e);
	reset_pen(&e);
	reset_terminal(&e);
	reset_colours(out);
	emit_put(out, "\033[999H\r\n");
}

/* ---- a known state ---- */

static void
restore_modes(const struct screen *s, struct buf *out)
{
	for (unsigned m = 0; m < MODE_COUNT; m++)
		if (mode_is_on(s, m) != mode_info(m)->is_on &&
		    (mode_info(m)->is_shown || m == MODE_SYNC))
			reset_mode(out, m, mode_info(m)->is_on);
	if (s->mouse_encoding)
		emit_put(out, "\033[?%ul", s->mouse_encoding);
	if (s->mouse)
		emit_put(out, "\033[?%ul", s->mouse);
	for (unsigned i = 0; i < ARRAY_LEN(s->modify_keys); i++)
		if (s->modify_keys[i])
			emit_put(out, "\033[>%um", i);
	if (s->cursor_shape)
		emit_put(out, "\033[0 q");
}

static void
restore_colours(const struct screen *s, struct buf *out)
{
	if (s->palette)
		emit_put(out, "\033]104\033\\");
	for (unsigned i = 0; i < DYNAMIC_COLOURS; i++)
		if (s->dynamic[i] != SCREEN_NO_COLOUR)
			emit_put(out, "\033]%u\033\\", 110 + i);
}

static bool
restore_has_kitty(const struct kitty *k)
{
	return k->n || k->base;
}

/* The main screen in use, both stacks empty. */
static void
restore_buffers(const struct screen *s, struct buf *out)
{
	bool is_alt = s->now == &s->alt;

	if (!is_alt && restore_has_kitty(&s->alt.kitty)) {
		/* only from there it can be reached */
		emit_put(out, "\033[?1049h");
		is_alt = true;
	}
	if (restore_has_kitty(&s->alt.kitty))
		reset_kitty(out);
	if (is_alt)
		emit_put(out, "\033[?1049l");
	if (restore_has_kitty(&s->main.kitty))
		reset_kitty(out);
}

static bool
restore_is_neutral(const struct cursor *c)
{
	for (unsigned i = 0; i < 4; i++)
		if (c->g[i] != CHARSET_ASCII)
			return false;
	return !c->gl && !c->is_origin && !c->pen.fg && !c->pen.bg &&
	       !c->pen.ext && !(c->pen.attr & CELL_STYLE);
}

/* The last row with anything on it, counted from 1; 0 for an empty screen. */
static unsigned
restore_used_rows(const struct screen *s)
{
	unsigned rows = s->rows;

	while (rows && !emit_used(buffer_row(s, &s->main, rows - 1), s->cols))
		rows--;
	return rows;
}

static bool
restore_has_margins(const struct screen *s)
{
	return s->top || s->bottom + 1u < s->rows || s->left ||
	       s->right + 1u < s->cols;
}

/* To a line of its own below the text; C is where it stands, if IS_KNOWN. */
static void
restore_cursor(const struct screen *s, const struct cursor *c, bool is_known,
    struct buf *out)
{
	unsigned used = restore_used_rows(s);

	if (!is_known || c->row + 1u < used)
		emit_put(
		    out, "\033[%uH", used > c->row + 1u ? used : c->row + 1u);
	if (c->row + 1u <= used || c->col || c->is_wrap_pending)
		emit_put(out, "\r\n");
}

static void
restore_tabs(const struct screen *s, struct buf *out)
{
	bool is_default = true;

	for (unsigned i = 0; i < s->cols; i++)
		is_default &= s->tabs[i] == (i % 8 == 0);
	if (is_default)
		return;
	emit_put(out, "\r\033[3g\033H");
	for (unsigned i = 8; i < s->cols; i += 8)
		emit_put(out, "\033[8C\033H");
}

void
screen_restore(const struct screen *s, struct buf *out)
{
	struct cursor c = s->cursor;
	bool is_neutral = restore_is_neutral(&c);
	size_t begin = buf_len(out);
	struct emit e;

	emit_init(&e, out, screen_tables(s), RESTORE_FLAGS);
	restore_buffers(s, out);
	if (s->now == &s->alt || restore_has_kitty(&s->alt.kitty)) {
		if (s->now == &s->alt)
			c = (struct cursor){ .g = { 'B', 'B', 'B', 'B' } };
		if (s->now == &s->alt && s->main.has_saved)
			c = s->main.saved;
		is_neutral &= restore_is_neutral(&c);
	}
	if (!is_neutral)
		reset_pen(&e);
	restore_modes(s, out);
	if (restore_has_margins(s))
		emit_put(out, "\033[r");
	restore_tabs(s, out);
	restore_colours(s, out);
	restore_cursor(s, &c, buf_len(out) == begin, out);
	/* only a character takes a single shift away */
	if (s->single_shift)
		emit_put(out, " \r\033[K");
}
