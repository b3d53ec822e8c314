/*
 * Ends processes: HUP, CONT and TERM, after a grace KILL, to every process of
 * the leader's session id, and for a named session to all descendants too (the
 * keeper is their subreaper). Each is signalled by a pidfd whose start time was
 * checked, never by a bare number.
 */
#ifndef SESSIONS_KEEPER_STOP_H
#define SESSIONS_KEEPER_STOP_H

#include <stdbool.h>
#include <stdint.h>

struct event;
struct keeper;

enum stop_scope {
	STOP_SESSION, /* the leader's session id; its daemons stay */
	STOP_ALL      /* and every descendant */
};

struct stop {
	struct keeper *k;
	struct event *ev;
	enum stop_scope scope;
	bool is_active;  /* processes are being ended */
	bool is_asking;  /* by the end of their input, no signal was sent */
	bool is_killing; /* KILL was sent */
	int64_t
	    deadline_ms;  /* CLOCK_MONOTONIC: of the grace, then of the end */
	int64_t ask_ms;   /* the same: of asking */
	unsigned wait_ms; /* between two looks */
	char note[256];
};

/* Nothing is being ended. */
void stop_init(struct stop *s, struct keeper *k);

/* Forgets a sequence that is under way. */
void stop_release(struct stop *s);

/*
 * Begins to end the processes of SCOPE; KILL follows after GRACE_MS. What logs
 * for the manager gets the end of its input first and a moment to say how far
 * it came. NOTE says
 * why, for the exit status. A second call may widen the scope and shorten the
 * grace. When nothing is left, is_active is false and keeper_advance() called.
 */
void stop_begin(
    struct stop *s, enum stop_scope scope, uint32_t grace_ms, const char *note);

#endif
