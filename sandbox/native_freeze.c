/*
 * Suspend and resume of a native sandbox by the freezer of its control groups;
 * see native_freeze.h. Whether it is suspended is what its group says, so that
 * nobody who is killed in between leaves a wrong word behind.
 */
#include "sandbox/native_freeze.h"

#include <errno.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "sandbox/native_record.h"
#include "sandbox/provider.h"

/* What hangs in the kernel for longer is not waited for. */
#define FREEZE_WAIT_MS 5000

/* RC of a freezer as a sentence. */
static int
freeze_result(
    const struct sandbox_spec *s, int rc, bool is_suspend, struct err *e)
{
	if (rc == -EOPNOTSUPP)
		return err_set(e, rc,
		    "unsupported: sandbox %s has no control group that could "
		    "suspend it",
		    s->name);
	if (rc == -ETIMEDOUT)
		return err_set(e, rc, "the processes of sandbox %s do not %s",
		    s->name, is_suspend ? "stop" : "go on");
	return rc < 0 ? err_sys(e, rc, "cannot %s sandbox %s",
			    is_suspend ? "suspend" : "resume", s->name)
		      : 0;
}

int
native_thaw(
    const struct sandbox_spec *s, const struct native_record *r, struct err *e)
{
	return freeze_result(
	    s, cgroup_thaw(&r->cgroup, FREEZE_WAIT_MS), false, e);
}

static int
freeze_locked(const struct sandbox_spec *s, bool is_suspend, struct err *e)
{
	struct native_record r;
	autoclose int pidfd = -1;
	int rc = native_record_read(s, &r);

	pidfd = rc < 0 ? rc : native_record_open(&r);
	if (pidfd < 0)
		return err_set(e, pidfd, "sandbox %s does not run", s->name);
	if (!is_suspend)
		return native_thaw(s, &r, e);
	return freeze_result(
	    s, cgroup_freeze(&r.cgroup, FREEZE_WAIT_MS), true, e);
}

static int
freeze_change(const struct sandbox_spec *s, bool is_suspend, struct err *e)
{
	int rc = sandbox_check_name(s->name, e), lock_fd;

	if (rc < 0)
		return rc;
	lock_fd = native_record_lock(s, e);
	if (lock_fd < 0)
		return lock_fd;
	rc = freeze_locked(s, is_suspend, e);
	native_record_unlock(s, lock_fd);
	return rc;
}

int
native_suspend(const struct sandbox_spec *s, struct err *e)
{
	return freeze_change(s, true, e);
}

int
native_resume(const struct sandbox_spec *s, struct err *e)
{
	return freeze_change(s, false, e);
}
