/*
 * Workspaces below sandbox.dir; see workspace.h. Every step goes by descriptor:
 * what a sandbox puts in the place of its workspace is never followed.
 */
#include "sandbox/workspace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/provider.h"

#define WORKSPACE_DIR_MODE   0711
#define WORKSPACE_MODE       0700
#define WORKSPACE_PASSES_MAX 8

int
workspace_open_dir(const struct sandbox_spec *s, struct err *e)
{
	autofree char *parent = xstrdup(s->dir);
	char *slash = strrchr(parent, '/');
	autoclose int fd = -1;
	struct stat st;
	int rc;

	if (slash && slash != parent) {
		*slash = '\0';
		rc = fd_make_dirs(parent, e);
		if (rc < 0)
			return rc;
	}
	fd = fd_open_dir(s->dir, WORKSPACE_DIR_MODE, e);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_sys(e, -errno, "cannot look at %s", s->dir);
	if ((st.st_mode & 07777) != WORKSPACE_DIR_MODE &&
	    fchmod(fd, WORKSPACE_DIR_MODE) < 0)
		return err_sys(e, -errno, "cannot chmod %s", s->dir);
	return take_fd(&fd);
}

/* Opens the workspace below DIR_FD, never through a link. */
static int
workspace_open_at(int dir_fd, const struct sandbox_spec *s, struct err *e)
{
	int fd = openat(
	    dir_fd, s->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int code = -errno;

	if (fd >= 0)
		return fd;
	if (code == -ELOOP || code == -ENOTDIR)
		return err_set(e, -ENOTDIR,
		    "workspace %s/%s is not a directory (a link or file "
		    "stands in its place)",
		    s->dir, s->name);
	return err_sys(e, code, "cannot open workspace %s/%s", s->dir, s->name);
}

/*
 * Gives the workspace to its user. One of berthd's own is left from a start
 * that was cut short: nobody else can make entries in sandbox.dir.
 */
static int
workspace_settle(int fd, const struct sandbox_spec *s, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(
		    e, -errno, "cannot look at workspace %s", s->name);
	if (st.st_uid != s->uid && st.st_uid != geteuid())
		return err_set(e, -EPERM,
		    "workspace %s/%s belongs to uid %u, not to %s (uid %u)",
		    s->dir, s->name, st.st_uid, s->user, s->uid);
	if ((st.st_mode & 07777) != WORKSPACE_MODE &&
	    fchmod(fd, WORKSPACE_MODE) < 0)
		return err_sys(e, -errno, "cannot chmod workspace %s", s->name);
	if (st.st_uid != s->uid && fchown(fd, s->uid, s->gid) < 0)
		return err_sys(e, -errno, "cannot chown workspace %s", s->name);
	return 0;
}

int
workspace_make(const struct sandbox_spec *s, struct err *e)
{
	autoclose int dir_fd = -1, fd = -1;
	int rc = sandbox_check_name(s->name, e);

	if (rc < 0)
		return rc;
	dir_fd = workspace_open_dir(s, e);
	if (dir_fd < 0)
		return dir_fd;
	if (mkdirat(dir_fd, s->name, WORKSPACE_MODE) < 0 && errno != EEXIST)
		return err_sys(
		    e, -errno, "cannot make workspace %s/%s", s->dir, s->name);
	fd = workspace_open_at(dir_fd, s, e);
	if (fd < 0)
		return fd;
	rc = workspace_settle(fd, s, e);
	return rc < 0 ? rc : take_fd(&fd);
}

int
workspace_open(const struct sandbox_spec *s, struct err *e)
{
	autoclose int dir_fd = -1, fd = -1;
	struct stat st;
	int rc = sandbox_check_name(s->name, e);

	if (rc < 0)
		return rc;
	dir_fd = workspace_open_dir(s, e);
	if (dir_fd < 0)
		return dir_fd;
	fd = workspace_open_at(dir_fd, s, e);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || st.st_uid != s->uid)
		return err_set(e, -EPERM,
		    "workspace %s/%s does not belong to %s", s->dir, s->name,
		    s->user);
	return take_fd(&fd);
}

int
workspace_stat(const struct sandbox_spec *s, struct stat *out)
{
	autoclose int dir_fd = -1;

	if (!sandbox_name_is_valid(s->name))
		return -EINVAL;
	dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0 ||
	    fstatat(dir_fd, s->name, out, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

/* ---- removal -------------------------------------------------------------- */

static int workspace_remove_tree(int parent_fd, const char *name, int depth);

/* Opens directory NAME so that its entries can be removed. */
static int
workspace_open_for_removal(int parent_fd, const char *name, dev_t dev)
{
	autoclose int path_fd = openat(
	    parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char proc[64];
	struct stat st;
	int fd;

	if (path_fd < 0 || fstat(path_fd, &st) < 0)
		return -errno;
	/* A mounted file system is not ours to empty. */
	if (st.st_dev != dev)
		return -EXDEV;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", path_fd);
	if ((st.st_mode & S_IRWXU) != S_IRWXU && chmod(proc, 0700) < 0)
		return -errno;
	fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Removes the entry NAME of DIR_FD, a tree if it is a directory. */
static int
workspace_remove_entry(int dir_fd, const char *name, int depth)
{
	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	/* Linux says EISDIR for a directory, POSIX EPERM. */
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	return workspace_remove_tree(dir_fd, name, depth);
}

static int
workspace_empty(DIR *d, int depth)
{
	struct dirent *entry;

	for (;;) {
		int rc;

		errno = 0;
		entry = readdir(d); /* NOLINT(concurrency-mt-unsafe) */
		if (!entry)
			return -errno;
		if (strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0)
			continue;
		rc = workspace_remove_entry(dirfd(d), entry->d_name, depth + 1);
		if (rc < 0)
			return rc;
	}
}

static int
workspace_remove_tree(int parent_fd, const char *name, int depth)
{
	struct stat st;
	int rc = 0, fd;
	DIR *d;

	if (depth > WORKSPACE_DEPTH_MAX)
		return -ELOOP;
	if (fstat(parent_fd, &st) < 0)
		return -errno;
	fd = workspace_open_for_removal(parent_fd, name, st.st_dev);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	d = fdopendir(fd);
	if (!d) {
		rc = -errno;
		close(fd);
		return rc;
	}
	/* Again while something writes into it or readdir missed an entry. */
	for (int pass = 0; pass < WORKSPACE_PASSES_MAX; pass++) {
		rewinddir(d);
		rc = workspace_empty(d, depth);
		if (rc < 0)
			break;
		rc = unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
		if (rc != -ENOTEMPTY && rc != -EEXIST)
			break;
	}
	closedir(d);
	return rc == -ENOENT ? 0 : rc;
}

int
workspace_remove_at(int dir_fd, const char *name)
{
	return workspace_remove_entry(dir_fd, name, 0);
}

int
workspace_remove(const struct sandbox_spec *s, struct err *e)
{
	autoclose int dir_fd = -1;
	int rc = sandbox_check_name(s->name, e);

	if (rc < 0)
		return rc;
	dir_fd = workspace_open_dir(s, e);
	if (dir_fd < 0)
		return dir_fd;
	rc = workspace_remove_entry(dir_fd, s->name, 0);
	if (rc == -ELOOP)
		return err_set(e, rc,
		    "workspace %s/%s: a directory is nested deeper than %d",
		    s->dir, s->name, WORKSPACE_DEPTH_MAX);
	return rc < 0 ? err_sys(e, rc, "cannot remove workspace %s/%s", s->dir,
			    s->name)
		      : 0;
}
