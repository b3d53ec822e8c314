/* Select graphic rendition; see sgr.h. */
#include "screen/sgr.h"

#include "screen/intern.h"
#include "screen/parser.h"
#include "screen/state.h"

/* What a plain parameter does: attr = (attr & ~clear) | set. */
static const struct sgr_row {
	uint16_t clear, set;
} sgr_rows[] = {
	[1] = { 0, CELL_BOLD },
	[2] = { 0, CELL_FAINT },
	[3] = { 0, CELL_ITALIC },
	[4] = { CELL_UNDERLINE, 1 << CELL_UNDERLINE_SHIFT },
	[5] = { 0, CELL_BLINK },
	[6] = { 0, CELL_BLINK },
	[7] = { 0, CELL_INVERSE },
	[8] = { 0, CELL_CONCEAL },
	[9] = { 0, CELL_STRIKE },
	[21] = { CELL_UNDERLINE, 2 << CELL_UNDERLINE_SHIFT },
	[22] = { CELL_BOLD | CELL_FAINT, 0 },
	[23] = { CELL_ITALIC, 0 },
	[24] = { CELL_UNDERLINE, 0 },
	[25] = { CELL_BLINK, 0 },
	[27] = { CELL_INVERSE, 0 },
	[28] = { CELL_CONCEAL, 0 },
	[29] = { CELL_STRIKE, 0 },
	[53] = { 0, CELL_OVERLINE },
	[55] = { CELL_OVERLINE, 0 },
};

#define SGR_ROWS (sizeof(sgr_rows) / sizeof(sgr_rows[0]))

void
sgr_set_ext(struct screen *s, unsigned underline, unsigned link)
{
	struct cell_ext e = { .underline = underline, .link = (uint16_t)link };

	s->cursor.pen.ext = intern_ext(s, &e);
}

static unsigned
sgr_link(const struct screen *s)
{
	return s->cursor.pen.ext ? s->exts[s->cursor.pen.ext].link : 0;
}

static uint32_t
sgr_rgb(const uint32_t *p)
{
	return COLOUR_RGB | (p[0] & 0xff) << 16 | (p[1] & 0xff) << 8 |
	       (p[2] & 0xff);
}

/* How many parameters that follow I belong to it by colons. */
static unsigned
sgr_subs(const struct parser *p, unsigned i)
{
	unsigned n = 0;

	while (i + n + 1 < p->n_params && p->subs >> (i + n + 1) & 1)
		n++;
	return n;
}

/*
 * The colour behind 38, 48 or 58 at I, in one of the forms 5;N 2;R;G;B 5:N
 * 2:R:G:B 2:SPACE:R:G:B. Returns the parameters it took beyond I; *OUT stays
 * when it is none.
 */
static unsigned
sgr_colour(const struct parser *p, unsigned i, uint32_t *out)
{
	unsigned subs = sgr_subs(p, i);
	const uint32_t *v = p->params + i + 1;
	unsigned n = subs ? subs : p->n_params - i - 1;

	if (n >= 2 && v[0] == 5) {
		if (v[1] < PALETTE_COLOURS)
			*out = COLOUR_INDEXED | v[1];
		return subs ? subs : 2;
	}
	if (subs >= 5 && v[0] == 2) {
		*out = sgr_rgb(v + 2);
		return subs;
	}
	if (n >= 4 && v[0] == 2) {
		*out = sgr_rgb(v + 1);
		return subs ? subs : 4;
	}
	return subs ? subs : n;
}

/* 38, 48, 58 and their opposites at I; the parameters taken beyond it. */
static unsigned
sgr_extended(struct screen *s, const struct parser *p, unsigned i)
{
	struct cell *pen = &s->cursor.pen;
	uint32_t colour;
	unsigned taken;

	switch (p->params[i]) {
	case 38:
		return sgr_colour(p, i, &pen->fg);
	case 48:
		return sgr_colour(p, i, &pen->bg);
	case 58:
		colour = pen->ext ? s->exts[pen->ext].underline : 0;
		taken = sgr_colour(p, i, &colour);
		sgr_set_ext(s, colour, sgr_link(s));
		return taken;
	default:
		return sgr_subs(p, i);
	}
}

static void
sgr_one(struct screen *s, unsigned v)
{
	struct cell *pen = &s->cursor.pen;

	if (v == 0) {
		pen->attr &= CELL_PROTECTED;
		pen->fg = COLOUR_DEFAULT;
		pen->bg = COLOUR_DEFAULT;
		if (pen->ext)
			sgr_set_ext(s, 0, sgr_link(s));
	} else if (v >= 30 && v <= 37) {
		pen->fg = COLOUR_INDEXED | (v - 30);
	} else if (v == 39) {
		pen->fg = COLOUR_DEFAULT;
	} else if (v >= 40 && v <= 47) {
		pen->bg = COLOUR_INDEXED | (v - 40);
	} else if (v == 49) {
		pen->bg = COLOUR_DEFAULT;
	} else if (v == 59) {
		if (pen->ext)
			sgr_set_ext(s, 0, sgr_link(s));
	} else if (v >= 90 && v <= 97) {
		pen->fg = COLOUR_INDEXED | (v - 90 + 8);
	} else if (v >= 100 && v <= 107) {
		pen->bg = COLOUR_INDEXED | (v - 100 + 8);
	} else if (v < SGR_ROWS) {
		pen->attr &= (uint16_t)~sgr_rows[v].clear;
		pen->attr |= sgr_rows[v].set;
	}
}

void
sgr_apply(struct screen *s, const struct parser *p)
{
	if (!p->n_params)
		sgr_one(s, 0);
	for (unsigned i = 0; i < p->n_params; i++) {
		unsigned v = p->params[i];

		if (v == 38 || v == 48 || v == 58) {
			i += sgr_extended(s, p, i);
		} else if (v == 4 && sgr_subs(p, i)) {
			unsigned style = p->params[i + 1];

			if (style <= 5) {
				s->cursor.pen.attr &= (uint16_t)~CELL_UNDERLINE;
				s->cursor.pen.attr |=
				    (uint16_t)(style << CELL_UNDERLINE_SHIFT);
			}
			i += sgr_subs(p, i);
		} else {
			sgr_one(s, v);
			i += sgr_subs(p, i);
		}
	}
}
