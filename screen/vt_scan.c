/*
 * The scanner for ground positions; see vt_scan.h. It sits on the data path of
 * every session, so plain text goes a word at a time and only the rest passes
 * the table.
 */
#include "screen/vt_scan.h"

#include <endian.h>
#include <string.h>

#define VT_SCAN_ONES  0x0101010101010101ULL
#define VT_SCAN_HIGHS 0x8080808080808080ULL

/* What CAN, SUB (to the ground) and ESC do is alike in every state. */
#define VT_SCAN_C0(here)                                                     \
	[0x00 ... 0x06] = (here), [0x08 ... 0x17] = (here), [0x19] = (here), \
		  [0x1b] = VT_SCAN_ESC,                                      \
		  [0x1c ... 0x1f] = (here), [0x7f] = (here)

/* The next state after an ASCII byte; what is not named leads to the ground. */
static const uint8_t vt_scan_next[][128] = {
	[VT_SCAN_GROUND] = { [0x1b] = VT_SCAN_ESC },
	[VT_SCAN_ESC] = {
		VT_SCAN_C0(VT_SCAN_ESC),
		[0x07] = VT_SCAN_ESC,
		[0x20 ... 0x2f] = VT_SCAN_ESC_INT,
		['P'] = VT_SCAN_STR,
		['X'] = VT_SCAN_STR,
		['['] = VT_SCAN_CSI,
		[']'] = VT_SCAN_OSC,
		['^'] = VT_SCAN_STR,
		['_'] = VT_SCAN_STR,
	},
	[VT_SCAN_ESC_INT] = {
		VT_SCAN_C0(VT_SCAN_ESC_INT),
		[0x07] = VT_SCAN_ESC_INT,
		[0x20 ... 0x2f] = VT_SCAN_ESC_INT,
	},
	[VT_SCAN_CSI] = {
		VT_SCAN_C0(VT_SCAN_CSI),
		[0x07] = VT_SCAN_CSI,
		[0x20 ... 0x3f] = VT_SCAN_CSI,
	},
	[VT_SCAN_OSC] = {
		VT_SCAN_C0(VT_SCAN_OSC),
		[0x20 ... 0x7e] = VT_SCAN_OSC,
	},
	[VT_SCAN_STR] = {
		VT_SCAN_C0(VT_SCAN_STR),
		[0x07] = VT_SCAN_STR,
		[0x20 ... 0x7e] = VT_SCAN_STR,
	},
};

/* The same for the C1 controls, U+0080 to U+009F, outside of strings. */
static const uint8_t vt_scan_c1_next[32] = {
	[0x10] = VT_SCAN_STR, /* DCS */
	[0x18] = VT_SCAN_STR, /* SOS */
	[0x1b] = VT_SCAN_CSI,
	[0x1d] = VT_SCAN_OSC,
	[0x1e] = VT_SCAN_STR, /* PM */
	[0x1f] = VT_SCAN_STR, /* APC */
};

static inline void
vt_scan_lead(struct vt_scan *s, uint8_t c)
{
	if (s->state == VT_SCAN_ESC || s->state == VT_SCAN_ESC_INT)
		s->state = VT_SCAN_GROUND;
	if (c < 0xc2 || c > 0xf4)
		return; /* invalid, a character of its own */
	s->need = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	s->lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	s->hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	s->is_c2 = c == 0xc2;
}

static inline void
vt_scan_continue(struct vt_scan *s, uint8_t c)
{
	s->need--;
	s->lo = 0x80;
	s->hi = 0xbf;
	if (!s->is_c2 || c >= 0xa0)
		return;
	if (!vt_scan_is_string(s))
		s->state = vt_scan_c1_next[c & 0x1f];
	else if (c == 0x9c)
		s->state = VT_SCAN_GROUND; /* ST */
}

static inline void
vt_scan_step(struct vt_scan *s, uint8_t c)
{
	if (s->need) {
		if (c >= s->lo && c <= s->hi) {
			vt_scan_continue(s, c);
			return;
		}
		s->need = 0; /* a cut character; C stands for itself */
	}
	if (c < 0x80)
		s->state = vt_scan_next[s->state][c];
	else
		vt_scan_lead(s, c);
}

void
vt_scan_byte(struct vt_scan *s, uint8_t c)
{
	vt_scan_step(s, c);
}

/* Nonzero if a byte of W is ESC or not ASCII. */
static inline uint64_t
vt_scan_word(uint64_t w)
{
	uint64_t x = w ^ (VT_SCAN_ONES * 0x1b);

	return (w | ((x - VT_SCAN_ONES) & ~x)) & VT_SCAN_HIGHS;
}

size_t
vt_scan_plain(const uint8_t *p, size_t n)
{
	size_t i = 0;

	for (; n - i >= 16; i += 16) {
		uint64_t w[2];

		memcpy(w, p + i, sizeof(w));
		if (vt_scan_word(w[0]) | vt_scan_word(w[1]))
			break;
	}
	for (; n - i >= 8; i += 8) {
		uint64_t w, found;

		memcpy(&w, p + i, sizeof(w));
		found = vt_scan_word(le64toh(w));
		/* A borrow makes false marks, but only above a true one. */
		if (found)
			return i + (size_t)__builtin_ctzll(found) / 8;
	}
	while (i < n && p[i] < 0x80 && p[i] != 0x1b)
		i++;
	return i;
}

/* The run at P that stays inside a control string whatever its kind. */
static size_t
vt_scan_inside(const uint8_t *p, size_t n)
{
	size_t i = 0;

	while (i < n && p[i] >= 0x20 && p[i] < 0x80)
		i++;
	return i;
}

void
vt_scan_run(struct vt_scan *s, const uint8_t *p, size_t n)
{
	const uint8_t *end = p + n;
	struct vt_scan t = *s; /* in registers: P might alias S */

	while (p < end) {
		if (t.need == 0) {
			size_t left = (size_t)(end - p);

			if (t.state == VT_SCAN_GROUND)
				p += vt_scan_plain(p, left);
			else if (vt_scan_is_string(&t))
				p += vt_scan_inside(p, left);
			if (p == end)
				break;
		}
		vt_scan_step(&t, *p++);
		while (t.state == VT_SCAN_CSI && p < end && *p < 0x80)
			vt_scan_step(&t, *p++);
	}
	*s = t;
}

size_t
vt_scan_to_ground(struct vt_scan *s, const uint8_t *p, size_t n)
{
	size_t i = 0;

	while (!vt_scan_is_ground(s)) {
		if (s->need == 0 && vt_scan_is_string(s))
			i += vt_scan_inside(p + i, n - i);
		if (i == n)
			break;
		vt_scan_step(s, p[i++]);
	}
	return i;
}
