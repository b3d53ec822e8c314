/*
 * Gives a native sandbox that waits in a pool its workspace and its name. From
 * outside, by a child of berth-sandbox that goes into its namespaces; nothing
 * else runs in there yet but its first process, which does not notice.
 */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "sandbox/native.h"
#include "sandbox/provider.h"

#define CLAIM_MS 5000

/* Into its user namespace, the workspace in hand, then into the others. */
static int
claim_enter(struct native_plan *p, int pidfd, struct err *e)
{
	int rc = 0;

	if (setns(pidfd, CLONE_NEWUSER) < 0)
		return err_sys(e, -errno, "cannot enter its user namespace");
	if (p->workspace_fd < 0) {
		if (unshare(CLONE_NEWNS) < 0)
			return err_sys(e, -errno, "cannot copy the mounts");
		rc = native_find_workspace(p, e);
	}
	if (rc == 0 && setns(pidfd, CLONE_NEWNS | CLONE_NEWUTS) < 0)
		rc = err_sys(e, -errno, "cannot enter its namespaces");
	if (rc == 0 && chdir("/") < 0)
		rc = err_sys(e, -errno, "cannot enter its root");
	return rc;
}

static int
claim_dress(struct native_plan *p, int pidfd, struct err *e)
{
	const struct sandbox_spec *s = p->spec;
	int rc = claim_enter(p, pidfd, e);

	if (rc == 0 && sethostname(s->name, strlen(s->name)) < 0)
		rc = err_sys(e, -errno, "cannot set the host name");
	if (rc == 0)
		rc = native_seal(".", false, e);
	if (rc == 0)
		rc = native_etc_name(s, e);
	if (rc == 0)
		rc = native_seal(".", true, e);
	if (rc == 0)
		rc = native_attach_workspace(p, e);
	return rc;
}

static _Noreturn void
claim_child(struct native_plan *p, int pidfd)
{
	struct err e = { .code = 0 };
	int rc = claim_dress(p, pidfd, &e);
	const char *said = rc < 0 ? e.msg : "";

	_exit(write(p->report_fd, said, strlen(said) + 1) < 0 || rc < 0);
}

static int
claim_hear(int fd, struct err *e)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char text[ERR_MSG_MAX] = "who did it was killed";
	int rc;
	ssize_t n;

	do
		rc = poll(&p, 1, CLAIM_MS);
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return err_set(e, -ETIMEDOUT, "it takes too long");
	n = recv(fd, text, sizeof(text) - 1, 0);
	if (n == 1 && text[0] == '\0')
		return 0;
	return err_set(e, -ECHILD, "%s", text);
}

int
native_claim(
    const struct sandbox_spec *s, int pidfd, int workspace_fd, struct err *e)
{
	struct native_plan p = {
		.spec = s,
		.workspace_fd = -1,
		.workspace_dir_fd = workspace_fd,
	};
	autoclose int tree_fd = -1;
	int pair[2], rc;
	pid_t pid;

	/* Directories above it may be closed to the sandbox's user. */
	if (s->must_setuid) {
		tree_fd = p.workspace_fd = native_tree(workspace_fd);
		if (tree_fd < 0)
			return err_sys(
			    e, tree_fd, "cannot take the workspace's mount");
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, -errno, "cannot make pipes");
	p.report_fd = pair[1];
	pid = fork();
	if (pid == 0)
		claim_child(&p, pidfd);
	rc = pid < 0 ? err_sys(e, -errno, "cannot fork") : 0;
	close(pair[1]);
	if (rc == 0)
		rc = claim_hear(pair[0], e);
	close(pair[0]);
	if (pid > 0) {
		if (rc < 0)
			kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return rc;
}
