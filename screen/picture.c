/*
 * A screen on a terminal of another size; see picture.h. What the terminal shows
 * is remembered as the cells themselves, so that the next picture is only the
 * difference. Numbers in them mean nothing once the screen's tables were
 * collected: cells that have any count as unknown then. Pure.
 */
#include "screen/picture.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "screen/emit.h"
#include "screen/reset.h"
#include "screen/screen.h"
#include "screen/state.h"

#define PICTURE_FLAGS (EMIT_LINKS | EMIT_PLACED)

/* A gap of unchanged cells up to this is written rather than jumped over. */
#define PICTURE_GAP 4

/* The ch of a cell of which it is not known what it shows. */
#define PICTURE_UNKNOWN 0x7fffffffU

/* What the terminal was told beside its cells. */
struct picture_state {
	uint64_t modes; /* of those that a picture sets */
	uint16_t mouse, mouse_encoding;
	uint8_t kitty, modify_other, shape;
	bool is_visible; /* the cursor */
	uint16_t col, row;
};

struct picture {
	bool is_shown, is_mute;
	unsigned cols, rows;               /* the terminal */
	unsigned screen_cols, screen_rows; /* what it is a picture of */
	unsigned width, height;            /* the part that it shows */
	unsigned left, top;                /* where that begins */
	struct cell *cells;                /* WIDTH * HEIGHT */
	uint64_t tables_age;
	struct picture_state state;
	char *title;
};

/* What keys and mouse send, and how it looks as a whole. */
static const enum mode picture_modes[] = { MODE_CURSOR_KEYS, MODE_REVERSE,
	MODE_AUTOREPEAT, MODE_CURSOR_BLINK, MODE_KEYPAD, MODE_BACKARROW,
	MODE_FOCUS, MODE_ALT_SCROLL, MODE_META_8BIT, MODE_NUMLOCK,
	MODE_META_ESC, MODE_ALT_ESC, MODE_PASTE, MODE_WIN32 };

#define PICTURE_LOOKS (1ULL << MODE_REVERSE | 1ULL << MODE_CURSOR_BLINK)

static unsigned
picture_min(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* ---- state ---- */

static bool
picture_is_on(const struct picture_state *t, enum mode m)
{
	return t->modes >> m & 1;
}

/* The state of a terminal that was reset. */
static struct picture_state
picture_initial(void)
{
	struct picture_state t = { .is_visible = true };

	for (size_t i = 0; i < ARRAY_LEN(picture_modes); i++)
		t.modes |= (uint64_t)mode_info(picture_modes[i])->is_on
			   << picture_modes[i];
	return t;
}

/* The state that P's terminal must have for S. */
static struct picture_state
picture_wanted(const struct picture *p, const struct screen *s)
{
	struct picture_state t = picture_initial();
	unsigned col = s->cursor.col - p->left, row = s->cursor.row - p->top;

	for (size_t i = 0; i < ARRAY_LEN(picture_modes); i++) {
		uint64_t bit = 1ULL << picture_modes[i];

		if (p->is_mute && !(bit & PICTURE_LOOKS))
			continue;
		t.modes = mode_is_on(s, picture_modes[i]) ? t.modes | bit
							  : t.modes & ~bit;
	}
	if (!p->is_mute) {
		t.kitty = kitty_flags(&s->now->kitty);
		t.modify_other = s->modify_keys[4];
	}
	t.shape = s->cursor_shape;
	if (!p->is_mute && !p->left && !p->top) {
		t.mouse = s->mouse;
		t.mouse_encoding = s->mouse_encoding;
	}
	t.is_visible =
	    mode_is_on(s, MODE_CURSOR) && col < p->width && row < p->height;
	t.col = (uint16_t)picture_min(col, p->width - 1);
	t.row = (uint16_t)picture_min(row, p->height - 1);
	return t;
}

/* All that does not move the cursor, from the present state to T. */
static void
picture_state(struct picture *p, const struct picture_state *t, struct buf *out)
{
	const struct picture_state *old = &p->state;

	for (size_t i = 0; i < ARRAY_LEN(picture_modes); i++)
		if (picture_is_on(old, picture_modes[i]) !=
		    picture_is_on(t, picture_modes[i]))
			reset_mode(out, picture_modes[i],
			    picture_is_on(t, picture_modes[i]));
	if (old->mouse != t->mouse) {
		if (old->mouse)
			emit_put(out, "\033[?%ul", old->mouse);
		if (t->mouse)
			emit_put(out, "\033[?%uh", t->mouse);
	}
	if (old->mouse_encoding != t->mouse_encoding) {
		if (old->mouse_encoding)
			emit_put(out, "\033[?%ul", old->mouse_encoding);
		if (t->mouse_encoding)
			emit_put(out, "\033[?%uh", t->mouse_encoding);
	}
	if (old->kitty != t->kitty)
		emit_put(out, "\033[=%u;1u", t->kitty);
	if (old->modify_other != t->modify_other) {
		if (t->modify_other)
			emit_put(out, "\033[>4;%um", t->modify_other);
		else
			emit_put(out, "\033[>4m");
	}
	if (old->shape != t->shape)
		emit_put(out, "\033[%u q", t->shape);
}

static void
picture_title(struct picture *p, const struct screen *s, struct buf *out)
{
	const char *title = screen_title(s);

	if (p->title && strcmp(p->title, title) == 0)
		return;
	emit_put(out, "\033]2;%s\033\\", title);
	free(p->title);
	p->title = xstrdup(title);
}

/* ---- which part ---- */

/* Moves AT, where N of ALL begin, no further than that CURSOR is among them. */
static unsigned
picture_follow(unsigned at, unsigned n, unsigned all, unsigned cursor)
{
	if (at + n > all)
		at = all - n;
	if (cursor < at)
		return cursor;
	return cursor >= at + n ? cursor - n + 1 : at;
}

static void
picture_look(struct picture *p, const struct screen *s)
{
	/* sideways it goes back as soon as that is possible */
	unsigned left = s->cursor.col < p->width ? 0 : p->left;

	p->left = picture_follow(left, p->width, s->cols, s->cursor.col);
	p->top = picture_follow(p->top, p->height, s->rows, s->cursor.row);
}

/* The cell of S at this place of the part; what is cut in half is blank. */
static struct cell
picture_cell(const struct picture *p, const struct cell *row, unsigned col)
{
	struct cell c = row[p->left + col];
	bool is_cut = (c.attr & CELL_TAIL && col == 0) ||
		      (c.attr & CELL_WIDE && col + 1 == p->width);

	if (is_cut) {
		c.ch = ' ';
		c.attr &= CELL_STYLE;
	}
	c.attr &= (uint16_t)~CELL_PROTECTED;
	return c;
}

static bool
picture_is_same(const struct cell *a, const struct cell *b)
{
	return a->ch == b->ch && a->fg == b->fg && a->bg == b->bg &&
	       a->attr == b->attr && a->ext == b->ext;
}

/* ---- drawing ---- */

/* The cells [FROM, TO) of a row of the part, which are known by now. */
static void
picture_run(
    struct picture *p, struct emit *e, unsigned row, unsigned from, unsigned to)
{
	const struct cell *cells = p->cells + (size_t)row * p->width;
	unsigned last = to;

	while (last > from && emit_is_blank(&cells[last - 1]) &&
	       cells[last - 1].bg == cells[to - 1].bg)
		last--;
	emit_put(e->out, "\033[%u;%uH", row + 1, from + 1);
	emit_cells(e, cells + from, last - from, from);
	if (last == to)
		return;
	emit_background(e, cells[last].bg);
	emit_put(e->out, "\033[%uX", to - last);
}

/* What has changed in a row; remembers it. */
static void
picture_row(
    struct picture *p, struct emit *e, const struct screen *s, unsigned row)
{
	const struct cell *now = buffer_row(s, s->now, p->top + row);
	struct cell *old = p->cells + (size_t)row * p->width;
	unsigned from = p->width, to = 0;

	for (unsigned i = 0; i < p->width; i++) {
		struct cell c = picture_cell(p, now, i);

		if (picture_is_same(&old[i], &c))
			continue;
		if (to && i - to > PICTURE_GAP) {
			picture_run(p, e, row, from, to);
			to = 0;
		}
		if (!to)
			from = i;
		old[i] = c;
		to = i + 1;
		/* both halves or none */
		if (c.attr & CELL_TAIL && from == i)
			from--;
		if (c.attr & CELL_WIDE) {
			old[i + 1] = picture_cell(p, now, i + 1);
			to = ++i + 1;
		}
	}
	if (to)
		picture_run(p, e, row, from, to);
}

/* Where there is room beside or below the part: how large the session is. */
static void
picture_hint(const struct picture *p, const struct screen *s, struct emit *e)
{
	static const struct cell faint = { .attr = CELL_FAINT };
	static const struct cell none;
	struct buf text = { 0 };
	unsigned n, room;

	emit_put(&text, "session is %ux%u", s->cols, s->rows);
	n = (unsigned)buf_len(&text);
	room = p->rows > p->height ? p->cols : p->cols - p->width;
	/* a blank between it and the text */
	if (n + (room < p->cols) <= room) {
		emit_put(e->out, "\033[%u;%uH", p->rows, p->cols - n + 1);
		emit_pen(e, &faint);
		buf_put(e->out, buf_head(&text), n);
		emit_pen(e, &none);
	}
	buf_release(&text);
}

/* ---- beginning and end ---- */

/* Everything on the terminal is unknown: sizes, part, cells. */
static void
picture_begin(struct picture *p, const struct screen *s, unsigned cols,
    unsigned rows, struct emit *e)
{
	size_t n;

	if (!p->is_shown) {
		reset_terminal(e);
		emit_put(e->out, "\033[?25l\033[?1049h");
		reset_kitty(e->out);
		p->state = picture_initial();
		p->left = p->top = 0;
	}
	p->is_shown = true;
	p->cols = cols;
	p->rows = rows;
	p->screen_cols = s->cols;
	p->screen_rows = s->rows;
	p->width = picture_min(cols, s->cols);
	p->height = picture_min(rows, s->rows);
	p->tables_age = s->tables_age;
	n = (size_t)p->width * p->height;
	free(p->cells);
	p->cells = xcalloc(n, sizeof(*p->cells));
	/* blank cells and an erased terminal agree */
	emit_put(e->out, "\033[H\033[K");
	for (unsigned i = 1; i < rows; i++)
		emit_put(e->out, "\n\033[K");
	picture_hint(p, s, e);
}

static void
picture_forget_numbers(struct picture *p, const struct screen *s)
{
	size_t n = (size_t)p->width * p->height;

	if (p->tables_age == s->tables_age)
		return;
	p->tables_age = s->tables_age;
	for (size_t i = 0; i < n; i++)
		if (p->cells[i].ext || p->cells[i].ch & CELL_CLUSTER)
			p->cells[i] = (struct cell){ .ch = PICTURE_UNKNOWN };
}

/* Frames BODY so that nobody sees it half done; the cursor comes last. */
static void
picture_frame(const struct picture *p, const struct picture_state *t,
    const struct buf *body, struct buf *out)
{
	bool is_moved = t->col != p->state.col || t->row != p->state.row ||
			t->is_visible != p->state.is_visible;

	if (!buf_len(body) && !is_moved)
		return;
	if (buf_len(body)) {
		emit_put(out, "\033[?2026h\033[?25l");
		buf_put(out, buf_head(body), buf_len(body));
	}
	emit_put(out, "\033[%u;%uH", t->row + 1u, t->col + 1u);
	if (t->is_visible)
		emit_put(out, "\033[?25h");
	else if (!buf_len(body))
		emit_put(out, "\033[?25l");
	if (buf_len(body))
		emit_put(out, "\033[?2026l");
}

struct picture *
picture_new(void)
{
	return xcalloc(1, sizeof(struct picture));
}

void
picture_free(struct picture *p)
{
	if (!p)
		return;
	free(p->cells);
	free(p->title);
	free(p);
}

void
picture_mute(struct picture *p)
{
	p->is_mute = true;
}

bool
picture_is_shown(const struct picture *p)
{
	return p->is_shown;
}

void
picture_paint(struct picture *p, const struct screen *s, unsigned cols,
    unsigned rows, struct buf *out)
{
	static const struct cell none;
	struct picture_state t;
	struct buf body = { 0 };
	struct emit e;

	cols = cols ? cols : 1;
	rows = rows ? rows : 1;
	emit_init(&e, &body, screen_tables(s), PICTURE_FLAGS);
	if (!p->is_shown || p->cols != cols || p->rows != rows ||
	    p->screen_cols != s->cols || p->screen_rows != s->rows)
		picture_begin(p, s, cols, rows, &e);
	picture_forget_numbers(p, s);
	picture_look(p, s);
	for (unsigned i = 0; i < p->height; i++)
		picture_row(p, &e, s, i);
	emit_pen(&e, &none);
	t = picture_wanted(p, s);
	picture_state(p, &t, &body);
	picture_title(p, s, &body);
	picture_frame(p, &t, &body, out);
	p->state = t;
	buf_release(&body);
}

void
picture_clear(struct picture *p, struct buf *out)
{
	struct picture_state t = picture_initial();

	if (!p->is_shown)
		return;
	picture_state(p, &t, out);
	if (!p->state.is_visible)
		emit_put(out, "\033[?25h");
	emit_put(out, "\033[?1049l");
	free(p->cells);
	free(p->title);
	*p = (struct picture){ .is_mute = p->is_mute };
}
