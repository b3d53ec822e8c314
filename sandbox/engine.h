/*
 * Calls of an engine's client: one program, its words, a limit of its time. What
 * it says last on stderr is why it failed. In berth-sandbox, which may wait.
 */
#ifndef SANDBOX_ENGINE_H
#define SANDBOX_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct err;

/* Where clients are looked up; berthd's own environment is not theirs. */
#define ENGINE_PATH                                                     \
	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:" \
	"/snap/bin"

#define ENGINE_OUTPUT_MAX 65536 /* what comes behind it is not kept */

struct engine_call {
	char *const *argv; /* argv[0] is looked up in the PATH of env */
	char *const *env;
	const char *input; /* what it reads, or NULL */
	uint32_t timeout_ms;
	void (*tell)(const char *line); /* hears its stderr; or NULL */
};

/*
 * Runs C to its end, or kills it and what it started when its time is over; it
 * does not outlive this process. Its output is appended to OUT, which may be
 * NULL. Its exit code (128+n for a signal), with a sentence when that is not 0,
 * or a negative errno with a sentence.
 */
int engine_run(const struct engine_call *c, struct buf *out, struct err *e);

/* A client that runs while somebody copies its output, or what it reads. */
struct engine_flow {
	const char *name; /* of the client, borrowed */
	pid_t pid;
	int pidfd, fd, said_fd;
};

/*
 * Starts C, whose input and time do not count, with OUT->fd on its output, or,
 * if IS_INPUT, on its input. 0 or a negative errno with a sentence.
 */
int engine_flow_start(const struct engine_call *c, bool is_input,
    struct engine_flow *out, struct err *e);

/*
 * Closes what was copied and waits for the end of F's client, TIMEOUT_MS at
 * most; then it is killed, with what it started. As engine_run().
 */
int engine_flow_end(struct engine_flow *f, uint32_t timeout_ms, struct err *e);

/*
 * In a child of fork() that leads no session yet: a session of its own, death
 * with the parent, which is PARENT (0: it outlives it), and the program. Never
 * returns.
 */
_Noreturn void engine_exec(char *const *argv, char *const *env, pid_t parent);

#endif
