/*
 * The replay ring of the keeper; see ring.h. The byte at position P lies at
 * data[P % size]. Every `step` bytes the scanner's state is kept as a mark, and
 * the ring forgets whole steps, so the oldest byte always has one: from any
 * position the exact answer is at most one step of scanning away.
 */
#include "sessions/keeper/ring.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "screen/vt_scan.h"

#define RING_MIN   (16U << 10)
#define RING_STEPS 256
#define RING_SPARE 4096 /* below this much free space it grows */

struct ring {
	uint8_t *data;
	size_t size, max, step;
	uint64_t start, end;
	size_t n_reserved;
	struct vt_scan scan;   /* at `end` */
	struct vt_scan *marks; /* of multiples of step in start..end */
	size_t n_marks;
};

struct ring *
ring_new(size_t max_bytes)
{
	struct ring *r = xcalloc(1, sizeof(*r));

	r->max = max_bytes < RING_MIN ? RING_MIN : max_bytes;
	r->size = RING_MIN;
	r->step = r->max / RING_STEPS;
	r->n_marks = r->max / r->step + 2;
	r->data = xmalloc(r->size);
	r->marks = xcalloc(r->n_marks, sizeof(*r->marks));
	return r;
}

void
ring_free(struct ring *r)
{
	if (!r)
		return;
	free(r->marks);
	free(r->data);
	free(r);
}

static struct vt_scan *
ring_mark(const struct ring *r, uint64_t pos)
{
	return &r->marks[pos / r->step % r->n_marks];
}

static size_t
ring_used(const struct ring *r)
{
	return (size_t)(r->end - r->start);
}

static size_t
ring_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void
ring_grow(struct ring *r)
{
	size_t size = r->size > r->max / 2 ? r->max : r->size * 2;
	uint8_t *data = xmalloc(size);

	for (uint64_t pos = r->start; pos < r->end;) {
		size_t from = (size_t)(pos % r->size);
		size_t to = (size_t)(pos % size);
		size_t n = (size_t)(r->end - pos);

		n = ring_min(n, ring_min(r->size - from, size - to));
		memcpy(data + to, r->data + from, n);
		pos += n;
	}
	free(r->data);
	r->data = data;
	r->size = size;
}

uint8_t *
ring_reserve(struct ring *r, size_t want, size_t *n_out)
{
	size_t at, n;

	assert(want > 0);
	while (r->size < r->max &&
	       r->size - ring_used(r) < ring_min(want, RING_SPARE))
		ring_grow(r);
	at = (size_t)(r->end % r->size);
	n = ring_min(want, r->size - at);
	if (r->size < r->max)
		n = ring_min(n, r->size - ring_used(r));
	r->n_reserved = n;
	*n_out = n;
	return r->data + at;
}

void
ring_commit(struct ring *r, size_t n)
{
	const uint8_t *p = r->data + r->end % r->size;

	assert(n <= r->n_reserved);
	r->n_reserved = 0;
	while (n) {
		size_t part = r->step - (size_t)(r->end % r->step);

		part = ring_min(part, n);
		vt_scan_run(&r->scan, p, part);
		r->end += part;
		p += part;
		n -= part;
		if (r->end % r->step == 0)
			*ring_mark(r, r->end) = r->scan;
	}
	if (ring_used(r) > r->size) {
		uint64_t oldest = r->end - r->size + r->step - 1;

		r->start = oldest - oldest % r->step;
	}
}

void
ring_push(struct ring *r, const void *p, size_t n)
{
	const uint8_t *from = p;

	while (n) {
		size_t room;
		uint8_t *to = ring_reserve(r, n, &room);

		memcpy(to, from, room);
		ring_commit(r, room);
		from += room;
		n -= room;
	}
}

uint64_t
ring_start(const struct ring *r)
{
	return r->start;
}

uint64_t
ring_end(const struct ring *r)
{
	return r->end;
}

size_t
ring_cap(const struct ring *r)
{
	return r->max;
}

int
ring_peek(const struct ring *r, uint64_t pos, size_t max, struct iovec v[2])
{
	size_t at = (size_t)(pos % r->size), n;

	assert(pos >= r->start && pos <= r->end);
	n = (size_t)(r->end - pos);
	n = ring_min(n, max);
	if (!n)
		return 0;
	v[0].iov_base = r->data + at;
	v[0].iov_len = ring_min(n, r->size - at);
	if (v[0].iov_len == n)
		return 1;
	v[1].iov_base = r->data;
	v[1].iov_len = n - v[0].iov_len;
	return 2;
}

uint64_t
ring_safe_from(const struct ring *r, uint64_t from)
{
	struct iovec v[2];
	struct vt_scan s;
	uint64_t pos;
	int n_v;

	if (from < r->start)
		from = r->start;
	if (from >= r->end)
		return r->end;
	pos = from - from % r->step;
	s = *ring_mark(r, pos);
	n_v = ring_peek(r, pos, (size_t)(from - pos), v);
	for (int i = 0; i < n_v; i++)
		vt_scan_run(&s, v[i].iov_base, v[i].iov_len);
	n_v = ring_peek(r, from, SIZE_MAX, v);
	for (int i = 0; i < n_v && !vt_scan_is_ground(&s); i++)
		from += vt_scan_to_ground(&s, v[i].iov_base, v[i].iov_len);
	return from;
}

uint64_t
ring_safe_lines(const struct ring *r, unsigned lines)
{
	struct iovec v[2];
	int n_v = ring_peek(r, r->start, SIZE_MAX, v);
	uint64_t pos = r->end;
	unsigned seen = 0;

	while (n_v-- > 0) {
		const uint8_t *p = v[n_v].iov_base;
		size_t n = v[n_v].iov_len;
		const uint8_t *nl;

		while ((nl = memrchr(p, '\n', n)) && seen++ < lines)
			n = (size_t)(nl - p);
		if (nl) {
			pos -= v[n_v].iov_len - (size_t)(nl - p) - 1;
			return ring_safe_from(r, pos);
		}
		pos -= v[n_v].iov_len;
	}
	return ring_safe_from(r, r->start);
}
