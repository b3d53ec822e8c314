/*
 * What pool*.c share: pool.c knows pools and their members, pool_work.c has them
 * made and removed. Private to them.
 */
#ifndef SESSIONS_MANAGER_POOL_INTERNAL_H
#define SESSIONS_MANAGER_POOL_INTERNAL_H

#include "base/list.h"
#include "sandbox/provider.h"
#include "sessions/manager/pool.h"
#include "store/store.h"

struct event;
struct job;

/* A member's id is the key, its uid in hex and something random. */
#define POOL_KEY_SIZE 17

struct pool {
	struct list node; /* of pools->all */
	struct pools *ps;
	char template[STORE_NAME_MAX];
	const struct sandbox_provider *provider;
	struct sandbox_spec spec; /* of its members, but for their names */
	char key[POOL_KEY_SIZE];  /* a hash of all that; members begin so */
	unsigned size, target;
	struct list members;
	unsigned n_ready;
	unsigned n_failures; /* since it last worked */
	int64_t retry_ms;    /* monotonic: nothing is made before */
	char why[256];
	bool is_wanted; /* while the configuration is read */
};

struct pools {
	struct manager *m;
	struct list all, waste; /* of pool_waste */
	struct event *ev;
	int64_t due_ms;           /* of ev */
	struct job *job;          /* the one that works on a member */
	struct sandbox_spec fill; /* what it makes, if it does */
	bool is_halting;
	unsigned n_failures; /* of removals, as in struct pool */
	int64_t retry_ms;
	char why[256];
};

/* A member that is to be removed, or what is left of one. */
struct pool_waste {
	struct list node;
	const struct sandbox_provider *provider;
	char id[SANDBOX_NAME_SIZE];
	bool is_in_job;
};

/* The pool whose members' ids begin as ID, or NULL. */
struct pool *pool_by_key(struct pools *ps, const char *id);

/* ID waits in P from now on; false if it is not fit for that. */
bool pool_add(struct pool *p, const char *id);

/* True if ID does. */
bool pool_has(const struct pool *p, const char *id);

/* The oldest member of P is not its any more; its id into OUT. */
void pool_pop(struct pool *p, char out[SANDBOX_NAME_SIZE]);

/* ID is to be removed. */
void pools_discard(
    struct pools *ps, const struct sandbox_provider *provider, const char *id);

/* All members of P are. */
void pool_empty(struct pool *p);

/* It did not work, because of WHY: P waits before it is tried again. */
void pool_failed(struct pool *p, const char *why);

/* Whatever is to be done is looked for in MS milliseconds, or earlier. */
void pools_arm(struct pools *ps, int ms);

#endif
