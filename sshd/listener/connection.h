/*
 * The manager's side of one SSH connection: the berth-sshd process, the link to
 * it, what it may ask now and for whom. Lives in berthd. Identity, role and
 * restrictions are bound once, by the key that was proven; a frame that is not
 * permitted in its phase ends the child.
 */
#ifndef SSHD_LISTENER_CONNECTION_H
#define SSHD_LISTENER_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "sessions/wire/wire.h"
#include "sshd/listener/access.h"
#include "sshd/listener/address.h"
#include "sshd/listener/forward.h"
#include "sshd/listener/limits.h"

struct event;
struct handoff;
struct server;
struct sockaddr;

enum connection_phase {
	CONNECTION_LOGIN = 1u << 0, /* nobody yet */
	CONNECTION_SERVE = 1u << 1, /* authenticated */
	CONNECTION_ENDING = 1u << 2 /* told to go, or on its way */
};

struct connection {
	struct list node; /* of server->connections */
	struct server *server;
	struct wire wire;
	int pidfd;
	struct event *pid_ev;
	struct event *timer; /* the login grace, then the end's deadline */
	enum connection_phase phase;
	bool was_served;
	struct limits_slot slot;
	char id[32]; /* "con-" and 8 hex digits */
	char address[ADDRESS_TEXT_MAX], remote[ADDRESS_TEXT_MAX];
	char ends[ADDRESS_ENDS_MAX];         /* of its socket; "" = not known */
	unsigned n_none, n_offered, n_tries; /* see login.c */
	struct access_grant grant;           /* from CONNECTION_SERVE on */
	struct list requests;                /* struct connection_request */
	unsigned n_requests;
	struct forward_book forwards;
	int64_t started_ms; /* monotonic */
};

/*
 * Starts berth-sshd for the accepted socket CLIENT_FD of the peer SA. The
 * socket is closed here in any case. On success the connection is in
 * SERVER->connections, owns itself until its process is reaped, and SLOT is
 * its own; else a negative errno and SLOT stays the caller's.
 */
int connection_new(struct server *server, int client_fd,
    const struct sockaddr *sa, const struct limits_slot *slot);

/* Stops or resumes hearing what the process asks. */
void connection_pause(struct connection *c, bool on);

/* Appends C with its identity and its link to H, for a berthd in our place. */
void connection_save(struct connection *c, struct handoff *h);

/*
 * Goes on with what connection_save() of a berthd with handoffs of VERSION told;
 * R fails when it makes no sense.
 */
void connection_load(struct server *server, struct reader *r, uint32_t version);

/* Tells the client WHY and gives it 3 s to go. */
void connection_close(struct connection *c, const char *why);

/* Ends the process at once; the rest follows when it is reaped. */
void connection_kill(struct connection *c);

/* Login succeeded: takes over GRANT and lets sessions begin. Once. */
void connection_bind(struct connection *c, struct access_grant *grant);

/* Login failed for good: the child has been told and gets 3 s to go. */
void connection_give_up(struct connection *c);

/* Frees a connection whose process was reaped or, at the end, left alone. */
void connection_free(struct connection *c);

#endif
