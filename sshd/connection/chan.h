/*
 * One session channel of the client: what was asked before its shell or exec,
 * the link to the keeper, the bytes in between, and the order in which it ends
 * (output, status, EOF, CLOSE, the client's CLOSE, free).
 */
#ifndef SSHD_CONNECTION_CHAN_H
#define SSHD_CONNECTION_CHAN_H

#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "sessions/wire/messages.h"
#include "sessions/wire/wire.h"
#include "sshd/connection/tap.h"

struct peer;

/* Requests that may wait behind one that the manager has not answered. */
#define CHAN_WAITING_MAX 64

enum chan_state {
	CHAN_FRESH,    /* no shell or exec yet */
	CHAN_ASKED,    /* the manager was asked for one */
	CHAN_LIVE,     /* joined to a keeper */
	CHAN_DRAINING, /* no link any more; output and status still go out */
	CHAN_CLOSING,  /* our CLOSE is sent, the client's is awaited */
	CHAN_DEAD      /* to be freed at the end of the turn */
};

/* A message that waits behind a held one of the same channel. */
struct chan_waiting {
	struct list node;
	ssh_message msg; /* owned */
	bool is_break;
};

struct chan {
	struct list node;
	struct peer *peer;
	ssh_channel ssh;
	struct ssh_channel_callbacks_struct callbacks;
	unsigned id; /* for the log */
	enum chan_state state;
	uint32_t seen;       /* rows of the request table flagged ONCE */
	struct wire_run run; /* what the client asked for so far */
	unsigned n_env;
	struct wire_size asked_size; /* that went to the manager */
	struct list waiting;
	unsigned n_waiting;

	struct wire wire;
	bool has_wire;
	bool is_link_over;  /* its end was seen; released in the next step */
	uint32_t in_credit; /* bytes that the keeper still takes */
	uint32_t out_credit[STREAM_COUNT]; /* that it may still send */
	uint32_t out_owed[STREAM_COUNT];   /* handed on, not granted again */

	struct tap tap;
	struct buf in;                /* from the client */
	struct buf out[STREAM_COUNT]; /* STREAM_OUT, STREAM_ERR */
	struct buf parting;           /* our last line, behind all output */
	uint32_t in_taken;            /* for window_widen() */
	bool is_in_paused;            /* libssh keeps what comes */
	bool has_in_eof, is_in_eof_sent;
	bool is_client_closed;
	uint8_t signals[8]; /* from the callback, for the next step */
	unsigned n_signals;

	bool has_exit, is_exit_sent, has_end;
	struct wire_exit exit;
	int64_t close_ms; /* deadline of CHAN_CLOSING, monotonic */
};

/* Takes over SSH, a channel just accepted, and sets its callbacks. */
struct chan *chan_new(struct peer *p, ssh_channel ssh);

/* The channel of P that is SSH, or NULL. */
struct chan *chan_find(struct peer *p, ssh_channel ssh);

/*
 * Joins C to the keeper, who speaks up to VERSION, at the other end of FD, which
 * it owns.
 */
void chan_join(struct chan *c, int fd, uint32_t version);

/* Puts the line "berth: WHAT" on stderr, behind all output of C. */
void chan_say(struct chan *c, const char *what);

/* The same at once, if the client keeps up, while its process is waited for. */
void chan_tell(struct chan *c, const char *what);

/*
 * Ends C because of berth itself: the link is dropped, "berth: WHY" goes to
 * stderr behind the output that is there, the status is 255.
 */
void chan_fail(struct chan *c, const char *why);

/* Applies a window-change: at once if joined, else with the request. */
void chan_resize(struct chan *c, const struct wire_size *size);

/* Sends a break (RFC 4335) of LENGTH_MS. */
void chan_break(struct chan *c, uint32_t length_ms);

/*
 * Moves bytes and states as far as they go without waiting, one slice of output
 * at most. Returns true if something moved, so that another turn is worth it.
 */
bool chan_step(struct chan *c);

/* Frees C, which must be CHAN_DEAD, and the messages that waited for it. */
void chan_free(struct chan *c);

/* Drops the link without a word, when the connection is gone. */
void chan_hang_up(struct chan *c);

#endif
