/*
 * Authentication: asks the manager about every attempt and passes its verdict
 * on. Only a key whose signature libssh has verified is ever called proven.
 */
#ifndef SSHD_CONNECTION_AUTH_H
#define SSHD_CONNECTION_AUTH_H

#include <libssh/libssh.h>

struct frame;
struct held;
struct peer;

/*
 * Handler of authentication messages: holds MSG and asks the manager. No other
 * message is taken from libssh until the answer is here.
 */
void auth_request(struct peer *p, ssh_message msg);

/*
 * FRAME_AUTH_REPLY for the held message H, which it releases. A reply that
 * does not decode ends the connection.
 */
void auth_reply(struct peer *p, struct held *h, const struct frame *f);

#endif
