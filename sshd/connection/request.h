/*
 * The messages that a client may send: a table of {type, subtype, phase, flags,
 * handler}. What the table does not permit in this phase ends the connection;
 * what it does not know is refused as the RFCs want it.
 */
#ifndef SSHD_CONNECTION_REQUEST_H
#define SSHD_CONNECTION_REQUEST_H

#include <libssh/libssh.h>

struct chan;
struct frame;
struct held;
struct peer;

/* Takes messages from libssh and handles them, a bounded number a turn. */
void request_dispatch(struct peer *p);

/*
 * FRAME_LISTENING, FRAME_OK or FRAME_ERROR for a held global request H, which it
 * releases.
 */
void request_listening(struct peer *p, struct held *h, const struct frame *f);

/* Handles the messages of C that waited behind a held one. */
void request_resume(struct peer *p, struct chan *c);

/* FRAME_OK or FRAME_ERROR for a held channel open H, which it releases. */
void request_opened(struct peer *p, struct held *h, const struct frame *f);

/* FRAME_PROGRESS for a held shell H, which goes on being held. */
void request_progress(struct peer *p, struct held *h, const struct frame *f);

/*
 * FRAME_CHANNEL or FRAME_ERROR for a held shell, exec or subsystem H, which it
 * releases. Owns f->fd.
 */
void request_started(struct peer *p, struct held *h, const struct frame *f);

#endif
