/* Copies of workspaces; see stage.h. In berth-sandbox and berth-archive. */
#include "sandbox/stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "sandbox/archive.h"
#include "sandbox/provider.h"
#include "sandbox/task.h"
#include "sandbox/workspace.h"
#include "sandbox/workspace_image.h"

void
stage_name(const struct sandbox_spec *s, char out[STAGE_NAME_SIZE])
{
	snprintf(out, STAGE_NAME_SIZE, STAGE_PREFIX "%s" STAGE_SUFFIX, s->name);
}

int
stage_pack(const struct sandbox_spec *s, int out_fd, struct sandbox_copied *out,
    struct err *e)
{
	autoclose int fd = workspace_open(s, e);

	if (!sandbox_archive)
		return err_set(e, -ENOSYS, "this program knows no archives");
	return fd < 0 ? fd : sandbox_archive->pack(fd, out_fd, out, e);
}

int
stage_clear(int dir_fd, const char *name, struct err *e)
{
	autoclose int fd = openat(
	    dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	int rc;

	if (fd >= 0 && flock(fd, LOCK_EX) < 0)
		return err_sys(e, -errno, "cannot lock %s", name);
	rc = workspace_remove_at(dir_fd, name);
	return rc < 0 ? err_sys(e, rc, "cannot remove %s", name) : 0;
}

/* One step replaces a directory, and no file system that is mounted there. */
static int
stage_check(int dir_fd, const struct sandbox_spec *s, struct err *e)
{
	struct stat dir, st;

	if (fstat(dir_fd, &dir) < 0)
		return err_sys(e, -errno, "cannot look at %s", s->dir);
	if (fstatat(dir_fd, s->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT
			   ? 0
			   : err_sys(e, -errno, "cannot look at workspace %s",
				 s->name);
	if (st.st_dev != dir.st_dev)
		return err_set(e, -EOPNOTSUPP,
		    "workspace %s is a file system that somebody mounted "
		    "there and cannot be replaced; restore into another "
		    "sandbox",
		    s->name);
	return 0;
}

/* An empty one that is ours; the descriptor holds its lock. */
static int
stage_make(int dir_fd, const char *name, struct err *e)
{
	autoclose int fd = -1;
	int rc = stage_clear(dir_fd, name, e);

	if (rc < 0)
		return rc;
	if (mkdirat(dir_fd, name, 0700) < 0)
		return err_sys(e, -errno, "cannot make %s", name);
	fd = openat(
	    dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_sys(e, -errno, "cannot lock %s", name);
	return take_fd(&fd);
}

int
stage_unpack(const struct sandbox_spec *s, int in_fd,
    struct sandbox_copied *out, struct err *e)
{
	struct archive_owner owner = { s->uid, s->gid, s->workspace_bytes };
	autoclose int dir_fd = -1, fd = -1;
	char name[STAGE_NAME_SIZE];
	int rc = sandbox_check_name(s->name, e);

	if (rc < 0)
		return rc;
	dir_fd = workspace_open_dir(s, e);
	if (dir_fd < 0)
		return dir_fd;
	stage_name(s, name);
	if (in_fd < 0)
		return stage_clear(dir_fd, name, e);
	if (!sandbox_archive)
		return err_set(e, -ENOSYS, "this program knows no archives");
	rc = stage_check(dir_fd, s, e);
	if (rc < 0)
		return rc;
	fd = stage_make(dir_fd, name, e);
	if (fd < 0)
		return fd;
	rc = sandbox_archive->unpack(fd, in_fd, &owner, out, e);
	if (rc < 0)
		workspace_remove_at(dir_fd, name);
	return rc;
}

static int
stage_exchange(
    int dir_fd, const struct sandbox_spec *s, const char *name, struct err *e)
{
	int rc = stage_check(dir_fd, s, e);

	if (rc < 0)
		return rc;
	if (renameat2(dir_fd, name, dir_fd, s->name, RENAME_NOREPLACE) < 0 &&
	    (errno != EEXIST ||
		renameat2(dir_fd, name, dir_fd, s->name, RENAME_EXCHANGE) < 0))
		return err_sys(
		    e, -errno, "cannot replace workspace %s", s->name);
	return 0;
}

int
stage_replace(const struct sandbox_spec *s, int in_fd, struct err *e)
{
	autoclose int dir_fd = -1;
	char name[STAGE_NAME_SIZE];
	struct stat st;
	int rc = sandbox_check_name(s->name, e);

	(void)in_fd;
	if (rc < 0)
		return rc;
	dir_fd = workspace_open_dir(s, e);
	if (dir_fd < 0)
		return dir_fd;
	stage_name(s, name);
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, -errno, "cannot look at %s", name);
	/* Not beside a berthd that begins anew with what is there. */
	rc = task_check(e);
	if (rc < 0)
		return rc;
	rc = S_ISREG(st.st_mode) ? workspace_image_replace(s, dir_fd, name, e)
				 : stage_exchange(dir_fd, s, name, e);
	if (rc < 0)
		return rc;
	fsync(dir_fd);
	/* What is beside it now is the former one. */
	return stage_clear(dir_fd, name, e);
}
