/*
 * The size of the shared terminal, by the session's policy from the sizes of
 * the viewers that may type. 0 never erases a known value. The terminal is told
 * only of changes, and of one in 40 ms; the recorder before anything is printed
 * at the new size.
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

/*
 * V has just come, with a terminal of size S (0 for none). Under `latest` that
 * decides only when nobody else is there whose size counts.
 */
void size_attach(struct keeper *k, struct viewer *v, const struct wire_size *s);

/* V's terminal has the size S now. */
void size_report(struct keeper *k, struct viewer *v, const struct wire_size *s);

/*
 * V typed: under `latest` its size is the terminal's, unless who set that one
 * typed within the last second.
 */
void size_touch(struct keeper *k, struct viewer *v);

/* A viewer left. */
void size_update(struct keeper *k);

/* Gives the terminal the size that is due for it: at once, or when it is time. */
void size_flush(struct keeper *k);
void size_settle(struct keeper *k);

/* An administrator's size: holds until size_unpin(). */
void size_pin(struct keeper *k, const struct wire_size *s);
void size_unpin(struct keeper *k);

#endif
