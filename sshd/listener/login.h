/*
 * FRAME_AUTH: may this key be that user? One and the same refusal for every
 * reason; tries are counted here. Lives in berthd.
 */
#ifndef SSHD_LISTENER_LOGIN_H
#define SSHD_LISTENER_LOGIN_H

struct connection;
struct frame;

#define LOGIN_OFFERED_MAX 20 /* unknown keys that may be offered */

/* Answers F; -EPROTO if it does not decode, which ends the connection. */
int login_on_auth(struct connection *c, const struct frame *f);

#endif
