/*
 * Who signals the processes of a session. When the keeper gives up root, a
 * small process stays behind that may signal anybody (CAP_KILL and nothing
 * else); it takes requests over a socket pair, looks itself which processes
 * descend from the keeper, and signals only those. Without one the keeper does
 * the same by itself.
 */
#ifndef SESSIONS_KEEPER_SIGNALLER_H
#define SESSIONS_KEEPER_SIGNALLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct privilege_account;

enum signaller_kind {
	SIGNALLER_GROUP,   /* the group if it is ours, else the leader's */
	SIGNALLER_SESSION, /* the leader and its session id */
	SIGNALLER_ALL,     /* every descendant */
	SIGNALLER_SCOPE    /* first of all: see signaller_scope() */
};

#define SIGNALLER_SIGNALS_MAX 4

/* One message to the signaller; it answers with an int32_t. */
struct signaller_request {
	uint32_t kind; /* enum signaller_kind */
	int32_t leader;
	int32_t group; /* of SIGNALLER_GROUP, else 0 */
	uint32_t n_signals;
	int32_t signals[SIGNALLER_SIGNALS_MAX]; /* the rest is 0 */
	uint64_t ns;                            /* of SIGNALLER_SCOPE, else 0 */
};

struct signaller {
	int fd;    /* to the process, or -1: there is none */
	pid_t pid; /* of the process, or 0 */
};

/* There is no process: the keeper signals by itself. */
void signaller_init(struct signaller *s);

/*
 * Forks the process, which becomes account A. As root, early: it keeps a copy
 * of every page that the keeper changes later. 0 once it is ready, -EACCES when
 * A cannot see the processes in /proc, or another negative errno.
 */
int signaller_start(struct signaller *s, const struct privilege_account *a);

/* Ends the process and reaps it; waits for that a second at most. */
void signaller_release(struct signaller *s);

/*
 * Delivers R. Returns how many processes it is meant for (1 for a group), also
 * without any signal in it, or a negative errno: -EPROTO for a request that
 * makes no sense, -EPIPE when the process is gone, -ETIMEDOUT when it hangs.
 */
int signaller_send(struct signaller *s, const struct signaller_request *r);

/* True once it was started and is not there any more, or hangs. */
bool signaller_is_gone(const struct signaller *s);

/*
 * The process's side: N bytes at P to a request, -EPROTO unless it is one and
 * each field is in its limits; and what R asks for, done to descendants of
 * KEEPER but the caller.
 */
int signaller_decode(const void *p, size_t n, struct signaller_request *out);
int signaller_deliver(const struct signaller_request *r, pid_t keeper);

/*
 * The session of KEEPER was started in a sandbox: orphans there go to the
 * sandbox's first process, so from now on whatever has the cgroup namespace of
 * that inode, which is the session's alone, counts as a descendant. Once, and
 * before any signal, so that who takes the keeper over cannot; NS 0 says that
 * there is no sandbox. 0, -EINVAL for the keeper's own one, or -EPERM when it is
 * too late.
 */
int signaller_scope(uint64_t ns, pid_t keeper);

#endif
