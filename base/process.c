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

int
process_read(pid_t pid, struct process *out)
{
	autoclose int fd = -1;
	struct process p = { .pid = pid };
	unsigned long long start;
	char path[64], text[1024];
	const char *s;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return -ESRCH;
	text[n] = '\0';
	/* The name in field 2 may hold anything, a ')' too: count from its end. */
	s = strrchr(text, ')');
	/* NOLINTNEXTLINE(cert-err34-c): the kernel prints numbers */
	if (!s || sscanf(s + 1,
		      " %c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
		      "%*d %*d %*d %*d %*d %llu",
		      &p.state, &p.parent, &p.session, &start) != 4)
		return -EPROTO;
	p.start_ticks = start;
	*out = p;
	return 0;
}

/* Marks children of marked ones until nothing changes. */
static void
process_mark(struct process *v, size_t n, pid_t root)
{
	bool has_changed;

	do {
		has_changed = false;
		for (size_t i = 0; i < n; i++) {
			bool is_kin = v[i].parent == root;

			for (size_t j = 0; j < n && !is_kin && !v[i].is_marked;
			     j++)
				is_kin =
				    v[j].is_marked && v[j].pid == v[i].parent;
			if (!is_kin || v[i].is_marked)
				continue;
			v[i].is_marked = true;
			has_changed = true;
		}
	} while (has_changed);
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
	process_mark(v, n, root);
	*out = v;
	return n;
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
