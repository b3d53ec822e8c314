/*
 * Renditions and characters; see emit.h. Two ways lead to a rendition, from the
 * present one and from SGR 0: the shorter one is taken. Parameters with colons
 * get a sequence of their own, because terminals that do not know them drop the
 * whole of it. Pure.
 */
#include "screen/emit.h"

#include <stdarg.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "screen/print.h"

#define EMIT_SGR_MAX 160

/* Parameters of a way to a rendition. */
struct emit_sgr {
	char plain[EMIT_SGR_MAX]; /* with semicolons */
	char colon[EMIT_SGR_MAX]; /* the ones that have colons */
	unsigned n_plain, n_colon;
	bool has_off; /* something is switched off */
};

/* What is only on or off. Bold and faint have their end in common. */
static const struct emit_attr {
	uint16_t attr;
	uint8_t on, off;
} emit_attrs[] = {
	{ CELL_BOLD, 1, 22 },
	{ CELL_FAINT, 2, 22 },
	{ CELL_ITALIC, 3, 23 },
	{ CELL_BLINK, 5, 25 },
	{ CELL_INVERSE, 7, 27 },
	{ CELL_CONCEAL, 8, 28 },
	{ CELL_STRIKE, 9, 29 },
	{ CELL_OVERLINE, 53, 55 },
};

#define EMIT_ATTRS                                                          \
	(CELL_BOLD | CELL_FAINT | CELL_ITALIC | CELL_BLINK | CELL_INVERSE | \
	    CELL_CONCEAL | CELL_STRIKE | CELL_OVERLINE)

/* ---- numbers and strings ---- */

/* The digits of V at OUT, which has room for 10; their number. */
static unsigned
emit_digits(char *out, unsigned v)
{
	char digits[10];
	unsigned n = 0;

	do {
		digits[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	for (unsigned i = 0; i < n; i++)
		out[i] = digits[n - 1 - i];
	return n;
}

void
emit_put(struct buf *out, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	while (*fmt) {
		size_t n = strcspn(fmt, "%");
		char digits[10];

		buf_put(out, fmt, n);
		fmt += n;
		if (!*fmt)
			break;
		if (fmt[1] == 'u') {
			n = emit_digits(digits, va_arg(ap, unsigned));
			buf_put(out, digits, n);
		} else if (fmt[1] == 's') {
			const char *s = va_arg(ap, const char *);

			buf_put(out, s, strlen(s));
		} else {
			buf_put_u8(out, '%');
		}
		fmt += 2;
	}
	va_end(ap);
}

/* C as UTF-8 at OUT; where it ends. */
static inline uint8_t *
emit_utf8(uint8_t *out, uint32_t c)
{
	if (c < 0x80) {
		*out++ = (uint8_t)c;
	} else if (c < 0x800) {
		*out++ = (uint8_t)(0xc0 | c >> 6);
		*out++ = (uint8_t)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*out++ = (uint8_t)(0xe0 | c >> 12);
		*out++ = (uint8_t)(0x80 | (c >> 6 & 0x3f));
		*out++ = (uint8_t)(0x80 | (c & 0x3f));
	} else {
		*out++ = (uint8_t)(0xf0 | c >> 18);
		*out++ = (uint8_t)(0x80 | (c >> 12 & 0x3f));
		*out++ = (uint8_t)(0x80 | (c >> 6 & 0x3f));
		*out++ = (uint8_t)(0x80 | (c & 0x3f));
	}
	return out;
}

void
emit_char(struct buf *out, uint32_t c)
{
	uint8_t *at = buf_reserve(out, 4);

	buf_commit(out, (size_t)(emit_utf8(at, c) - at));
}

/* ---- renditions ---- */

/* Appends V behind SEPARATOR, which is left out at the start. */
static void
emit_sgr_add(char *list, unsigned *n, char separator, unsigned v)
{
	if (*n && separator)
		list[(*n)++] = separator;
	*n += emit_digits(list + *n, v);
}

static void
emit_sgr_plain(struct emit_sgr *g, unsigned v)
{
	emit_sgr_add(g->plain, &g->n_plain, ';', v);
}

/* BASE is 30 or 40. */
static void
emit_sgr_colour(struct emit_sgr *g, unsigned base, uint32_t colour)
{
	uint32_t v = colour & ~COLOUR_KIND;

	if (colour == COLOUR_DEFAULT) {
		emit_sgr_plain(g, base + 9);
	} else if ((colour & COLOUR_KIND) == COLOUR_RGB) {
		emit_sgr_plain(g, base + 8);
		emit_sgr_plain(g, 2);
		emit_sgr_plain(g, v >> 16 & 0xff);
		emit_sgr_plain(g, v >> 8 & 0xff);
		emit_sgr_plain(g, v & 0xff);
	} else if (v < 8) {
		emit_sgr_plain(g, base + v);
	} else if (v < 16) {
		emit_sgr_plain(g, base + 60 + v - 8);
	} else {
		emit_sgr_plain(g, base + 8);
		emit_sgr_plain(g, 5);
		emit_sgr_plain(g, v);
	}
}

/* WHAT is 38, 48 or 58; parts by colons. */
static void
emit_sgr_parts(char *list, unsigned *n, unsigned what, uint32_t colour)
{
	uint32_t v = colour & ~COLOUR_KIND;
	bool is_rgb = (colour & COLOUR_KIND) == COLOUR_RGB;

	emit_sgr_add(list, n, ';', what);
	emit_sgr_add(list, n, ':', is_rgb ? 2 : 5);
	if (is_rgb) {
		list[(*n)++] = ':'; /* the colour space */
		emit_sgr_add(list, n, ':', v >> 16 & 0xff);
		emit_sgr_add(list, n, ':', v >> 8 & 0xff);
		v &= 0xff;
	}
	emit_sgr_add(list, n, ':', v);
}

static uint32_t
emit_underline(const struct cell_tables *t, const struct cell *c)
{
	return c->ext ? t->exts[c->ext].underline : COLOUR_DEFAULT;
}

static unsigned
emit_link_of(const struct emit *e, const struct cell *c)
{
	return c->ext ? e->tables.exts[c->ext].link : 0;
}

static unsigned
emit_style(const struct cell *c)
{
	return (c->attr & CELL_UNDERLINE) >> CELL_UNDERLINE_SHIFT;
}

static void
emit_sgr_attrs(struct emit_sgr *g, unsigned from, unsigned to)
{
	unsigned weight = CELL_BOLD | CELL_FAINT;

	g->has_off = from & ~to;
	if (from & ~to & weight) {
		emit_sgr_plain(g, 22);
		from &= ~weight;
	}
	for (size_t i = 0; i < ARRAY_LEN(emit_attrs); i++) {
		const struct emit_attr *a = &emit_attrs[i];

		if ((from ^ to) & a->attr)
			emit_sgr_plain(g, to & a->attr ? a->on : a->off);
	}
}

/* What leads from FROM to TO, both with the tables T. */
static void
emit_sgr_way(struct emit_sgr *g, const struct cell_tables *t,
    const struct cell *from, const struct cell *to)
{
	uint32_t line = emit_underline(t, to);

	emit_sgr_attrs(g, from->attr & EMIT_ATTRS, to->attr & EMIT_ATTRS);
	if (emit_style(from) != emit_style(to)) {
		if (emit_style(to) < 2) {
			emit_sgr_plain(g, emit_style(to) ? 4 : 24);
		} else {
			emit_sgr_add(g->colon, &g->n_colon, ';', 4);
			emit_sgr_add(
			    g->colon, &g->n_colon, ':', emit_style(to));
		}
	}
	g->has_off |= (from->fg && !to->fg) || (from->bg && !to->bg) ||
		      (emit_style(from) && !emit_style(to)) ||
		      (emit_underline(t, from) && !line);
	if (from->fg != to->fg)
		emit_sgr_colour(g, 30, to->fg);
	if (from->bg != to->bg)
		emit_sgr_colour(g, 40, to->bg);
	if (emit_underline(t, from) == line)
		return;
	if (line)
		emit_sgr_parts(g->colon, &g->n_colon, 58, line);
	else
		emit_sgr_plain(g, 59);
}

static unsigned
emit_sgr_cost(const struct emit_sgr *g)
{
	return (g->n_plain ? g->n_plain + 3 : 0) +
	       (g->n_colon ? g->n_colon + 3 : 0);
}

static void
emit_sgr_write(struct buf *out, const char *list, unsigned n)
{
	uint8_t *at = buf_reserve(out, n + 3);

	at[0] = 0x1b;
	at[1] = '[';
	memcpy(at + 2, list, n);
	at[n + 2] = 'm';
	buf_commit(out, n + 3);
}

/* The way from SGR 0, if it is shorter than HERE. */
static bool
emit_sgr_zero(struct emit *e, const struct cell *to, struct emit_sgr *zero,
    const struct emit_sgr *here)
{
	static const struct cell none;

	/* without an end of anything all of HERE is in the other one too */
	if (!here->has_off)
		return false;
	zero->n_plain = zero->n_colon = 0;
	emit_sgr_plain(zero, 0);
	emit_sgr_way(zero, &e->tables, &none, to);
	if (zero->n_plain == 1)
		zero->n_plain = 0; /* `CSI m` will do */
	return emit_sgr_cost(zero) + (zero->n_plain ? 0 : 3) <
	       emit_sgr_cost(here);
}

static void
emit_sgr(struct emit *e, const struct cell *to)
{
	struct emit_sgr here, zero;
	struct emit_sgr *g = &here;

	here.n_plain = here.n_colon = 0;
	emit_sgr_way(&here, &e->tables, &e->pen, to);
	if (!emit_sgr_cost(&here))
		return;
	if (emit_sgr_zero(e, to, &zero, &here))
		g = &zero;
	if (g->n_plain || g == &zero)
		emit_sgr_write(e->out, g->plain, g->n_plain);
	if (g->n_colon)
		emit_sgr_write(e->out, g->colon, g->n_colon);
}

static void
emit_link(struct emit *e, const struct cell *to)
{
	unsigned link = emit_link_of(e, to);
	const struct cell_link *l;

	if (link == emit_link_of(e, &e->pen))
		return;
	if (!link) {
		emit_put(e->out, "\033]8;;\033\\");
		return;
	}
	l = &e->tables.links[link];
	emit_put(
	    e->out, "\033]8;%s%s;%s\033\\", *l->id ? "id=" : "", l->id, l->uri);
}

void
emit_init(
    struct emit *e, struct buf *out, struct cell_tables tables, unsigned flags)
{
	*e = (struct emit){ .out = out, .tables = tables, .flags = flags };
}

static inline bool
emit_is_same(const struct cell *a, const struct cell *b)
{
	return a->fg == b->fg && a->bg == b->bg && a->ext == b->ext &&
	       !((a->attr ^ b->attr) & CELL_STYLE);
}

void
emit_pen(struct emit *e, const struct cell *c)
{
	if (emit_is_same(&e->pen, c))
		return;
	emit_sgr(e, c);
	if (e->flags & EMIT_PROTECTED &&
	    (e->pen.attr ^ c->attr) & CELL_PROTECTED)
		emit_put(
		    e->out, "\033[%u\"q", c->attr & CELL_PROTECTED ? 1u : 0u);
	if (e->flags & EMIT_LINKS)
		emit_link(e, c);
	e->pen = *c;
	e->pen.ch = 0;
	e->pen.attr &= CELL_STYLE;
}

void
emit_background(struct emit *e, uint32_t bg)
{
	struct cell c = e->pen;

	c.bg = bg;
	emit_pen(e, &c);
}

void
emit_neutral(struct emit *e)
{
	emit_put(e->out, "\033[m");
	if (e->flags & EMIT_PROTECTED)
		emit_put(e->out, "\033[0\"q");
	if (e->flags & EMIT_LINKS)
		emit_put(e->out, "\033]8;;\033\\");
	e->pen = (struct cell){ 0 };
}

void
emit_sgr_report(
    struct buf *out, const struct cell *c, const struct cell_tables *t)
{
	static const struct cell none;
	struct cell plain = *c;
	struct emit_sgr g = { .n_plain = 0 };

	plain.fg = plain.bg = COLOUR_DEFAULT;
	emit_sgr_plain(&g, 0);
	emit_sgr_way(&g, t, &none, &plain);
	buf_put(out, g.plain, g.n_plain);
	/* what has no parts goes without colons, as xterm does it */
	for (unsigned i = 0; i < 2; i++) {
		uint32_t colour = i ? c->bg : c->fg;
		bool is_rgb = (colour & COLOUR_KIND) == COLOUR_RGB;

		g.n_plain = 0;
		if (colour == COLOUR_DEFAULT)
			continue;
		if (is_rgb || (colour & ~COLOUR_KIND) >= 16)
			emit_sgr_parts(
			    g.plain, &g.n_plain, i ? 48 : 38, colour);
		else
			emit_sgr_colour(&g, i ? 40 : 30, colour);
		buf_put_u8(out, ';');
		buf_put(out, g.plain, g.n_plain);
	}
	if (g.n_colon) {
		buf_put_u8(out, ';');
		buf_put(out, g.colon, g.n_colon);
	}
}

/* ---- cells ---- */

/*
 * Characters whose width depends on whom one asks: several code points in one
 * cell, emoji, whose list grows every year, and what print.c lists.
 */
static bool
emit_is_doubtful(uint32_t ch)
{
	return ch & CELL_CLUSTER || (ch >= 0x1f000 && ch <= 0x1ffff) ||
	       (ch >= 0x2600 && ch <= 0x27bf) ||
	       (ch >= 0x231a && ch <= 0x23ff) ||
	       (ch >= 0x2b00 && ch <= 0x2bff) || print_is_disputed(ch);
}

/* The characters of cells with the pen of the first one; how many cells. */
static unsigned
emit_run(struct emit *e, const struct cell *cells, unsigned n)
{
	uint8_t *start = buf_reserve(e->out, (size_t)n * 4), *at = start;
	unsigned i;

	for (i = 0; i < n && emit_is_same(&cells[0], &cells[i]); i++) {
		uint32_t ch = cells[i].ch;

		if (ch - 0x20 < 0x5f)
			*at++ = (uint8_t)ch;
		else if (!ch && !(cells[i].attr & CELL_TAIL))
			*at++ = ' ';
		else if (emit_is_doubtful(ch))
			break;
		else if (ch)
			at = emit_utf8(at, ch);
	}
	buf_commit(e->out, (size_t)(at - start));
	return i;
}

/* One character that emit_run() leaves to others; how many cells. */
static unsigned
emit_doubtful(struct emit *e, const struct cell *c, unsigned n, unsigned col)
{
	unsigned width = c->attr & CELL_WIDE ? 2 : 1;

	if (c->ch & CELL_CLUSTER) {
		const struct cluster *k =
		    &e->tables.clusters[c->ch & ~CELL_CLUSTER];

		buf_put(e->out, k->text, k->len);
	} else {
		emit_char(e->out, c->ch);
	}
	if (e->flags & EMIT_PLACED && width < n)
		emit_put(e->out, "\033[%uG", col + width + 1);
	return width;
}

void
emit_cells(struct emit *e, const struct cell *cells, unsigned n, unsigned col)
{
	unsigned i = 0;

	while (i < n) {
		emit_pen(e, &cells[i]);
		i += emit_run(e, cells + i, n - i);
		if (i < n && emit_is_same(&e->pen, &cells[i]) &&
		    emit_is_doubtful(cells[i].ch))
			i += emit_doubtful(e, &cells[i], n - i, col + i);
	}
}

unsigned
emit_used(const struct cell *cells, unsigned n)
{
	while (n && !cells[n - 1].ch && !cells[n - 1].fg && !cells[n - 1].bg &&
	       !cells[n - 1].attr && !cells[n - 1].ext)
		n--;
	return n;
}
