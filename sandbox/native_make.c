/*
 * Begins a native sandbox: clones the first process into new namespaces, maps
 * its ids, puts it into its groups, writes its record, lets it go and hears how
 * it went. In berth-sandbox. Whatever fails takes the process with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/native.h"
#include "sandbox/native_record.h"
#include "sandbox/provider.h"

#define MAKE_REPORT_MS 10000

struct make {
	const struct sandbox_spec *spec;
	struct native_plan plan;
	struct native_record record;
	struct cgroup cgroup;
	const char *missing; /* limits */
	int go[2], report[2];
	pid_t pid;
};

static int
make_write_map(const struct make *m, const char *name, const char *text)
{
	char path[64];
	autoclose int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)m->pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* One uid and one gid, the same inside and outside; root is nobody there. */
static int
make_map_ids(const struct make *m, struct err *e)
{
	const struct sandbox_spec *s = m->spec;
	char uids[64], gids[64];
	int rc = 0;

	snprintf(uids, sizeof(uids), "%u %u 1\n", s->uid, s->uid);
	snprintf(gids, sizeof(gids), "%u %u 1\n", s->gid, s->gid);
	if (!s->must_setuid)
		rc = make_write_map(m, "setgroups", "deny");
	if (rc == 0)
		rc = make_write_map(m, "uid_map", uids);
	if (rc == 0)
		rc = make_write_map(m, "gid_map", gids);
	return rc < 0 ? err_sys(e, rc, "cannot map user ids") : 0;
}

/* As root, so that directories closed to the sandbox's user do not matter. */
static int
make_take_mounts(struct make *m, int workspace_fd, struct err *e)
{
	struct native_plan *p = &m->plan;
	const unsigned flags =
	    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE;

	p->workspace_dir_fd = workspace_fd;
	if (!m->spec->must_setuid)
		return 0;
	if (workspace_fd >= 0) {
		p->workspace_fd = native_tree(workspace_fd);
		if (p->workspace_fd < 0)
			return err_sys(e, p->workspace_fd,
			    "cannot take the workspace's mount");
	}
	if (!m->spec->rootfs[0])
		return 0;
	p->rootfs_fd =
	    (int)syscall(SYS_open_tree, AT_FDCWD, m->spec->rootfs, flags);
	return p->rootfs_fd < 0
		   ? err_sys(e, -errno, "cannot use rootfs %s", m->spec->rootfs)
		   : 0;
}

/* Into its v2 group, where there is one. */
static int
make_clone(struct make *m, struct err *e)
{
	const char *unified = m->cgroup.path[CGROUP_UNIFIED];
	autoclose int group_fd =
	    *unified ? open(unified, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	struct clone_args args = {
		.flags = m->plan.ns_flags,
		.exit_signal = SIGCHLD,
	};
	int code;

	if (group_fd >= 0) {
		args.flags = m->plan.ns_flags | CLONE_INTO_CGROUP;
		args.cgroup = (unsigned)group_fd;
	}
	m->pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (m->pid == 0) {
		close(m->go[1]);
		close(m->report[0]);
		native_init(&m->plan);
	}
	code = -errno;
	if (m->pid > 0)
		return 0;
	m->pid = 0;
	if (code == -EPERM || code == -ENOSPC || code == -EUSERS)
		return err_sys(e, code,
		    "user namespaces are not allowed here (sysctl "
		    "user.max_user_namespaces, "
		    "kernel.unprivileged_userns_clone or "
		    "kernel.apparmor_restrict_unprivileged_userns)");
	return err_sys(e, code, "cannot make namespaces");
}

/* In its groups from the first moment: those of v1 are its maker's meanwhile. */
static int
make_begin_in_groups(struct make *m, struct err *e)
{
	int rc = cgroup_enter_v1(&m->cgroup);

	rc = rc < 0 ? err_sys(e, rc, "cannot enter its control groups")
		    : make_clone(m, e);
	cgroup_leave_v1(&m->cgroup);
	return rc;
}

static int
make_record(struct make *m, struct err *e)
{
	int rc = native_record_of(m->pid, &m->record);

	if (rc < 0)
		return err_sys(e, rc, "cannot look at its first process");
	m->record.ns_flags = (uint32_t)m->plan.ns_flags | CLONE_NEWCGROUP;
	m->record.pids_max = m->spec->pids_max;
	m->record.cgroup = m->cgroup;
	snprintf(
	    m->record.missing, sizeof(m->record.missing), "%s", m->missing);
	if (m->plan.workspace_dir_fd < 0)
		snprintf(m->record.member, sizeof(m->record.member), "%s",
		    m->spec->name);
	return native_record_write(m->spec, &m->record, e);
}

static int
make_hear(struct make *m, struct err *e)
{
	struct pollfd p = { .fd = m->report[0], .events = POLLIN };
	char text[ERR_MSG_MAX] = "its first process ended";
	int rc;
	ssize_t n;

	do
		rc = poll(&p, 1, MAKE_REPORT_MS);
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return err_set(e, -ETIMEDOUT, "it takes too long to begin");
	n = recv(m->report[0], text, sizeof(text) - 1, 0);
	if (n == 1 && text[0] == '\0')
		return 0;
	text[sizeof(text) - 1] = '\0';
	return err_set(e, -ECHILD, "%s", text);
}

static void
make_undo(struct make *m)
{
	if (m->pid > 0) {
		kill(m->pid, SIGKILL);
		waitpid(m->pid, NULL, 0);
	}
	cgroup_remove(&m->cgroup, 1000);
	native_record_remove(m->spec);
}

static void
make_release(struct make *m)
{
	int fds[] = { m->go[0], m->go[1], m->report[0], m->report[1],
		m->plan.workspace_fd, m->plan.rootfs_fd };

	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

static int
make_begin(struct make *m, int workspace_fd, struct err *e)
{
	int rc;

	if (pipe2(m->go, O_CLOEXEC) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, m->report) <
		0)
		return err_sys(e, -errno, "cannot make pipes");
	m->plan.go_fd = m->go[0];
	m->plan.report_fd = m->report[1];
	rc = make_take_mounts(m, workspace_fd, e);
	if (rc == 0)
		rc = make_begin_in_groups(m, e);
	if (rc < 0)
		return rc;
	/* From here its end closes the pair. */
	close(take_fd(&m->report[1]));
	rc = make_map_ids(m, e);
	if (rc == 0)
		rc = make_record(m, e);
	if (rc == 0 && write(m->go[1], "g", 1) != 1)
		rc = err_sys(e, -errno, "cannot let it begin");
	return rc < 0 ? rc : make_hear(m, e);
}

int
native_make(const struct sandbox_spec *s, int workspace_fd,
    struct sandbox_made *out, struct err *e)
{
	struct make m = {
		.spec = s,
		.missing = out->missing,
		.plan = { .spec = s, .workspace_fd = -1, .rootfs_fd = -1 },
		.go = { -1, -1 },
		.report = { -1, -1 },
	};
	int rc;

	m.plan.ns_flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID |
			  CLONE_NEWIPC | CLONE_NEWUTS;
	if (s->network != SANDBOX_NET_HOST)
		m.plan.ns_flags |= CLONE_NEWNET;
	cgroup_make(s, &m.cgroup, out->missing, sizeof(out->missing));
	rc = make_begin(&m, workspace_fd, e);
	if (rc < 0)
		make_undo(&m);
	make_release(&m);
	return rc;
}
