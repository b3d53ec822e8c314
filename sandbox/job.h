/*
 * A slow operation on a sandbox, in a process of its own (berth-sandbox), with
 * a limit of its time. In berthd, whose loop never waits for it.
 */
#ifndef SANDBOX_JOB_H
#define SANDBOX_JOB_H

#include "sandbox/task.h"

struct event_base;
struct job;

/* Called from the loop; a result is the last. */
typedef void (*job_fn)(const struct task_report *r, void *arg);

/*
 * Runs T by the program HELPER; FN hears lines of progress and then the result,
 * which is -ETIMEDOUT after TIMEOUT_MS (the process is killed) and -ECHILD when
 * the process died. NULL with a sentence when it cannot be started. J is freed
 * behind the result.
 */
struct job *job_start(struct event_base *base, const char *helper,
    const struct task *t, int timeout_ms, job_fn fn, void *arg, struct err *e);

/*
 * Nobody hears of J any more, which goes on: what it does is idempotent and
 * leaves a record.
 */
void job_forget(struct job *j);

/* Frees all jobs, before their event base goes; their processes go on. */
void job_release_all(void);

#endif
