/*
 * One row of a grid. Its cells from row.used on are zero.
 *
 * Most lines of most output are ASCII, written from left to right in a few
 * pens, and the next that is heard of them is that they scroll off. So a row is
 * text as long as it can: row.text holds a byte for each used cell (0 for a
 * blank one in no colour), and cells[0..n_runs) are its pens, with the column
 * where each begins as their ch; the cells behind them are zero. The history
 * takes the bytes. Whoever wants cells asks row_cells() for them.
 */
#ifndef SCREEN_ROW_H
#define SCREEN_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "screen/state.h"

/* Writes N bytes of ASCII as cells, each as two words: no half is read back. */
static inline void
cell_put_ascii(
    struct cell *to, const uint8_t *p, size_t n, const struct cell *pen)
{
	uint64_t w[2];

	_Static_assert(sizeof(*pen) == sizeof(w), "a cell is two words");
	memcpy(w, pen, sizeof(w));
	for (size_t i = 0; i < n; i++) {
		struct cell c = { .ch = p[i] };
		uint64_t v[2];

		memcpy(v, &c, sizeof(v));
		v[0] |= w[0];
		v[1] = w[1];
		memcpy(&to[i], v, sizeof(v));
	}
}

/* Makes cells of a row that is text. */
void row_spell(struct row *r);

/* The cells of a row, for reading and for writing. */
static inline struct cell *
row_cells(struct row *r)
{
	if (r->n_runs)
		row_spell(r);
	return r->cells;
}

static inline bool
cell_is_zero(const struct cell *c)
{
	return !c->ch && !c->fg && !c->bg && !c->attr && !c->ext;
}

/* True when two cells have the same pen, whatever they show. */
static inline bool
cell_is_same_pen(const struct cell *a, const struct cell *b)
{
	return a->fg == b->fg && a->bg == b->bg && a->attr == b->attr &&
	       a->ext == b->ext;
}

/* True when the pen is that of SGR 0. */
static inline bool
cell_is_plain(const struct cell *c)
{
	return !(c->fg | c->bg | c->attr | c->ext);
}

/* True when the last of a row's COLS cells is of a character. */
static inline bool
row_goes_to(const struct row *r, unsigned cols)
{
	const struct cell *last = &r->cells[cols - 1];

	if (r->used < cols)
		return false;
	return r->n_runs ? r->text[cols - 1]
			 : last->ch || last->attr & CELL_TAIL;
}

/* For row_take_text(), of a row that is blank or text. */
bool row_begin_text(struct row *r, unsigned col, const struct cell *pen);

/*
 * Takes N > 0 bytes of ASCII at COL in PEN, if the row is blank or text and
 * stays text with them; else they have to become cells. COL + N is not beyond
 * the row's end.
 */
static inline bool
row_take_text(struct row *r, unsigned col, const uint8_t *p, size_t n,
    const struct cell *pen)
{
	if (r->used && !r->n_runs)
		return false;
	if (!(r->n_runs == 1 && col == r->used &&
		cell_is_same_pen(&r->cells[0], pen)) &&
	    !row_begin_text(r, col, pen))
		return false;
	memcpy(r->text + col, p, n);
	if (r->used < col + n)
		r->used = (uint16_t)(col + n);
	return true;
}

/*
 * A wide character whose halves lie on both sides of the boundary before COL
 * becomes two spaces. COL may be 0 or COLS.
 */
static inline void
row_split(struct row *r, unsigned cols, unsigned col)
{
	if (r->n_runs || col >= cols || !(r->cells[col].attr & CELL_TAIL))
		return;
	r->cells[col].attr &= CELL_STYLE;
	r->cells[col].ch = ' ';
	if (!col)
		return;
	r->cells[col - 1].attr &= CELL_STYLE;
	r->cells[col - 1].ch = ' ';
}

/* Makes the cells [FROM, TO) of a row of COLS cells BLANK. */
void row_fill(struct row *r, unsigned cols, unsigned from, unsigned to,
    struct cell blank);

/* The same where FROM and TO split no character. */
void row_put(struct row *r, unsigned from, unsigned to, struct cell blank);

/*
 * Moves N cells within a row. The characters around of what moves and of where
 * it goes are whole; the rest of both places is filled by the caller.
 */
void row_shift(struct row *r, unsigned from, unsigned to, unsigned n);

#endif
