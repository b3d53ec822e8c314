/*
 * The scanner for ground positions: known sequences by hand, and its three ways
 * through a stream against each other.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "screen/vt_scan.h"
#include "tests/unit/unit.h"

struct vt_scan_row {
	const char *in;
	/* for each byte: is the position behind it ground (g) or not (.) */
	const char *behind;
};

static const struct vt_scan_row vt_scan_rows[] = {
	{ "a\r\n\x7f", "gggg" }, { "\303\251x", ".gg" },
	{ "\343\201\202", "..g" }, { "\360\237\231\202", "...g" },
	{ "\343x", ".g" }, /* a cut character */
	{ "\343\303\251", "..g" },
	{ "\377\300\200a", "gggg" }, /* never valid */
	{ "\340\200", ".g" },        /* overlong */
	{ "\355\240", ".g" },        /* a surrogate */
	{ "\364\220", ".g" },        /* above U+10FFFF */
	{ "\0337\033=", ".g.g" }, { "\033(0", "..g" },
	{ "\033[31mx", "....gg" }, { "\033[?2026$p", "........g" },
	{ "\033[3\n1m", ".....g" },   /* C0 are executed in between */
	{ "\033[3\0301", "...gg" },   /* CAN */
	{ "\033[3\0321", "...gg" },   /* SUB */
	{ "\033[3\033[m", ".....g" }, /* a new sequence cuts the old one */
	{ "\033]0;t\007x", ".....gg" }, { "\033]0;t\033\\x", "......gg" },
	{ "\033]0;\303\251\007", "......g" },
	{ "\033]0;t\033[mx", ".......gg" },
	{ "\033P1q#\007\033\\", ".......g" }, /* BEL ends no DCS */
	{ "\033Xa\033\\", "....g" }, { "\033^a\033\\", "....g" },
	{ "\033_Ga\033\\", ".....g" }, { "\033_a\030x", "...gg" },
	{ "\302\23331m", "....g" }, /* C1 as UTF-8 */
	{ "\302\2350;t\302\234x", "......gg" },
	{ "\302\220q\302\234", "....g" }, { "\302\205\302\240", ".g.g" },
	{ "\2333m", "ggg" }, /* raw C1 is no control in UTF-8 */
	{ "\033P\302\233m\033\\", "......g" }, /* nor CSI inside a string */
};

static void
known_sequences_leave_and_reach_the_ground(void **state)
{
	(void)state;
	for (size_t r = 0; r < ARRAY_LEN(vt_scan_rows); r++) {
		const struct vt_scan_row *row = &vt_scan_rows[r];
		struct vt_scan s = { 0 };

		for (size_t i = 0; row->in[i]; i++) {
			vt_scan_byte(&s, (uint8_t)row->in[i]);
			if (vt_scan_is_ground(&s) != (row->behind[i] == 'g'))
				fail_msg("row %zu, byte %zu", r, i);
		}
		assert_int_equal(strlen(row->in), strlen(row->behind));
	}
}

/* A stream that meets every state often. */
static size_t
vt_scan_noise(uint8_t *p, size_t n, unsigned seed)
{
	static const char *const parts[] = { "plain text that is long enough",
		"\033[31m", "\033]8;;http://x\033\\", "\033]0;t\007", "\033P+q",
		"\033\\", "\343\201\202", "\360\237", "\302\233", "\302\234",
		"\030", "\r\n", "\033(B", "\377", "\033", "\303" };
	size_t len = 0;

	while (len + 40 < n) {
		const char *part;

		seed = seed * 1103515245 + 12345;
		part = parts[(seed >> 16) % ARRAY_LEN(parts)];
		memcpy(p + len, part, strlen(part));
		len += strlen(part);
	}
	return len;
}

static void
run_and_to_ground_agree_with_single_bytes(void **state)
{
	static uint8_t p[8192];

	(void)state;
	for (unsigned seed = 1; seed < 60; seed++) {
		size_t n = vt_scan_noise(p, sizeof(p) - seed, seed);
		struct vt_scan one = { 0 }, run = { 0 };

		for (size_t i = 0; i < n;) {
			size_t part = 1 + (i * 7 + seed) % 61, to;
			struct vt_scan s = one, hop = one;

			if (part > n - i)
				part = n - i;
			for (to = 0; to < part && !vt_scan_is_ground(&s); to++)
				vt_scan_byte(&s, p[i + to]);
			assert_int_equal(
			    vt_scan_to_ground(&hop, p + i, part), to);
			assert_memory_equal(&hop, &s, sizeof(s));
			vt_scan_run(&run, p + i, part);
			for (size_t k = 0; k < part; k++)
				vt_scan_byte(&one, p[i + k]);
			assert_memory_equal(&run, &one, sizeof(one));
			i += part;
		}
	}
}

static void
plain_stops_at_escape_and_beyond_ascii_at_every_offset(void **state)
{
	static const uint8_t stops[] = { 0x1b, 0x80, 0xc3, 0xff };
	uint8_t p[80];

	(void)state;
	for (size_t k = 0; k < sizeof(stops); k++) {
		for (size_t at = 0; at < sizeof(p); at++) {
			memset(p, 'a', sizeof(p));
			p[at / 2] = 0x1a;
			p[at] = stops[k];
			assert_int_equal(vt_scan_plain(p, sizeof(p)), at);
			assert_int_equal(vt_scan_plain(p, at), at);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_sequences_leave_and_reach_the_ground),
		cmocka_unit_test(run_and_to_ground_agree_with_single_bytes),
		cmocka_unit_test(
		    plain_stops_at_escape_and_beyond_ascii_at_every_offset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
