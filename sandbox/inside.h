/*
 * TCP sockets of another network namespace, made by a child that goes there, for
 * whoever goes into a user namespace cannot come back. A socket stays in the
 * network that it was made in, so the rest is berthd's. Used in berthd.
 */
#ifndef SANDBOX_INSIDE_H
#define SANDBOX_INSIDE_H

#include <stdint.h>
#include <sys/types.h>

struct event_base;
struct inside;

/* Where: a process that is there, its namespaces to join, and for whom. */
struct inside_place {
	int pidfd;
	uint32_t ns_flags; /* CLONE_NEW* */
	uid_t uid;
};

/*
 * The end, once, from the loop: two nonblocking, close-on-exec sockets that the
 * callee owns, a missing family -1; or both -1 and WHY. It is freed afterwards.
 */
typedef void (*inside_fn)(int v4_fd, int v6_fd, const char *why, void *arg);

/* Begins; P's pidfd is the new call's, which closes it. */
struct inside *inside_start(struct event_base *base,
    const struct inside_place *p, inside_fn fn, void *arg);

/* Gives up and frees it; its function is not called. NULL is fine. */
void inside_cancel(struct inside *n);

#endif
