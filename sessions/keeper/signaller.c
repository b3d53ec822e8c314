/* Signals for the processes of a session; see signaller.h. */
#include "sessions/keeper/signaller.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/privilege.h"
#include "base/process.h"
#include "base/syscalls.h"

#define SIGNALLER_FD      3
#define SIGNALLER_WAIT_MS 5000 /* a walk over all processes of a busy host */
#define SIGNALLER_END_MS  1000

/*
 * Reading /proc, signalling, answering. Any other call fails: without this
 * process nobody could end the session.
 */
static const struct syscalls_rule signaller_rules[] = {
	{ SYS_recvfrom, SYSCALLS_ALLOW },
	{ SYS_sendto, SYSCALLS_ALLOW },
	{ SYS_read, SYSCALLS_ALLOW },
	{ SYS_write, SYSCALLS_ALLOW },
	{ SYS_writev, SYSCALLS_ALLOW },
	{ SYS_openat, SYSCALLS_READ_ONLY },
	{ SYS_close, SYSCALLS_ALLOW },
	{ SYS_getdents64, SYSCALLS_ALLOW },
	{ SYS_lseek, SYSCALLS_ALLOW },
	{ SYS_fstat, SYSCALLS_ALLOW },
#ifdef SYS_newfstatat
	{ SYS_newfstatat, SYSCALLS_ALLOW },
#endif
	{ SYS_fcntl, SYSCALLS_ALLOW },
	{ SYS_pidfd_open, SYSCALLS_ALLOW },
	{ SYS_pidfd_send_signal, SYSCALLS_ALLOW },
	{ SYS_kill, SYSCALLS_ALLOW },
	{ SYS_brk, SYSCALLS_ALLOW },
	{ SYS_mmap, SYSCALLS_NO_EXEC },
	{ SYS_mprotect, SYSCALLS_NO_EXEC },
	{ SYS_munmap, SYSCALLS_ALLOW },
	{ SYS_mremap, SYSCALLS_ALLOW },
	{ SYS_madvise, SYSCALLS_ALLOW },
	{ SYS_getrandom, SYSCALLS_ALLOW },
	{ SYS_futex, SYSCALLS_ALLOW },
	{ SYS_clock_gettime, SYSCALLS_ALLOW },
	{ SYS_sysinfo, SYSCALLS_ALLOW }, /* qsort() asks */
	{ SYS_capget, SYSCALLS_ALLOW },
	{ SYS_capset, SYSCALLS_ALLOW },
	{ SYS_getpid, SYSCALLS_ALLOW },
	{ SYS_gettid, SYSCALLS_ALLOW },
	{ SYS_tgkill, SYSCALLS_SELF },
	{ SYS_rt_sigaction, SYSCALLS_ALLOW },
	{ SYS_rt_sigprocmask, SYSCALLS_ALLOW },
	{ SYS_rt_sigreturn, SYSCALLS_ALLOW },
	{ SYS_restart_syscall, SYSCALLS_ALLOW },
	{ SYS_exit, SYSCALLS_ALLOW },
	{ SYS_exit_group, SYSCALLS_ALLOW },
};

/* What the session in a sandbox is marked by; and whether that is settled. */
static struct {
	uint64_t ns;
	gid_t gid;
	bool is_closed;
} signaller_own;

static uint64_t
signaller_cgroup_ns(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/cgroup", (int)pid);
	return stat(path, &st) < 0 ? 0 : st.st_ino;
}

int
signaller_scope(const struct signaller_request *r, pid_t keeper)
{
	if (signaller_own.is_closed)
		return -EPERM;
	signaller_own.is_closed = true;
	if (r->ns && r->ns == signaller_cgroup_ns(keeper))
		return -EINVAL;
	signaller_own.ns = r->ns;
	signaller_own.gid = (gid_t)r->gid;
	return 0;
}

/* The keeper's pid is its own among the living of this pid namespace. */
gid_t
signaller_mark(pid_t keeper)
{
	uint32_t r = 0;

	if (getrandom(&r, sizeof(r), 0) != sizeof(r))
		r = 0;
	return SIGNALLER_MARK | (r % 511) << 22 | ((uint32_t)keeper & 0x3fffff);
}

static bool
signaller_is_marked(pid_t pid)
{
	if (signaller_own.gid)
		return process_has_group(pid, signaller_own.gid);
	return signaller_own.ns && signaller_cgroup_ns(pid) == signaller_own.ns;
}

/* All processes; those of the session are marked, wherever they are. */
static size_t
signaller_walk(pid_t keeper, struct process **out)
{
	size_t n = process_walk(keeper, out);

	for (size_t i = 0; i < n; i++) {
		struct process *p = &(*out)[i];

		p->is_marked = p->is_marked || signaller_is_marked(p->pid);
	}
	return n;
}

int
signaller_decode(const void *p, size_t n, struct signaller_request *out)
{
	struct signaller_request r;

	if (n != sizeof(r))
		return -EPROTO;
	memcpy(&r, p, sizeof(r));
	if (r.kind > SIGNALLER_SCOPE || r.leader <= 1 || r.group < 0 ||
	    (r.kind == SIGNALLER_SCOPE ? r.n_signals : r.ns || r.gid) ||
	    (r.gid && (r.ns || !signaller_is_mark(r.gid))) ||
	    (r.group && r.kind != SIGNALLER_GROUP) ||
	    r.n_signals > SIGNALLER_SIGNALS_MAX)
		return -EPROTO;
	for (size_t i = 0; i < SIGNALLER_SIGNALS_MAX; i++) {
		bool is_used = i < r.n_signals;

		if (is_used ? r.signals[i] < 1 || r.signals[i] >= NSIG
			    : r.signals[i] != 0)
			return -EPROTO;
	}
	*out = r;
	return 0;
}

static bool
signaller_is_meant(const struct signaller_request *r, const struct process *p)
{
	/* Session ids are reused; what descends from the keeper is ours. */
	if (!p->is_marked || p->state == 'Z' || p->state == 'X' ||
	    p->pid == getpid())
		return false;
	return r->kind == SIGNALLER_ALL || p->session == r->leader ||
	       p->pid == r->leader;
}

/* True if GROUP is one of ours: all of a group are of one session. */
static bool
signaller_owns_group(const struct process *v, size_t n, pid_t group)
{
	for (size_t i = 0; i < n && group > 1; i++) {
		if (v[i].is_marked && v[i].group == group &&
		    v[i].pid != getpid())
			return true;
	}
	return false;
}

static int
signaller_deliver_group(
    const struct signaller_request *r, const struct process *v, size_t n)
{
	const pid_t groups[] = { r->group, r->leader };

	for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
		bool is_done = signaller_owns_group(v, n, groups[i]);

		for (size_t j = 0; j < r->n_signals && is_done; j++)
			is_done = kill(-groups[i], r->signals[j]) == 0;
		if (is_done)
			return 1;
	}
	return 0;
}

int
signaller_deliver(const struct signaller_request *r, pid_t keeper)
{
	autofree struct process *v = NULL;
	size_t n;
	int n_meant = 0;

	if (r->kind == SIGNALLER_SCOPE)
		return signaller_scope(r, keeper);
	signaller_own.is_closed = true;
	n = signaller_walk(keeper, &v);
	if (r->kind == SIGNALLER_GROUP)
		return signaller_deliver_group(r, v, n);
	for (size_t i = 0; i < n; i++) {
		if (!signaller_is_meant(r, &v[i]))
			continue;
		n_meant++;
		for (size_t j = 0; j < r->n_signals; j++)
			process_signal(&v[i], r->signals[j]);
	}
	return n_meant;
}

static int
signaller_confine(const struct privilege_account *a)
{
	int rc = privilege_become_signaller(a, !privilege_has_all_gids());

	if (rc == 0)
		rc = privilege_lock();
	if (rc == 0 && BERTH_CONFINED)
		rc = syscalls_limit(
		    signaller_rules, ARRAY_LEN(signaller_rules), ENOSYS);
	return rc == -ENOSYS ? 0 : rc;
}

/* The process: nothing of the keeper's but its log. Ends at end of file. */
static _Noreturn void
signaller_run(int fd, pid_t keeper, const struct privilege_account *a)
{
	struct signaller_request r;
	struct process first;
	char raw[sizeof(r) + 1];
	int32_t answer;
	ssize_t n;

	if (dup2(fd, SIGNALLER_FD) < 0 ||
	    close_range(SIGNALLER_FD + 1, ~0U, 0) < 0)
		_exit(1);
	prctl(PR_SET_NAME, "berth-signaller");
	answer = signaller_confine(a);
	/* Where /proc hides what is not of our uid (hidepid) we are of no use. */
	if (answer == 0 && process_read(1, &first) < 0)
		answer = -EACCES;
	do {
		if (send(SIGNALLER_FD, &answer, sizeof(answer), MSG_NOSIGNAL) <
		    0)
			_exit(1);
		do
			n = recv(SIGNALLER_FD, raw, sizeof(raw), 0);
		while (n < 0 && errno == EINTR);
		if (n <= 0)
			_exit(0);
		answer = signaller_decode(raw, (size_t)n, &r);
		if (answer == 0)
			answer = signaller_deliver(&r, keeper);
		/* Looking at namespaces of others is for that one case. */
		if (!signaller_own.ns)
			privilege_drop_look();
	} while (true);
}

void
signaller_init(struct signaller *s)
{
	*s = (struct signaller){ .fd = -1 };
}

static int
signaller_wait_answer(struct signaller *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };
	int32_t answer;
	ssize_t n;
	int rc;

	do
		rc = poll(&p, 1, SIGNALLER_WAIT_MS);
	while (rc < 0 && errno == EINTR);
	if (rc <= 0)
		return rc == 0 ? -ETIMEDOUT : -errno;
	n = recv(s->fd, &answer, sizeof(answer), MSG_DONTWAIT);
	return n == (ssize_t)sizeof(answer) ? answer : -EPIPE;
}

int
signaller_start(struct signaller *s, const struct privilege_account *a)
{
	pid_t keeper = getpid();
	int pair[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	s->pid = fork();
	if (s->pid == 0)
		signaller_run(pair[1], keeper, a);
	rc = s->pid < 0 ? -errno : 0;
	close(pair[1]);
	s->fd = pair[0];
	if (rc == 0)
		rc = signaller_wait_answer(s);
	if (rc < 0)
		signaller_release(s);
	return rc;
}

void
signaller_release(struct signaller *s)
{
	struct pollfd p = { .fd = s->fd };

	if (s->fd >= 0) {
		/* It ends, and with it the other end of the pair. */
		shutdown(s->fd, SHUT_WR);
		if (poll(&p, 1, SIGNALLER_END_MS) > 0)
			waitpid(s->pid, NULL, 0);
		close(s->fd);
	}
	signaller_init(s);
}

/* After this the session's processes are signalled by the manager or not. */
static int
signaller_broke(struct signaller *s, int rc)
{
	log_err("signaller_failed", "error", strerrordesc_np(-rc), NULL);
	close(s->fd);
	s->fd = -1;
	return rc;
}

bool
signaller_is_gone(const struct signaller *s)
{
	return s->pid > 0 && s->fd < 0;
}

int
signaller_send(struct signaller *s, const struct signaller_request *r)
{
	struct signaller_request checked;
	int rc = signaller_decode(r, sizeof(*r), &checked);

	if (rc < 0)
		return rc;
	if (s->pid <= 0)
		return signaller_deliver(&checked, getpid());
	if (s->fd < 0)
		return -EPIPE;
	if (send(s->fd, r, sizeof(*r), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return signaller_broke(s, -errno);
	rc = signaller_wait_answer(s);
	if (rc == -ETIMEDOUT || rc == -EPIPE)
		return signaller_broke(s, rc);
	return rc;
}
