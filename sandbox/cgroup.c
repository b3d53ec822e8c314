/*
 * The life of a sandbox's control groups; see cgroup.h. Where they are is
 * cgroup_find.c's; here they are made, joined, and removed.
 */
#include "sandbox/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sandbox/cgroup_find.h"
#include "sandbox/cgroup_internal.h"
#include "sandbox/provider.h"

#define CGROUP_PERIOD_US 100000
#define CGROUP_LOOK_MS   2
#define CGROUP_TRIES     10

/* What berthd and its kin move into when v2 wants its group without them. */
#define CGROUP_MAIN CGROUP_FIND_MAIN

/* One limit: which controller, and what is written where. */
struct cgroup_limit {
	enum cgroup_kind kind;
	const char *name; /* of the controller, and in `missing` */
	const char *file_v1, *file_v2;
	char value[64];
};

int
cgroup_write(const char *dir, const char *name, const char *text)
{
	autofree char *path = xasprintf("%s/%s", dir, name);
	autoclose int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

ssize_t
cgroup_read(const char *dir, const char *name, char *out, size_t size)
{
	autofree char *path = xasprintf("%s/%s", dir, name);
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	if (n < 0)
		return -errno;
	out[n] = '\0';
	return n;
}

/* The whole words of TEXT. */
static bool
cgroup_has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = text; (p = strstr(p, word)); p += n) {
		if ((p == text || p[-1] == ' ') &&
		    (p[n] == ' ' || p[n] == '\n' || !p[n]))
			return true;
	}
	return false;
}

/* ---- making ---------------------------------------------------------------- */

/*
 * A v2 group that gives controllers to its children has no processes itself:
 * those of BASE, which are berthd's, move one level down. The kernel insists for
 * memory only; for pids and cpu it takes the order, and then lets nobody into the
 * children (EOPNOTSUPP). The root is free of this and has no type.
 */
static int
cgroup_evacuate(const char *base)
{
	autofree char *leaf = xasprintf("%s/" CGROUP_MAIN, base);
	char text[16384];

	if (cgroup_read(base, "cgroup.type", text, sizeof(text)) == -ENOENT)
		return 0;
	/* What was forked meanwhile is found the next time. */
	for (int i = 0; i < CGROUP_TRIES; i++) {
		char *line, *rest = text;
		ssize_t n =
		    cgroup_read(base, "cgroup.procs", text, sizeof(text));

		if (n <= 0)
			return (int)n;
		if (mkdir(leaf, 0755) < 0 && errno != EEXIST)
			return -errno;
		while ((line = strsep(&rest, "\n"))) {
			if (*line)
				cgroup_write(leaf, "cgroup.procs", line);
		}
	}
	return -EBUSY;
}

/* Has BASE, a group of v2, give its children the controller NAME. */
static int
cgroup_enable(const char *base, const char *name)
{
	char text[512], order[64];
	int rc;

	if (cgroup_read(base, "cgroup.controllers", text, sizeof(text)) < 0 ||
	    !cgroup_has_word(text, name))
		return -ENOENT;
	rc = cgroup_evacuate(base);
	if (rc < 0)
		return rc;
	if (cgroup_read(base, "cgroup.subtree_control", text, sizeof(text)) >=
		0 &&
	    cgroup_has_word(text, name))
		return 0;
	snprintf(order, sizeof(order), "+%s", name);
	return cgroup_write(base, "cgroup.subtree_control", order);
}

/* The path of the group of S below BASE, "" when it cannot be. */
static void
cgroup_path(const char *base, const struct sandbox_spec *s, char *out)
{
	uint32_t hash = 2166136261U;

	/* Two berthds may have sandboxes of one name. */
	for (const char *p = s->dir; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 16777619U;
	*out = '\0';
	if (*base && strlen(base) + sizeof(s->name) + 24 <= CGROUP_PATH_MAX)
		snprintf(out, CGROUP_PATH_MAX, "%s/berth-%08x-%s", base, hash,
		    s->name);
}

/* Makes it. */
static bool
cgroup_mkdir(const char *base, const struct sandbox_spec *s, char *out)
{
	cgroup_path(base, s, out);
	if (*out && (mkdir(out, 0755) == 0 || errno == EEXIST))
		return true;
	*out = '\0';
	return false;
}

/* True once the limit L is in force for what will be in the groups of OUT. */
static bool
cgroup_limit(const struct cgroup_bases *b, const struct sandbox_spec *s,
    const struct cgroup_limit *l, struct cgroup *out)
{
	const char *unified = out->path[CGROUP_UNIFIED];
	char *own = out->path[l->kind];

	if (*unified && cgroup_enable(b->path[CGROUP_UNIFIED], l->name) == 0)
		return cgroup_write(unified, l->file_v2, l->value) == 0;
	if (!cgroup_mkdir(b->path[l->kind], s, own))
		return false;
	if (cgroup_write(own, l->file_v1, l->value) == 0)
		return true;
	rmdir(own);
	*own = '\0';
	return false;
}

static void
cgroup_limit_all(const struct cgroup_bases *b, const struct sandbox_spec *s,
    struct cgroup *out, char *missing, size_t size)
{
	struct cgroup_limit pids = { CGROUP_PIDS, "pids", "pids.max",
		"pids.max", "" };
	struct cgroup_limit memory = { CGROUP_MEMORY, "memory",
		"memory.limit_in_bytes", "memory.max", "" };
	struct cgroup_limit cpu = { CGROUP_CPU, "cpu", "cpu.cfs_quota_us",
		"cpu.max", "" };
	bool has_memory = true, has_cpu = true;

	snprintf(pids.value, sizeof(pids.value), "%" PRIu64, s->pids_max);
	snprintf(
	    memory.value, sizeof(memory.value), "%" PRIu64, s->memory_bytes);
	/* The period of v1 is this one unless somebody changed it. */
	snprintf(cpu.value, sizeof(cpu.value), "%u",
	    s->cpu_percent * (CGROUP_PERIOD_US / 100));
	/* RLIMIT_NPROC bounds processes too: this one is never missing. */
	if (s->pids_max)
		cgroup_limit(b, s, &pids, out);
	if (s->memory_bytes)
		has_memory = cgroup_limit(b, s, &memory, out);
	if (s->cpu_percent)
		has_cpu = cgroup_limit(b, s, &cpu, out);
	/* Swap would let memory grow past its limit; not everywhere counted. */
	if (has_memory && s->memory_bytes) {
		if (out->path[CGROUP_MEMORY][0])
			cgroup_write(out->path[CGROUP_MEMORY],
			    "memory.memsw.limit_in_bytes", memory.value);
		else
			cgroup_write(
			    out->path[CGROUP_UNIFIED], "memory.swap.max", "0");
	}
	snprintf(missing, size, "%s%s%s", has_memory ? "" : "memory",
	    has_memory || has_cpu ? "" : ", ", has_cpu ? "" : "cpu");
}

void
cgroup_make(const struct sandbox_spec *s, struct cgroup *out, char *missing,
    size_t size)
{
	struct cgroup_bases b;

	*out = (struct cgroup){ .path = { "" } };
	cgroup_find(&b);
	cgroup_mkdir(b.path[CGROUP_UNIFIED], s, out->path[CGROUP_UNIFIED]);
	if (!cgroup_can_freeze(out->path[CGROUP_UNIFIED]))
		cgroup_mkdir(
		    b.path[CGROUP_FREEZER], s, out->path[CGROUP_FREEZER]);
	cgroup_limit_all(&b, s, out, missing, size);
}

void
cgroup_named(const struct sandbox_spec *s, struct cgroup *out)
{
	struct cgroup_bases b;

	cgroup_find(&b);
	for (int i = 0; i < CGROUP_KINDS; i++)
		cgroup_path(b.path[i], s, out->path[i]);
}

const char *
cgroup_door(enum cgroup_kind kind)
{
	return kind == CGROUP_UNIFIED ? "cgroup.procs" : "tasks";
}

static int
cgroup_move_v1(const struct cgroup *c, bool is_up)
{
	int rc = 0;

	for (enum cgroup_kind i = 0; i < CGROUP_KINDS; i++) {
		char dir[CGROUP_PATH_MAX];
		int one;

		snprintf(dir, sizeof(dir), "%s", c->path[i]);
		if (i == CGROUP_UNIFIED || !*dir)
			continue;
		if (is_up)
			*strrchr(dir, '/') = '\0';
		one = cgroup_write(dir, cgroup_door(i), "0");
		rc = rc < 0 ? rc : one;
	}
	return rc;
}

int
cgroup_enter_v1(const struct cgroup *c)
{
	return cgroup_move_v1(c, false);
}

void
cgroup_leave_v1(const struct cgroup *c)
{
	(void)cgroup_move_v1(c, true);
}

/* ---- removing -------------------------------------------------------------- */

static void
cgroup_kill(const char *dir)
{
	char text[16384], *line, *rest = text;

	if (cgroup_write(dir, "cgroup.kill", "1") == 0)
		return;
	if (cgroup_read(dir, "cgroup.procs", text, sizeof(text)) <= 0)
		return;
	while ((line = strsep(&rest, "\n"))) {
		pid_t pid = (pid_t)strtol(line, NULL, 10);

		if (pid > 1 && pid != getpid())
			kill(pid, SIGKILL);
	}
}

static int
cgroup_rmdir(const char *dir, bool kills, int64_t deadline_ms)
{
	const struct timespec pause = { 0, CGROUP_LOOK_MS * 1000000L };

	while (rmdir(dir) < 0) {
		if (errno == ENOENT)
			return 0;
		if (errno != EBUSY || clock_mono_ms() >= deadline_ms)
			return -errno;
		if (kills)
			cgroup_kill(dir);
		nanosleep(&pause, NULL);
	}
	return 0;
}

int
cgroup_remove(const struct cgroup *c, int wait_ms)
{
	int64_t deadline_ms = clock_mono_ms() + wait_ms;
	int rc = 0;

	cgroup_let_die(c);
	for (int i = 0; i < CGROUP_KINDS; i++) {
		int one = c->path[i][0]
			      ? cgroup_rmdir(c->path[i], true, deadline_ms)
			      : 0;

		rc = rc < 0 ? rc : one;
	}
	return rc;
}

void
cgroup_remove_empty(const struct cgroup *c, int wait_ms)
{
	int64_t deadline_ms = clock_mono_ms() + wait_ms;

	for (int i = 0; i < CGROUP_KINDS; i++) {
		if (c->path[i][0])
			cgroup_rmdir(c->path[i], false, deadline_ms);
	}
}

/* ---- measuring ------------------------------------------------------------- */

int64_t
cgroup_number(const struct cgroup *c, const char *name)
{
	char text[64];

	for (int i = 0; i < CGROUP_KINDS; i++) {
		if (c->path[i][0] &&
		    cgroup_read(c->path[i], name, text, sizeof(text)) > 0)
			return strtoll(text, NULL, 10);
	}
	return -1;
}

int64_t
cgroup_counter(const struct cgroup *c, const char *name, const char *key)
{
	char text[4096], *line;
	size_t n = strlen(key);

	for (int i = 0; i < CGROUP_KINDS; i++) {
		char *rest = text;

		if (!c->path[i][0] ||
		    cgroup_read(c->path[i], name, text, sizeof(text)) <= 0)
			continue;
		while ((line = strsep(&rest, "\n"))) {
			if (strncmp(line, key, n) == 0 && line[n] == ' ')
				return strtoll(line + n, NULL, 10);
		}
	}
	return -1;
}

static int64_t
cgroup_first(int64_t a, int64_t b)
{
	return a >= 0 ? a : b;
}

void
cgroup_measure(const struct cgroup *c, struct sandbox_metrics *out)
{
	out->cpu_us = cgroup_counter(c, "cpu.stat", "usage_usec");
	out->memory_bytes = cgroup_first(cgroup_number(c, "memory.current"),
	    cgroup_number(c, "memory.usage_in_bytes"));
	out->memory_peak_bytes = cgroup_first(cgroup_number(c, "memory.peak"),
	    cgroup_number(c, "memory.max_usage_in_bytes"));
	out->processes = cgroup_number(c, "pids.current");
	out->oom_kills =
	    cgroup_first(cgroup_counter(c, "memory.events", "oom_kill"),
		cgroup_counter(c, "memory.oom_control", "oom_kill"));
}

void
cgroup_oom_path(const struct cgroup *c, char *out, size_t size)
{
	*out = '\0';
	if (c->path[CGROUP_MEMORY][0])
		snprintf(
		    out, size, "%s/memory.oom_control", c->path[CGROUP_MEMORY]);
	else if (cgroup_counter(c, "memory.events", "oom_kill") >= 0)
		snprintf(
		    out, size, "%s/memory.events", c->path[CGROUP_UNIFIED]);
}
