/*
 * Processes whose keeper was killed: nobody reads what they print any more, so
 * they are ended as the keeper would have done it. Private to sessions/manager.
 */
#ifndef SESSIONS_MANAGER_LEFTOVER_H
#define SESSIONS_MANAGER_LEFTOVER_H

#include <stdbool.h>

struct manager;
struct state_file;

/*
 * HUP, CONT and TERM to the leader that ST names, if it is still that process,
 * to all of its session and to what descends from it; KILL to who is left after
 * session.stop_grace. When the leader is gone, its pid proves nothing: then only
 * to members of its session that carry the session's id in their environment.
 */
void leftover_stop(struct manager *m, const struct state_file *st);

/* True if the leader that ST names was started for that session. */
bool leftover_is_of(const struct state_file *st);

/* Kills at once what still waits for its grace. */
void leftover_release_all(struct manager *m);

#endif
