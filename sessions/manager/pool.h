/*
 * Pools: sandboxes of a template that are made ahead, without name and
 * workspace, so that whoever comes next gets one at once. Their members are
 * nobody's sandboxes: they have no row, no name and no session. In berthd; what
 * takes time is a job, one at a time for all pools.
 */
#ifndef SESSIONS_MANAGER_POOL_H
#define SESSIONS_MANAGER_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct manager;
struct principal;
struct sandbox_spec;

/*
 * Pools as the configuration has them, with the members that a former berthd
 * left; what is left beside these, and is no pool's, is removed.
 */
void pools_load(struct manager *m);
void pools_free(struct manager *m);

/* After the configuration was read again; sizes that were scaled are over. */
void pools_reconfigure(struct manager *m);

/*
 * Ends all members, at a closing that ends sandboxes too; true once there is
 * none and nothing works on one.
 */
bool pools_halt(struct manager *m);

/*
 * Names in IO, a sandbox of TEMPLATE that is to be made, a member that fits and
 * has its uid, or none. Its provisioning, or what kept it from beginning, is told by
 * pool_taken().
 */
void pool_take(
    struct manager *m, const char *template, struct sandbox_spec *io);
void pool_taken(struct manager *m, struct sandbox_spec *io, bool is_claimed);

/*
 * The uid of a member that fits S, a sandbox of TEMPLATE that is to be made, and
 * that no sandbox has; 0: none. And whether a member has UID.
 */
uid_t pool_uid(
    struct manager *m, const char *template, const struct sandbox_spec *s);
bool pools_have_uid(const struct manager *m, uid_t uid);

struct pool_info {
	const char *template, *provider; /* as long as the pool is */
	unsigned ready, target;
	unsigned size;      /* by configuration */
	unsigned allocated; /* sandboxes that were members, and run */
	char detail[320];   /* what does not work, or "" */
};

/* Calls FN for each pool. */
void pools_each(struct manager *m,
    void (*fn)(const struct pool_info *i, void *arg), void *arg);

/*
 * The pool of TEMPLATE, if only one of no members. -ENOENT for an unknown
 * template, -EOPNOTSUPP for a provider without pools, with a sentence.
 */
int pool_get(struct manager *m, const char *template, struct pool_info *out,
    struct err *e);

/* SIZE (at most CONF_POOL_MAX) members until the configuration is read again. */
int pool_scale(struct manager *m, const struct principal *who,
    const char *template, unsigned size, struct err *e);

#endif
