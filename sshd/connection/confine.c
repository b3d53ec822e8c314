/*
 * Limits of the process that talks to the network; see confine.h. Runs in
 * berth-sshd, before the first byte of the peer is read.
 */
#include "sshd/connection/confine.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/privilege.h"
#include "base/syscalls.h"

#define CONFINE_USER        "berth-net"
#define CONFINE_CPU_S       10
#define CONFINE_MEMORY_BASE (256UL << 20)
#define CONFINE_MEMORY_EACH (6UL << 20) /* a channel with full buffers */
#define CONFINE_FDS_BASE    64

/*
 * What libssh, libcrypto, libevent and the C library call once everything is
 * open, on Debian 12 and 13. What they may ask for and do well without fails
 * politely; any other call ends the process, and berthd logs that.
 */
static const struct syscalls_rule confine_rules[] = {
	/* descriptors that are there */
	{ SYS_read, SYSCALLS_ALLOW },
	{ SYS_write, SYSCALLS_ALLOW },
	{ SYS_readv, SYSCALLS_ALLOW },
	{ SYS_writev, SYSCALLS_ALLOW },
	{ SYS_pread64, SYSCALLS_ALLOW },
	{ SYS_pwrite64, SYSCALLS_ALLOW },
	{ SYS_recvfrom, SYSCALLS_ALLOW },
	{ SYS_recvmsg, SYSCALLS_ALLOW },
	{ SYS_sendto, SYSCALLS_ALLOW },
	{ SYS_sendmsg, SYSCALLS_ALLOW },
	{ SYS_getsockopt, SYSCALLS_ALLOW },
	{ SYS_setsockopt, SYSCALLS_ALLOW },
	{ SYS_getsockname, SYSCALLS_ALLOW },
	{ SYS_getpeername, SYSCALLS_ALLOW },
	{ SYS_shutdown, SYSCALLS_ALLOW },
	{ SYS_close, SYSCALLS_ALLOW },
	{ SYS_close_range, SYSCALLS_ALLOW },
	{ SYS_fcntl, SYSCALLS_ALLOW },
	{ SYS_dup, SYSCALLS_ALLOW },
#ifdef SYS_dup2
	{ SYS_dup2, SYSCALLS_ALLOW },
#endif
	{ SYS_dup3, SYSCALLS_ALLOW },
	{ SYS_lseek, SYSCALLS_ALLOW },
	{ SYS_fstat, SYSCALLS_ALLOW },
#ifdef SYS_newfstatat
	{ SYS_newfstatat, SYSCALLS_ALLOW },
#endif
#ifdef SYS_pipe
	{ SYS_pipe, SYSCALLS_ALLOW },
#endif
	{ SYS_pipe2, SYSCALLS_ALLOW },
	{ SYS_eventfd2, SYSCALLS_ALLOW },
	{ SYS_timerfd_create, SYSCALLS_ALLOW },
	{ SYS_timerfd_settime, SYSCALLS_ALLOW },
/* waiting */
#ifdef SYS_poll
	{ SYS_poll, SYSCALLS_ALLOW },
#endif
	{ SYS_ppoll, SYSCALLS_ALLOW },
#ifdef SYS_select
	{ SYS_select, SYSCALLS_ALLOW },
#endif
	{ SYS_pselect6, SYSCALLS_ALLOW },
#ifdef SYS_epoll_create
	{ SYS_epoll_create, SYSCALLS_ALLOW },
#endif
	{ SYS_epoll_create1, SYSCALLS_ALLOW },
	{ SYS_epoll_ctl, SYSCALLS_ALLOW },
#ifdef SYS_epoll_wait
	{ SYS_epoll_wait, SYSCALLS_ALLOW },
#endif
	{ SYS_epoll_pwait, SYSCALLS_ALLOW },
#ifdef SYS_epoll_pwait2
	{ SYS_epoll_pwait2, SYSCALLS_ALLOW },
#endif
	{ SYS_restart_syscall, SYSCALLS_ALLOW },
	{ SYS_futex, SYSCALLS_ALLOW },
	/* memory */
	{ SYS_brk, SYSCALLS_ALLOW },
	{ SYS_munmap, SYSCALLS_ALLOW },
	{ SYS_mremap, SYSCALLS_ALLOW },
	{ SYS_madvise, SYSCALLS_ALLOW },
	{ SYS_mmap, SYSCALLS_NO_EXEC },
	{ SYS_mprotect, SYSCALLS_NO_EXEC },
	/* time, signals, itself */
	{ SYS_clock_gettime, SYSCALLS_ALLOW },
	{ SYS_clock_getres, SYSCALLS_ALLOW },
	{ SYS_clock_nanosleep, SYSCALLS_ALLOW },
	{ SYS_nanosleep, SYSCALLS_ALLOW },
	{ SYS_gettimeofday, SYSCALLS_ALLOW },
#ifdef SYS_time
	{ SYS_time, SYSCALLS_ALLOW },
#endif
	{ SYS_setitimer, SYSCALLS_ALLOW },
	{ SYS_getitimer, SYSCALLS_ALLOW },
#ifdef SYS_alarm
	{ SYS_alarm, SYSCALLS_ALLOW },
#endif
	{ SYS_rt_sigaction, SYSCALLS_ALLOW },
	{ SYS_rt_sigprocmask, SYSCALLS_ALLOW },
	{ SYS_rt_sigreturn, SYSCALLS_ALLOW },
	{ SYS_sigaltstack, SYSCALLS_ALLOW },
	{ SYS_exit, SYSCALLS_ALLOW },
	{ SYS_exit_group, SYSCALLS_ALLOW },
	{ SYS_getrandom, SYSCALLS_ALLOW },
	{ SYS_getpid, SYSCALLS_ALLOW },
	{ SYS_gettid, SYSCALLS_ALLOW },
	{ SYS_getppid, SYSCALLS_ALLOW },
	{ SYS_getuid, SYSCALLS_ALLOW },
	{ SYS_geteuid, SYSCALLS_ALLOW },
	{ SYS_getgid, SYSCALLS_ALLOW },
	{ SYS_getegid, SYSCALLS_ALLOW },
#ifdef SYS_getrlimit
	{ SYS_getrlimit, SYSCALLS_ALLOW },
#endif
	{ SYS_uname, SYSCALLS_ALLOW },
	{ SYS_sysinfo, SYSCALLS_ALLOW },
	{ SYS_getrusage, SYSCALLS_ALLOW },
	{ SYS_times, SYSCALLS_ALLOW },
	{ SYS_sched_yield, SYSCALLS_ALLOW },
	{ SYS_sched_getaffinity, SYSCALLS_ALLOW },
#ifdef SYS_getcpu
	{ SYS_getcpu, SYSCALLS_ALLOW },
#endif
#ifdef SYS_membarrier
	{ SYS_membarrier, SYSCALLS_ALLOW },
#endif
#ifdef SYS_rseq
	{ SYS_rseq, SYSCALLS_ALLOW },
#endif
	{ SYS_set_robust_list, SYSCALLS_ALLOW },
	{ SYS_tgkill, SYSCALLS_SELF },
	{ SYS_prlimit64, SYSCALLS_SELF },
/* files, of which there are none */
#ifdef SYS_open
	{ SYS_open, ENOENT },
#endif
	{ SYS_openat, ENOENT },
#ifdef SYS_openat2
	{ SYS_openat2, ENOENT },
#endif
#ifdef SYS_stat
	{ SYS_stat, ENOENT },
#endif
#ifdef SYS_lstat
	{ SYS_lstat, ENOENT },
#endif
	{ SYS_statx, ENOENT },
#ifdef SYS_access
	{ SYS_access, ENOENT },
#endif
	{ SYS_faccessat, ENOENT },
#ifdef SYS_faccessat2
	{ SYS_faccessat2, ENOENT },
#endif
#ifdef SYS_readlink
	{ SYS_readlink, ENOENT },
#endif
	{ SYS_readlinkat, ENOENT },
	{ SYS_getcwd, ENOENT },
	/* harmless to ask */
	{ SYS_socket, EACCES },
	{ SYS_connect, EACCES },
	{ SYS_ioctl, ENOTTY },
	{ SYS_prctl, EPERM },
	{ SYS_mlock, EPERM },
	{ SYS_sched_setaffinity, EPERM },
#ifdef SYS_clone3
	{ SYS_clone3, ENOSYS },
#endif
#ifdef SYS_futex_waitv
	{ SYS_futex_waitv, ENOSYS },
#endif
#ifdef SYS_map_shadow_stack
	{ SYS_map_shadow_stack, ENOSYS },
#endif
#ifdef SYS_mseal
	{ SYS_mseal, ENOSYS },
#endif
};

static void
confine_limit(__rlimit_resource_t what, rlim_t max)
{
	struct rlimit now, r = { .rlim_cur = max, .rlim_max = max };

	if (getrlimit(what, &now) == 0 && now.rlim_max < max)
		r.rlim_cur = r.rlim_max = now.rlim_max;
	setrlimit(what, &r);
}

/* Root goes to where there are no files, then becomes an account. */
static int
confine_drop_root(struct err *e)
{
	struct privilege_account a;
	int rc;

	if (geteuid() != 0)
		return 0;
	if (privilege_find(CONFINE_USER, &a) < 0) {
		log_warn("no_account", "user", CONFINE_USER, "effect",
		    "the connection process stays root", NULL);
		return 0;
	}
	/* A sanitizer's report reads the program and its libraries. */
	if (BERTH_CONFINED) {
		rc = privilege_leave_files(e);
		if (rc < 0)
			return rc;
	}
	rc = privilege_become(&a);
	return rc < 0 ? err_sys(e, rc, "become %s", CONFINE_USER) : 0;
}

static int
confine_calls(struct err *e)
{
	int rc = syscalls_limit(
	    confine_rules, ARRAY_LEN(confine_rules), SYSCALLS_KILL);

	if (rc == -ENOSYS) {
		log_warn("no_seccomp", "effect",
		    "the connection process may make any system call", NULL);
		return 0;
	}
	return rc < 0 ? err_sys(e, rc, "limit the system calls") : 0;
}

int
confine_self(unsigned max_channels, struct err *e)
{
	int rc = confine_drop_root(e);

	if (rc == 0) {
		rc = privilege_lock();
		if (rc < 0)
			err_sys(e, rc, "no_new_privs");
	}
	if (rc < 0)
		return rc;
	signal(SIGPIPE, SIG_IGN);
	confine_limit(RLIMIT_CORE, 0);
	confine_limit(RLIMIT_NOFILE, CONFINE_FDS_BASE + max_channels);
	if (!BERTH_CONFINED)
		return 0;
	confine_limit(RLIMIT_NPROC, 0);
	confine_limit(RLIMIT_AS,
	    CONFINE_MEMORY_BASE + max_channels * CONFINE_MEMORY_EACH);
	return confine_calls(e);
}

void
confine_feed_watchdog(void)
{
	struct itimerval t = { .it_value = { .tv_sec = CONFINE_CPU_S } };

	setitimer(ITIMER_PROF, &t, NULL);
}
