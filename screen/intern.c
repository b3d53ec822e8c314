/*
 * The tables of exts, links and clusters; see intern.h. Numbers are found by
 * open addressing; collecting marks both grids and every cursor, and frees the
 * rest for reuse. Pure.
 */
#include "screen/intern.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define INTERN_FIRST 64 /* entries of a table at first */

enum intern_kind {
	INTERN_EXT,
	INTERN_LINK,
	INTERN_CLUSTER,
	INTERN_KINDS
};

/* How the entries of a table are found, and which of them are free. */
struct intern_index {
	uint32_t *slots; /* entry, or 0 */
	uint32_t mask;
	uint32_t *free;
	unsigned n_free, n_used; /* n_used: entries that were ever given */
	size_t since;            /* work done since the last collection */
};

struct intern {
	struct intern_index index[INTERN_KINDS];
	size_t link_bytes;
	uint16_t kept_link; /* given away, but perhaps in no ext yet */
	bool is_held;       /* nothing is collected */
};

/* What is looked for. */
struct intern_key {
	const struct cell_ext *ext;
	const char *id, *uri;
	const uint8_t *text;
	size_t n;
};

static const unsigned intern_max[INTERN_KINDS] = {
	[INTERN_EXT] = INTERN_EXTS,
	[INTERN_LINK] = INTERN_LINKS,
	[INTERN_CLUSTER] = INTERN_CLUSTERS,
};

static uint32_t
intern_mix(uint32_t h, const void *p, size_t n)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 16777619U;
	return h;
}

static uint32_t
intern_hash(enum intern_kind kind, const struct intern_key *k)
{
	uint32_t h = 2166136261U;

	if (kind == INTERN_EXT) {
		h = intern_mix(h, &k->ext->underline, 4);
		h = intern_mix(h, &k->ext->link, 2);
	} else if (kind == INTERN_LINK) {
		h = intern_mix(h, k->id, strlen(k->id) + 1);
		h = intern_mix(h, k->uri, strlen(k->uri));
	} else {
		h = intern_mix(h, k->text, k->n);
	}
	return h ^ h >> 15;
}

/* The key that would find entry I. */
static struct intern_key
intern_key_of(const struct screen *s, enum intern_kind kind, unsigned i)
{
	if (kind == INTERN_EXT)
		return (struct intern_key){ .ext = &s->exts[i] };
	if (kind == INTERN_LINK)
		return (struct intern_key){ .id = s->links[i].id,
			.uri = s->links[i].uri };
	return (struct intern_key){ .text = s->clusters[i].text,
		.n = s->clusters[i].len };
}

static bool
intern_is(const struct screen *s, enum intern_kind kind, unsigned i,
    const struct intern_key *k)
{
	struct intern_key o = intern_key_of(s, kind, i);

	if (kind == INTERN_EXT)
		return o.ext->underline == k->ext->underline &&
		       o.ext->link == k->ext->link;
	if (kind == INTERN_LINK)
		return strcmp(o.uri, k->uri) == 0 && strcmp(o.id, k->id) == 0;
	return o.n == k->n && memcmp(o.text, k->text, k->n) == 0;
}

static void
intern_slot(struct intern_index *x, uint32_t hash, uint32_t entry)
{
	uint32_t at = hash & x->mask;

	while (x->slots[at])
		at = (at + 1) & x->mask;
	x->slots[at] = entry;
}

static bool
intern_is_free(const struct screen *s, enum intern_kind kind, unsigned i)
{
	if (kind == INTERN_EXT)
		return !s->exts[i].underline && !s->exts[i].link;
	if (kind == INTERN_LINK)
		return !s->links[i].uri;
	return !s->clusters[i].len;
}

static unsigned
intern_cap(const struct screen *s, enum intern_kind kind)
{
	return kind == INTERN_EXT    ? s->cap_exts
	       : kind == INTERN_LINK ? s->cap_links
				     : s->cap_clusters;
}

/* Fills slots and the list of free entries anew. */
static void
intern_index_again(struct screen *s, enum intern_kind kind)
{
	struct intern_index *x = &s->intern->index[kind];
	unsigned cap = intern_cap(s, kind), n_slots = 2;

	while (n_slots < 2 * cap)
		n_slots *= 2;
	if (n_slots != x->mask + 1) {
		x->slots = xrealloc(x->slots, n_slots * sizeof(*x->slots));
		x->free = xrealloc(x->free, cap * sizeof(*x->free));
		x->mask = n_slots - 1;
	}
	memset(x->slots, 0, n_slots * sizeof(*x->slots));
	x->n_free = 0;
	for (unsigned i = 1; i < x->n_used; i++) {
		struct intern_key k;

		if (intern_is_free(s, kind, i)) {
			x->free[x->n_free++] = i;
			continue;
		}
		k = intern_key_of(s, kind, i);
		intern_slot(x, intern_hash(kind, &k), i);
	}
}

/* Doubles a table; false when that is not allowed. */
static bool
intern_grow(struct screen *s, enum intern_kind kind)
{
	unsigned cap = intern_cap(s, kind);

	cap = cap ? cap * 2 : INTERN_FIRST;
	if (cap > intern_max[kind])
		return false;
	if (kind == INTERN_EXT) {
		s->cap_exts = cap;
		s->exts = xrealloc(s->exts, cap * sizeof(*s->exts));
	} else if (kind == INTERN_LINK) {
		s->cap_links = cap;
		s->links = xrealloc(s->links, cap * sizeof(*s->links));
	} else {
		s->cap_clusters = cap;
		s->clusters = xrealloc(s->clusters, cap * sizeof(*s->clusters));
	}
	if (!s->intern->index[kind].n_used)
		s->intern->index[kind].n_used = 1; /* entry 0 is none */
	intern_index_again(s, kind);
	return true;
}

/* ---- collection ---- */

struct intern_marks {
	uint8_t *exts, *links, *clusters;
};

static void
intern_mark_cell(struct intern_marks *m, const struct cell *c)
{
	if (c->ext)
		m->exts[c->ext] = 1;
	if (c->ch & CELL_CLUSTER)
		m->clusters[c->ch & ~CELL_CLUSTER] = 1;
}

static void
intern_mark_buffer(
    const struct screen *s, struct intern_marks *m, const struct buffer *b)
{
	intern_mark_cell(m, &b->saved.pen);
	for (unsigned r = 0; b->rows && r < s->rows; r++) {
		const struct row *row = &b->rows[r];
		unsigned n = row->n_runs ? row->n_runs : row->used;

		for (unsigned c = 0; c < n; c++)
			intern_mark_cell(m, &row->cells[c]);
	}
}

static void
intern_drop_link(struct screen *s, unsigned i)
{
	struct cell_link *l = &s->links[i];

	if (!l->uri)
		return;
	s->intern->link_bytes -=
	    strlen(l->id) + strlen(l->uri) + sizeof(*l) + 32;
	free(l->id);
	free(l->uri);
	*l = (struct cell_link){ 0 };
}

static void
intern_sweep(struct screen *s, const struct intern_marks *m)
{
	struct intern *in = s->intern;

	for (unsigned i = 1; i < in->index[INTERN_EXT].n_used; i++)
		if (!m->exts[i])
			s->exts[i] = (struct cell_ext){ 0 };
		else
			m->links[s->exts[i].link] = 1;
	for (unsigned i = 1; i < in->index[INTERN_LINK].n_used; i++)
		if (!m->links[i])
			intern_drop_link(s, i);
	for (unsigned i = 1; i < in->index[INTERN_CLUSTER].n_used; i++)
		if (!m->clusters[i])
			s->clusters[i].len = 0;
}

static void
intern_collect(struct screen *s)
{
	struct intern_marks m = {
		.exts = xcalloc(s->cap_exts + 1, 1),
		.links = xcalloc(s->cap_links + 1, 1),
		.clusters = xcalloc(s->cap_clusters + 1, 1),
	};

	intern_mark_cell(&m, &s->cursor.pen);
	intern_mark_cell(&m, &s->main_cursor.pen);
	intern_mark_buffer(s, &m, &s->main);
	intern_mark_buffer(s, &m, &s->alt);
	m.links[s->intern->kept_link] = 1;
	intern_sweep(s, &m);
	free(m.exts);
	free(m.links);
	free(m.clusters);
	for (unsigned k = 0; k < INTERN_KINDS; k++) {
		if (intern_cap(s, k))
			intern_index_again(s, k);
		s->intern->index[k].since = 0;
	}
	s->tables_age++;
}

/* Collects, unless too little happened since the last time to be worth it. */
static bool
intern_may_collect(struct screen *s, enum intern_kind kind)
{
	size_t cells = (size_t)s->rows * s->cols * 2;

	if (s->intern->is_held ||
	    s->intern->index[kind].since < cells / 4 + INTERN_FIRST)
		return false;
	intern_collect(s);
	return true;
}

void
intern_hold(struct screen *s)
{
	if (s->intern)
		intern_collect(s);
	else
		s->intern = xcalloc(1, sizeof(*s->intern));
	s->intern->is_held = true;
}

void
intern_unhold(struct screen *s)
{
	s->intern->is_held = false;
}

/* ---- entries ---- */

/* A free entry, or 0. */
static unsigned
intern_take(struct screen *s, enum intern_kind kind)
{
	struct intern_index *x = &s->intern->index[kind];
	unsigned cap = intern_cap(s, kind);

	if (!x->n_free && x->n_used >= cap) {
		bool is_tried = cap && intern_may_collect(s, kind);

		if ((!is_tried || x->n_free < cap / 2) &&
		    !intern_grow(s, kind) && !x->n_free)
			return 0;
	}
	return x->n_free ? x->free[--x->n_free] : x->n_used++;
}

static uint32_t
intern_find(struct screen *s, enum intern_kind kind, const struct intern_key *k)
{
	const struct intern_index *x;
	uint32_t at;

	if (!s->intern)
		s->intern = xcalloc(1, sizeof(*s->intern));
	x = &s->intern->index[kind];
	if (!x->slots)
		return 0;
	at = intern_hash(kind, k) & x->mask;
	while (x->slots[at] && !intern_is(s, kind, x->slots[at], k))
		at = (at + 1) & x->mask;
	return x->slots[at];
}

/* Makes the new entry I be found. */
static void
intern_publish(struct screen *s, enum intern_kind kind,
    const struct intern_key *k, unsigned i)
{
	intern_slot(&s->intern->index[kind], intern_hash(kind, k), i);
	if (kind == INTERN_EXT && i >= s->n_exts)
		s->n_exts = i + 1;
	else if (kind == INTERN_LINK && i >= s->n_links)
		s->n_links = i + 1;
	else if (kind == INTERN_CLUSTER && i >= s->n_clusters)
		s->n_clusters = i + 1;
}

uint16_t
intern_ext(struct screen *s, const struct cell_ext *e)
{
	struct intern_key k = { .ext = e };
	unsigned i;

	if (!e->underline && !e->link)
		return 0;
	i = intern_find(s, INTERN_EXT, &k);
	if (!i) {
		s->intern->index[INTERN_EXT].since++;
		i = intern_take(s, INTERN_EXT);
		if (!i)
			return 0;
		s->exts[i] = (struct cell_ext){ .underline = e->underline,
			.link = e->link };
		intern_publish(s, INTERN_EXT, &k, i);
	}
	return (uint16_t)i;
}

uint16_t
intern_link(struct screen *s, const char *id, const char *uri)
{
	struct intern_key k = { .id = id, .uri = uri };
	size_t n = strlen(id) + strlen(uri) + sizeof(struct cell_link) + 32;
	unsigned i = intern_find(s, INTERN_LINK, &k);

	if (!i) {
		s->intern->index[INTERN_LINK].since += n;
		if (s->intern->link_bytes + n > INTERN_LINK_BYTES)
			intern_may_collect(s, INTERN_LINK);
		if (s->intern->link_bytes + n > INTERN_LINK_BYTES)
			return 0;
		i = intern_take(s, INTERN_LINK);
		if (!i)
			return 0;
		s->links[i].id = xstrdup(id);
		s->links[i].uri = xstrdup(uri);
		s->intern->link_bytes += n;
		intern_publish(s, INTERN_LINK, &k, i);
	}
	s->intern->kept_link = (uint16_t)i;
	return (uint16_t)i;
}

uint32_t
intern_cluster(struct screen *s, const uint8_t *p, size_t n)
{
	struct intern_key k = { .text = p, .n = n };
	unsigned i = intern_find(s, INTERN_CLUSTER, &k);

	if (!i) {
		s->intern->index[INTERN_CLUSTER].since++;
		i = intern_take(s, INTERN_CLUSTER);
		if (!i)
			return 0;
		s->clusters[i].len = (uint8_t)n;
		memcpy(s->clusters[i].text, p, n);
		intern_publish(s, INTERN_CLUSTER, &k, i);
	}
	return CELL_CLUSTER | i;
}

void
intern_free(struct screen *s)
{
	if (!s->intern)
		return;
	for (unsigned i = 1; i < s->n_links; i++)
		intern_drop_link(s, i);
	for (unsigned k = 0; k < INTERN_KINDS; k++) {
		free(s->intern->index[k].slots);
		free(s->intern->index[k].free);
	}
	free(s->intern);
	free(s->exts);
	free(s->links);
	free(s->clusters);
	s->intern = NULL;
	s->exts = NULL;
	s->links = NULL;
	s->clusters = NULL;
}

void
intern_reset(struct screen *s)
{
	intern_free(s);
	s->n_exts = s->cap_exts = 0;
	s->n_links = s->cap_links = 0;
	s->n_clusters = s->cap_clusters = 0;
	s->tables_age++;
}
