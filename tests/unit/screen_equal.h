/*
 * Two screens compared by what they mean: cells by their characters, colours
 * and links, whatever the numbers in the tables; everything that decides what
 * the next byte does. Not compared: the history, and of a screen that is not
 * shown what only a resize looks at.
 */
#ifndef TESTS_UNIT_SCREEN_EQUAL_H
#define TESTS_UNIT_SCREEN_EQUAL_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "screen/reset.h"
#include "screen/state.h"

enum screen_equal_flags {
	/* Modes that a repaint leaves alone where S has them as at the start */
	SCREEN_EQUAL_NO_PREFERENCES = 1u << 0,
	/* What REP would repeat */
	SCREEN_EQUAL_NO_LAST = 1u << 1
};

/* Where the first difference was, for a message. */
static char screen_equal_where[200];

static inline bool
screen_equal_fail(const char *what, unsigned a, unsigned b)
{
	snprintf(screen_equal_where, sizeof(screen_equal_where), "%s %u %u",
	    what, a, b);
	return false;
}

static inline bool
screen_equal_fail_cell(const char *what, unsigned col, unsigned row,
    const struct cell *a, const struct cell *b)
{
	snprintf(screen_equal_where, sizeof(screen_equal_where),
	    "%s %u,%u: ch %x %x fg %x %x bg %x %x attr %x %x ext %u %u", what,
	    col, row, a->ch, b->ch, a->fg, b->fg, a->bg, b->bg, a->attr,
	    b->attr, a->ext, b->ext);
	return false;
}

#define SCREEN_EQUAL(what, a, b)                                 \
	do {                                                     \
		if ((a) != (b))                                  \
			return screen_equal_fail(                \
			    what, (unsigned)(a), (unsigned)(b)); \
	} while (0)

static inline bool
screen_equal_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

static inline bool
screen_equal_cell(const struct cell *a, const struct cell_tables *ta,
    const struct cell *b, const struct cell_tables *tb)
{
	static const struct cell_ext none;
	const struct cell_ext *ea = a->ext ? &ta->exts[a->ext] : &none;
	const struct cell_ext *eb = b->ext ? &tb->exts[b->ext] : &none;

	if (a->fg != b->fg || a->bg != b->bg || a->attr != b->attr ||
	    ea->underline != eb->underline || !ea->link != !eb->link)
		return false;
	if (ea->link && (!screen_equal_text(
			     ta->links[ea->link].id, tb->links[eb->link].id) ||
			    !screen_equal_text(ta->links[ea->link].uri,
				tb->links[eb->link].uri)))
		return false;
	if ((a->ch & CELL_CLUSTER) != (b->ch & CELL_CLUSTER))
		return false;
	if (a->ch & CELL_CLUSTER) {
		const struct cluster *ka = &ta->clusters[a->ch & ~CELL_CLUSTER];
		const struct cluster *kb = &tb->clusters[b->ch & ~CELL_CLUSTER];

		return ka->len == kb->len &&
		       memcmp(ka->text, kb->text, ka->len) == 0;
	}
	return a->ch == b->ch;
}

static inline bool
screen_equal_cursor(const char *what, const struct screen *a,
    const struct cursor *ca, const struct screen *b, const struct cursor *cb)
{
	struct cell_tables ta = screen_tables(a), tb = screen_tables(b);

	SCREEN_EQUAL(what, ca->col, cb->col);
	SCREEN_EQUAL(what, ca->row, cb->row);
	SCREEN_EQUAL(what, ca->is_wrap_pending, cb->is_wrap_pending);
	SCREEN_EQUAL(what, ca->is_origin, cb->is_origin);
	for (unsigned i = 0; i < 4; i++)
		SCREEN_EQUAL(what, ca->g[i], cb->g[i]);
	SCREEN_EQUAL(what, ca->gl, cb->gl);
	if (!screen_equal_cell(&ca->pen, &ta, &cb->pen, &tb))
		return screen_equal_fail("pen of", ca->pen.attr, cb->pen.attr);
	return true;
}

static inline bool
screen_equal_buffer(const char *what, const struct screen *a,
    const struct buffer *ba, const struct screen *b, const struct buffer *bb)
{
	struct cell_tables ta = screen_tables(a), tb = screen_tables(b);
	struct cursor none = { .g = { 'B', 'B', 'B', 'B' } };

	for (unsigned i = 0; i < a->rows; i++) {
		const struct cell *ra = buffer_row(a, ba, i);
		const struct cell *rb = buffer_row(b, bb, i);

		for (unsigned k = 0; k < a->cols; k++)
			if (!screen_equal_cell(&ra[k], &ta, &rb[k], &tb))
				return screen_equal_fail_cell(
				    what, k, i, &ra[k], &rb[k]);
		if ((ba->rows && ba->rows[i].is_wrapped) !=
		    (bb->rows && bb->rows[i].is_wrapped))
			return screen_equal_fail("wrap of row", i,
			    ba->rows && ba->rows[i].is_wrapped);
	}
	if (!screen_equal_cursor("saved cursor", a,
		ba->has_saved ? &ba->saved : &none, b,
		bb->has_saved ? &bb->saved : &none))
		return false;
	SCREEN_EQUAL("kitty base", ba->kitty.base, bb->kitty.base);
	SCREEN_EQUAL("kitty depth", ba->kitty.n, bb->kitty.n);
	for (unsigned i = 0; i < ba->kitty.n; i++)
		SCREEN_EQUAL(
		    "kitty flags", ba->kitty.flags[i], bb->kitty.flags[i]);
	return true;
}

static inline bool
screen_equal_strings(const struct screen *a, const struct screen *b)
{
	const struct titles *ta = &a->titles, *tb = &b->titles;

	if (!screen_equal_text(ta->title, tb->title) ||
	    !screen_equal_text(ta->icon, tb->icon))
		return screen_equal_fail("title", 0, 0);
	SCREEN_EQUAL("title stack", ta->depth, tb->depth);
	for (unsigned i = 0; i < ta->depth; i++)
		if (!screen_equal_text(
			ta->stack[i].title, tb->stack[i].title) ||
		    !screen_equal_text(ta->stack[i].icon, tb->stack[i].icon))
			return screen_equal_fail("title stack at", i, i);
	if (!screen_equal_text(a->cwd, b->cwd))
		return screen_equal_fail("cwd", 0, 0);
	for (unsigned i = 0; i < PALETTE_COLOURS; i++)
		SCREEN_EQUAL("palette",
		    a->palette ? a->palette[i] : SCREEN_NO_COLOUR,
		    b->palette ? b->palette[i] : SCREEN_NO_COLOUR);
	for (unsigned i = 0; i < DYNAMIC_COLOURS; i++)
		SCREEN_EQUAL("dynamic colour", a->dynamic[i], b->dynamic[i]);
	return true;
}

static inline bool
screen_equal_modes(
    const struct screen *a, const struct screen *b, unsigned flags)
{
	for (unsigned m = 0; m < MODE_COUNT; m++) {
		const struct mode_info *info = mode_info(m);

		if (m == MODE_SYNC || (flags & SCREEN_EQUAL_NO_PREFERENCES &&
					  reset_is_preference(m)))
			continue;
		if (mode_is_on(a, m) != mode_is_on(b, m) ||
		    ((a->saved_modes ^ b->saved_modes) >> m & 1))
			return screen_equal_fail(
			    "mode", info->number, mode_is_on(a, m));
	}
	SCREEN_EQUAL("mouse", a->mouse, b->mouse);
	SCREEN_EQUAL("saved mouse", a->saved_mouse, b->saved_mouse);
	SCREEN_EQUAL("mouse encoding", a->mouse_encoding, b->mouse_encoding);
	SCREEN_EQUAL("saved encoding", a->saved_encoding, b->saved_encoding);
	SCREEN_EQUAL("cursor shape", a->cursor_shape, b->cursor_shape);
	for (unsigned i = 0; i < sizeof(a->modify_keys); i++)
		SCREEN_EQUAL(
		    "modify keys", a->modify_keys[i], b->modify_keys[i]);
	return true;
}

/* A is what must be, B what is. On a difference screen_equal_where names it. */
static inline bool
screen_equal(const struct screen *a, const struct screen *b, unsigned flags)
{
	SCREEN_EQUAL("cols", a->cols, b->cols);
	SCREEN_EQUAL("rows", a->rows, b->rows);
	SCREEN_EQUAL("alternate", a->now == &a->alt, b->now == &b->alt);
	SCREEN_EQUAL("top", a->top, b->top);
	SCREEN_EQUAL("bottom", a->bottom, b->bottom);
	SCREEN_EQUAL("left", a->left, b->left);
	SCREEN_EQUAL("right", a->right, b->right);
	SCREEN_EQUAL("single shift", a->single_shift, b->single_shift);
	if (!(flags & SCREEN_EQUAL_NO_LAST))
		SCREEN_EQUAL("last character", a->last_ch, b->last_ch);
	for (unsigned i = 0; i < a->cols; i++)
		SCREEN_EQUAL("tab stop", a->tabs[i], b->tabs[i]);
	return screen_equal_modes(a, b, flags) && screen_equal_strings(a, b) &&
	       screen_equal_cursor("cursor", a, &a->cursor, b, &b->cursor) &&
	       screen_equal_buffer("main cell", a, &a->main, b, &b->main) &&
	       screen_equal_buffer("alt cell", a, &a->alt, b, &b->alt);
}

#endif
