/*
 * What the keeper leaves in its lock file for a manager that was not there; see
 * sessions/wire/state_file.h. What needs /proc is learned at the start, for later
 * the keeper may open nothing.
 */
#ifndef SESSIONS_KEEPER_STATE_H
#define SESSIONS_KEEPER_STATE_H

#include "sessions/wire/state_file.h"

struct keeper;

struct state {
	int fd; /* the lock file; its flock lives as long as the keeper */
	struct state_file file;
};

/* Takes over LOCK_FD and writes nothing yet. */
void state_init(struct state *s, int lock_fd);
void state_release(struct state *s);

/*
 * Writes who the processes are and, once the end is reported, how it was. 0 or a
 * negative errno: then a later manager knows less, and nothing else changes.
 */
int state_save(struct keeper *k);

#endif
