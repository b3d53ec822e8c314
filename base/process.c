/* Reads /proc; see process.h. */
#include "base/process.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/mem.h"

#define PROCESS_STATUS_MAX 8192 /* up to its groups, were they a thousand */

ssize_t
process_file(pid_t pid, const char *name, char *out, size_t size)
{
	char path[64];
	autoclose int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -errno : read(fd, out, size - 1);
	if (fd >= 0 && n < 0)
		n = -errno;
	out[n > 0 ? n : 0] = '\0';
	return n == -ENOENT ? -ESRCH : n;
}

int
process_read(pid_t pid, struct process *out)
{
	struct process p = { .pid = pid };
	unsigned long long start;
	char text[1024];
	const char *s;
	ssize_t n = process_file(pid, "stat", text, sizeof(text));

	if (n <= 0)
		return n < 0 ? (int)n : -ESRCH;
	/* The name in field 2 may hold anything, a ')' too: count from its end. */
	s = strrchr(text, ')');
	/* NOLINTNEXTLINE(cert-err34-c): the kernel prints numbers */
	if (!s || sscanf(s + 1,
		      " %c %d %d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
		      "%*d %*d %*d %*d %*d %llu",
		      &p.state, &p.parent, &p.group, &p.session, &start) != 5)
		return -EPROTO;
	p.start_ticks = start;
	*out = p;
	return 0;
}

static int
process_by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static struct process *
process_parent(struct process *v, size_t n, const struct process *p)
{
	struct process key = { .pid = p->parent };

	return bsearch(&key, v, n, sizeof(*v), process_by_pid);
}

/*
 * Marks descendants of ROOT in the N processes V, which are in order of their
 * pid. Each walk upwards ends at one whose place is known, so that a long chain
 * costs no more than its length.
 */
static void
process_mark(struct process *v, size_t n, pid_t root)
{
	autofree bool *is_known = xcalloc(n + 1, sizeof(*is_known));

	for (size_t i = 0; i < n; i++) {
		struct process *p = &v[i], *q = p;
		bool is_kin = false;
		size_t steps = 0;

		/* Pids that were reused meanwhile may even make a circle. */
		while (q && !is_known[q - v] && steps++ < n) {
			is_kin = q->parent == root;
			q = is_kin ? NULL : process_parent(v, n, q);
		}
		is_kin = is_kin || (q && q->is_marked);
		for (q = p; q && !is_known[q - v];
		     q = process_parent(v, n, q)) {
			if (q->pid == root)
				break;
			q->is_marked = is_kin;
			is_known[q - v] = true;
		}
	}
}

size_t
process_walk(pid_t root, struct process **out)
{
	DIR *dir = opendir("/proc");
	struct process *v = NULL;
	const struct dirent *d;
	size_t n = 0, cap = 0;

	*out = NULL;
	if (!dir)
		return 0;
	while ((d = readdir(dir))) {
		if (!isdigit((unsigned char)d->d_name[0]))
			continue;
		if (n == cap) {
			cap = cap ? cap * 2 : 64;
			v = xrealloc(v, cap * sizeof(*v));
		}
		if (process_read((pid_t)strtol(d->d_name, NULL, 10), &v[n]) ==
		    0)
			n++;
	}
	closedir(dir);
	if (n > 0)
		qsort(v, n, sizeof(*v), process_by_pid);
	process_mark(v, n, root);
	*out = v;
	return n;
}

bool
process_has_group(pid_t pid, gid_t gid)
{
	static const char key[] = "\nGroups:";
	char text[PROCESS_STATUS_MAX], *at, *end;

	if (process_file(pid, "status", text, sizeof(text)) <= 0)
		return false;
	at = strstr(text, key);
	for (at = at ? at + strlen(key) : NULL; at; at = end) {
		unsigned long v;

		at += strspn(at, "\t ");
		v = strtoul(at, &end, 10);
		if (end == at)
			return false;
		if (v == gid)
			return true;
	}
	return false;
}

int
process_signal(const struct process *p, int sig)
{
	autoclose int fd = pidfd_open(p->pid, 0);
	struct process now = { 0 };
	int rc;

	if (fd < 0)
		return -errno;
	rc = process_read(p->pid, &now);
	if (rc < 0)
		return rc;
	if (now.start_ticks != p->start_ticks)
		return -ESRCH;
	return pidfd_send_signal(fd, sig, NULL, 0) < 0 ? -errno : 0;
}
