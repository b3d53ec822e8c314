/*
 * The steps of a snapshot and of its way back; see snapshot.h. The sandbox
 * stands still only while it is copied. Killed in the middle, it leaves a file
 * with SNAPSHOT_PART, a sandbox that stands still or a workspace beside the
 * true one: berthd, which has a row about it, undoes them.
 */
#include "sandbox/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/provider.h"
#include "sandbox/task.h"

/* Opens the directory of T's file, whose name is left in *NAME_OUT. */
static int
snapshot_open_dir(const struct task *t, const char **name_out, struct err *e)
{
	const char *slash = strrchr(t->file, '/');
	autofree char *dir = NULL;

	if (!slash || slash == t->file || !slash[1])
		return err_set(e, -EINVAL, "there is no file for it");
	*name_out = slash + 1;
	dir = xstrndup(t->file, (size_t)(slash - t->file));
	return fd_open_dir(dir, 0700, e);
}

/* True if P made S stand still for us. */
static int
snapshot_freeze(const struct sandbox_provider *p, const struct sandbox_spec *s,
    bool *did_out, struct err *e)
{
	int rc;

	*did_out = p->suspend && p->status && p->status(s) == SANDBOX_RUNNING;
	if (!*did_out)
		return 0;
	rc = p->suspend(s, e);
	if (rc < 0)
		p->resume(s, NULL);
	return rc < 0 ? err_wrap(e, rc, "it does not stand still") : 0;
}

static int
snapshot_copy(const struct sandbox_provider *p, const struct sandbox_spec *s,
    int fd, struct sandbox_copied *out, struct err *e)
{
	struct err thaw = { .code = 0 };
	bool is_frozen;
	int rc = snapshot_freeze(p, s, &is_frozen, e);

	if (rc < 0)
		return rc;
	rc = p->snapshot(s, fd, out, e);
	if (is_frozen && p->resume(s, &thaw) < 0 && rc == 0)
		rc = err_set(e, thaw.code, "it does not go on: %s", thaw.msg);
	return rc;
}

static int
snapshot_take(const struct sandbox_provider *p, const struct task *t,
    struct sandbox_copied *out, struct err *e)
{
	const char *name = "";
	autoclose int dir_fd = snapshot_open_dir(t, &name, e), fd = -1;
	autofree char *part = NULL;
	int rc;

	if (dir_fd < 0)
		return dir_fd;
	part = xasprintf("%s" SNAPSHOT_PART, name);
	fd = openat(dir_fd, part,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(
		    e, -errno, "cannot make %s" SNAPSHOT_PART, t->file);
	rc = snapshot_copy(p, &t->spec, fd, out, e);
	if (rc == 0 && fsync(fd) < 0)
		rc = err_sys(e, -errno, "cannot write %s", t->file);
	/* Not beside a berthd that has given it up. */
	if (rc == 0)
		rc = task_check(e);
	if (rc == 0 && renameat(dir_fd, part, dir_fd, name) < 0)
		rc = err_sys(e, -errno, "cannot name %s", t->file);
	if (rc < 0)
		unlinkat(dir_fd, part, 0);
	else
		fsync(dir_fd);
	return rc;
}

/* The archive that T is about, or a negative errno with a sentence. */
static int
snapshot_open(const struct task *t, struct err *e)
{
	const char *name = "";
	autoclose int dir_fd = snapshot_open_dir(t, &name, e);
	int fd;

	if (dir_fd < 0)
		return dir_fd;
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? err_sys(e, -errno, "cannot open %s", t->file) : fd;
}

static int
snapshot_unpack(const struct sandbox_provider *p, const struct task *t,
    struct sandbox_copied *out, struct err *e)
{
	autoclose int fd = snapshot_open(t, e);
	int rc;

	if (fd < 0)
		return fd;
	rc = p->unpack(&t->spec, fd, out, e);
	if (rc < 0 || strcmp(out->hash, t->arg) == 0)
		return rc;
	p->unpack(&t->spec, -1, out, NULL);
	return err_set(
	    e, -EBADMSG, "the snapshot is damaged: %s has changed", t->file);
}

/* Nothing runs in it while its files are replaced. */
static int
snapshot_replace(
    const struct sandbox_provider *p, const struct task *t, struct err *e)
{
	autoclose int fd = snapshot_open(t, e);
	int rc = fd < 0 ? fd : p->halt(&t->spec, e);

	return rc < 0 ? rc : p->restore(&t->spec, fd, e);
}

int
snapshot_operate(const struct sandbox_provider *p, const struct task *t,
    struct sandbox_copied *out, struct err *e)
{
	int rc = sandbox_require(p, SANDBOX_CAP_SNAPSHOT, e);

	if (rc < 0)
		return rc;
	switch (t->op) {
	case TASK_SNAPSHOT:
		return snapshot_take(p, t, out, e);
	case TASK_UNPACK:
		return snapshot_unpack(p, t, out, e);
	case TASK_UNSTAGE:
		return p->unpack(&t->spec, -1, out, e);
	case TASK_REPLACE:
		return snapshot_replace(p, t, e);
	default:
		return -ENOSYS;
	}
}
