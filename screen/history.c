/*
 * Lines in a compact form; see history.h. A line is a header and a string of
 * characters in UTF-8 and of operations below 0x20, with the pen of SGR 0 at
 * its start. Chunks are filled one after the other and never moved. Pure.
 */
#include "screen/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "screen/history_layout.h"
#include "screen/print.h"

_Static_assert(HISTORY_LINE_MAX < 65536, "a line's length is a u16");

struct history *
history_new(uint32_t lines, size_t bytes)
{
	struct history *h = xcalloc(1, sizeof(*h));

	h->max_lines = lines;
	h->max_bytes = bytes;
	return h;
}

static void
history_drop_chunk(struct history *h)
{
	struct history_chunk *c = history_chunk(h, 0);

	h->start = c->first + c->n;
	h->bytes -= sizeof(*c) + c->cap;
	free(c);
	h->first = (h->first + 1) % h->cap;
	h->n--;
}

void
history_clear(struct history *h)
{
	while (h->n)
		history_drop_chunk(h);
	h->start = h->end;
}

void
history_free(struct history *h)
{
	if (!h)
		return;
	history_clear(h);
	free(h->chunks);
	free(h->scratch);
	free(h);
}

uint64_t
history_start(const struct history *h)
{
	return h->start;
}

uint64_t
history_end(const struct history *h)
{
	return h->end;
}

size_t
history_bytes(const struct history *h)
{
	return sizeof(*h) + h->bytes + h->cap * sizeof(struct history_chunk *) +
	       h->cap_scratch;
}

/* ---- storing ---- */

/* The size of a new chunk: small ones where the cap is small. */
static size_t
history_chunk_size(const struct history *h)
{
	size_t n = h->max_bytes / 8;

	return n < HISTORY_CHUNK ? n : HISTORY_CHUNK;
}

static void
history_grow_ring(struct history *h)
{
	unsigned cap = h->cap ? h->cap * 2 : 8;
	struct history_chunk **chunks =
	    xmalloc(cap * sizeof(struct history_chunk *));

	for (unsigned i = 0; i < h->n; i++)
		chunks[i] = history_chunk(h, i);
	free(h->chunks);
	h->chunks = chunks;
	h->cap = cap;
	h->first = 0;
}

/* A chunk with room for N bytes at the end; NULL if the cap forbids it. */
static struct history_chunk *
history_room(struct history *h, size_t n)
{
	struct history_chunk *c = h->n ? history_chunk(h, h->n - 1) : NULL;
	size_t size = history_chunk_size(h);

	if (c && c->cap - c->end >= n)
		return c;
	if (size < n)
		size = n;
	while (h->n && h->bytes + sizeof(*c) + size > h->max_bytes)
		history_drop_chunk(h);
	if (h->bytes + sizeof(*c) + size > h->max_bytes)
		return NULL;
	if (h->n == h->cap)
		history_grow_ring(h);
	c = xmalloc(sizeof(*c) + size);
	*c = (struct history_chunk){ .first = h->end, .cap = (uint32_t)size };
	h->bytes += sizeof(*c) + size;
	h->chunks[(h->first + h->n++) % h->cap] = c;
	return c;
}

/* Forgets the oldest line. */
static void
history_drop_line(struct history *h)
{
	struct history_chunk *c = history_chunk(h, 0);
	struct history_head head;

	memcpy(&head, c->data + c->start, sizeof(head));
	c->start += (uint32_t)sizeof(head) + head.bytes;
	c->first++;
	h->start++;
	if (--c->n == 0)
		history_drop_chunk(h);
}

static void
history_store(
    struct history *h, const uint8_t *p, size_t n, enum history_wrap wrap)
{
	struct history_head head = { .bytes = (uint16_t)n,
		.wrap = (uint8_t)wrap };
	struct history_chunk *c;

	if (!h->max_lines)
		return;
	c = history_room(h, sizeof(head) + n);
	if (!c) {
		history_clear(h);
		h->start = ++h->end;
		return;
	}
	memcpy(c->data + c->end, &head, sizeof(head));
	memcpy(c->data + c->end + sizeof(head), p, n);
	c->end += (uint32_t)(sizeof(head) + n);
	c->n++;
	h->end++;
	if (h->end - h->start > h->max_lines)
		history_drop_line(h);
}

/* ---- taking back ---- */

/* Forgets all but the first N > 0 lines of a chunk. */
static void
history_cut_chunk(struct history_chunk *c, uint32_t n)
{
	struct history_head head;
	uint32_t end = c->start;

	for (uint32_t i = 0; i < n; i++) {
		memcpy(&head, c->data + end, sizeof(head));
		end += (uint32_t)sizeof(head) + head.bytes;
	}
	c->n = n;
	c->end = end;
}

void
history_pop(struct history *h, uint64_t n)
{
	if (n > h->end - h->start)
		n = h->end - h->start;
	h->end -= n;
	while (n) {
		struct history_chunk *c = history_chunk(h, h->n - 1);

		if (n < c->n) {
			history_cut_chunk(c, c->n - (uint32_t)n);
			return;
		}
		n -= c->n;
		h->bytes -= sizeof(*c) + c->cap;
		free(c);
		h->n--;
	}
}

/* ---- encoding ---- */

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

		if ((c->ch && c->ch != ' ') || c->fg | c->bg | c->attr | c->ext)
			break;
		n--;
	}
	return n;
}

void
history_push(struct history *h, const struct row *row, unsigned cols,
    const struct cell_tables *t)
{
	enum history_wrap wrap = HISTORY_ENDS;
	unsigned n;
	size_t most;
	struct history_writer w = { .t = t };

	if (!h->max_lines)
		return;
	if (!row->is_wrapped) {
		n = history_length(row);
	} else if (row->used < cols) {
		n = cols - 1;
		wrap = HISTORY_PADDED;
	} else {
		n = cols;
		wrap = HISTORY_WRAPS;
	}
	most = (size_t)n * HISTORY_CELL_MAX + HISTORY_LINKS_MAX;
	if (h->cap_scratch < most) {
		free(h->scratch);
		h->scratch = xmalloc(most);
		h->cap_scratch = most;
	}
	w.p = h->scratch;
	history_encode(&w, row->cells, n);
	history_store(h, h->scratch, (size_t)(w.p - h->scratch), wrap);
}
