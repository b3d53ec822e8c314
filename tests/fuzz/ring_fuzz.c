/*
 * The ring against a plain array: positions, bytes, and where a replay may
 * begin are what the whole history says, at any capacity, however the bytes
 * came in. Input: u16 capacity, then steps.
 */
#include <stdbool.h>

#include "screen/vt_scan.h"
#include "sessions/keeper/ring.h"
#include "tests/fuzz/fuzz.h"

#define RING_HISTORY (256U << 10)
#define RING_STEPS   64

struct history {
	struct ring *r;
	uint8_t *bytes;
	bool *is_ground; /* of the position before that byte, and the end */
	size_t n;
	struct vt_scan scan;
};

static void
history_add(struct history *h, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		h->bytes[h->n++] = p[i];
		vt_scan_byte(&h->scan, p[i]);
		h->is_ground[h->n] = vt_scan_is_ground(&h->scan);
	}
}

/* N bytes: what the input has next, over and over. */
static uint8_t *
history_bytes(struct fuzz_input *in, size_t n)
{
	uint8_t *p = xmalloc(n);
	size_t len;
	const uint8_t *word = fuzz_take(in, 1 + fuzz_u8(in) % 48, &len);

	for (size_t i = 0; i < n; i++)
		p[i] = len ? word[i % len] : 'x';
	return p;
}

static void
history_push(struct history *h, struct fuzz_input *in, bool is_big)
{
	size_t n = is_big ? fuzz_u16(in) * 2 : fuzz_u8(in);
	uint8_t *p;

	if (n > RING_HISTORY - h->n)
		n = RING_HISTORY - h->n;
	p = history_bytes(in, n);
	ring_push(h->r, p, n);
	history_add(h, p, n);
	free(p);
}

/* As the PTY is read: a place, and less in it than was asked for. */
static void
history_reserve(struct history *h, struct fuzz_input *in)
{
	size_t want = 1 + fuzz_u16(in), room, n;
	uint8_t *place = ring_reserve(h->r, want, &room), *p;

	FUZZ_CHECK(room >= 1 && room <= want);
	n = fuzz_u16(in) % (room + 1);
	if (n > RING_HISTORY - h->n)
		n = RING_HISTORY - h->n;
	p = history_bytes(in, n);
	memcpy(place, p, n);
	ring_commit(h->r, n);
	history_add(h, p, n);
	free(p);
}

static void
history_check_safe(struct history *h, size_t from)
{
	size_t start = (size_t)ring_start(h->r);
	size_t want = from < start ? start : from;

	while (want < h->n && !h->is_ground[want])
		want++;
	if (want > h->n)
		want = h->n;
	FUZZ_CHECK(ring_safe_from(h->r, from) == want);
}

static void
history_check_lines(struct history *h, unsigned lines)
{
	size_t start = (size_t)ring_start(h->r), at = h->n;
	unsigned seen = 0;

	/* back to behind the LF that is one too many */
	while (at > start && (h->bytes[at - 1] != '\n' || seen++ < lines))
		at--;
	while (at < h->n && !h->is_ground[at])
		at++;
	FUZZ_CHECK(ring_safe_lines(h->r, lines) == at);
}

static void
history_check_peek(struct history *h, size_t from, size_t max)
{
	struct iovec v[2];
	int n_v;

	if (from < ring_start(h->r) || from > h->n)
		return;
	n_v = ring_peek(h->r, from, max, v);
	FUZZ_CHECK(n_v >= 0 && n_v <= 2);
	for (int i = 0; i < n_v; i++) {
		FUZZ_CHECK(v[i].iov_len > 0 && v[i].iov_len <= max);
		FUZZ_CHECK(
		    memcmp(v[i].iov_base, h->bytes + from, v[i].iov_len) == 0);
		from += v[i].iov_len;
		max -= v[i].iov_len;
	}
	FUZZ_CHECK(max == 0 || from == h->n);
}

static void
history_check(struct history *h)
{
	size_t start = (size_t)ring_start(h->r), cap = ring_cap(h->r);
	size_t kept = h->n - start;

	FUZZ_CHECK(ring_end(h->r) == h->n && start <= h->n);
	FUZZ_CHECK(kept <= cap);
	FUZZ_CHECK(kept == h->n || kept > cap - cap / 256 - 1);
	history_check_peek(h, start, SIZE_MAX);
}

static void
history_step(struct history *h, struct fuzz_input *in)
{
	switch (fuzz_u8(in) % 6) {
	case 0:
		history_push(h, in, false);
		break;
	case 1:
		history_push(h, in, true);
		break;
	case 2:
		history_reserve(h, in);
		break;
	case 3:
		history_check_safe(h, fuzz_u16(in) * 4 + fuzz_u8(in) % 4);
		break;
	case 4:
		history_check_lines(h, fuzz_u8(in));
		break;
	default:
		history_check_peek(h, fuzz_u16(in) * 4, fuzz_u16(in));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct fuzz_input in = { p, n };
	struct history h = { .r = ring_new(fuzz_u16(&in) * 2) };

	h.bytes = xmalloc(RING_HISTORY);
	h.is_ground = xmalloc(RING_HISTORY + 1);
	h.is_ground[0] = true;
	for (unsigned i = 0; i < RING_STEPS && in.n; i++) {
		history_step(&h, &in);
		history_check(&h);
	}
	for (size_t back = 0; back < 64 && back <= h.n; back++)
		history_check_safe(&h, h.n - back);
	history_check_safe(&h, 0);
	ring_free(h.r);
	free(h.bytes);
	free(h.is_ground);
	return 0;
}
