/*
 * Names to addresses, looked up by a short-lived child so that no resolver
 * ever holds up the loop. Children beyond a limit wait for others to end. Used
 * by providers in berthd.
 */
#ifndef SANDBOX_RESOLVE_H
#define SANDBOX_RESOLVE_H

#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

struct event_base;
struct resolve;

#define RESOLVE_ADDRESSES_MAX 16

/* Who asks: the child becomes it. With must_become unset it stays. */
struct resolve_as {
	uid_t uid;
	gid_t gid;
	int must_become;
};

/*
 * The end of a lookup, once, from the loop: N addresses SA without a port, or 0
 * and WHY. The lookup is freed afterwards.
 */
typedef void (*resolve_fn)(
    const struct sockaddr_storage *sa, size_t n, const char *why, void *arg);

/* Looks HOST up; the caller has a clock of its own and cancels. */
struct resolve *resolve_start(struct event_base *base, const char *host,
    const struct resolve_as *as, resolve_fn fn, void *arg);

/* Ends the child and frees R; its function is not called. NULL is fine. */
void resolve_cancel(struct resolve *r);

#endif
