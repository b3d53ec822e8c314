/*
 * Characters onto the grid. A character is as wide as its base code point is for
 * wcwidth() of glibc 2.36, by which programs count; newer ones are as wide as
 * for libutf8proc (ambiguous ones are narrow, unassigned ones too). What has no
 * width, variation selectors and joiners among it, joins the character before
 * it and does not change its width, as xterm and tmux do it.
 */
#ifndef SCREEN_PRINT_H
#define SCREEN_PRINT_H

#include <stddef.h>
#include <stdint.h>

#include "screen/state.h"

/* 0, 1 or 2 columns. C is a code point from 0x20 on. */
unsigned print_width(uint32_t c);

/* True when libutf8proc, and terminals like it, give C another width. */
bool print_is_disputed(uint32_t c);

/*
 * Prints from P what is text: printable ASCII and whole characters of UTF-8.
 * Stops at N bytes and before everything else (a control, a C1 control, a cut
 * or an invalid character). Returns the bytes taken.
 */
size_t print_text(struct screen *s, const uint8_t *p, size_t n);

/* Prints one character. */
void print_char(struct screen *s, uint32_t c);

/* Prints the last character N times more, at most as often as it fits. */
void print_repeat(struct screen *s, unsigned n);

/* Stores C as UTF-8 in OUT; returns its length, 1 to 4. */
unsigned print_encode(uint32_t c, uint8_t *out);

#endif
