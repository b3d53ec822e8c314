/*
 * One forwarded connection: a channel of the client and a TCP socket that the
 * manager made or accepted inside the sandbox's network. Bytes, half-closes and
 * ends go both ways; this process never opens a socket by itself.
 */
#ifndef SSHD_CONNECTION_FORWARD_H
#define SSHD_CONNECTION_FORWARD_H

#include <libssh/libssh.h>
#include <stdbool.h>
#include <stdint.h>

struct frame;
struct held;
struct peer;

/* FRAME_SOCKET or FRAME_ERROR for the held direct-tcpip H, which it releases. */
void forward_opened(struct peer *p, struct held *h, const struct frame *f);

/*
 * FRAME_FORWARDED: somebody in the sandbox connected to a port that the client
 * offers. Owns f->fd. False if it does not decode.
 */
bool forward_offered(struct peer *p, const struct frame *f);

/* True if SSH is the channel of a forward. */
bool forward_has(struct peer *p, ssh_channel ssh);

/*
 * Moves bytes and states of every forward as far as they go without waiting.
 * Stops when the transport died.
 */
void forward_step_all(struct peer *p);

/* Frees those that are over, when libssh holds no message that names them. */
void forward_reap(struct peer *p);

/* The nearest deadline of a forward, monotonic ms; 0 if there is none. */
int64_t forward_deadline(struct peer *p);

/* Closes every socket, when the connection is gone. */
void forward_hang_up_all(struct peer *p);

#endif
