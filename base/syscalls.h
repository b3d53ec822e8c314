/*
 * Which system calls a process may make from now on, by a seccomp filter that
 * is made here: libseccomp would cost each process 90 KiB and a millisecond.
 * Knows nothing of berth; the rows are the caller's.
 */
#ifndef BASE_SYSCALLS_H
#define BASE_SYSCALLS_H

#include <stddef.h>

/* What happens to a call, besides failing with a positive errno. */
enum syscalls_act {
	SYSCALLS_ALLOW = 0,
	SYSCALLS_KILL = -1,      /* SIGSYS ends the whole process */
	SYSCALLS_NO_EXEC = -2,   /* EACCES if argument 2 has PROT_EXEC */
	SYSCALLS_SELF = -3,      /* EPERM unless argument 0 is our pid, or 0 */
	SYSCALLS_READ_ONLY = -4, /* EACCES if argument 2 opens for more */
	SYSCALLS_NO_SPACES = -5, /* EPERM if argument 0 asks for a namespace */
	SYSCALLS_NO_TYPING =
	    -6,               /* EPERM if argument 1 is TIOCSTI or TIOCLINUX */
	SYSCALLS_NETWORK = -7 /* EAFNOSUPPORT unless UNIX, INET(6) or NETLINK */
};

struct syscalls_rule {
	int nr;  /* SYS_... */
	int act; /* enum syscalls_act, or the errno it fails with */
};

#define SYSCALLS_RULES_MAX 256

/*
 * Puts the N rows (at most SYSCALLS_RULES_MAX) in force in all threads of this
 * process and what it forks, for good; a call without a row gets OTHERWISE, one
 * of another architecture ends the process. Needs no_new_privs. 0, -ENOSYS when
 * kernel or architecture cannot do that, or another negative errno.
 */
int syscalls_limit(const struct syscalls_rule *rules, size_t n, int otherwise);

#endif
