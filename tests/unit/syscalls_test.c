/*
 * Rows become a filter that does what they say. Each case runs in a child,
 * because there is no way back.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/syscalls.h"
#include "tests/unit/unit.h"

/*
 * Calls NR with ARGS in a child under the rules: its errno, 0 for success, or
 * minus the signal that ended it.
 */
static int
outcome(const struct syscalls_rule *rules, size_t n, int otherwise, long nr,
    const long args[4])
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		long rc;

		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		rc = syscalls_limit(rules, n, otherwise);
		if (rc < 0)
			_exit(200);
		rc = syscall(nr, args[0], args[1], args[2], args[3], -1, 0);
		/* Past what a sanitizer does at an exit. */
		syscall(SYS_exit_group, rc < 0 ? errno : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return -WTERMSIG(status);
	return WEXITSTATUS(status);
}

static const struct syscalls_rule rules[] = {
	{ SYS_getppid, EPERM },
	{ SYS_ptrace, SYSCALLS_KILL },
	{ SYS_mmap, SYSCALLS_NO_EXEC },
	{ SYS_tgkill, SYSCALLS_SELF },
	{ SYS_openat, SYSCALLS_READ_ONLY },
	{ SYS_unshare, SYSCALLS_NO_SPACES },
	{ SYS_clone, SYSCALLS_NO_SPACES },
	{ SYS_ioctl, SYSCALLS_NO_TYPING },
	{ SYS_socket, SYSCALLS_NETWORK },
};

static void
syscalls_rows_do_what_they_say(void **state)
{
	const long anon = MAP_PRIVATE | MAP_ANONYMOUS;
	const long root = (long)(uintptr_t) "/";
	const struct {
		long nr, args[4];
		int outcome;
	} cases[] = {
		{ SYS_getpgrp, { 0 }, 0 },
		{ SYS_getppid, { 0 }, EPERM },
		{ SYS_ptrace, { 0 }, -SIGSYS },
		{ SYS_mmap, { 0, 4096, PROT_READ | PROT_WRITE, anon }, 0 },
		{ SYS_mmap, { 0, 4096, PROT_READ | PROT_EXEC, anon }, EACCES },
		{ SYS_mmap, { 0, 4096, PROT_EXEC, anon }, EACCES },
		{ SYS_openat, { AT_FDCWD, root, O_RDONLY | O_CLOEXEC }, 0 },
		{ SYS_openat, { AT_FDCWD, root, O_WRONLY }, EACCES },
		{ SYS_openat, { AT_FDCWD, root, O_RDWR }, EACCES },
		{ SYS_openat, { AT_FDCWD, root, O_CREAT }, EACCES },
		{ SYS_tgkill, { 1, 1, 0 }, EPERM },
		/* Allowed: the kernel's own answer to a wrong argument. */
		{ SYS_tgkill, { 0, 0, 0 }, EINVAL },
		{ SYS_unshare, { CLONE_FS }, 0 },
		{ SYS_unshare, { CLONE_NEWUSER }, EPERM },
		{ SYS_unshare, { CLONE_FS | CLONE_NEWNS }, EPERM },
		{ SYS_clone, { CLONE_NEWUSER | SIGCHLD }, EPERM },
		/* The kernel sees the low half only. */
		{ SYS_ioctl, { -1, TIOCSTI, 0 }, EPERM },
		{ SYS_ioctl, { -1, TIOCSTI | 1L << 32, 0 }, EPERM },
		{ SYS_ioctl, { -1, TIOCLINUX, 0 }, EPERM },
		{ SYS_ioctl, { -1, TCGETS, 0 }, EBADF },
		{ SYS_socket, { AF_UNIX, SOCK_STREAM, 0 }, 0 },
		{ SYS_socket, { AF_INET, SOCK_DGRAM, 0 }, 0 },
		{ SYS_socket, { AF_NETLINK, SOCK_RAW, 0 }, 0 },
		{ SYS_socket, { AF_VSOCK, SOCK_STREAM, 0 }, EAFNOSUPPORT },
		{ SYS_socket, { AF_ALG, SOCK_SEQPACKET, 0 }, EAFNOSUPPORT },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(
		    outcome(rules, ARRAY_LEN(rules), SYSCALLS_ALLOW,
			cases[i].nr, cases[i].args),
		    cases[i].outcome);
}

static const struct syscalls_rule few[] = {
	{ SYS_exit_group, SYSCALLS_ALLOW },
	{ SYS_getpid, SYSCALLS_ALLOW },
};

static void
syscalls_without_a_row_get_the_rest(void **state)
{
	const long none[4] = { 0 };

	(void)state;
	assert_int_equal(outcome(few, 2, SYSCALLS_KILL, SYS_getpid, none), 0);
	assert_int_equal(
	    outcome(few, 2, SYSCALLS_KILL, SYS_getppid, none), -SIGSYS);
	assert_int_equal(outcome(few, 2, ENOENT, SYS_getppid, none), ENOENT);
}

static void
syscalls_need_no_new_privileges(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0) {
		/* Root may do it without: not what is meant here. */
		if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(1);
		_exit(syscalls_limit(few, 2, SYSCALLS_KILL) == -EACCES ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(syscalls_rows_do_what_they_say),
		cmocka_unit_test(syscalls_without_a_row_get_the_rest),
		cmocka_unit_test(syscalls_need_no_new_privileges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
