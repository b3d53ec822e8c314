/* Sums over /proc; see proc_usage.h. */
#include "sandbox/proc_usage.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/process.h"
#include "sandbox/provider.h"

#define USAGE_KEEPER "berth-session"

void
proc_usage_add(struct proc_usage *u, pid_t pid)
{
	char text[1024], *p;
	int64_t own[2], waited[2], resident;

	if (process_file(pid, "stat", text, sizeof(text)) <= 0)
		return;
	p = strrchr(text, ')');
	/* NOLINTNEXTLINE(cert-err34-c): the kernel prints numbers */
	if (!p || sscanf(p + 1,
		      " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
		      "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64
		      " %*d %*d %*d %*d %*u %*u %" SCNd64,
		      &own[0], &own[1], &waited[0], &waited[1], &resident) != 5)
		return;
	u->ticks += own[0] + own[1] + waited[0] + waited[1];
	u->pages += resident;
	u->count++;
}

void
proc_usage_tell(const struct proc_usage *u, struct sandbox_metrics *out)
{
	if (out->processes < 0)
		out->processes = u->count;
	if (out->cpu_us < 0)
		out->cpu_us = u->ticks * (1000000 / sysconf(_SC_CLK_TCK));
	if (out->memory_bytes < 0)
		out->memory_bytes = u->pages * sysconf(_SC_PAGESIZE);
}

/*
 * True if PID is the keeper of one of SIDS, or its signaller: both are called
 * so, with the id as their last word.
 */
static bool
usage_is_keeper(pid_t pid, const char *sids)
{
	char text[512];
	ssize_t n = process_file(pid, "cmdline", text, sizeof(text));
	const char *sid, *at;
	size_t len;

	if (n <= 1 || strcmp(text, USAGE_KEEPER) != 0)
		return false;
	/* Behind the last NUL but one. */
	for (sid = text + n - 1; sid > text && sid[-1]; sid--)
		;
	len = strlen(sid);
	at = len ? strstr(sids, sid) : NULL;
	return at && (at[len] == ' ' || at[len] == '\0');
}

/* Where the parent of P is among the N of V, which are in order of pids. */
static const struct process *
usage_parent(const struct process *v, size_t n, const struct process *p)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (v[middle].pid == p->parent)
			return &v[middle];
		if (v[middle].pid < p->parent)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

void
proc_usage_add_sessions(struct proc_usage *u, const char *sids)
{
	autofree struct process *v = NULL;
	size_t n = process_walk(getpid(), &v);
	autofree bool *is_keeper = xcalloc(n + 1, sizeof(*is_keeper));

	for (size_t i = 0; i < n; i++)
		is_keeper[i] = usage_is_keeper(v[i].pid, sids);
	for (size_t i = 0; i < n; i++) {
		const struct process *p = is_keeper[i] ? NULL : &v[i];
		size_t steps = 0;

		/* Pids that were reused meanwhile may even make a circle. */
		while (p && !is_keeper[p - v] && steps++ < n)
			p = usage_parent(v, n, p);
		if (p && is_keeper[p - v])
			proc_usage_add(u, v[i].pid);
	}
}
