/*
 * Rows as lines of the history; see history_layout.h. Cells are read one by
 * one, eight at a time where they are ASCII; a row that is text is copied, but
 * for its pens and blanks. Both ways give the same line. Pure.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "screen/history_layout.h"
#include "screen/print.h"
#include "screen/row.h"

_Static_assert(HISTORY_LINE_MAX < 65536, "a line's length is a u16");

struct history_writer {
	uint8_t *p;
	struct cell pen;
	const struct cell_link *link; /* the last one of this line */
	size_t links;                 /* bytes of them */
	const struct cell_tables *t;
};

static void
history_put(struct history_writer *w, const void *p, size_t n)
{
	memcpy(w->p, p, n);
	w->p += n;
}

static void
history_put_colour(struct history_writer *w, uint32_t c)
{
	*w->p++ = (uint8_t)(c >> 24);
	if ((c & COLOUR_KIND) == COLOUR_INDEXED)
		*w->p++ = (uint8_t)c;
	else if (c & COLOUR_KIND)
		history_put(w, &c, 3);
}

static void
history_put_ext(struct history_writer *w, unsigned ext)
{
	const struct cell_ext *e = &w->t->exts[ext];
	const struct cell_link *l = NULL;
	size_t id = 0, uri = 0;

	if (ext && e->link) {
		l = &w->t->links[e->link];
		id = strlen(l->id);
		uri = strlen(l->uri);
		if (l != w->link && w->links + id + uri + 3 > HISTORY_LINKS_MAX)
			l = NULL; /* this line has had enough of them */
	}
	*w->p++ = !l             ? HISTORY_EXT
		  : l == w->link ? HISTORY_RELINK
				 : HISTORY_LINK;
	history_put(w, ext ? &e->underline : &(uint32_t){ 0 }, 4);
	if (!l || l == w->link)
		return;
	*w->p++ = (uint8_t)id;
	history_put(w, l->id, id);
	history_put(w, &(uint16_t){ (uint16_t)uri }, 2);
	history_put(w, l->uri, uri);
	w->links += id + uri + 3;
	w->link = l;
}

static void
history_put_pen(struct history_writer *w, const struct cell *c, uint16_t attr)
{
	uint8_t *op = w->p;
	uint8_t changed = 0;

	w->p++;
	if (c->fg != w->pen.fg) {
		changed |= HISTORY_FG;
		history_put_colour(w, c->fg);
	}
	if (c->bg != w->pen.bg) {
		changed |= HISTORY_BG;
		history_put_colour(w, c->bg);
	}
	if (attr != w->pen.attr) {
		changed |= HISTORY_ATTR;
		history_put(w, &attr, 2);
	}
	if (changed)
		*op = HISTORY_PEN | changed;
	else
		w->p = op;
	if (c->ext != w->pen.ext)
		history_put_ext(w, c->ext);
	w->pen = *c;
	w->pen.attr = attr;
}

/* A character other than ASCII. */
static void
history_put_ch(struct history_writer *w, const struct cell *c)
{
	const struct cluster *k;

	if (!(c->ch & CELL_CLUSTER)) {
		w->p += print_encode(c->ch, w->p);
		return;
	}
	k = &w->t->clusters[c->ch & ~CELL_CLUSTER];
	*w->p++ = HISTORY_CLUSTER;
	*w->p++ = c->attr & CELL_WIDE ? 2 : 1;
	*w->p++ = k->len;
	history_put(w, k->text, k->len);
}

static void
history_put_blanks(struct history_writer *w, unsigned n)
{
	*w->p++ = HISTORY_BLANKS;
	history_put(w, &(uint16_t){ (uint16_t)n }, 2);
}

static inline bool
history_is_same_pen(const struct cell *c, uint16_t attr, const struct cell *pen)
{
	return c->fg == pen->fg && c->bg == pen->bg && attr == pen->attr &&
	       c->ext == pen->ext;
}

/*
 * Writes the cells at C that are ASCII in the pen of before, eight at a time;
 * how many.
 */
static unsigned
history_encode_ascii(struct history_writer *w, const struct cell *c, unsigned n)
{
	const struct cell ascii = { .ch = 0x7f };
	struct cell like = w->pen;
	uint64_t pen[2], mask[2];
	unsigned i = 0;

	like.ch = 0;
	memcpy(pen, &like, sizeof(pen));
	memcpy(mask, &ascii, sizeof(mask));
	for (; n - i >= 8; i += 8) {
		uint64_t other = 0;
		uint32_t none = 0;

		for (unsigned k = 0; k < 8; k++) {
			uint64_t v[2];

			memcpy(v, &c[i + k], sizeof(v));
			other |= (v[0] ^ pen[0]) & ~mask[0];
			other |= v[1] ^ pen[1];
			none |= c[i + k].ch - 1; /* bit 31: no character */
			w->p[k] = (uint8_t)c[i + k].ch;
		}
		if (other || none & CELL_CLUSTER)
			break;
		w->p += 8;
	}
	return i;
}

/* A run of cells without a character from I on; the last one of them. */
static unsigned
history_encode_blanks(
    struct history_writer *w, const struct cell *c, unsigned i, unsigned n)
{
	unsigned k = i + 1;

	while (k < n && !c[k].ch && !(c[k].attr & CELL_TAIL) &&
	       history_is_same_pen(&c[k], c[k].attr & CELL_STYLE, &w->pen))
		k++;
	history_put_blanks(w, k - i);
	return k - 1;
}

static void
history_encode(struct history_writer *w, const struct cell *c, unsigned n)
{
	unsigned fast = 0; /* where the fast way is tried again */

	for (unsigned i = 0; i < n; i++) {
		uint16_t attr = c[i].attr & CELL_STYLE;

		if (c[i].attr & CELL_TAIL)
			continue;
		if (!history_is_same_pen(&c[i], attr, &w->pen))
			history_put_pen(w, &c[i], attr);
		if (c[i].ch >= 0x80) {
			history_put_ch(w, &c[i]);
		} else if (!c[i].ch) {
			i = history_encode_blanks(w, c, i, n);
		} else {
			*w->p++ = (uint8_t)c[i].ch;
			if (i < fast)
				continue;
			i += history_encode_ascii(w, c + i + 1, n - i - 1);
			fast = i + 8;
		}
	}
}

/* The cells of a row up to the last one that is not plain blank. */
static unsigned
history_length(const struct row *row)
{
	unsigned n = row->used;

	while (n) {
		const struct cell *c = &row->cells[n - 1];

		if ((c->ch && c->ch != ' ') || !cell_is_plain(c))
			break;
		n--;
	}
	return n;
}

static void
history_reserve(struct history *h, unsigned cells)
{
	size_t most = (size_t)cells * HISTORY_CELL_MAX + HISTORY_LINKS_MAX;

	if (h->cap_scratch >= most)
		return;
	free(h->scratch);
	h->scratch = xmalloc(most);
	h->cap_scratch = most;
}

/* ---- rows that are text ---- */

/* As history_length(). */
static unsigned
history_text_length(const struct row *row)
{
	unsigned n = row->used, run = row->n_runs;

	while (n) {
		const struct cell *pen = &row->cells[run - 1];

		if (!cell_is_plain(pen) ||
		    (row->text[n - 1] && row->text[n - 1] != ' '))
			break;
		n--;
		if (n == pen->ch)
			run--;
	}
	return n;
}

/* N bytes in the pen of before. */
static void
history_put_text(struct history_writer *w, const uint8_t *p, size_t n)
{
	while (n) {
		const uint8_t *gap = memchr(p, 0, n);
		size_t some = gap ? (size_t)(gap - p) : n;

		history_put(w, p, some);
		p += some;
		n -= some;
		for (some = 0; some < n && !p[some];)
			some++;
		if (some)
			history_put_blanks(w, (unsigned)some);
		p += some;
		n -= some;
	}
}

static void
history_encode_text(struct history_writer *w, const struct row *row, unsigned n)
{
	for (unsigned i = 0; i < row->n_runs; i++) {
		const struct cell *pen = &row->cells[i];
		unsigned start = pen->ch;
		unsigned end = i + 1u < row->n_runs ? pen[1].ch : row->used;

		if (end > n)
			end = n;
		if (start >= end)
			return;
		if (!cell_is_same_pen(pen, &w->pen))
			history_put_pen(w, pen, pen->attr);
		history_put_text(w, row->text + start, end - start);
	}
}

/* Appends a row that is text; false if that says less than its cells. */
static bool
history_push_text(struct history *h, const struct row *row, unsigned cols,
    const struct cell_tables *t)
{
	enum history_wrap wrap = row->is_wrapped ? HISTORY_WRAPS : HISTORY_ENDS;
	struct history_writer w = { .t = t };
	unsigned n;

	if (!row->n_runs || (row->is_wrapped && row->used < cols))
		return false;
	n = row->is_wrapped ? cols : history_text_length(row);
	if (row->n_runs == 1 && cell_is_plain(&row->cells[0]) &&
	    !memchr(row->text, 0, n)) {
		history_store(h, row->text, n, wrap);
		return true;
	}
	history_reserve(h, n);
	w.p = h->scratch;
	history_encode_text(&w, row, n);
	history_store(h, h->scratch, (size_t)(w.p - h->scratch), wrap);
	return true;
}

void
history_push(struct history *h, struct row *row, unsigned cols,
    const struct cell_tables *t)
{
	enum history_wrap wrap = HISTORY_ENDS;
	struct history_writer w = { .t = t };
	const struct cell *cells;
	unsigned n;

	if (!h->max_lines || history_push_text(h, row, cols, t))
		return;
	cells = row_cells(row);
	if (!row->is_wrapped) {
		n = history_length(row);
	} else if (row->used < cols) {
		n = cols - 1;
		wrap = HISTORY_PADDED;
	} else {
		n = cols;
		wrap = HISTORY_WRAPS;
	}
	history_reserve(h, n);
	w.p = h->scratch;
	history_encode(&w, cells, n);
	history_store(h, h->scratch, (size_t)(w.p - h->scratch), wrap);
}
