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

/* Gids from here on are no account's. */
#define SIGNALLER_MARK 0x80000000U

/* One message to the signaller; it answers with an int32_t. */
struct signaller_request {
	uint32_t kind; /* enum signaller_kind */
	int32_t leader;
	int32_t group; /* of SIGNALLER_GROUP, else 0 */
	uint32_t n_signals;
	int32_t signals[SIGNALLER_SIGNALS_MAX]; /* the rest is 0 */
	/* Of SIGNALLER_SCOPE, else 0: one of the two marks, or none. */
	uint64_t ns;  /* inode of a cgroup namespace */
	uint64_t gid; /* a supplementary group */
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
 * sandbox's first process, so from now on whatever bears the mark of R, which is
 * the session's alone and cannot be laid down, counts as a descendant. Once, and
 * before any signal, so that who takes the keeper over cannot; without a mark it
 * says that there is no sandbox. 0, -EINVAL for a mark that others bear too, or
 * -EPERM when it is too late.
 */
int signaller_scope(const struct signaller_request *r, pid_t keeper);

/* A group that marks the session of KEEPER; nobody has it, no file is of it. */
gid_t signaller_mark(pid_t keeper);

/* True if G may be a mark. */
static inline bool
signaller_is_mark(uint64_t g)
{
	return g >= SIGNALLER_MARK && g < UINT32_MAX;
}

#endif
