/*
 * The detach key: pieces that do not end behind an ESC give what the whole
 * gives; nothing is made up, nothing that no key explains is lost, little is
 * held back. Input: u8 which keys, u8 count of pieces, u8 each, then the bytes.
 */
#include <stdbool.h>

#include "base/buf.h"
#include "sessions/keeper/detach_key.h"
#include "sessions/wire/messages.h"
#include "tests/fuzz/fuzz.h"

#define DETACH_PIECES 16

static const struct wire_detach_key detach_keys[] = {
	{ 0 },
	{ 1, { { ']', 1 } } },
	{ 1, { { '@', 1 } } },
	{ 2, { { 'a', 1 }, { 'd', 0 } } },
	{ 2, { { 'a', 1 }, { 'D', 0 } } },
	{ 2, { { 'p', 1 }, { 'q', 1 } } },
	{ 2, { { 'a', 1 }, { 27, 0 } } },
};

/* True when it was pressed; what goes on is added to OUT. */
static bool
detach_feed(
    struct detach_key_scan *s, const uint8_t *p, size_t n, struct buf *out)
{
	unsigned n_idle = 0;

	while (n) {
		struct detach_key_step step;

		detach_key_step(s, p, n, &step);
		FUZZ_CHECK(step.used <= n);
		n_idle = step.used ? 0 : n_idle + 1;
		FUZZ_CHECK(n_idle < 2);
		FUZZ_CHECK(s->n_held <= DETACH_KEY_HELD_MAX);
		buf_put(out, step.p, step.n);
		if (step.is_pressed)
			return true;
		p += step.used;
		n -= step.used;
	}
	return false;
}

/* The same with the input cut into PIECES; CUTS_ESC: wherever they end. */
static bool
detach_run(const struct wire_detach_key *keys, struct fuzz_input in,
    const uint8_t *pieces, unsigned n_pieces, bool cuts_esc, struct buf *out)
{
	struct detach_key_scan s;
	const uint8_t *held;
	size_t n_held;

	detach_key_init(&s, keys);
	for (unsigned i = 0; in.n; i++) {
		size_t n = i < n_pieces && pieces[i] < in.n ? pieces[i] : in.n;

		while (!cuts_esc && n && n < in.n && in.p[n - 1] == 0x1b)
			n++;
		if (detach_feed(&s, in.p, n, out))
			return true;
		in.p += n;
		in.n -= n;
	}
	n_held = detach_key_flush(&s, &held);
	buf_put(out, held, n_held);
	FUZZ_CHECK(detach_key_waits(&s) == DETACH_KEY_HOLDS_NONE);
	return false;
}

/* Every byte of OUT was in IN, as often at least. */
static void
detach_check_bytes(const struct fuzz_input *in, const struct buf *out)
{
	size_t count[256] = { 0 };

	for (size_t i = 0; i < in->n; i++)
		count[in->p[i]]++;
	for (size_t i = 0; i < buf_len(out); i++)
		FUZZ_CHECK(count[buf_head(out)[i]]-- > 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct fuzz_input in = { p, n };
	const struct wire_detach_key *keys =
	    &detach_keys[fuzz_u8(&in) % ARRAY_LEN(detach_keys)];
	unsigned n_pieces = fuzz_u8(&in) % DETACH_PIECES;
	uint8_t pieces[DETACH_PIECES];
	struct buf whole = { 0 }, parts = { 0 }, any = { 0 };
	bool is_pressed;

	for (unsigned i = 0; i < n_pieces; i++)
		pieces[i] = (uint8_t)(1 + fuzz_u8(&in) % 64);
	is_pressed = detach_run(keys, in, NULL, 0, false, &whole);
	FUZZ_CHECK(detach_run(keys, in, pieces, n_pieces, false, &parts) ==
		   is_pressed);
	FUZZ_CHECK(buf_len(&whole) == buf_len(&parts));
	FUZZ_CHECK(
	    buf_len(&whole) == 0 ||
	    memcmp(buf_head(&whole), buf_head(&parts), buf_len(&whole)) == 0);
	detach_run(keys, in, pieces, n_pieces, true, &any);
	detach_check_bytes(&in, &whole);
	detach_check_bytes(&in, &any);
	/* One key alone: all goes on until it is pressed. */
	if (keys->n < 2) {
		FUZZ_CHECK(is_pressed || buf_len(&whole) == in.n);
		FUZZ_CHECK(
		    buf_len(&whole) == 0 ||
		    memcmp(buf_head(&whole), in.p, buf_len(&whole)) == 0);
	}
	buf_release(&whole);
	buf_release(&parts);
	buf_release(&any);
	return 0;
}
