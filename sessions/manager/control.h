/*
 * The control socket: one JSON object a line, see PROTOCOL.md. Every verb is a
 * row of a table; the manager does the work. Lives in berthd.
 */
#ifndef SESSIONS_MANAGER_CONTROL_H
#define SESSIONS_MANAGER_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

struct conf;
struct control;
struct err;
struct event_base;
struct handoff;
struct manager;

/* What the verb `status` tells beyond what the manager knows; copied. */
struct control_status {
	const char *listen; /* the bound addresses, comma-separated */
	const char *state_dir;
	int64_t started_ms;
	const char *warning; /* NULL, or one sentence for doctor */
	/*
	 * The verb `upgrade`: 0 when it has begun, else -EBUSY and a sentence.
	 * How it ends tells control_upgraded(), here or in the next program.
	 */
	int (*upgrade)(void *arg, const char *who, struct err *e);
	void *arg;
	const struct handoff *handoff; /* of control_save(), or NULL */
};

/*
 * Listens on RUNTIME/control.sock (RUNTIME_FD is borrowed), or goes on with the
 * socket and the clients of the handoff. -EADDRINUSE when somebody answers
 * there. The manager comes with control_start(), before the loop runs. The caller frees with control_free().
 */
int control_new(struct event_base *base, const struct conf *conf,
    int runtime_fd, const struct control_status *status, struct control **out,
    struct err *e);
void control_start(struct control *c, struct manager *m);
void control_free(struct control *c);

/*
 * Lets members of server.admin_group connect, or nobody else: who may not use
 * the socket is told so when he does.
 */
void control_set_mode(const struct conf *conf, int runtime_fd);

/* Takes no new requests, or takes them again. */
void control_pause(struct control *c, bool on);

/* Appends the socket and its clients to H, for a berthd in our place. */
void control_save(struct control *c, struct handoff *h);

/*
 * Answers who asked for an upgrade: WHY_NOT is NULL when it was done, from the
 * version FROM, else one sentence.
 */
void control_upgraded(struct control *c, const char *from, const char *why_not);

#endif
