/*
 * Forwarded ports of one connection as berthd sees them: who may reach or offer
 * what, listeners, connections that are being made or were handed to berth-sshd.
 * Bytes never pass here. Lives in berthd; everything ends with the connection.
 */
#ifndef SSHD_LISTENER_FORWARD_H
#define SSHD_LISTENER_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"

struct connection;
struct event;
struct frame;
struct handoff;
struct reader;

/* Listeners of one connection (ssh -R). */
#define FORWARD_LISTENERS_MAX 32

struct forward_book {
	struct list open;      /* struct forward: being made, or handed over */
	struct list listeners; /* struct forward_listener */
	unsigned n_open, n_listeners, n_pending;
	unsigned n_refused;
	uint32_t last_id;
	struct event *rest; /* runs while no more can be accepted */
};

/* Prepares the book of C. */
void forward_init(struct connection *c);

/* Frames of berth-sshd: 0, or -EPROTO for what it may not say. */
int forward_on_forward(struct connection *c, const struct frame *f);
int forward_on_listen(struct connection *c, const struct frame *f);
int forward_on_unlisten(struct connection *c, const struct frame *f);
int forward_on_end(struct connection *c, const struct frame *f);

/* Stops or resumes accepting for C. */
void forward_pause(struct connection *c, bool on);

/* Answers whatever is being made with a failure, and WHY. */
void forward_fail_pending(struct connection *c, const char *why);

/* Ends the listeners that were granted; WHY goes to the audit trail. */
void forward_unlisten_all(struct connection *c, const char *why);

/* Closes the listeners and gives up what is being made, without answers. */
void forward_stop(struct connection *c);

/* The same, and forgets who was handed over. */
void forward_release(struct connection *c);

/*
 * Listeners and open connections for a berthd in our place; nothing may be
 * pending. R fails when it makes no sense.
 */
void forward_save(struct connection *c, struct handoff *h);
void forward_load(struct connection *c, struct reader *r);

#endif
