/*
 * Lines in a compact form; see history.h. Chunks are filled one after the other
 * and never moved. Pure.
 */
#include "screen/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "screen/history_layout.h"

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

void
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
