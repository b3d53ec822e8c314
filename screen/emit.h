/*
 * Cells as bytes for a terminal: the pen moves from one rendition to the next
 * by the shortest SGR, characters follow. Used by everything that makes a
 * terminal show something.
 */
#ifndef SCREEN_EMIT_H
#define SCREEN_EMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "screen/state.h"

struct buf;

enum emit_flags {
	EMIT_LINKS = 1u << 0,     /* OSC 8 */
	EMIT_PROTECTED = 1u << 1, /* DECSCA */
	/*
	 * Names the column again behind characters that terminals do not
	 * agree about: one glyph may look wrong, the rest of the row not.
	 */
	EMIT_PLACED = 1u << 2
};

struct emit {
	struct buf *out;           /* borrowed */
	struct cell_tables tables; /* of the cells and of the pen; borrowed */
	struct cell pen;           /* what the terminal writes with now */
	unsigned flags;
};

/* Appends FMT, of which `%u`, `%s` and `%%` are understood. */
void emit_put(struct buf *out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends the code point C as UTF-8. */
void emit_char(struct buf *out, uint32_t c);

/* For a terminal whose pen is the default one. */
void emit_init(
    struct emit *e, struct buf *out, struct cell_tables tables, unsigned flags);

/* Makes the pen that of C, whose ch and place do not matter. */
void emit_pen(struct emit *e, const struct cell *c);

/* Changes no more than the background, for what is erased next. */
void emit_background(struct emit *e, uint32_t bg);

/*
 * Makes the pen the default one whatever it was: SGR 0 and, of what the flags
 * say, DECSCA and OSC 8 too.
 */
void emit_neutral(struct emit *e);

/*
 * Writes N cells from column COL (of the screen, from 0) on, blank ones as
 * spaces. Wide characters must be whole.
 */
void emit_cells(
    struct emit *e, const struct cell *cells, unsigned n, unsigned col);

/* A cell with no character, and nothing to see but its background. */
static inline bool
emit_is_blank(const struct cell *c)
{
	return !c->ch && !(c->attr & (CELL_TAIL | CELL_STYLE)) && !c->ext;
}

/* How many of N cells are left without the ones at the end that are all zero. */
unsigned emit_used(const struct cell *cells, unsigned n);

/*
 * The parameters of an SGR that makes C from SGR 0, with colons where a colour
 * or style has parts, and without the `m`.
 */
void emit_sgr_report(
    struct buf *out, const struct cell *c, const struct cell_tables *t);

#endif
