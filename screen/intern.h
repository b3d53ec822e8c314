/*
 * What is rare about cells, stored once: underline colours and hyperlinks, and
 * characters of several code points. Cells hold numbers. Tables are bounded;
 * when one is full, what no cell uses is collected, and if that does not help
 * the newcomer is left out: no link, no combining mark. Amortised, a character
 * costs the same however many there are.
 */
#ifndef SCREEN_INTERN_H
#define SCREEN_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "screen/state.h"

#define INTERN_EXTS     32768
#define INTERN_LINKS    16384
#define INTERN_CLUSTERS 65536
/* All strings of links together, bytes. */
#define INTERN_LINK_BYTES (1U << 20)

/* The number of the ext E; 0 when E says nothing or there is no room. */
uint16_t intern_ext(struct screen *s, const struct cell_ext *e);

/* The number of a link, strings of C that are copied; 0: no room. */
uint16_t intern_link(struct screen *s, const char *id, const char *uri);

/* The ch of a cell with the N <= CLUSTER_MAX bytes of P; 0: no room. */
uint32_t intern_cluster(struct screen *s, const uint8_t *p, size_t n);

/*
 * Between these two nothing is collected, so that numbers which no grid and no
 * cursor holds yet stay good; before, once. A full table takes no newcomers.
 */
void intern_hold(struct screen *s);
void intern_unhold(struct screen *s);

/* Forgets everything: no cell may hold a number any more. */
void intern_reset(struct screen *s);

/* Frees the tables. */
void intern_free(struct screen *s);

#endif
