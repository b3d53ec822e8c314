/*
 * Control sequences (CSI): a table from prefix, intermediate and final byte to
 * what is done. What is not in the table is ignored, queries among it.
 */
#ifndef SCREEN_CSI_H
#define SCREEN_CSI_H

#include <stdint.h>

struct parser;
struct screen;

/* Does the sequence with the final byte C, whose parameters P holds. */
void csi_dispatch(struct screen *s, const struct parser *p, uint8_t c);

#endif
