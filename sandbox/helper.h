/*
 * Short-lived children of berthd for what must not happen in it: waiting for a
 * resolver, going into another namespace. Children beyond a limit wait for
 * others to end. They are told apart from jobs (job.h) by being no program.
 */
#ifndef SANDBOX_HELPER_H
#define SANDBOX_HELPER_H

struct event_base;
struct helper;

/*
 * In the child, which has FD (a stream socket to the parent), KEEP_FD (or -1)
 * and no other descriptor. Returns its exit code; has 30 s. It may use the C
 * library, because berthd has one thread.
 */
typedef int (*helper_work_fn)(int fd, int keep_fd, const void *arg);

/*
 * The child has ended, or never began: STATUS is its exit code or -1. What it
 * wrote is in FD, which is closed afterwards; FD is -1 if it never began. Once,
 * from the loop; the helper is freed afterwards.
 */
typedef void (*helper_end_fn)(int fd, int status, void *arg);

/*
 * Starts a child, now or when there is room; ARG and KEEP_FD (or -1) stay the
 * caller's and are there until the end.
 */
struct helper *helper_start(struct event_base *base, helper_work_fn work,
    helper_end_fn end, int keep_fd, void *arg);

/* Ends the child and frees H; its function is not called. NULL is fine. */
void helper_cancel(struct helper *h);

#endif
