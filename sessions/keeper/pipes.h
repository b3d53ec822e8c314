/*
 * Stdout and stderr of a pipe session that is bound to one client: lossless,
 * without a ring. A pipe is read only as far as the client granted credit and
 * the link takes it, straight into a frame.
 */
#ifndef SESSIONS_KEEPER_PIPES_H
#define SESSIONS_KEEPER_PIPES_H

#include <stdbool.h>
#include <stdint.h>

struct event;
struct keeper;

struct pipes {
	struct keeper *k;
	struct event *read_ev[2]; /* stdout, stderr */
	int fd[2];                /* borrowed from the child; -1 at the end */
	bool is_reading[2];
	bool is_discarding; /* the client is gone */
	bool is_lent;       /* stdout: the client reads it by itself */
	uint64_t bytes;
};

/* Starts with the pipes OUT_FD and ERR_FD; they are read once there is credit. */
void pipes_open(struct pipes *p, struct keeper *k, int out_fd, int err_fd);
void pipes_release(struct pipes *p);

/* Starts or stops reading as credit, link and recorder allow now. */
void pipes_update(struct pipes *p);

/*
 * Reads at once what credit and link have room for now, without waiting for an
 * event; the end of a pipe is left to that. Frees no viewer.
 */
void pipes_pump(struct pipes *p);

/*
 * Lends stdout to the client, which asked for it, unless every byte has to pass
 * here because it is recorded.
 */
void pipes_lend(struct pipes *p);

/* The client read N bytes of the pipe that it has. */
void pipes_taken(struct pipes *p, uint32_t n);

/* The client gave the pipe back: it is read here again, to its end. */
void pipes_take_back(struct pipes *p);

/* The client is gone: what still comes is read and dropped. */
void pipes_discard(struct pipes *p);

/* True when both pipes are at their end. */
bool pipes_are_done(const struct pipes *p);

/* Gives up the rest; for a session that was stopped. */
void pipes_finish(struct pipes *p);

#endif
