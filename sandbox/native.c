/*
 * The provider `native`; see native.h. What it keeps of a sandbox is its
 * record, so that any berthd knows it, and berth-sandbox can be killed at any
 * moment. Both programs.
 */
#include "sandbox/native.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "sandbox/dial.h"
#include "sandbox/native_freeze.h"
#include "sandbox/native_metrics.h"
#include "sandbox/native_record.h"
#include "sandbox/provider.h"
#include "sandbox/stage.h"
#include "sandbox/workspace.h"
#include "sandbox/workspace_image.h"

/* So long an ended sandbox may take to be gone. */
#define NATIVE_END_MS 5000

/* So long may what was killed while it was made. */
#define NATIVE_EMPTY_MS 1000

int
native_open(const struct sandbox_spec *s, struct native_record *out)
{
	int rc = native_record_read(s, out);

	return rc < 0 ? rc : native_record_open(out);
}

/* With its first process all others end. */
int
native_end(const struct sandbox_spec *s, struct err *e)
{
	struct native_record r;
	autoclose int pidfd = native_open(s, &r);
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int rc;

	if (pidfd == -ENOENT)
		return 0;
	if (pidfd == -EPROTO) {
		/* Nobody can say what it was about. */
		native_record_remove(s);
		return 0;
	}
	if (pidfd >= 0) {
		if (pidfd_send_signal(pidfd, SIGKILL, NULL, 0) < 0 &&
		    errno != ESRCH)
			return err_sys(
			    e, -errno, "cannot end sandbox %s", s->name);
		cgroup_let_die(&r.cgroup);
		if (poll(&p, 1, NATIVE_END_MS) == 0)
			return err_set(e, -ETIMEDOUT,
			    "the processes of sandbox %s do not end", s->name);
	} else if (pidfd != -ESRCH) {
		return err_sys(e, pidfd, "cannot look at sandbox %s", s->name);
	}
	rc = cgroup_remove(&r.cgroup, NATIVE_END_MS);
	if (rc < 0)
		return err_sys(
		    e, rc, "cannot remove the groups of %s", s->name);
	rc = native_record_remove(s);
	return rc < 0 ? err_sys(e, rc, "cannot forget sandbox %s", s->name) : 0;
}

void
native_forget_groups(const struct sandbox_spec *s)
{
	struct cgroup groups;

	cgroup_named(s, &groups);
	cgroup_remove_empty(&groups, NATIVE_EMPTY_MS);
}

/* The first process, around a workspace that holds no more than it may. */
static int
native_begin(const struct sandbox_spec *s, int *workspace_fd,
    struct sandbox_made *out, struct err *e)
{
	bool is_limited = false;
	size_t n;
	int rc = workspace_image_mount(s, workspace_fd, &is_limited, e);

	if (rc == 0 && !native_pool_claim(s, *workspace_fd, out))
		rc = native_make(s, *workspace_fd, out, e);
	n = strlen(out->missing);
	if (s->workspace_bytes && !is_limited)
		snprintf(out->missing + n, sizeof(out->missing) - n, "%s%s",
		    n ? ", " : "", "workspace_size");
	return rc;
}

static int
native_provision(
    const struct sandbox_spec *s, struct sandbox_made *out, struct err *e)
{
	autoclose int workspace_fd = workspace_make(s, e), pidfd = -1;
	struct native_record r;
	int lock_fd, rc = 0;

	if (workspace_fd < 0)
		return workspace_fd;
	lock_fd = native_record_lock(s, e);
	if (lock_fd < 0)
		return lock_fd;
	pidfd = native_open(s, &r);
	if (pidfd < 0) {
		rc = native_end(s, e);
		if (rc == 0)
			rc = native_begin(s, &workspace_fd, out, e);
	} else if (cgroup_is_frozen(&r.cgroup)) {
		rc = native_thaw(s, &r, e);
	}
	native_record_unlock(s, lock_fd);
	return rc;
}

static int
native_halt(const struct sandbox_spec *s, struct err *e)
{
	int rc = sandbox_check_name(s->name, e), lock_fd;

	if (rc < 0)
		return rc;
	lock_fd = native_record_lock(s, e);
	if (lock_fd < 0)
		return lock_fd;
	rc = native_end(s, e);
	if (rc == 0)
		native_forget_groups(s);
	native_record_unlock(s, lock_fd);
	return rc;
}

static int
native_teardown(const struct sandbox_spec *s, struct err *e)
{
	int rc = native_halt(s, e);

	if (rc == 0)
		rc = workspace_image_remove(s, e);
	return rc < 0 ? rc : workspace_remove(s, e);
}

static enum sandbox_phase
native_status(const struct sandbox_spec *s)
{
	struct native_record r;
	autoclose int pidfd = -1;
	struct stat st;

	if (!sandbox_name_is_valid(s->name))
		return SANDBOX_GONE;
	pidfd = native_open(s, &r);
	if (pidfd >= 0)
		return cgroup_is_frozen(&r.cgroup) ? SANDBOX_SUSPENDED
						   : SANDBOX_RUNNING;
	/* Its files are there, and whatever ran is not. */
	return pidfd != -ENOENT || workspace_stat(s, &st) == 0 ? SANDBOX_FAILED
							       : SANDBOX_GONE;
}

static int
native_watch(const struct sandbox_spec *s)
{
	struct native_record r;
	int pidfd = native_open(s, &r);

	return pidfd < 0 ? -1 : pidfd;
}

/* True if the sandbox has the program PATH, which is absolute. */
static bool
native_has_program(const struct sandbox_spec *s, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	autoclose int root_fd =
	    open(*s->rootfs ? s->rootfs : "/", O_PATH | O_CLOEXEC);
	autoclose int fd = -1;
	struct stat st;

	if (root_fd < 0)
		return false;
	fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       (st.st_mode & S_IXOTH);
}

static int
native_exec(
    const struct sandbox_spec *s, struct sandbox_place *out, struct err *e)
{
	struct sandbox_place place = {
		.uid = s->uid,
		.gid = s->gid,
		.must_setuid = s->must_setuid,
	};
	struct native_record r;
	int rc = sandbox_check_name(s->name, e), pidfd;

	if (rc < 0)
		return rc;
	pidfd = native_open(s, &r);
	if (pidfd < 0)
		return err_set(e, pidfd, "sandbox %s does not run", s->name);
	/* Who goes in there stops too, and nobody hears of it. */
	if (cgroup_is_frozen(&r.cgroup)) {
		close(pidfd);
		return err_set(e, -EBUSY, "sandbox %s is suspended", s->name);
	}
	place.entry.pidfd = pidfd;
	place.entry.ns_flags = r.ns_flags;
	place.entry.pids_max = r.pids_max;
	cgroup_oom_path(
	    &r.cgroup, place.entry.oom_path, sizeof(place.entry.oom_path));
	for (enum cgroup_kind i = 0; i < CGROUP_KINDS; i++) {
		if (r.cgroup.path[i][0])
			snprintf(place.entry.cgroups[i],
			    sizeof(place.entry.cgroups[i]), "%s/%s",
			    r.cgroup.path[i], cgroup_door(i));
	}
	snprintf(place.workspace, sizeof(place.workspace), NATIVE_WORKSPACE);
	snprintf(place.user, sizeof(place.user), "%s", s->user);
	snprintf(place.shell, sizeof(place.shell), "%s", s->shell);
	snprintf(
	    place.sftp_server, sizeof(place.sftp_server), "%s", s->sftp_server);
	place.has_sftp_server = native_has_program(s, s->sftp_server);
	*out = place;
	return 0;
}

/* ---- network ------------------------------------------------------------- */

/* Where its sockets come from; a negative errno when it does not run. */
static int
native_place(const struct sandbox_spec *s, struct inside_place *out)
{
	struct native_record r;
	int pidfd = native_open(s, &r);

	if (pidfd < 0)
		return pidfd;
	*out = (struct inside_place){
		.pidfd = pidfd,
		.ns_flags = r.ns_flags & (CLONE_NEWUSER | CLONE_NEWNET),
		.uid = s->uid,
	};
	return 0;
}

static struct sandbox_call *
native_call(const struct sandbox_spec *spec, const struct sandbox_socket *s,
    sandbox_socket_fn fn, void *arg, bool is_listener)
{
	struct inside_place p;
	int rc = native_place(spec, &p);

	if (rc < 0)
		return sandbox_dial->fail(
		    s, rc, "the sandbox does not run", fn, arg);
	if (p.ns_flags & CLONE_NEWNET)
		return is_listener
			   ? sandbox_dial->listen_inside(spec, s, &p, fn, arg)
			   : sandbox_dial->connect_inside(spec, s, &p, fn, arg);
	close(p.pidfd);
	return is_listener ? sandbox_dial->listen(spec, s, fn, arg)
			   : sandbox_dial->connect(spec, s, fn, arg);
}

static struct sandbox_call *
native_dial(const struct sandbox_spec *spec, const struct sandbox_socket *s,
    sandbox_socket_fn fn, void *arg)
{
	return native_call(spec, s, fn, arg, false);
}

static struct sandbox_call *
native_listen(const struct sandbox_spec *spec, const struct sandbox_socket *s,
    sandbox_socket_fn fn, void *arg)
{
	return native_call(spec, s, fn, arg, true);
}

static int
native_measure(const struct sandbox_spec *s, const char *sids,
    struct sandbox_metrics *out, struct err *e)
{
	struct native_record r;
	autoclose int pidfd = native_open(s, &r);

	if (pidfd < 0)
		return err_set(e, pidfd, "sandbox %s does not run", s->name);
	(void)sids;
	native_metrics(&r, out);
	return 0;
}

static const struct sandbox_provider native_provider = {
	.name = "native",
	.description = "namespaces and control groups of this kernel",
	.capabilities = SANDBOX_CAP_EXEC | SANDBOX_CAP_PORT_FORWARD |
			SANDBOX_CAP_METRICS | SANDBOX_CAP_SNAPSHOT |
			SANDBOX_CAP_SUSPEND | SANDBOX_CAP_POOLS,
	.is_contained = true,
	.provision = native_provision,
	.teardown = native_teardown,
	.halt = native_halt,
	.suspend = native_suspend,
	.resume = native_resume,
	.snapshot = stage_image_pack,
	.unpack = stage_image_unpack,
	.restore = stage_replace,
	.fill = native_fill,
	.drain = native_drain,
	.members = native_members,
	.watch_member = native_watch_member,
	.was_member = native_was_member,
	.status = native_status,
	.watch = native_watch,
	.exec = native_exec,
	.dial = native_dial,
	.listen = native_listen,
	.measure = native_measure,
};

const struct sandbox_provider *
sandbox_native(void)
{
	return &native_provider;
}
