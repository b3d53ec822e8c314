/*
 * From the PTY (or the pipes of a session that is not bound to a client) past the
 * display into the ring and the recorder, and on to the viewers. Decides the pace: reading
 * stops when the recorder is full or when even the fastest viewer is half a
 * ring behind, and never because of a slow one.
 */
#ifndef SESSIONS_KEEPER_OUTPUT_H
#define SESSIONS_KEEPER_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event;
struct keeper;

/* One turn of reading. */
#define OUTPUT_TURN_MAX (64U << 10)

struct output {
	struct keeper *k;
	struct event *read_ev[2];
	int fd[2]; /* borrowed from the child; -1 at the end */
	bool is_reading[2];
	bool is_draining; /* the leader has ended: read what is left */
	bool is_done;
	size_t drain_left; /* more than a kernel buffer holds */
	uint64_t bytes;
};

/* Reads from N descriptors FDS (1 or 2) from now on. */
void output_open(struct output *o, struct keeper *k, const int *fds, int n);
void output_release(struct output *o);

/* Starts or stops reading as the recorder and the viewers allow now. */
void output_update(struct output *o);

/*
 * The leader has ended: what it printed is read to its end, then is_done is
 * set and keeper_advance() called. What others print later does not delay it.
 */
void output_drain(struct output *o);

/* Passes on what the display holds back: its rest does not come. */
void output_flush(struct output *o);

/* Gives up the rest; for a session that was stopped. */
void output_finish(struct output *o);

#endif
