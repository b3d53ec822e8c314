/*
 * What box*.c share: box.c makes sandboxes, box_remove.c ends them, box_look.c
 * finds out what they do, box_ops.c does the rest. Private to them.
 */
#ifndef SESSIONS_MANAGER_BOX_INTERNAL_H
#define SESSIONS_MANAGER_BOX_INTERNAL_H

#include "sandbox/job.h"
#include "sessions/manager/box.h"

/* A row, an audit event and a line of the log, in this order. */
void box_turn(struct box *b, enum sandbox_phase phase, const char *event,
    const char *identity, const char *detail);

/* True if what is in phase P has processes. */
bool box_lives(enum sandbox_phase p);

/* It is lost: what it left is removed, its workspace stays. */
void box_lose(struct box *b, const char *why);

/* B does not run any more: what it left is removed behind the job it has. */
void box_clean(struct box *b);

/* A job of B, which only FN will know of; NULL with a sentence. */
struct job *box_start(
    struct box *b, enum task_op op, const char *arg, job_fn fn, struct err *e);

/* The job that has B for itself, until FN clears b->job. */
int box_job(struct box *b, enum task_op op, job_fn fn, struct err *e);

/* B was made: it runs, and its limits that nobody enforces are told. */
void box_made(struct box *b, const struct sandbox_made *made);

/* A job that cleaned up has ended: whoever came meanwhile wants it made. */
void box_on_cleaned(const struct task_report *r, void *arg);

/* True if B has an init command that did not run to its end yet. */
bool box_needs_init(struct box *b);

/*
 * Runs it, once B is there: b->is_initialising until it has ended, then B is
 * made, or failed; who waits for B hears of it.
 */
void box_init(struct box *b);

/* Whatever comes of it is not waited for any more. */
void box_init_forget(struct box *b);

/*
 * B is suspended and R wants it to run: waits for that, or is refused because it
 * did not work.
 */
enum box_answer box_rouse(struct box *b, struct request *r,
    enum manager_code *code_out, struct err *e);

/*
 * The life of B, made at CREATED_MS (wall), begins or goes on; and its rules are
 * read again.
 */
void box_life_begin(struct box *b, int64_t created_ms);
void box_life_load(struct box *b);

/*
 * A row and a box for the sandbox of R, which has none, of TEMPLATE; NULL with a
 * sentence.
 */
struct box *box_make(struct request *r, const char *template, struct err *e);

/* sandbox.uid_range where it means something, or NULL. */
const struct conf_uids *box_uid_range(const struct manager *m);

/* True if no sandbox has UID. */
bool box_uid_is_free(const struct manager *m, uid_t uid);

/* One of that range that nobody has; -EAGAIN with a sentence if there is none. */
int box_uid_next(struct manager *m, uid_t *out, struct err *e);

/*
 * B, which is new, takes one, if it may be of a member of its pool; *OUT is 0
 * where it keeps that of sandbox.user. -EAGAIN as above.
 */
int box_uid_take(struct box *b, uid_t *out, struct err *e);

/* B has UID for itself, and the group of that number; 0: it has none. */
void box_uid_set(struct box *b, uid_t uid);

/* B, which must have no row that lives, is forgotten with all that waits. */
void box_free(struct box *b);

/* Has its provider make B, its row says pending. 0 or a negative errno. */
int box_provision(struct box *b, const char *identity, struct err *e);

/* Ends B's sessions; then halts and removes it, or replaces its files. */
void box_begin_leaving(struct box *b);

/* The job TASK_REPLACE, and what comes of it. */
void box_replace(struct box *b);

/* B may stand still because of a snapshot that nobody finishes: goes on. */
void box_thaw(struct box *b);

/* What the job of B says goes to the log, and to everybody who waits for B. */
void box_progress(struct box *b, const struct task_report *r);

/* R waits for B's job. */
void box_wait(struct box *b, struct request *r);

/* Everybody who waits, for B or in REQUESTS, goes on or hears WHY. */
void box_answer_all(struct box *b, enum manager_code code, const char *why);
void box_answer_list(
    struct list *requests, enum manager_code code, const char *why);

/* What is known about a row's sandbox now, when berthd begins. */
void box_look(struct box *b);

/* B runs: its end is noticed from now on. And not any more. */
void box_watch(struct box *b);
void box_unwatch(struct box *b);

/* Asks B's engine, where it has one, at once. */
void box_look_soon(struct box *b);

#endif
