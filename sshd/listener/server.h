/*
 * The listener: accepts, counts, starts a connection for each. Lives in
 * berthd. It never spins: out of descriptors it rests, and a source that has
 * too many logins under way waits a moment before it is turned away.
 */
#ifndef SSHD_LISTENER_SERVER_H
#define SSHD_LISTENER_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/list.h"
#include "sshd/listener/gate.h"
#include "sshd/listener/limits.h"

struct access;
struct conf;
struct err;
struct event;
struct event_base;
struct handoff;
struct host_keys;
struct manager;
struct store;

#define SERVER_LISTENERS_MAX 32

struct server {
	/* Set by the owner before server_start(); borrowed. */
	struct event_base *base;
	const struct conf *conf;
	struct manager *manager;
	struct store *store;
	struct access *access;
	struct host_keys *host_keys;
	const char *sshd_path;
	void (*on_empty)(void *arg); /* after server_stop(): all are gone */
	void *arg;

	/* The server's own. */
	struct list connections; /* struct connection */
	struct list waiting;     /* struct server_waiter */
	size_t n_waiting;
	struct limits limits;
	struct gate gate;
	int fds[SERVER_LISTENERS_MAX];
	struct event *events[SERVER_LISTENERS_MAX];
	size_t n_fds;
	struct event *rest_ev; /* pending while out of descriptors */
	struct event *wait_ev; /* ticks while somebody waits */
	bool is_stopping, is_paused;
};

/*
 * Binds every address of server.listen. A busy one is -EADDRINUSE and a
 * sentence that names it. Accepts nothing before server_start().
 */
int server_bind(struct server *s, const struct conf *conf, struct err *e);

/* The bound addresses, comma-separated; the caller frees. */
char *server_addresses(const struct server *s);

/* Begins to accept, with the connections of the handoff H (NULL for none). */
int server_start(struct server *s, const struct handoff *h);

/* Takes the listening sockets of the handoff instead of binding any; -EPROTO. */
int server_load_listeners(struct server *s, const struct handoff *h);

/* Accepts nobody and hears nobody, or does so again. */
void server_pause(struct server *s, bool on);

/* True when nothing that a connection asked for forwarding is under way. */
bool server_is_quiet(struct server *s);

/* Answers what is under way with a failure, and WHY. */
void server_fail_pending(struct server *s, const char *why);

/* Appends listeners, connections and who waits to H, for a berthd in our place. */
void server_save(struct server *s, struct handoff *h);

/* New limits and rules for who comes next. */
void server_reconfigure(struct server *s, const struct conf *conf);

/*
 * Stops accepting and tells everybody WHY; on_empty() is called from the loop
 * when the last is gone, at once if there is none.
 */
void server_stop(struct server *s, const char *why);

/* Kills who is still there. */
void server_kill_all(struct server *s);

/* Closes and frees everything the server holds. */
void server_release(struct server *s);

/* A connection was reaped and freed. */
void server_on_gone(struct server *s);

/* A login succeeded or ended, so that somebody else may begin. */
void server_on_slot_free(struct server *s);

/*
 * True if a line that a stranger causes may be written now. Says itself how
 * many were held back.
 */
bool server_may_log(struct server *s);

#endif
