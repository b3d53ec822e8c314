/*
 * The query filter and the scanner under it: the output is the same whatever
 * pieces the input comes in, stays within the promised room, holds no query
 * that a second filter would find, and lacks nothing but queries; what is said
 * to be clean passes as it is. Input: u8 count of pieces, u16 each, then the terminal's bytes.
 */
#include <stdbool.h>

#include "screen/query_filter.h"
#include "screen/query_match.h"
#include "tests/fuzz/fuzz.h"

#define FILTER_PIECES 32

/* The whole of IN in pieces; *N_OUT bytes that the caller frees. */
static uint8_t *
filter_run(const uint8_t *in, size_t n, const unsigned *pieces,
    unsigned n_pieces, size_t *n_out)
{
	struct query_filter *f = xmalloc(sizeof(*f));
	uint8_t *all = xmalloc(2 * n + 2 * QUERY_HELD_MAX);
	size_t len = 0;

	memset(f, 0xa5, sizeof(*f));
	query_filter_init(f);
	for (unsigned i = 0; n; i++) {
		size_t part = i < n_pieces && pieces[i] < n ? pieces[i] : n;
		uint8_t *out = xmalloc(part + QUERY_HELD_MAX);
		size_t held = f->n_held;
		bool is_clean = query_filter_is_clean(f, in, part);
		size_t got = query_filter_run(f, in, part, out);

		FUZZ_CHECK(
		    !is_clean || (got == part && memcmp(out, in, part) == 0 &&
				     query_filter_is_clean(f, in, 0)));
		FUZZ_CHECK(got <= part + held);
		FUZZ_CHECK(f->n_held <= QUERY_HELD_MAX);
		memcpy(all + len, out, got);
		free(out);
		len += got;
		in += part;
		n -= part;
	}
	len += query_filter_finish(f, all + len);
	free(f);
	*n_out = len;
	return all;
}

/* Every way to move the scanner ends in the same state. */
static void
filter_check_scan(
    const uint8_t *in, size_t n, const unsigned *pieces, unsigned n_pieces)
{
	struct vt_scan whole = { 0 }, bytes = { 0 }, parts = { 0 };
	size_t at = 0;

	vt_scan_run(&whole, in, n);
	for (size_t i = 0; i < n; i++)
		vt_scan_byte(&bytes, in[i]);
	for (unsigned i = 0; at < n; i++) {
		size_t part =
		    i < n_pieces && pieces[i] < n - at ? pieces[i] : n - at;
		struct vt_scan probe = parts;
		size_t ground = vt_scan_to_ground(&probe, in + at, n - at);

		FUZZ_CHECK(ground <= n - at);
		FUZZ_CHECK(vt_scan_is_ground(&probe) || at + ground == n);
		for (size_t k = 0; k < ground; k++) {
			FUZZ_CHECK(!vt_scan_is_ground(&parts));
			vt_scan_byte(&parts, in[at + k]);
		}
		FUZZ_CHECK(
		    vt_scan_is_ground(&parts) == vt_scan_is_ground(&probe));
		at += ground;
		part = part < n - at ? part : n - at;
		vt_scan_run(&parts, in + at, part);
		at += part;
	}
	FUZZ_CHECK(whole.state == bytes.state && whole.need == bytes.need);
	FUZZ_CHECK(whole.state == parts.state && whole.need == parts.need);
}

/*
 * Where nothing asks nothing is missing: true when no sequence of IN, each
 * taken by the scanner alone, is a query, and none is cut off or too long.
 */
static bool
filter_is_innocent(const uint8_t *in, size_t n)
{
	struct vt_scan s = { 0 };
	size_t begin = 0;

	for (size_t i = 0; i < n; i++) {
		bool was_ground = vt_scan_is_ground(&s);

		if (was_ground)
			begin = i;
		if (in[i] == 0x05 || in[i] == 0x18 || in[i] == 0x1a)
			return false;
		/* a sequence in a sequence: judged by other rules */
		if (!was_ground && (in[i] == 0x1b || in[i] == 0xc2) &&
		    !(vt_scan_is_string(&s) && i + 1 < n &&
			(in[i + 1] == '\\' || in[i + 1] == 0x9c)))
			return false;
		vt_scan_byte(&s, in[i]);
		if (i - begin >= QUERY_HELD_MAX)
			return false;
		if (vt_scan_is_ground(&s) && i > begin &&
		    query_match(in + begin, i + 1 - begin))
			return false;
	}
	return true;
}

/* Bytes that the filter may put in: CAN, NUL, introducers given out again. */
static bool
filter_is_added(uint8_t c)
{
	return !c || strchr("\030\033 []P", c);
}

/* Beside those OUT is IN with bytes taken out, nothing moved or made up. */
static void
filter_check_order(
    const uint8_t *in, size_t n, const uint8_t *out, size_t n_out)
{
	size_t at = 0;

	for (size_t i = 0; i < n_out; i++) {
		if (filter_is_added(out[i]))
			continue;
		while (at < n && in[at] != out[i])
			at++;
		FUZZ_CHECK(at < n);
		at++;
	}
}

/*
 * Releases what is held after every piece, as a slow program makes the keeper
 * do: the filter knows what state the terminal is in then, and nothing but
 * queries is missing.
 */
static void
filter_check_late(
    const uint8_t *in, size_t n, const unsigned *pieces, unsigned n_pieces)
{
	struct query_filter *f = xmalloc(sizeof(*f));
	uint8_t *all = xmalloc(3 * n + (n_pieces + 2) * QUERY_HELD_MAX);
	const uint8_t *from = in;
	struct vt_scan s = { 0 };
	size_t len = 0, left = n;

	query_filter_init(f);
	for (unsigned i = 0; left; i++) {
		size_t part =
		    i < n_pieces && pieces[i] < left ? pieces[i] : left;

		len += query_filter_run(f, from, part, all + len);
		len += query_filter_release(f, all + len);
		FUZZ_CHECK(!query_filter_is_holding(f));
		FUZZ_CHECK(f->n_late <= f->n_held);
		from += part;
		left -= part;
	}
	vt_scan_run(&s, all, len);
	FUZZ_CHECK(s.state == f->shown.state && s.need == f->shown.need);
	filter_check_order(in, n, all, len);
	if (filter_is_innocent(in, n))
		FUZZ_CHECK(len == n && memcmp(all, in, n) == 0);
	free(all);
	free(f);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct fuzz_input in = { p, n };
	unsigned n_pieces = fuzz_u8(&in) % FILTER_PIECES;
	unsigned pieces[FILTER_PIECES] = { 0 };
	uint8_t *whole, *parts, *twice;
	size_t n_whole, n_parts, n_twice;

	for (unsigned i = 0; i < n_pieces; i++)
		pieces[i] = 1 + fuzz_u16(&in) % 8192;
	whole = filter_run(in.p, in.n, NULL, 0, &n_whole);
	parts = filter_run(in.p, in.n, pieces, n_pieces, &n_parts);
	FUZZ_CHECK(n_whole == n_parts && memcmp(whole, parts, n_whole) == 0);
	filter_check_scan(in.p, in.n, pieces, n_pieces);
	filter_check_order(in.p, in.n, whole, n_whole);
	filter_check_late(in.p, in.n, pieces, n_pieces);
	if (filter_is_innocent(in.p, in.n))
		FUZZ_CHECK(n_whole == in.n && memcmp(whole, in.p, in.n) == 0);
	twice = filter_run(whole, n_whole, NULL, 0, &n_twice);
	FUZZ_CHECK(n_twice == n_whole && memcmp(twice, whole, n_whole) == 0);
	free(whole);
	free(parts);
	free(twice);
	return 0;
}
