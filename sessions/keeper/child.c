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
#include <sys/resource.h>
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
#define CHILD_TTY        "SSH_TTY="
#define CHILD_TTY_LEN    (sizeof(CHILD_TTY) - 1)

enum child_step {
	CHILD_STEP_STDIO,
	CHILD_STEP_USER,
	CHILD_STEP_CWD,
	CHILD_STEP_CALLS,
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
	char **tty_at; /* NULL, or where in ENV its terminal is named ... */
	char tty[64];  /* ... by this */
	int stdio[3];  /* the child's ends */
	int status_fd;
	bool is_inside; /* it is the sandbox's user already */
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
	enter_init(&c->enter);
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
	enter_release(&c->enter);
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

/* Size and modes, before anything runs on it. */
static int
child_set_terminal(int slave_fd, const struct wire_launch *l)
{
	struct winsize ws = {
		.ws_col = (unsigned short)l->size.cols,
		.ws_row = (unsigned short)l->size.rows,
		.ws_xpixel = (unsigned short)l->size.xpixel,
		.ws_ypixel = (unsigned short)l->size.ypixel,
	};
	struct termios t;

	if (tcgetattr(slave_fd, &t) < 0)
		return -errno;
	if (l->flags & LAUNCH_RAW)
		cfmakeraw(&t);
	t.c_iflag |= IUTF8;
	if (tcsetattr(slave_fd, TCSANOW, &t) < 0 ||
	    ioctl(slave_fd, TIOCSWINSZ, &ws) < 0)
		return -errno;
	return 0;
}

static int
child_open_terminal(struct child *c, const struct wire_launch *l)
{
	int unlock = 0, rc;

	c->master_fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (c->master_fd < 0)
		return -errno;
	if (ioctl(c->master_fd, TIOCSPTLCK, &unlock) < 0)
		return -errno;
	c->slave_fd =
	    ioctl(c->master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	rc = c->slave_fd < 0 ? -errno : child_set_terminal(c->slave_fd, l);
	return rc < 0 ? rc : child_own_terminal(c->slave_fd, l);
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

	if (plan->is_inside || !(l->flags & LAUNCH_SETUID))
		return 0;
	if (setgroups((size_t)plan->n_groups, plan->groups) < 0 ||
	    setresgid(l->gid, l->gid, l->gid) < 0 ||
	    setresuid(l->uid, l->uid, l->uid) < 0)
		return -1;
	return 0;
}

/* Never above what it may have anyway. */
static int
child_limit(int resource, uint64_t max)
{
	struct rlimit now;

	if (max == 0)
		return 0;
	if (getrlimit((__rlimit_resource_t)resource, &now) < 0)
		return -1;
	if (max < now.rlim_max)
		now.rlim_max = max;
	now.rlim_cur = now.rlim_max;
	return setrlimit((__rlimit_resource_t)resource, &now);
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
	if (child_become_user(plan) < 0 ||
	    child_limit(RLIMIT_NPROC, l->max_processes) < 0 ||
	    child_limit(RLIMIT_DATA, l->max_data) < 0)
		goto fail;
	f.step = CHILD_STEP_CWD;
	if (chdir(l->cwd) < 0)
		goto fail;
	f.step = CHILD_STEP_CALLS;
	if (plan->is_inside && enter_limit_calls() < 0)
		goto fail;
	f.step = CHILD_STEP_EXEC;
	/* Inside, a name is looked up there, in the PATH that is ours. */
	if (plan->is_inside)
		execvpe(l->path, plan->argv, plan->env);
	else
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
 * A copy of the launch's env with room for the name of a terminal that is not
 * open yet.
 */
static void
child_plan_tty(struct child_plan *plan)
{
	char *const *env = plan->launch->env;
	size_t n = 0;

	while (env[n])
		n++;
	plan->env = xcalloc(n + 2, sizeof(*plan->env));
	memcpy(plan->env, env, n * sizeof(*env));
	plan->tty_at = &plan->env[n];
}

/* Puts the NUL-terminated name behind CHILD_TTY into the environment. */
static void
child_name_tty(struct child_plan *plan)
{
	memcpy(plan->tty, CHILD_TTY, CHILD_TTY_LEN);
	*plan->tty_at = plan->tty;
}

/* Frees what was made for PLAN and is not the launch's. */
static void
child_plan_release(struct child_plan *plan)
{
	if (plan->argv != plan->launch->argv) {
		free(plan->argv[0]);
		free(plan->argv);
	}
	if (plan->env != plan->launch->env)
		free(plan->env);
}

/* Names the terminal as it is called in here. After a fork. */
static void
child_find_tty(struct child_plan *plan, int slave_fd)
{
	char *name = plan->tty + CHILD_TTY_LEN;
	size_t room = sizeof(plan->tty) - CHILD_TTY_LEN;
	char path[32];
	ssize_t n;

	if (!plan->tty_at)
		return;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", slave_fd);
	n = readlink(path, name, room);
	if (n <= 0 || (size_t)n >= room)
		return;
	name[n] = '\0';
	child_name_tty(plan);
}

/* The leader, inside: its terminal was opened there. */
static void
child_lead(int slave_fd, void *arg)
{
	struct child_plan *plan = arg;

	/* Too late to tell the size of a terminal after the program runs. */
	if (slave_fd >= 0) {
		plan->stdio[0] = plan->stdio[1] = plan->stdio[2] = slave_fd;
		if (child_set_terminal(slave_fd, plan->launch) < 0)
			_exit(126);
		child_find_tty(plan, slave_fd);
	}
	child_exec(plan);
}

static int
child_enter(struct child *c, struct child_plan *plan, struct err *e)
{
	struct enter_order o = {
		.launch = plan->launch,
		.has_pty = plan->launch->flags & LAUNCH_PTY,
		.leader = child_lead,
		.arg = plan,
	};
	int rc = enter_start(&c->enter, &o, e);

	if (rc < 0)
		return rc;
	c->pid = o.pid;
	c->inside_ns = o.mark ? 0 : o.ns;
	c->inside_gid = o.mark;
	c->master_fd = o.master_fd;
	c->slave_fd = o.slave_fd;
	return 0;
}

static int
child_fork(struct child *c, struct child_plan *plan, struct err *e)
{
	int p[2], rc = 0;

	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(e, -errno, "cannot make a pipe");
	c->status_fd = p[0];
	plan->status_fd = p[1];
	if (plan->is_inside) {
		rc = child_enter(c, plan, e);
	} else {
		c->pid = fork();
		if (c->pid == 0)
			child_exec(plan);
		if (c->pid < 0)
			rc = err_sys(e, -errno, "cannot start a process");
	}
	close(p[1]);
	if (rc < 0) {
		c->pid = 0;
		return rc;
	}
	c->pidfd = pidfd_open(c->pid, 0);
	if (c->pidfd < 0)
		return err_sys(e, -errno, "cannot hold the process");
	return fd_set_nonblock(p[0], true);
}

/* The supplementary groups: asked now, for the child must not. */
static int
child_look_up_groups(struct child_plan *plan, struct err *e)
{
	const struct wire_launch *l = plan->launch;

	plan->n_groups = CHILD_GROUPS_MAX;
	if (l->flags & LAUNCH_SETUID && l->uid == 0)
		return err_set(e, -EPERM, "refusing to run as uid 0");
	if (plan->is_inside || !(l->flags & LAUNCH_SETUID))
		return 0;
	if (getgrouplist(l->user, l->gid, plan->groups, &plan->n_groups) < 0)
		return err_set(
		    e, -E2BIG, "user %s is in too many groups", l->user);
	return 0;
}

/*
 * The signaller learns by what it knows the processes of a session in a
 * sandbox, where orphans are not adopted by the keeper; or that there is none.
 */
static void
child_scope(struct child *c)
{
	const struct signaller_request r = {
		.kind = SIGNALLER_SCOPE,
		.leader = c->pid,
		.ns = c->inside_ns,
		.gid = c->inside_gid,
	};

	signaller_send(c->signaller, &r);
}

int
child_start(struct child *c, const struct wire_launch *l, struct err *e)
{
	struct child_plan plan = {
		.launch = l,
		.argv = l->argv,
		.env = l->env,
		.stdio = { -1, -1, -1 },
		.is_inside = enter_is_set(&c->enter),
	};
	bool has_pty = l->flags & LAUNCH_PTY;
	struct process p;
	int rc = child_look_up_groups(&plan, e);

	if (rc < 0)
		return rc;
	c->is_inside = plan.is_inside;
	if (!has_pty)
		rc = child_open_pipes(c, l, plan.stdio);
	else if (!plan.is_inside)
		rc = child_open_terminal(c, l);
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
		child_plan_tty(&plan);
	if (plan.tty_at && !plan.is_inside &&
	    ptsname_r(c->master_fd, plan.tty + CHILD_TTY_LEN,
		sizeof(plan.tty) - CHILD_TTY_LEN) == 0)
		child_name_tty(&plan);
	rc = child_fork(c, &plan, e);
	if (rc < 0 && c->pid > 0)
		kill(c->pid, SIGKILL);
	else if (rc == 0)
		child_scope(c);
	if (rc == 0 && process_read(c->pid, &p) == 0)
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
	case CHILD_STEP_CALLS:
		return err_sys(e, -f.code, "cannot limit system calls");
	case CHILD_STEP_EXEC:
		c->exec_code =
		    f.code == ENOENT || f.code == ENOTDIR ? 127 : 126;
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
