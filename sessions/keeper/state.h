/*
 * What the keeper leaves in its lock file for a manager that was not there; see
 * sessions/wire/state_file.h.
 */
#ifndef SESSIONS_KEEPER_STATE_H
#define SESSIONS_KEEPER_STATE_H

struct keeper;

/*
 * Writes who the processes are and, once the end is reported, how it was. 0 or a
 * negative errno: then a later manager knows less, and nothing else changes.
 */
int state_save(const struct keeper *k);

#endif
