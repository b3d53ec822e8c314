/*
 * What forward.c and forward_listener.c share. Private to them; see forward.h.
 */
#ifndef SSHD_LISTENER_FORWARD_INTERNAL_H
#define SSHD_LISTENER_FORWARD_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/endpoint.h"
#include "base/list.h"
#include "sessions/manager/manager.h"
#include "sessions/wire/messages.h"

struct connection;
struct err;
struct handoff;
struct reader;
struct sandbox_call;
struct sockaddr;

#define FORWARD_WHAT_MAX   (ENDPOINT_TEXT_MAX + 16)
#define FORWARD_DETAIL_MAX (FORWARD_WHAT_MAX + 256)

/* A connection that is being made (`call`), or that berth-sshd has. */
struct forward {
	struct list node; /* of forward_book.open */
	struct connection *c;
	uint32_t id;
	uint16_t tag;
	bool is_reverse;             /* came in through a listener */
	bool is_held;                /* the sandbox knows that it is open */
	char what[FORWARD_WHAT_MAX]; /* "to host:port", "listen host:port" */
	struct sandbox_call *call;
};

/* A new one in the book of C, with an id of its own; forward_free() ends it. */
struct forward *forward_new(struct connection *c, const char *what);
void forward_free(struct forward *f);

/* F is connected, just now if IS_NEW: its sandbox is not idle until F ends. */
void forward_hold(struct forward *f, bool is_new);

/* True if C has as many as it may have channels. */
bool forward_is_full(const struct connection *c);

/* Writes a row of the audit trail, and a line of the log at level debug. */
void forward_audit(struct connection *c, const char *event, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));

/* Answers TAG with WHY and tells it to the log and the audit trail. */
void forward_refuse(struct connection *c, uint16_t tag, const char *what,
    const char *why, enum manager_code code);

/* The port of SA, an IPv4 or IPv6 address. */
uint16_t forward_port(const struct sockaddr *sa);

/* ---- forward_listener.c ------------------------------------------------ */

/* F came through a listener and ended: adds M to that one's sum. */
void forward_listener_count(struct connection *c, const struct forward *f,
    const struct wire_forward_end *m);

/* As the functions of forward.h without `listeners`. */
void forward_listeners_fail(struct connection *c, const char *why);
void forward_listeners_close(struct connection *c);
void forward_listeners_save(struct connection *c, struct handoff *h);
void forward_listeners_load(struct connection *c, struct reader *r);

#endif
