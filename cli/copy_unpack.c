/*
 * A tar stream as files of this host; see copy.h. What a sandbox sends is
 * hostile: every name is resolved beneath the target and through no link, a
 * file is written under a name of its own and renamed, set-id bits, owners and
 * devices stay away.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/copy.h"
#include "cli/tar.h"

#define COPY_BYTES (64U << 10)

/* Rights and time of a directory, set when all that is in it is there. */
struct copy_later {
	char *path;
	mode_t mode;
	int64_t mtime_s;
	uint32_t mtime_ns;
};

struct copy_target {
	struct copy *c;
	int dir_fd;
	const char *top, *name;
	struct tar_reader in;
	char temporary[32];
	struct copy_later *later;
	size_t n_later;
	struct err *e;
};

static int
copy_open_beneath(const struct copy_target *t, const char *path, int flags)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC | O_NOFOLLOW),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			   RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(
	    SYS_openat2, t->dir_fd, *path ? path : ".", &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/*
 * The name NAME of the archive as one below dir_fd into OUT: what is behind the
 * top, without `.` and doubled slashes. -EPROTO for a name that is not below
 * the top or goes up; "" for the top itself where that is dir_fd.
 */
static int
copy_name(const struct copy_target *t, const char *name, char out[TAR_PATH_MAX],
    struct err *e)
{
	bool has_top = strcmp(t->top, ".") == 0;
	size_t n = 0;

	*out = '\0';
	if (t->name)
		n = (size_t)snprintf(out, TAR_PATH_MAX, "%s", t->name);
	while (*name) {
		size_t len = strcspn(name, "/");
		bool is_up = len == 2 && memcmp(name, "..", 2) == 0;

		if (is_up)
			break;
		if (len == 0 || (len == 1 && *name == '.')) {
			name += len + (name[len] == '/');
			continue;
		}
		if (!has_top) {
			if (strlen(t->top) != len ||
			    memcmp(name, t->top, len) != 0)
				break;
			has_top = true;
		} else {
			if (n + len + 2 > TAR_PATH_MAX)
				return err_set(e, -ENAMETOOLONG,
				    "a name in it is too long");
			n += (size_t)snprintf(out + n, TAR_PATH_MAX - n,
			    "%s%.*s", n ? "/" : "", (int)len, name);
		}
		name += len + (name[len] == '/');
	}
	if (*name || !has_top) {
		char shown[160];

		text_escape(name, strlen(name), shown, sizeof(shown));
		return err_set(e, -EPROTO,
		    "the sandbox sent %s, which was not asked for", shown);
	}
	return 0;
}

/* Makes the directories of PATH that are not there, all of it being one. */
static int
copy_make_parents(const struct copy_target *t, const char *path)
{
	for (const char *p = path; *p;) {
		const char *end = p + strcspn(p, "/");
		char dir[TAR_PATH_MAX], name[TAR_PATH_MAX];
		autoclose int fd = -1;

		snprintf(dir, sizeof(dir), "%.*s", (int)(p - path), path);
		snprintf(name, sizeof(name), "%.*s", (int)(end - p), p);
		fd = copy_open_beneath(t, dir, O_PATH | O_DIRECTORY);
		if (fd < 0)
			return fd;
		if (mkdirat(fd, name, 0777) < 0 && errno != EEXIST)
			return -errno;
		p = *end ? end + 1 : end;
	}
	return 0;
}

/* The directory that PATH is in, made where the archive left it out. */
static int
copy_open_parent(
    const struct copy_target *t, const char *path, const char **base)
{
	char dir[TAR_PATH_MAX];
	const char *slash = strrchr(path, '/');
	int fd, rc;

	*base = slash ? slash + 1 : path;
	snprintf(
	    dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) : 0, path);
	fd = copy_open_beneath(t, dir, O_PATH | O_DIRECTORY);
	if (fd != -ENOENT || !slash)
		return fd;
	rc = copy_make_parents(t, dir);
	return rc < 0 ? rc : copy_open_beneath(t, dir, O_PATH | O_DIRECTORY);
}

/* Gives what was made as t->temporary its name, in the place of a file. */
static int
copy_settle(struct copy_target *t, int parent_fd, const char *base)
{
	int rc =
	    renameat(parent_fd, t->temporary, parent_fd, base) < 0 ? -errno : 0;

	/* A rename to a link of the same file leaves both. */
	unlinkat(parent_fd, t->temporary, 0);
	return rc;
}

/* The contents of the present entry; 0 or a negative errno with a sentence. */
static int
copy_fill_file(struct copy_target *t, int fd)
{
	static uint8_t space[COPY_BYTES];
	ssize_t n;

	while ((n = tar_data(&t->in, space, sizeof(space), t->e)) > 0) {
		for (ssize_t at = 0; at < n;) {
			ssize_t k = write(fd, space + at, (size_t)(n - at));

			if (k < 0 && errno == EINTR && !copy_is_stopped())
				continue;
			if (k < 0)
				return err_sys(
				    t->e, -errno, "cannot write a file");
			at += k;
		}
		copy_advance(t->c, (uint64_t)n);
		if (copy_is_stopped())
			return -EINTR;
	}
	return (int)n;
}

static int
copy_make_file(
    struct copy_target *t, int parent_fd, const struct tar_entry *entry)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
		{ .tv_sec = entry->mtime_s, .tv_nsec = entry->mtime_ns } };
	autoclose int fd = openat(parent_fd, t->temporary,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc;

	if (fd < 0)
		return err_sys(t->e, -errno, "cannot make a file");
	rc = copy_fill_file(t, fd);
	if (rc == 0 &&
	    (fchmod(fd, entry->mode & 0777) < 0 || futimens(fd, times) < 0))
		rc = err_sys(t->e, -errno, "cannot set rights and time");
	if (rc < 0)
		unlinkat(parent_fd, t->temporary, 0);
	return rc;
}

static int
copy_make_link(
    struct copy_target *t, int parent_fd, const struct tar_entry *entry)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
		{ .tv_sec = entry->mtime_s, .tv_nsec = entry->mtime_ns } };

	if (symlinkat(entry->link, parent_fd, t->temporary) < 0)
		return err_sys(t->e, -errno, "cannot make a link");
	utimensat(parent_fd, t->temporary, times, AT_SYMLINK_NOFOLLOW);
	return 0;
}

/* A second name of a file that came before. */
static int
copy_make_hard_link(
    struct copy_target *t, int parent_fd, const struct tar_entry *entry)
{
	char path[TAR_PATH_MAX];
	autoclose int from_fd = -1;
	const char *base;
	int rc = copy_name(t, entry->link, path, t->e);

	if (rc < 0)
		return rc;
	from_fd = copy_open_parent(t, path, &base);
	if (from_fd < 0 || !*base ||
	    linkat(from_fd, base, parent_fd, t->temporary, 0) < 0)
		return err_sys(t->e, from_fd < 0 ? from_fd : -errno,
		    "cannot make a second name of a file");
	return 0;
}

static int
copy_make_directory(
    struct copy_target *t, const char *path, const struct tar_entry *entry)
{
	const char *base;
	autoclose int parent_fd = copy_open_parent(t, path, &base);
	struct stat st;

	if (parent_fd < 0)
		return err_sys(t->e, parent_fd, "cannot make a directory");
	if (mkdirat(parent_fd, base, 0700) == 0) {
		t->later =
		    xrealloc(t->later, (t->n_later + 1) * sizeof(*t->later));
		t->later[t->n_later++] = (struct copy_later){ xstrdup(path),
			entry->mode & 0777, entry->mtime_s, entry->mtime_ns };
		return 0;
	}
	if (errno != EEXIST ||
	    fstatat(parent_fd, base, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(t->e, -errno, "cannot make a directory");
	if (!S_ISDIR(st.st_mode))
		return err_set(
		    t->e, -ENOTDIR, "there is something that is no directory");
	return 0;
}

static int
copy_make(
    struct copy_target *t, const char *path, const struct tar_entry *entry)
{
	autoclose int parent_fd = -1;
	const char *base;
	int rc;

	if (entry->type == TAR_DIRECTORY)
		return *path ? copy_make_directory(t, path, entry) : 0;
	if (!*path)
		return err_set(t->e, -ENOTDIR, "it is no directory");
	if (entry->type != TAR_FILE && entry->type != TAR_SYMLINK &&
	    entry->type != TAR_HARD_LINK) {
		copy_skip(t->c, path, "it is neither file, directory nor link");
		return 0;
	}
	parent_fd = copy_open_parent(t, path, &base);
	if (parent_fd < 0)
		return err_sys(t->e, parent_fd, "cannot enter its directory");
	if (entry->type == TAR_FILE)
		rc = copy_make_file(t, parent_fd, entry);
	else if (entry->type == TAR_SYMLINK)
		rc = copy_make_link(t, parent_fd, entry);
	else
		rc = copy_make_hard_link(t, parent_fd, entry);
	if (rc < 0)
		return rc;
	rc = copy_settle(t, parent_fd, base);
	return rc < 0 ? err_sys(t->e, rc, "cannot put it in its place") : 0;
}

/* What is in a directory changes its time, so the last one comes first. */
static void
copy_finish_directories(struct copy_target *t)
{
	while (t->n_later) {
		struct copy_later *l = &t->later[--t->n_later];
		const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
			{ .tv_sec = l->mtime_s, .tv_nsec = l->mtime_ns } };
		autoclose int fd =
		    copy_open_beneath(t, l->path, O_RDONLY | O_DIRECTORY);

		if (fd < 0 || futimens(fd, times) < 0 ||
		    fchmod(fd, l->mode) < 0)
			copy_skip(t->c, l->path,
			    "its rights and time could not be set");
		free(l->path);
	}
	free(t->later);
}

int
copy_unpack(struct copy *c, int dir_fd, const char *top, const char *name,
    struct err *e)
{
	struct copy_target t = {
		.c = c,
		.dir_fd = dir_fd,
		.top = top,
		.name = name,
		.in = { .fd = c->fd },
		.e = e,
	};
	autofree struct tar_entry *entry = xmalloc(sizeof(*entry));
	int rc;

	text_random_id(".berth-cp-", 8, t.temporary, sizeof(t.temporary));
	while ((rc = tar_next(&t.in, entry, e)) == 1) {
		char path[TAR_PATH_MAX], shown[160];

		rc = copy_name(&t, entry->path, path, e);
		if (rc < 0)
			break;
		copy_begins(c, path);
		rc = copy_make(&t, path, entry);
		if (rc < 0) {
			text_escape(path, strlen(path), shown, sizeof(shown));
			err_wrap(e, rc, "%s", shown);
			break;
		}
		c->n_files++;
		if (copy_is_stopped()) {
			rc = -EINTR;
			break;
		}
	}
	copy_finish_directories(&t);
	return rc;
}
