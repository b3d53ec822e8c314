/*
 * How many connections there may be: in all, before authentication, and before
 * authentication from one address. Lives in berthd; every counter goes up in
 * limits_enter() and down exactly once, whatever way the connection ends.
 */
#ifndef SSHD_LISTENER_LIMITS_H
#define SSHD_LISTENER_LIMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/list.h"

struct limits_max {
	uint64_t total;      /* connections of any kind */
	uint64_t startups;   /* not authenticated yet */
	uint64_t per_source; /* not authenticated yet, from one address */
};

struct limits {
	struct limits_max max;
	uint64_t total, startups;
	struct list sources; /* struct limits_source */
};

/* What one connection holds; zero-initialised holds nothing. */
struct limits_slot {
	struct limits_source *source;
	bool is_counted;
};

enum limits_verdict {
	LIMITS_ADMIT,
	LIMITS_TOTAL,
	LIMITS_STARTUPS,
	LIMITS_SOURCE
};

/* limits_release() frees the sources; slots must have left before. */
void limits_init(struct limits *l, const struct limits_max *max);
void limits_release(struct limits *l);

/* New maxima; who is in stays in. */
void limits_set(struct limits *l, const struct limits_max *max);

/*
 * Counts a connection from SA (AF_INET or AF_INET6; a v4-mapped address counts
 * as its IPv4) and fills in SLOT, or says which limit is reached and counts
 * nothing. Above half of max.startups it refuses at random, ever more often up
 * to the limit; DICE is a random number for that.
 */
enum limits_verdict limits_enter(struct limits *l, const struct sockaddr *sa,
    uint32_t dice, struct limits_slot *slot);

/*
 * Counts a connection from the numeric address ADDRESS that was let in before,
 * whatever the limits are now.
 */
void limits_restore(
    struct limits *l, const char *address, struct limits_slot *slot);

/* The connection is no longer unauthenticated. Once is enough. */
void limits_authenticated(struct limits *l, struct limits_slot *slot);

/* The connection is gone; harmless for a slot that holds nothing. */
void limits_leave(struct limits *l, struct limits_slot *slot);

/* "max_connections", ... for the log. */
const char *limits_verdict_name(enum limits_verdict v);

#endif
