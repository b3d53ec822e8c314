/*
 * Control groups of a sandbox: v1 or v2 for each controller, whichever holds
 * it, below the group that berthd itself is in. Where there is no permission,
 * limits are not enforced and that is said. Both programs.
 */
#ifndef SANDBOX_CGROUP_H
#define SANDBOX_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct sandbox_metrics;
struct sandbox_spec;

enum cgroup_kind {
	CGROUP_UNIFIED, /* v2: kill, freeze, what else it holds */
	CGROUP_PIDS,
	CGROUP_MEMORY,
	CGROUP_CPU,
	CGROUP_FREEZER, /* only where v2 cannot do it */
	CGROUP_KINDS
};

#define CGROUP_PATH_MAX 480

/* The directories of a sandbox's groups, "" where it has none of its own. */
struct cgroup {
	char path[CGROUP_KINDS][CGROUP_PATH_MAX];
};

/*
 * Makes the groups of S with its limits in force; *OUT has what is there, and
 * MISSING the limits that nobody enforces. Never fails: without any group the
 * sandbox still is one.
 */
void cgroup_make(const struct sandbox_spec *s, struct cgroup *out,
    char *missing, size_t size);

/*
 * The file by which a process of one thread goes into a group of KIND, by writing
 * "0". In v1 that waits for nobody, while a pid in cgroup.procs waits for a grace
 * period of RCU: 10 to 20 ms where little else goes on. v2 has clone3() for that.
 */
const char *cgroup_door(enum cgroup_kind kind);

/*
 * The calling process, which has one thread, goes into the groups of v1, so that
 * what it clones begins there: 0 or a negative errno. And back to those above, as
 * far as it may.
 */
int cgroup_enter_v1(const struct cgroup *c);
void cgroup_leave_v1(const struct cgroup *c);

/*
 * Kills what is in the groups, waits up to WAIT_MS until they are empty, and
 * removes them. Already gone is success. 0 or a negative errno.
 */
int cgroup_remove(const struct cgroup *c, int wait_ms);

/*
 * Stops all that is in the groups, waiting up to WAIT_MS until it has; or lets it
 * go on. Already so is success. -EOPNOTSUPP where none of the groups can do it,
 * -ETIMEDOUT (nothing is stopped then), or another negative errno.
 */
int cgroup_freeze(const struct cgroup *c, int wait_ms);
int cgroup_thaw(const struct cgroup *c, int wait_ms);

/* True if they were told to stop, done or not. */
bool cgroup_is_frozen(const struct cgroup *c);

/* True if the v2 group UNIFIED, which may be "", can stop what is in it. */
bool cgroup_can_freeze(const char *unified);

/* What was killed dies now, frozen or not: to be called behind a KILL. */
void cgroup_let_die(const struct cgroup *c);

/*
 * The groups that cgroup_make() may have made for S, there or not; and removes
 * those of C that are empty, within WAIT_MS, leaving the others alone.
 */
void cgroup_named(const struct sandbox_spec *s, struct cgroup *out);
void cgroup_remove_empty(const struct cgroup *c, int wait_ms);

/* The file NAME of the first group that has it, as a number; -1 for none. */
int64_t cgroup_number(const struct cgroup *c, const char *name);

/* The number behind the word KEY in the file NAME; -1 for none. */
int64_t cgroup_counter(
    const struct cgroup *c, const char *name, const char *key);

/* Fills what groups count: cpu, memory, processes, oom_kills. */
void cgroup_measure(const struct cgroup *c, struct sandbox_metrics *out);

/* The file that counts out-of-memory kills, or "". */
void cgroup_oom_path(const struct cgroup *c, char *out, size_t size);

#endif
