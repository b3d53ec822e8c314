/*
 * Cells of a row; see row.h. Pure.
 */
#include "screen/row.h"

void
row_spell(struct row *r)
{
	unsigned end = r->used;

	/* from the last one on, so that each overwrites none but itself */
	for (unsigned i = r->n_runs; i--;) {
		struct cell pen = r->cells[i];
		unsigned start = pen.ch;

		pen.ch = 0;
		cell_put_ascii(
		    r->cells + start, r->text + start, end - start, &pen);
		end = start;
	}
	r->n_runs = 0;
}

static void
row_add_run(struct row *r, unsigned col, const struct cell *pen)
{
	r->cells[r->n_runs] = *pen;
	r->cells[r->n_runs++].ch = col;
}

/* Blank cells from row.used up to COL. */
static void
row_add_gap(struct row *r, unsigned col)
{
	static const struct cell plain;

	if (!r->n_runs || !cell_is_plain(&r->cells[r->n_runs - 1]))
		row_add_run(r, r->used, &plain);
	memset(r->text + r->used, 0, col - r->used);
	r->used = (uint16_t)col;
}

bool
row_begin_text(struct row *r, unsigned col, const struct cell *pen)
{
	const struct cell *last;

	if (!r->text)
		return false;
	if (col > r->used)
		row_add_gap(r, col);
	if (r->n_runs) {
		last = &r->cells[r->n_runs - 1];
		if (col < last->ch)
			return false;
		if (cell_is_same_pen(last, pen))
			return true;
		if (col < r->used)
			return false;
	}
	row_add_run(r, col, pen);
	return true;
}

/* What row_put() does to a row that is text; false if it needs cells. */
static bool
row_cut_text(struct row *r, unsigned from, unsigned to)
{
	if (to < r->used)
		return false;
	if (from < r->used)
		r->used = (uint16_t)from;
	while (r->n_runs && r->cells[r->n_runs - 1].ch >= r->used)
		r->cells[--r->n_runs] = (struct cell){ 0 };
	return true;
}

void
row_put(struct row *r, unsigned from, unsigned to, struct cell blank)
{
	bool is_zero = cell_is_zero(&blank);
	struct cell *c;

	if (is_zero && r->n_runs && row_cut_text(r, from, to))
		return;
	c = row_cells(r);
	if (!is_zero) {
		for (unsigned i = from; i < to; i++)
			c[i] = blank;
		if (from < to && r->used < to)
			r->used = (uint16_t)to;
		return;
	}
	if (to > r->used)
		to = r->used;
	if (from >= to)
		return;
	memset(c + from, 0, (to - from) * sizeof(*c));
	if (to == r->used)
		r->used = (uint16_t)from;
}

void
row_fill(
    struct row *r, unsigned cols, unsigned from, unsigned to, struct cell blank)
{
	row_split(r, cols, from);
	row_split(r, cols, to);
	row_put(r, from, to, blank);
}

void
row_shift(struct row *r, unsigned from, unsigned to, unsigned n)
{
	struct cell *c = row_cells(r);

	memmove(c + to, c + from, n * sizeof(*c));
	if (r->used < to + n)
		r->used = (uint16_t)(to + n);
}
