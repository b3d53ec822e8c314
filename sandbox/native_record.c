/* The record of a native sandbox; see native_record.h. */
#include "sandbox/native_record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/process.h"
#include "sandbox/provider.h"
#include "sandbox/workspace.h"

#define RECORD_MAX 8192

static const char *const record_groups[CGROUP_KINDS] = {
	[CGROUP_UNIFIED] = "cgroup",
	[CGROUP_PIDS] = "cgroup-pids",
	[CGROUP_MEMORY] = "cgroup-memory",
	[CGROUP_CPU] = "cgroup-cpu",
	[CGROUP_FREEZER] = "cgroup-freezer",
};

static int
record_boot(char *out, size_t size)
{
	autoclose int fd =
	    open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	if (n <= 0)
		return -EIO;
	out[n] = '\0';
	out[strcspn(out, "\n")] = '\0';
	return 0;
}

/* The inode of the pid namespace of PID. */
static int
record_pid_ns(pid_t pid, uint64_t *out)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	if (stat(path, &st) < 0)
		return -errno;
	*out = st.st_ino;
	return 0;
}

int
native_record_of(pid_t pid, struct native_record *out)
{
	struct native_record r = { .pid = pid };
	struct process p;
	int rc = process_read(pid, &p);

	if (rc == 0)
		rc = record_boot(r.boot, sizeof(r.boot));
	if (rc == 0)
		rc = record_pid_ns(pid, &r.pid_ns);
	if (rc < 0)
		return rc;
	r.start_ticks = p.start_ticks;
	*out = r;
	return 0;
}

int
native_record_open(const struct native_record *r)
{
	autoclose int fd = -1;
	struct native_record now;
	struct process p;

	if (r->pid <= 1)
		return -ESRCH;
	fd = pidfd_open(r->pid, 0);
	if (fd < 0)
		return -ESRCH;
	/* Looked at after the descriptor is held: the pid is still its. */
	if (native_record_of(r->pid, &now) < 0 ||
	    process_read(r->pid, &p) < 0 || p.state == 'Z' || p.state == 'X' ||
	    now.start_ticks != r->start_ticks || now.pid_ns != r->pid_ns ||
	    strcmp(now.boot, r->boot) != 0)
		return -ESRCH;
	return take_fd(&fd);
}

/* A line, unless there is nothing to say. */
static void
record_put(struct buf *b, const char *key, const char *value)
{
	autofree char *line = xasprintf("%s %s\n", key, value);

	if (*value)
		buf_put(b, line, strlen(line));
}

int
native_record_write(
    const struct sandbox_spec *s, const struct native_record *r, struct err *e)
{
	autoclose int dir_fd = workspace_open_dir(s, e), fd = -1;
	struct buf b = { 0 };
	autofree char *text = NULL;
	char name[NATIVE_RECORD_SIZE], fresh[NATIVE_RECORD_SIZE + 4];
	int rc;

	if (dir_fd < 0)
		return dir_fd;
	text = xasprintf("pid %d\nstart %" PRIu64 "\npidns %" PRIu64
			 "\nflags %" PRIu32 "\npids %" PRIu64 "\nboot %s\n",
	    (int)r->pid, r->start_ticks, r->pid_ns, r->ns_flags, r->pids_max,
	    r->boot);
	buf_put(&b, text, strlen(text));
	for (int i = 0; i < CGROUP_KINDS; i++)
		record_put(&b, record_groups[i], r->cgroup.path[i]);
	record_put(&b, "pool", r->member);
	record_put(&b, "missing", r->missing);
	snprintf(name, sizeof(name), NATIVE_RECORD, s->name);
	snprintf(fresh, sizeof(fresh), "%s.new", name);
	fd = openat(dir_fd, fresh,
	    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	rc = fd < 0 ? -errno : fd_write_all(fd, buf_head(&b), buf_len(&b));
	buf_release(&b);
	if (rc == 0 && renameat(dir_fd, fresh, dir_fd, name) < 0)
		rc = -errno;
	return rc < 0 ? err_sys(e, rc, "cannot write %s/%s", s->dir, name) : 0;
}

/* One line "KEY VALUE"; unknown keys are a later version's. */
static void
record_line(struct native_record *r, const char *key, const char *value)
{
	uint64_t n = strtoull(value, NULL, 10);

	if (strcmp(key, "pid") == 0)
		r->pid = (pid_t)n;
	else if (strcmp(key, "start") == 0)
		r->start_ticks = n;
	else if (strcmp(key, "pidns") == 0)
		r->pid_ns = n;
	else if (strcmp(key, "flags") == 0)
		r->ns_flags = (uint32_t)n;
	else if (strcmp(key, "pids") == 0)
		r->pids_max = n;
	else if (strcmp(key, "boot") == 0)
		snprintf(r->boot, sizeof(r->boot), "%s", value);
	else if (strcmp(key, "pool") == 0)
		snprintf(r->member, sizeof(r->member), "%s", value);
	else if (strcmp(key, "missing") == 0)
		snprintf(r->missing, sizeof(r->missing), "%s", value);
	for (int i = 0; i < CGROUP_KINDS; i++) {
		if (strcmp(key, record_groups[i]) == 0)
			snprintf(
			    r->cgroup.path[i], CGROUP_PATH_MAX, "%s", value);
	}
}

static int
record_parse(char *text, struct native_record *out)
{
	struct native_record r = { .pid = 0 };
	char *line, *rest = text;

	while ((line = strsep(&rest, "\n"))) {
		char *value = strchr(line, ' ');

		if (!value)
			continue;
		*value++ = '\0';
		record_line(&r, line, value);
	}
	if (r.pid <= 1 || !r.start_ticks || !r.pid_ns || !r.boot[0])
		return -EPROTO;
	*out = r;
	return 0;
}

int
native_record_read(const struct sandbox_spec *s, struct native_record *out)
{
	autoclose int dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autoclose int fd = -1;
	char name[NATIVE_RECORD_SIZE], text[RECORD_MAX];
	ssize_t n;

	if (dir_fd < 0)
		return -errno;
	snprintf(name, sizeof(name), NATIVE_RECORD, s->name);
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return record_parse(text, out);
}

int
native_record_remove(const struct sandbox_spec *s)
{
	autoclose int dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[NATIVE_RECORD_SIZE];

	snprintf(name, sizeof(name), NATIVE_RECORD, s->name);
	if (dir_fd < 0 || unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	return -errno;
}

int
native_record_lock(const struct sandbox_spec *s, struct err *e)
{
	autoclose int dir_fd = workspace_open_dir(s, e);
	char name[NATIVE_RECORD_SIZE];

	if (dir_fd < 0)
		return dir_fd;
	snprintf(name, sizeof(name), NATIVE_LOCK, s->name);
	for (;;) {
		autoclose int fd = openat(dir_fd, name,
		    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		struct stat mine, there;

		if (fd < 0 || flock(fd, LOCK_EX) < 0 || fstat(fd, &mine) < 0)
			return err_sys(
			    e, -errno, "cannot lock %s/%s", s->dir, name);
		/* Whoever held it may have removed it: then it locks nothing. */
		if (fstatat(dir_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		    there.st_ino == mine.st_ino)
			return take_fd(&fd);
	}
}

void
native_record_unlock(const struct sandbox_spec *s, int fd)
{
	autoclose int dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[NATIVE_RECORD_SIZE];

	snprintf(name, sizeof(name), NATIVE_LOCK, s->name);
	if (dir_fd >= 0)
		unlinkat(dir_fd, name, 0);
	close(fd);
}
