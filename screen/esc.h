/*
 * Controls of one byte, and escape sequences other than CSI and strings. C1
 * controls are their two-byte forms.
 */
#ifndef SCREEN_ESC_H
#define SCREEN_ESC_H

#include <stdint.h>

struct screen;

/* Does the C0 control C; most mean nothing. */
void esc_control(struct screen *s, uint8_t c);

/* Does ESC, INTER (0 for none), C. */
void esc_dispatch(struct screen *s, uint8_t inter, uint8_t c);

/* RIS: as new, but for the size; the history is forgotten. */
void esc_reset(struct screen *s);

/* DECSTR: what a program may have left odd, back to usual. Text stays. */
void esc_soft_reset(struct screen *s);

#endif
