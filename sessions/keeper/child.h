/*
 * The leader of a session: opens its PTY or pipes, forks, becomes the user,
 * executes, and reaps. The child is the leader of its own session, gets
 * descriptors 0 to 2 and nothing else, and inherits neither environment nor
 * signal state.
 */
#ifndef SESSIONS_KEEPER_CHILD_H
#define SESSIONS_KEEPER_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "sessions/keeper/enter.h"

struct err;
struct signaller;
struct wire_exit;
struct wire_launch;

struct child {
	pid_t pid; /* 0 before the start; process group and session id too */
	int pidfd;
	uint64_t start_ticks; /* field 22 of /proc/PID/stat */
	int master_fd;        /* PTY, nonblocking, or -1 */
	int slave_fd;         /* kept open, so that the master never hangs up */
	int stdio_fd[3];      /* our ends of the pipes, nonblocking, or -1 */
	int status_fd;        /* tells how exec went, or -1 */
	bool is_reaped;
	struct signaller *signaller; /* borrowed */
	struct enter enter;          /* the sandbox that it is started in */
	bool is_inside;
	uint64_t inside_ns; /* see signaller_scope() */
	gid_t inside_gid;   /* the same */
	uint8_t exec_code;  /* 126 or 127: its program could not be run */
};

/* Nothing started, every descriptor -1; S is borrowed for child_signal(). */
void child_init(struct child *c, struct signaller *s);

/* Closes every descriptor; signals nobody. */
void child_release(struct child *c);

/*
 * Starts the process that L describes, in the sandbox of c->enter if that is
 * set; the terminal has its size before the fork. Returns 0 once it is forked (status_fd then tells about exec), or a
 * negative errno with a sentence.
 */
int child_start(struct child *c, const struct wire_launch *l, struct err *e);

/*
 * To be called when status_fd is readable. Returns 1 when the program runs, 0
 * when that is still open, or a negative errno with a sentence when it could
 * not be executed. Closes status_fd unless it returns 0.
 */
int child_poll_exec(
    struct child *c, const struct wire_launch *l, struct err *e);

/*
 * Reaps every child that has ended: the leader, and orphans that this process
 * adopted as their subreaper. Returns true if the leader was among them; *OUT
 * is then how it ended (its note is empty).
 */
bool child_reap(struct child *c, struct wire_exit *out);

/* KILL to the leader and whatever descends from it, before anybody saw it. */
void child_kill(struct child *c);

/* Sends SIG to the terminal's foreground group, else to the leader's group. */
void child_signal(struct child *c, int sig);

#endif
