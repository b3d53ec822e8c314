/*
 * The first process of a native sandbox. It comes out of a clone into new
 * namespaces, becomes the sandbox's user, makes what there is to see, gives up
 * everything and from then on only reaps; the sandbox lives as long as it does.
 * In that state it allocates nothing, opens nothing and hears no signal but the
 * KILL of its parent's namespace.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <malloc.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/syscalls.h"
#include "sandbox/native.h"
#include "sandbox/provider.h"

/*
 * A capability that does nothing outside of the first user namespace. Keeping
 * it makes this process one that those inside may not trace or look into,
 * since they have none, while its owner outside still may join it.
 */
#define INIT_TOKEN CAP_WAKE_ALARM

#define INIT_STACK (256U << 10) /* no more of it was ever used */

static const struct syscalls_rule init_rules[] = {
	{ SYS_waitid, SYSCALLS_ALLOW },
	{ SYS_rt_sigtimedwait, SYSCALLS_ALLOW },
	{ SYS_rt_sigreturn, SYSCALLS_ALLOW },
	{ SYS_restart_syscall, SYSCALLS_ALLOW },
	{ SYS_write, SYSCALLS_ALLOW },
	{ SYS_close, SYSCALLS_ALLOW },
	{ SYS_exit_group, SYSCALLS_ALLOW },
};

/* All effective capabilities that are permitted, or the token alone. */
static int
init_set_caps(bool is_all)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, caps) < 0)
		return -errno;
	for (unsigned i = 0; i < ARRAY_LEN(caps); i++) {
		if (!is_all)
			caps[i].permitted = 0;
		if (!is_all && i == CAP_TO_INDEX(INIT_TOKEN))
			caps[i].permitted = CAP_TO_MASK(INIT_TOKEN);
		caps[i].effective = is_all ? caps[i].permitted : 0;
		caps[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, caps) < 0 ? -errno : 0;
}

/* The ids are mapped: the host's groups go, its uid becomes the sandbox's. */
static int
init_become(const struct sandbox_spec *s, struct err *e)
{
	if (s->must_setuid && setgroups(0, NULL) < 0)
		return err_sys(e, -errno, "cannot leave the groups");
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 ||
	    setresgid(s->gid, s->gid, s->gid) < 0 ||
	    setresuid(s->uid, s->uid, s->uid) < 0 || init_set_caps(true) < 0)
		return err_sys(e, -errno, "cannot become uid %u", s->uid);
	return 0;
}

static int
init_loopback(struct err *e)
{
	autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = { .ifr_name = "lo" };

	r.ifr_flags = IFF_UP | IFF_RUNNING;
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &r) < 0)
		return err_sys(e, -errno, "cannot bring up lo");
	return 0;
}

/* Nothing of the host but what it runs as: no terminal, descriptor, mask. */
static int
init_leave_host(struct native_plan *p, struct err *e)
{
	autoclose int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	umask(022);
	setsid();
	for (int i = 0; i < 3; i++) {
		if (null_fd < 0 || dup2(null_fd, i) < 0)
			return err_sys(e, -errno, "cannot open /dev/null");
	}
	/* From 3 on: the report, and nothing else that anybody left open. */
	if (dup3(p->report_fd, 3, O_CLOEXEC) < 0 && p->report_fd != 3)
		return err_sys(e, -errno, "cannot move the report");
	p->report_fd = 3;
	return 0;
}

static int
init_give_up(struct err *e)
{
	int rc;

	for (int cap = 0; cap <= CAP_LAST_CAP; cap++) {
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
			return err_sys(e, -errno, "cannot drop capabilities");
	}
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	rc = init_set_caps(false);
	if (rc == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		rc = -errno;
	/* Its owner has to look at its namespaces to join them. */
	if (rc == 0 && prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		rc = -errno;
	return rc < 0 ? err_sys(e, rc, "cannot give up privileges") : 0;
}

static int
init_set_up(struct native_plan *p, struct err *e)
{
	const struct sandbox_spec *s = p->spec;
	char go;
	int rc;

	if (read(p->go_fd, &go, 1) != 1)
		return err_set(e, -EPIPE, "nobody waits for it");
	rc = init_become(s, e);
	/* Now in its groups: they are the root that it and others see. */
	if (rc == 0 && unshare(CLONE_NEWCGROUP) < 0)
		rc = err_sys(e, -errno, "cannot make a cgroup namespace");
	if (rc == 0)
		rc = native_mount(p, e);
	if (rc == 0)
		rc = init_leave_host(p, e);
	if (rc == 0 && sethostname(s->name, strlen(s->name)) < 0)
		rc = err_sys(e, -errno, "cannot set the host name");
	if (rc == 0 && s->network == SANDBOX_NET_LOOPBACK)
		rc = init_loopback(e);
	if (rc == 0)
		rc = init_give_up(e);
	return rc;
}

/* Those inside may read how it was called, which is berthd's business. */
static void
init_forget_arguments(void)
{
	char *from = strchr(program_invocation_name, '\0');

	if (environ && environ[0] && from < environ[0])
		memset(from, 0, (size_t)(environ[0] - from));
}

/*
 * Hundreds of it may wait: what it needed to begin goes back, the stack below
 * the page behind this one and what is free on the heap.
 */
static void
init_shrink(void)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t here = (uintptr_t)__builtin_frame_address(0) & ~(page - 1);

	malloc_trim(0);
	madvise((void *)(here - page - INIT_STACK), INIT_STACK, MADV_DONTNEED);
}

static _Noreturn void
init_reap(void)
{
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	for (;;) {
		siginfo_t si = { 0 };

		while (waitid(P_ALL, 0, &si, WEXITED | WNOHANG) == 0 &&
		       si.si_pid != 0)
			si.si_pid = 0;
		sigwaitinfo(&child, &si);
	}
}

_Noreturn void
native_init(struct native_plan *p)
{
	struct err e = { .code = 0 };
	int rc;

	/* Whoever makes it and dies leaves nothing behind. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "berth-init");
	init_forget_arguments();
	rc = init_set_up(p, &e);
	if (rc < 0) {
		if (write(p->report_fd, e.msg, strlen(e.msg) + 1) < 0)
			_exit(2);
		_exit(1);
	}
	if (close_range(4, ~0U, 0) < 0)
		_exit(3);
	init_shrink();
	/* A change of uid cleared it in some; now it must not be there. */
	prctl(PR_SET_PDEATHSIG, 0);
	if (BERTH_CONFINED &&
	    syscalls_limit(init_rules, ARRAY_LEN(init_rules), EPERM) < 0 &&
	    errno != ENOSYS)
		_exit(4);
	if (write(3, "", 1) != 1)
		_exit(5);
	close(3);
	init_reap();
}
