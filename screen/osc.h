/*
 * Operating system commands: titles, palette and dynamic colours, the working
 * directory, hyperlinks. Everything else is ignored.
 */
#ifndef SCREEN_OSC_H
#define SCREEN_OSC_H

#include <stddef.h>

struct screen;

/*
 * Does the string P of N bytes: a C string of valid UTF-8 without C0 controls,
 * that may be changed.
 */
void osc_dispatch(struct screen *s, char *p, size_t n);

/* XTWINOPS 22 and 23: WHAT is 0 for both titles, 1 for the icon, 2 for ours. */
void osc_push_title(struct screen *s, unsigned what);
void osc_pop_title(struct screen *s, unsigned what);

/* Frees titles, colours and directory. */
void osc_reset(struct screen *s);

#endif
