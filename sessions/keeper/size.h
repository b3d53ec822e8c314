/*
 * The size of the shared terminal, by the session's policy from the sizes of
 * the viewers that may type. 0 never erases a known value. The terminal is told
 * only of changes, the recorder before anything is printed at the new size.
 */
#ifndef SESSIONS_KEEPER_SIZE_H
#define SESSIONS_KEEPER_SIZE_H

#include "sessions/wire/messages.h"

struct keeper;
struct viewer;

/*
 * S with 0 replaced by what is KNOWN and everything cut to 65535, which is what
 * a terminal can be told.
 */
struct wire_size size_valid(
    const struct wire_size *s, const struct wire_size *known);

/* The viewer V sent the size S (with its attach, or later). */
void size_report(struct keeper *k, struct viewer *v, const struct wire_size *s);

/* V typed: under `latest` its size is the terminal's. */
void size_touch(struct keeper *k, struct viewer *v);

/* A viewer left. */
void size_update(struct keeper *k);

/* An administrator's size: holds until the next viewer's. */
void size_set(struct keeper *k, const struct wire_size *s);

#endif
