/*
 * What processes use, as /proc tells of each: where no control group counts
 * them. A walk takes time, so in berth-sandbox alone.
 */
#ifndef SANDBOX_PROC_USAGE_H
#define SANDBOX_PROC_USAGE_H

#include <stdint.h>
#include <sys/types.h>

struct sandbox_metrics;

/* Zero-initialise. */
struct proc_usage {
	int64_t ticks; /* of it and of children that it waited for */
	int64_t pages; /* resident */
	int64_t count;
};

/* Adds PID; one that is gone is nothing. */
void proc_usage_add(struct proc_usage *u, pid_t pid);

/* Fills in what OUT says is unknown (-1): processes, cpu_us, memory_bytes. */
void proc_usage_tell(const struct proc_usage *u, struct sandbox_metrics *out);

/*
 * Adds what descends from the keepers of the sessions SIDS, a blank between
 * them; without the keepers.
 */
void proc_usage_add_sessions(struct proc_usage *u, const char *sids);

#endif
