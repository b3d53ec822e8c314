/*
 * The client's side of any channel: bytes handed to libssh and taken from it
 * without a queue that could grow.
 */
#ifndef SSHD_CONNECTION_FLOW_H
#define SSHD_CONNECTION_FLOW_H

#include <libssh/libssh.h>
#include <stdbool.h>

struct buf;
struct transport;

/* Above it the client's data stays in libssh and its window closes. */
#define FLOW_IN_HIGH (256U << 10)

/* Below it what libssh kept back is taken. */
#define FLOW_IN_LOW (64U << 10)

/* At most so much is handed over, or read for it, in one turn. */
#define FLOW_SLICE (256U << 10)

/*
 * Hands libssh at most one slice of B while the socket is free and the window
 * open. Returns how much, or -1 when the channel takes nothing any more.
 */
int flow_push(
    struct transport *t, ssh_channel ssh, struct buf *b, bool is_stderr);

/*
 * Takes what libssh kept back, always to empty. True if bytes came; clears
 * *IS_PAUSED when there was nothing.
 */
bool flow_pull(ssh_channel ssh, struct buf *in, bool *is_paused);

#endif
