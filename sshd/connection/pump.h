/*
 * The bytes between a keeper's link and a channel, both ways, within the
 * credit of the one and the window of the other.
 */
#ifndef SSHD_CONNECTION_PUMP_H
#define SSHD_CONNECTION_PUMP_H

#include <stdbool.h>

struct chan;
struct wire_handler;

/* The handler that wire_init() takes for a channel's link; static storage. */
const struct wire_handler *pump_handler(void);

/* Grants the keeper its first credit. */
void pump_start(struct chan *c);

/*
 * Client to keeper: sends what is buffered, takes what libssh kept back, passes
 * EOF on when nothing is before it. True if something moved.
 */
bool pump_in(struct chan *c);

/*
 * Keeper to client: hands libssh at most one slice (256 KiB) while the socket
 * is free and the window open, and grants credit again. True if bytes moved.
 */
bool pump_out(struct chan *c);

/* True if all output has been handed to libssh. */
bool pump_is_drained(const struct chan *c);

#endif
