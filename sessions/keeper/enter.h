/*
 * The way into a sandbox that has namespaces of its own. A short-lived process,
 * the door, joins them and the control groups, becomes the sandbox's user, gives
 * up every privilege for good, opens the terminal there and makes the leader,
 * which is the keeper's own child although it lives in another pid namespace.
 */
#ifndef SESSIONS_KEEPER_ENTER_H
#define SESSIONS_KEEPER_ENTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sessions/wire/messages.h"

struct err;

struct enter {
	struct wire_entry entry;
	int pidfd;  /* of a process inside; -1: nowhere to go */
	int oom_fd; /* counts out-of-memory kills, or -1 */
	int64_t oom_seen;
};

/* There is no sandbox to enter. */
void enter_init(struct enter *n);

/* Takes over what ENTRY holds, and PIDFD. */
void enter_set(struct enter *n, struct wire_entry *entry, int pidfd);

/* Closes and frees everything. */
void enter_release(struct enter *n);

static inline bool
enter_is_set(const struct enter *n)
{
	return n->pidfd >= 0;
}

/* What is started inside, and what comes back of it. */
struct enter_order {
	const struct wire_launch *launch;
	bool has_pty;

	/*
	 * Runs in the leader, inside and without privileges; SLAVE_FD is its
	 * terminal or -1. Does not return.
	 */
	void (*leader)(int slave_fd, void *arg);
	void *arg;

	pid_t pid;   /* of the leader, in our pid namespace */
	uint64_t ns; /* inode of the cgroup namespace of its session alone */
	gid_t mark;  /* a group of its session alone, or 0: there is none */
	int master_fd, slave_fd;
	bool is_in_v2; /* the door began in the group of v2 */
};

/*
 * Starts O->leader inside; waits for the door, for 10 s at most. 0 and the last
 * fields of O (the caller owns both descriptors, -1 without a terminal),
 * or a negative errno with a sentence, and nobody is left inside.
 */
int enter_start(struct enter *n, struct enter_order *o, struct err *e);

/* In the leader, last: the system calls that nobody inside may make. */
int enter_limit_calls(void);

/* True if something in the sandbox was killed for memory since the last call. */
bool enter_had_oom(struct enter *n);

#endif
