/*
 * A scanner that answers one question about a stream for a terminal: does this
 * position lie on the ground, that is, outside of every character, escape
 * sequence and control string? Paul Williams' DEC-ANSI state machine without
 * its actions, UTF-8 aware, C1 controls only in their UTF-8 form. Pure.
 */
#ifndef SCREEN_VT_SCAN_H
#define SCREEN_VT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum vt_scan_state {
	VT_SCAN_GROUND,
	VT_SCAN_ESC,
	VT_SCAN_ESC_INT, /* ESC and intermediate bytes */
	VT_SCAN_CSI,
	VT_SCAN_OSC, /* ends with BEL or ST */
	VT_SCAN_STR, /* DCS, SOS, PM, APC: ends with ST */
};

/* Zero-initialised is on the ground. Small: the ring keeps many of them. */
struct vt_scan {
	uint8_t state;
	uint8_t need;   /* bytes that the present UTF-8 character still wants */
	uint8_t lo, hi; /* what the next of them may be */
	uint8_t is_c2; /* its first byte was 0xc2: it may become a C1 control */
};

static inline bool
vt_scan_is_ground(const struct vt_scan *s)
{
	return s->state == VT_SCAN_GROUND && s->need == 0;
}

static inline bool
vt_scan_is_string(const struct vt_scan *s)
{
	return s->state >= VT_SCAN_OSC;
}

/* Moves past one byte. */
void vt_scan_byte(struct vt_scan *s, uint8_t c);

/* Moves past the N bytes of P; fast on plain text and on long strings. */
void vt_scan_run(struct vt_scan *s, const uint8_t *p, size_t n);

/*
 * Moves to the first ground position in P of N bytes; returns the bytes passed,
 * 0 when S is there already. N with S not on the ground when there is none.
 */
size_t vt_scan_to_ground(struct vt_scan *s, const uint8_t *p, size_t n);

/*
 * The length of the run at P, at most N, that keeps a scanner on the ground at
 * every byte: ASCII other than ESC.
 */
size_t vt_scan_plain(const uint8_t *p, size_t n);

#endif
