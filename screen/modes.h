/*
 * Modes: the table behind SM, RM, DECSET, DECRST, XTSAVE and XTRESTORE, and the
 * change between main and alternate screen.
 */
#ifndef SCREEN_MODES_H
#define SCREEN_MODES_H

#include <stdbool.h>

#include "screen/state.h"

struct parser;

/* Turns all modes that P names on or off; unknown ones are ignored. */
void modes_set(
    struct screen *s, const struct parser *p, bool is_private, bool is_on);

/* XTSAVE and XTRESTORE of the private modes that P names. */
void modes_save(struct screen *s, const struct parser *p);
void modes_restore(struct screen *s, const struct parser *p);

/* Turns M on or off, nothing more. */
void modes_put(struct screen *s, enum mode m, bool is_on);

/* The modes of a new screen. */
uint64_t modes_initial(void);

/* Shows the alternate or the main screen; the cursor stays as it is. */
void modes_show(struct screen *s, bool is_alt);

#endif
