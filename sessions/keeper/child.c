/*
 * Starts and reaps the leader of a session; see child.h. Between fork and exec
 * only async-signal-safe calls are made: what needs the name service happens
 * before the fork.
 */
#include "sessions/keeper/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/process.h"
#include "sessions/keeper/signaller.h"
#include "sessions/wire/messages.h"

#define CHILD_GROUPS_MAX 1024
#define CHILD_STATUS_FD  3

enum child_step {
	CHILD_STEP_STDIO,
	CHILD_STEP_USER,
	CHILD_STEP_CWD,
	CHILD_STEP_EXEC
};

/* What the child tells when it could not execute the program. */
struct child_failure {
	int step, code;
};

/* Everything the child needs, prepared before the fork. */
struct child_plan {
	const struct wire_launch *launch;
	char **argv, **env;
	int stdio[3]; /* the child's ends */
	int status_fd;
	gid_t groups[CHILD_GROUPS_MAX];
	int n_groups;
};

void
child_init(struct child *c, struct signaller *s)
{
	*c = (struct child){
		.signaller = s,
		.pidfd = -1,
		.master_fd = -1,
		.slave_fd = -1,
		.stdio_fd = { -1, -1, -1 },
		.status_fd = -1,
	};
}

static void
child_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void
child_release(struct child *c)
{
	child_close(&c->pidfd);
	child_close(&c->master_fd);
	child_close(&c->slave_fd);
	child_close(&c->status_fd);
	for (int i = 0; i < 3; i++)
		child_close(&c->stdio_fd[i]);
}

/* The owner of a terminal may open it again by name; nobody else may. */
static int
child_own_terminal(int fd, const struct wire_launch *l)
{
	struct stat st;

	if (!(l->flags & LAUNCH_SETUID))
		return 0;
	if (fchown(fd, l->uid, (gid_t)-1) < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* devpts gives group tty where it is set up so: for write(1). */
	if (fchmod(fd, st.st_gid == getegid() ? 0600 : 0620) < 0)
		return -errno;
	return 0;
}

static int
child_open_terminal(struct child *c, const struct wire_launch *l)
{
	struct winsize ws = {
		.ws_col = (unsigned short)l->size.cols,
		.ws_row = (unsigned short)l->size.rows,
		.ws_xpixel = (unsigned short)l->size.xpixel,
		.ws_ypixel = (unsigned short)l->size.ypixel,
	};
	struct termios t;
	int unlock = 0;

	c->master_fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (c->master_fd < 0)
		return -errno;
	if (ioctl(c->master_fd, TIOCSPTLCK, &unlock) < 0)
		return -errno;
	c->slave_fd =
	    ioctl(c->master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (c->slave_fd < 0 || tcgetattr(c->slave_fd, &t) < 0)
		return -errno;
	t.c_iflag |= IUTF8;
	if (tcsetattr(c->slave_fd, TCSANOW, &t) < 0 ||
	    ioctl(c->slave_fd, TIOCSWINSZ, &ws) < 0)
		return -errno;
	return child_own_terminal(c->slave_fd, l);
}

/* Three pipes; THEIRS are the child's ends. */
static int
child_open_pipes(struct child *c, const struct wire_launch *l, int theirs[3])
{
	for (int i = 0; i < 3; i++) {
		int p[2], ours = i == 0 ? 1 : 0;

		if (pipe2(p, O_CLOEXEC) < 0)
			return -errno;
		c->stdio_fd[i] = p[ours];
		theirs[i] = p[!ours];
		if (fd_set_nonblock(p[ours], true) < 0)
			return -errno;
		/* So that it can open /dev/stderr again as its new user. */
		if ((l->flags & LAUNCH_SETUID) &&
		    fchown(p[0], l->uid, l->gid) < 0)
			return -errno;
	}
	return 0;
}

/* Default dispositions and an empty mask, whatever the keeper set. */
static void
child_reset_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++) {
		struct sigaction sa = { .sa_handler = SIG_DFL };

		sigaction(sig, &sa, NULL);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

static int
child_become_user(const struct child_plan *plan)
{
	const struct wire_launch *l = plan->launch;

	if (!(l->flags & LAUNCH_SETUID))
		return 0;
	if (setgroups((size_t)plan->n_groups, plan->groups) < 0 ||
	    setresgid(l->gid, l->gid, l->gid) < 0 ||
	    setresuid(l->uid, l->uid, l->uid) < 0)
		return -1;
	return 0;
}

/* Descriptors 0 to 2, the status pipe at 3 (closed by exec), nothing else. */
static int
child_take_stdio(struct child_plan *plan)
{
	int high[3];

	/* All copies first, so that no dup2 hits a source. */
	plan->status_fd = fcntl(plan->status_fd, F_DUPFD_CLOEXEC, 10);
	for (int i = 0; i < 3; i++)
		high[i] = fcntl(plan->stdio[i], F_DUPFD_CLOEXEC, 10);
	for (int i = 0; i < 3; i++) {
		if (dup2(high[i], i) < 0)
			return -1;
	}
	if (dup3(plan->status_fd, CHILD_STATUS_FD, O_CLOEXEC) < 0)
		return -1;
	plan->status_fd = CHILD_STATUS_FD;
	if (close_range(CHILD_STATUS_FD + 1, ~0U, 0) < 0)
		return -1;
	setsid();
	return plan->launch->flags & LAUNCH_PTY ? ioctl(0, TIOCSCTTY, 0) : 0;
}

static _Noreturn void
child_exec(struct child_plan *plan)
{
	const struct wire_launch *l = plan->launch;
	struct child_failure f = { .step = CHILD_STEP_STDIO };

	child_reset_signals();
	umask(022);
	if (child_take_stdio(plan) < 0)
		goto fail;
	f.step = CHILD_STEP_USER;
	if (child_become_user(plan) < 0)
		goto fail;
	f.step = CHILD_STEP_CWD;
	if (chdir(l->cwd) < 0)
		goto fail;
	f.step = CHILD_STEP_EXEC;
	execve(l->path, plan->argv, plan->env);
fail:
	f.code = errno;
	if (write(plan->status_fd, &f, sizeof(f)) < 0)
		_exit(126);
	_exit(127);
}

/* A copy of argv in which argv[0] begins with '-'; free both by hand. */
static char **
child_login_argv(const struct wire_launch *l)
{
	size_t n = 0;
	char **argv;
	const char *base = strrchr(l->argv[0], '/');

	while (l->argv[n])
		n++;
	argv = xmemdup(l->argv, (n + 1) * sizeof(*argv));
	argv[0] = xasprintf("-%s", base ? base + 1 : l->argv[0]);
	return argv;
}

/*
 * A copy of the launch's env with the name of the terminal behind it, which
 * nobody knew before; free the last string and the array by hand.
 */
static char **
child_terminal_env(const struct child *c, const struct wire_launch *l)
{
	char name[64];
	size_t n = 0;
	char **env;

	if (ptsname_r(c->master_fd, name, sizeof(name)) != 0)
		return l->env;
	while (l->env[n])
		n++;
	env = xcalloc(n + 2, sizeof(*env));
	memcpy(env, l->env, n * sizeof(*env));
	env[n] = xasprintf("SSH_TTY=%s", name);
	return env;
}

/* Frees what was made for PLAN and is not the launch's. */
static void
child_plan_release(struct child_plan *plan)
{
	const struct wire_launch *l = plan->launch;
	size_t n = 0;

	if (plan->argv != l->argv) {
		free(plan->argv[0]);
		free(plan->argv);
	}
	if (plan->env != l->env) {
		while (l->env[n])
			n++;
		free(plan->env[n]);
		free(plan->env);
	}
}

static int
child_fork(struct child *c, struct child_plan *plan)
{
	int p[2];

	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	c->status_fd = p[0];
	plan->status_fd = p[1];
	c->pid = fork();
	if (c->pid == 0)
		child_exec(plan);
	close(p[1]);
	if (c->pid < 0) {
		c->pid = 0;
		return -errno;
	}
	c->pidfd = pidfd_open(c->pid, 0);
	if (c->pidfd < 0)
		return -errno;
	return fd_set_nonblock(p[0], true);
}

/* The supplementary groups: asked now, for the child must not. */
static int
child_look_up_groups(struct child_plan *plan, struct err *e)
{
	const struct wire_launch *l = plan->launch;

	plan->n_groups = CHILD_GROUPS_MAX;
	if (!(l->flags & LAUNCH_SETUID))
		return 0;
	if (l->uid == 0)
		return err_set(e, -EPERM, "refusing to run as uid 0");
	if (getgrouplist(l->user, l->gid, plan->groups, &plan->n_groups) < 0)
		return err_set(
		    e, -E2BIG, "user %s is in too many groups", l->user);
	return 0;
}

int
child_start(struct child *c, const struct wire_launch *l, struct err *e)
{
	struct child_plan plan = {
		.launch = l,
		.argv = l->argv,
		.env = l->env,
		.stdio = { -1, -1, -1 },
	};
	bool has_pty = l->flags & LAUNCH_PTY;
	struct process p;
	int rc = child_look_up_groups(&plan, e);

	if (rc < 0)
		return rc;
	rc = has_pty ? child_open_terminal(c, l)
		     : child_open_pipes(c, l, plan.stdio);
	if (rc < 0) {
		err_sys(
		    e, rc, "cannot open %s", has_pty ? "a terminal" : "pipes");
		goto out;
	}
	if (has_pty)
		plan.stdio[0] = plan.stdio[1] = plan.stdio[2] = c->slave_fd;
	if (l->flags & LAUNCH_LOGIN)
		plan.argv = child_login_argv(l);
	if (has_pty && (l->flags & LAUNCH_SSH_TTY))
		plan.env = child_terminal_env(c, l);
	rc = child_fork(c, &plan);
	if (rc < 0 && c->pid > 0)
		kill(c->pid, SIGKILL);
	if (rc < 0)
		err_sys(e, rc, "cannot start a process");
	else if (process_read(c->pid, &p) == 0)
		c->start_ticks = p.start_ticks;
	child_plan_release(&plan);
out:
	for (int i = 0; i < 3 && !has_pty; i++)
		child_close(&plan.stdio[i]);
	return rc;
}

int
child_poll_exec(struct child *c, const struct wire_launch *l, struct err *e)
{
	struct child_failure f;
	ssize_t n;

	do
		n = read(c->status_fd, &f, sizeof(f));
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	child_close(&c->status_fd);
	if (n != (ssize_t)sizeof(f))
		return 1;
	switch (f.step) {
	case CHILD_STEP_USER:
		return err_sys(e, -f.code, "cannot become user %s", l->user);
	case CHILD_STEP_CWD:
		return err_sys(e, -f.code, "cannot enter %s", l->cwd);
	case CHILD_STEP_EXEC:
		return err_sys(e, -f.code, "cannot run %s", l->path);
	default:
		return err_sys(e, -f.code, "cannot set up the process");
	}
}

static void
child_decode_status(const siginfo_t *si, struct wire_exit *out)
{
	*out = (struct wire_exit){
		.is_signal = si->si_code != CLD_EXITED,
		.core_dumped = si->si_code == CLD_DUMPED,
		.value = (uint32_t)si->si_status,
	};
}

bool
child_reap(struct child *c, struct wire_exit *out)
{
	bool is_leader = false;

	for (;;) {
		siginfo_t si = { 0 };

		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 ||
		    si.si_pid == 0)
			return is_leader;
		if (si.si_pid == c->pid && !c->is_reaped) {
			child_decode_status(&si, out);
			c->is_reaped = true;
			is_leader = true;
		}
		waitid(P_PID, (id_t)si.si_pid, &si, WEXITED | WNOHANG);
	}
}

void
child_kill(struct child *c)
{
	const struct signaller_request r = {
		.kind = SIGNALLER_ALL,
		.leader = c->pid,
		.n_signals = 1,
		.signals = { SIGKILL },
	};

	signaller_send(c->signaller, &r);
}

void
child_signal(struct child *c, int sig)
{
	struct signaller_request r = {
		.kind = SIGNALLER_GROUP,
		.leader = c->pid,
		.n_signals = 1,
		.signals = { sig },
	};
	pid_t group = c->master_fd >= 0 ? tcgetpgrp(c->master_fd) : -1;

	/* The number of a group that has ended may be anybody's. */
	if (c->pid <= 0 || c->is_reaped)
		return;
	r.group = group > 1 ? group : 0;
	signaller_send(c->signaller, &r);
}
