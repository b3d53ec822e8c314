/*
 * What a native sandbox uses: its control groups say it, and where it has none
 * the sum over its processes in /proc does. See native_metrics.h.
 */
#include "sandbox/native_metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/process.h"
#include "sandbox/native_record.h"
#include "sandbox/proc_usage.h"
#include "sandbox/provider.h"

#define METRICS_FILE_MAX 16384

/* Bytes of every interface but the loopback. */
static void
metrics_network(pid_t pid, struct sandbox_metrics *out)
{
	char text[METRICS_FILE_MAX], *line, *rest = text;

	if (process_file(pid, "net/dev", text, sizeof(text)) < 0)
		return;
	out->net_rx_bytes = out->net_tx_bytes = 0;
	while ((line = strsep(&rest, "\n"))) {
		char *colon = strchr(line, ':');
		int64_t rx, tx;

		/* NOLINTNEXTLINE(cert-err34-c): the kernel prints numbers */
		if (!colon || sscanf(colon + 1,
				  "%" SCNd64 " %*d %*d %*d %*d %*d %*d %*d "
				  "%" SCNd64,
				  &rx, &tx) != 2)
			continue;
		line += strspn(line, " ");
		if (strncmp(line, "lo:", 3) == 0)
			continue;
		out->net_rx_bytes += rx;
		out->net_tx_bytes += tx;
	}
}

/*
 * The first process, what descends from it, and what joined from outside: that
 * is in its pid namespace, but the child of a keeper.
 */
static void
metrics_sum(const struct native_record *r, struct sandbox_metrics *out)
{
	autofree struct process *v = NULL;
	size_t n = process_walk(r->pid, &v);
	struct proc_usage sum = { 0 };

	for (size_t i = 0; i < n; i++) {
		struct native_record one;

		if (!v[i].is_marked && v[i].pid != r->pid &&
		    (native_record_of(v[i].pid, &one) < 0 ||
			one.pid_ns != r->pid_ns))
			continue;
		proc_usage_add(&sum, v[i].pid);
	}
	proc_usage_tell(&sum, out);
}

void
native_metrics(const struct native_record *r, struct sandbox_metrics *out)
{
	*out = (struct sandbox_metrics){ -1, -1, -1, -1, -1, -1, -1, -1 };
	cgroup_measure(&r->cgroup, out);
	if (out->processes < 0 || out->cpu_us < 0 || out->memory_bytes < 0)
		metrics_sum(r, out);
	metrics_network(r->pid, out);
}
