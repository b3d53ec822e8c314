/*
 * Sessions whose keeper this manager did not start, or has lost: what the lock
 * file says decides, never a bare pid. A session is lost only when its lock is
 * free; while somebody holds it, the manager asks again. Private to
 * sessions/manager.
 */
#ifndef SESSIONS_MANAGER_ADOPT_H
#define SESSIONS_MANAGER_ADOPT_H

#include <stdint.h>

struct manager;
struct session;
struct wire_hello;

/*
 * At the start: every row that says creating or running is true, or becomes so;
 * no recording stays open without a session; locks of nobody are removed.
 */
void adopt_all(struct manager *m);

/* The link to the keeper of S ended: looks whether the keeper did, and why. */
void adopt_look_soon(struct session *s);

/*
 * HELLO of a keeper that knew another manager: takes it over, or, when this is
 * the answer to that, S is ready. -EPROTO for one that is not the session's.
 */
int adopt_on_hello(struct session *s, const struct wire_hello *h);

#endif
