/*
 * Into a sandbox; see enter.h. A process that joins a user namespace has every
 * capability there until it drops them, so the order is: what needs them, the
 * drop, and only then anything of the sandbox's own. Between fork and exec only
 * async-signal-safe calls.
 */
#include "sessions/keeper/enter.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/privilege.h"
#include "sessions/keeper/signaller.h"

#define ENTER_WAIT_MS 10000
#define ENTER_V2      "/cgroup.procs"

enum enter_step {
	ENTER_DONE,
	ENTER_CGROUP,
	ENTER_JOIN,
	ENTER_USER,
	ENTER_DROP,
	ENTER_TERMINAL,
	ENTER_FORK
};

static const char *const enter_steps[] = {
	[ENTER_DONE] = "",
	[ENTER_CGROUP] = "cannot enter the sandbox's control groups",
	[ENTER_JOIN] = "cannot enter the sandbox",
	[ENTER_USER] = "cannot become the sandbox's user",
	[ENTER_DROP] = "cannot drop privileges",
	[ENTER_TERMINAL] = "cannot open a terminal in the sandbox",
	[ENTER_FORK] = "cannot start a process in the sandbox",
};

/* What the door says at its end, with the terminal's two descriptors. */
struct enter_word {
	int step, code;
	pid_t pid;
	uint64_t ns;
};

void
enter_init(struct enter *n)
{
	*n = (struct enter){ .pidfd = -1, .oom_fd = -1 };
}

void
enter_set(struct enter *n, struct wire_entry *entry, int pidfd)
{
	enter_release(n);
	n->entry = *entry;
	n->pidfd = pidfd;
}

void
enter_release(struct enter *n)
{
	if (n->pidfd >= 0)
		close(n->pidfd);
	if (n->oom_fd >= 0)
		close(n->oom_fd);
	wire_entry_release(&n->entry);
	enter_init(n);
}

/* ---- the door -------------------------------------------------------------- */

/* True if PATH is the door of a group of v2, see cgroup_door(). */
static bool
enter_is_v2(const char *path)
{
	size_t n = strlen(path), len = strlen(ENTER_V2);

	return n > len && strcmp(path + n - len, ENTER_V2) == 0;
}

/* IS_IN: what is of v2 it is in already. */
static int
enter_groups(const struct wire_entry *w, bool is_in)
{
	for (char *const *path = w->cgroups; path && *path; path++) {
		int fd;

		if (is_in && enter_is_v2(*path))
			continue;
		fd = open(*path, O_WRONLY | O_CLOEXEC);
		if (fd < 0 || write(fd, "0", 1) < 0)
			return -1;
		close(fd);
	}
	return 0;
}

/*
 * The namespaces of the sandbox, and a view of control groups that is this
 * session's alone: it goes on to whatever descends from the leader, which
 * cannot leave it, so that a process of the session is known by it.
 */
static int
enter_join(const struct enter *n, uint64_t *ns_out)
{
	int self_fd = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (self_fd < 0 || setns(n->pidfd, (int)n->entry.ns_flags) < 0 ||
	    unshare(CLONE_NEWCGROUP) < 0 ||
	    fstatat(self_fd, "ns/cgroup", &st, 0) < 0)
		return -1;
	close(self_fd);
	*ns_out = st.st_ino;
	return 0;
}

/*
 * As root: no group but the mark, which means nothing inside, goes on to all
 * descendants and cannot be laid down by who has no privilege. The groups of an
 * ordinary berthd cannot be left, as for bwrap.
 */
static int
enter_mark(const struct enter_order *o)
{
	if (!(o->launch->flags & LAUNCH_SETUID))
		return 0;
	return setgroups(o->mark ? 1 : 0, &o->mark);
}

static int
enter_become(const struct wire_launch *l)
{
	if (setresgid(l->gid, l->gid, l->gid) < 0 ||
	    setresuid(l->uid, l->uid, l->uid) < 0)
		return -1;
	return 0;
}

static int
enter_limit(int resource, rlim_t max)
{
	struct rlimit rl;

	if (getrlimit(resource, &rl) < 0)
		return -1;
	if (rl.rlim_max < max)
		max = rl.rlim_max;
	rl = (struct rlimit){ max, max };
	return setrlimit(resource, &rl);
}

static int
enter_drop(const struct wire_entry *w)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	for (int cap = 0; cap <= CAP_LAST_CAP; cap++) {
		/* A kernel older than this header knows fewer. */
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
			return -1;
	}
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
	    syscall(SYS_capset, &head, none) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
		return -1;
	/* Each sandbox counts by itself, for its user namespace is its own. */
	if (w->pids_max && enter_limit(RLIMIT_NPROC, w->pids_max) < 0)
		return -1;
	return enter_limit(RLIMIT_CORE, 0);
}

static int
enter_terminal(struct enter_order *o)
{
	int unlock = 0;

	if (!o->has_pty)
		return 0;
	o->master_fd =
	    open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (o->master_fd < 0 || ioctl(o->master_fd, TIOCSPTLCK, &unlock) < 0)
		return -1;
	o->slave_fd =
	    ioctl(o->master_fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return o->slave_fd < 0 ? -1 : 0;
}

/* Everything up to the leader; returns the step that failed, or ENTER_DONE. */
static enum enter_step
enter_pass(const struct enter *n, struct enter_order *o, struct enter_word *out)
{
	if (enter_groups(&n->entry, o->is_in_v2) < 0)
		return ENTER_CGROUP;
	if (enter_mark(o) < 0)
		return ENTER_USER;
	if (enter_join(n, &out->ns) < 0)
		return ENTER_JOIN;
	if (enter_become(o->launch) < 0)
		return ENTER_USER;
	if (enter_drop(&n->entry) < 0)
		return ENTER_DROP;
	if (enter_terminal(o) < 0)
		return ENTER_TERMINAL;
	/* A child of the keeper, for this process will be gone. */
	out->pid =
	    (pid_t)syscall(SYS_clone, CLONE_PARENT, NULL, NULL, NULL, NULL);
	if (out->pid < 0)
		return ENTER_FORK;
	return ENTER_DONE;
}

static _Noreturn void
enter_door(const struct enter *n, struct enter_order *o, int word_fd)
{
	struct enter_word word = { .step = ENTER_DONE };
	int fds[2];

	/* Nobody inside looks into this copy of the keeper. */
	if (BERTH_CONFINED)
		prctl(PR_SET_DUMPABLE, 0);
	errno = 0;
	word.step = (int)enter_pass(n, o, &word);
	word.code = errno;
	fds[0] = o->master_fd;
	fds[1] = o->slave_fd;
	if (word.step == ENTER_DONE && word.pid == 0) {
		close(word_fd);
		o->leader(o->slave_fd, o->arg);
		_exit(127);
	}
	/* The keeper looks at the end of the door too. */
	(void)fd_send(word_fd, &word, sizeof(word), fds,
	    word.step == ENTER_DONE && o->has_pty ? ARRAY_LEN(fds) : 0);
	_exit(0);
}

/* ---- the keeper ------------------------------------------------------------ */

/* Takes the word and the descriptors; 0 or a negative errno. */
static int
enter_take(int fd, struct enter_word *out, struct enter_order *o)
{
	int fds[2];
	ssize_t n = fd_receive(fd, out, sizeof(*out), fds, ARRAY_LEN(fds));

	if (n != (ssize_t)sizeof(*out))
		return n < 0 ? (int)n : -ECHILD;
	o->master_fd = fds[0];
	o->slave_fd = fds[1];
	if (out->step == ENTER_DONE && o->has_pty && fds[1] < 0)
		return -EPROTO;
	return 0;
}

static int
enter_hear(int fd, pid_t door, struct enter_order *o, struct err *e)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct enter_word word = { .step = ENTER_FORK };
	int rc;

	do
		rc = poll(&p, 1, ENTER_WAIT_MS);
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		kill(door, SIGKILL);
	rc = rc == 0 ? -ETIMEDOUT : enter_take(fd, &word, o);
	waitpid(door, NULL, 0);
	if (rc == -ETIMEDOUT)
		return err_set(e, rc, "the sandbox lets nobody in");
	if (rc < 0)
		return err_sys(e, rc, "cannot enter the sandbox");
	if (word.step != ENTER_DONE)
		return err_sys(e, word.code ? -word.code : -EIO, "%s",
		    enter_steps[word.step]);
	o->pid = word.pid;
	o->ns = word.ns;
	return 0;
}

static int64_t
enter_read_oom(const struct enter *n)
{
	static const char key[] = "oom_kill ";
	char text[1024];
	ssize_t len;
	char *at;

	if (n->oom_fd < 0)
		return 0;
	len = pread(n->oom_fd, text, sizeof(text) - 1, 0);
	text[len > 0 ? len : 0] = '\0';
	at = strstr(text, key);
	return at ? strtoll(at + strlen(key), NULL, 10) : 0;
}

bool
enter_had_oom(struct enter *n)
{
	int64_t now = enter_read_oom(n);
	bool had = now > n->oom_seen;

	n->oom_seen = now;
	return had;
}

/*
 * As fork(), into the group of v2 if there is one: going there later would wait
 * as long as cgroup_door() says. The keeper has no other thread yet, of which the
 * C library would have to know that it is not in the child.
 */
static pid_t
enter_fork(const struct enter *n, struct enter_order *o)
{
	struct clone_args args = {
		.flags = CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
	};
	char *const *path = n->entry.cgroups;
	autoclose int fd = -1;
	char dir[512]; /* nothing that the child would free */
	pid_t pid;

	while (path && *path && !enter_is_v2(*path))
		path++;
	if (!path || !*path)
		return fork();
	snprintf(dir, sizeof(dir), "%.*s",
	    (int)(strlen(*path) - strlen(ENTER_V2)), *path);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return fork();
	args.cgroup = (unsigned)fd;
	o->is_in_v2 = true;
	pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
	if (pid >= 0)
		return pid;
	o->is_in_v2 = false;
	return fork();
}

int
enter_start(struct enter *n, struct enter_order *o, struct err *e)
{
	int pair[2], rc;
	pid_t door;

	o->master_fd = o->slave_fd = -1;
	o->mark = (o->launch->flags & LAUNCH_SETUID) && privilege_has_all_gids()
		      ? signaller_mark(getpid())
		      : 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, -errno, "cannot make a socket pair");
	if (n->entry.oom_path && *n->entry.oom_path)
		n->oom_fd = open(n->entry.oom_path, O_RDONLY | O_CLOEXEC);
	n->oom_seen = enter_read_oom(n);
	door = enter_fork(n, o);
	if (door == 0) {
		close(pair[0]);
		enter_door(n, o, pair[1]);
	}
	close(pair[1]);
	rc = door < 0 ? err_sys(e, -errno, "cannot fork")
		      : enter_hear(pair[0], door, o, e);
	close(pair[0]);
	/* Nobody goes in again. */
	close(take_fd(&n->pidfd));
	return rc;
}
