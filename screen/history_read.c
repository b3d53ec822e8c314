/*
 * Lines of the history as cells again; see history.h. Trusts what history.c
 * wrote. Pure.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "screen/history_layout.h"
#include "screen/print.h"

/* Finds line N: behind the one read last if possible. */
static bool
history_place(const struct history *h, struct history_reader *r, uint64_t n)
{
	const struct history_chunk *c;
	struct history_head head;
	unsigned low = 0, high = h->n;

	if (n < h->start || n >= h->end)
		return false;
	if (r->is_placed && r->next == n && r->chunk < h->n &&
	    r->at < history_chunk(h, r->chunk)->end)
		return true;
	while (high - low > 1) {
		unsigned mid = low + (high - low) / 2;

		if (history_chunk(h, mid)->first <= n)
			low = mid;
		else
			high = mid;
	}
	c = history_chunk(h, low);
	r->chunk = low;
	r->at = c->start;
	for (r->next = c->first; r->next < n; r->next++) {
		memcpy(&head, c->data + r->at, sizeof(head));
		r->at += sizeof(head) + head.bytes;
	}
	r->is_placed = true;
	return true;
}

/* ---- decoding ---- */

struct history_decoder {
	struct history_reader *r;
	const uint8_t *p;
	struct cell pen;
};

static void
history_take(struct history_decoder *d, void *out, size_t n)
{
	memcpy(out, d->p, n);
	d->p += n;
}

static uint32_t
history_take_colour(struct history_decoder *d)
{
	uint32_t c = (uint32_t)*d->p++ << 24, v = 0;

	if (c == COLOUR_INDEXED)
		v = *d->p++;
	else if (c)
		history_take(d, &v, 3);
	return c | v;
}

/* Room for entry *N of a table that begins with an unused one. */
static void *
history_more(void *table, unsigned *n, unsigned *cap, size_t size)
{
	if (!*n)
		*n = 1;
	if (*n < *cap)
		return table;
	*cap = *cap ? *cap * 2 : 8;
	table = xrealloc(table, *cap * size);
	if (*n == 1)
		memset(table, 0, size);
	return table;
}

static void
history_take_link(struct history_decoder *d)
{
	struct history_reader *r = d->r;
	struct cell_link *l;
	uint16_t uri;
	uint8_t id = *d->p++;

	r->links = history_more(
	    r->links, &r->n_links, &r->cap_links, sizeof(*r->links));
	l = &r->links[r->n_links++];
	l->id = xmalloc(id + 1U);
	history_take(d, l->id, id);
	l->id[id] = '\0';
	history_take(d, &uri, 2);
	l->uri = xmalloc(uri + 1U);
	history_take(d, l->uri, uri);
	l->uri[uri] = '\0';
}

static void
history_take_ext(struct history_decoder *d, uint8_t op)
{
	struct history_reader *r = d->r;
	struct cell_ext e = { 0 };

	history_take(d, &e.underline, 4);
	if (op == HISTORY_LINK)
		history_take_link(d);
	if (op != HISTORY_EXT)
		e.link = (uint16_t)(r->n_links - 1);
	d->pen.ext = 0;
	if (!e.underline && !e.link)
		return;
	r->exts =
	    history_more(r->exts, &r->n_exts, &r->cap_exts, sizeof(*r->exts));
	r->exts[r->n_exts] = e;
	d->pen.ext = (uint16_t)r->n_exts++;
}

static void
history_give(struct history_decoder *d, uint32_t ch, unsigned width)
{
	struct history_reader *r = d->r;
	struct cell *at;

	if (r->n + 2 > r->cap) {
		r->cap = r->cap ? r->cap * 2 : 128;
		r->cells = xrealloc(r->cells, r->cap * sizeof(*r->cells));
	}
	at = &r->cells[r->n++];
	*at = d->pen;
	at->ch = ch;
	if (width < 2)
		return;
	at->attr |= CELL_WIDE;
	at = &r->cells[r->n++];
	*at = d->pen;
	at->attr |= CELL_TAIL;
}

static void
history_take_cluster(struct history_decoder *d)
{
	struct history_reader *r = d->r;
	unsigned width = *d->p++;
	struct cluster *k;

	r->clusters = history_more(r->clusters, &r->n_clusters,
	    &r->cap_clusters, sizeof(*r->clusters));
	k = &r->clusters[r->n_clusters];
	k->len = *d->p++;
	history_take(d, k->text, k->len);
	history_give(d, CELL_CLUSTER | r->n_clusters++, width);
}

static void
history_take_char(struct history_decoder *d)
{
	uint32_t c = *d->p++;
	unsigned more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;

	if (more)
		c &= 0x3fU >> more;
	for (; more; more--)
		c = c << 6 | (*d->p++ & 0x3f);
	history_give(d, c, print_width(c));
}

static void
history_take_op(struct history_decoder *d)
{
	uint8_t op = *d->p++;
	uint16_t n;

	if (op & HISTORY_PEN) {
		if (op & HISTORY_FG)
			d->pen.fg = history_take_colour(d);
		if (op & HISTORY_BG)
			d->pen.bg = history_take_colour(d);
		if (op & HISTORY_ATTR)
			history_take(d, &d->pen.attr, 2);
	} else if (op == HISTORY_BLANKS) {
		for (history_take(d, &n, 2); n; n--)
			history_give(d, 0, 1);
	} else if (op == HISTORY_CLUSTER) {
		history_take_cluster(d);
	} else {
		history_take_ext(d, op);
	}
}

static void
history_forget_links(struct history_reader *r)
{
	for (unsigned i = 1; i < r->n_links; i++) {
		free(r->links[i].id);
		free(r->links[i].uri);
	}
	r->n_links = 0;
}

bool
history_read(const struct history *h, struct history_reader *r, uint64_t n)
{
	struct history_decoder d = { .r = r };
	const struct history_chunk *c;
	struct history_head head;
	const uint8_t *end;

	if (!history_place(h, r, n))
		return false;
	history_forget_links(r);
	r->n_exts = r->n_clusters = r->n = 0;
	c = history_chunk(h, r->chunk);
	memcpy(&head, c->data + r->at, sizeof(head));
	d.p = c->data + r->at + sizeof(head);
	end = d.p + head.bytes;
	while (d.p < end)
		if (*d.p < 0x20)
			history_take_op(&d);
		else
			history_take_char(&d);
	r->is_wrapped = head.wrap != HISTORY_ENDS;
	r->is_padded = head.wrap == HISTORY_PADDED;
	r->tables = (struct cell_tables){ r->exts, r->links, r->clusters };
	r->next = n + 1;
	r->at += sizeof(head) + head.bytes;
	if (r->at == c->end) {
		r->chunk++;
		r->at = r->chunk < h->n ? history_chunk(h, r->chunk)->start : 0;
	}
	return true;
}

void
history_reader_release(struct history_reader *r)
{
	history_forget_links(r);
	free(r->links);
	free(r->exts);
	free(r->clusters);
	free(r->cells);
	*r = (struct history_reader){ 0 };
}
