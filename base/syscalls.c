/*
 * A seccomp filter out of rows; see syscalls.h. The program is linear: the
 * kernel remembers for each call that does not depend on arguments that it is
 * allowed, and then runs nothing.
 */
#include "base/syscalls.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Where calls go through a multiplexer (i386) rows would mean nothing. */
#if defined(__x86_64__) && !defined(__ILP32__)
#define SYSCALLS_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SYSCALLS_ARCH AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define SYSCALLS_ARCH AUDIT_ARCH_RISCV64
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
#define SYSCALLS_ARCH AUDIT_ARCH_PPC64LE
#else
#define SYSCALLS_ARCH 0
#endif

/* What an open() that only reads has none of. */
#define SYSCALLS_MORE (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)

/* CLONE_NEWTIME is no flag of clone(): there it is part of the exit signal. */
#define SYSCALLS_SPACES                                              \
	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | \
	    CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

/* The other numbers of x86-64, which nothing of ours uses. */
#define SYSCALLS_X32 0x40000000U

#define SYSCALLS_EACH 8 /* instructions of the longest row */
#define SYSCALLS_REST 8 /* before the first row and behind the last */

struct syscalls_program {
	struct sock_filter
	    code[SYSCALLS_RULES_MAX * SYSCALLS_EACH + SYSCALLS_REST];
	unsigned short n;
};

static void
syscalls_put(struct syscalls_program *p, uint16_t code, uint32_t k, uint8_t jt,
    uint8_t jf)
{
	p->code[p->n++] =
	    (struct sock_filter){ .code = code, .jt = jt, .jf = jf, .k = k };
}

static void
syscalls_load(struct syscalls_program *p, size_t offset)
{
	syscalls_put(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void
syscalls_return(struct syscalls_program *p, int act)
{
	uint32_t verdict = SECCOMP_RET_KILL_PROCESS;

	if (act == SYSCALLS_ALLOW)
		verdict = SECCOMP_RET_ALLOW;
	else if (act > 0)
		verdict = SECCOMP_RET_ERRNO | ((uint32_t)act & 0xffff);
	syscalls_put(p, BPF_RET | BPF_K, verdict, 0, 0);
}

/* The low half of argument N; all these architectures are little-endian. */
static void
syscalls_load_arg(struct syscalls_program *p, unsigned n)
{
	syscalls_load(p, offsetof(struct seccomp_data, args) + n * 8UL);
}

static void
syscalls_put_rule(struct syscalls_program *p, const struct syscalls_rule *r)
{
	const uint16_t is = BPF_JMP | BPF_JEQ | BPF_K;
	const uint16_t has = BPF_JMP | BPF_JSET | BPF_K;
	uint32_t nr = (uint32_t)r->nr;

	switch (r->act) {
	case SYSCALLS_NO_EXEC:
	case SYSCALLS_READ_ONLY:
		syscalls_put(p, is, nr, 0, 4);
		syscalls_load_arg(p, 2);
		syscalls_put(p, has,
		    r->act == SYSCALLS_NO_EXEC ? PROT_EXEC : SYSCALLS_MORE, 0,
		    1);
		syscalls_return(p, EACCES);
		syscalls_return(p, SYSCALLS_ALLOW);
		break;
	case SYSCALLS_NO_SPACES:
		syscalls_put(p, is, nr, 0, 4);
		syscalls_load_arg(p, 0);
		syscalls_put(p, has, SYSCALLS_SPACES, 0, 1);
		syscalls_return(p, EPERM);
		syscalls_return(p, SYSCALLS_ALLOW);
		break;
	case SYSCALLS_NO_TYPING:
		syscalls_put(p, is, nr, 0, 5);
		syscalls_load_arg(p, 1);
		syscalls_put(p, is, TIOCSTI, 1, 0);
		syscalls_put(p, is, TIOCLINUX, 0, 1);
		syscalls_return(p, EPERM);
		syscalls_return(p, SYSCALLS_ALLOW);
		break;
	case SYSCALLS_NETWORK:
		syscalls_put(p, is, nr, 0, 7);
		syscalls_load_arg(p, 0);
		syscalls_put(p, is, AF_UNIX, 4, 0);
		syscalls_put(p, is, AF_INET, 3, 0);
		syscalls_put(p, is, AF_INET6, 2, 0);
		syscalls_put(p, is, AF_NETLINK, 1, 0);
		syscalls_return(p, EAFNOSUPPORT);
		syscalls_return(p, SYSCALLS_ALLOW);
		break;
	case SYSCALLS_SELF:
		syscalls_put(p, is, nr, 0, 5);
		syscalls_load_arg(p, 0);
		syscalls_put(p, is, (uint32_t)getpid(), 1, 0);
		syscalls_put(p, is, 0, 0, 1);
		syscalls_return(p, SYSCALLS_ALLOW);
		syscalls_return(p, EPERM);
		break;
	default:
		syscalls_put(p, is, nr, 0, 1);
		syscalls_return(p, r->act);
	}
}

int
syscalls_limit(const struct syscalls_rule *rules, size_t n, int otherwise)
{
	struct syscalls_program p;
	struct sock_fprog prog = { .filter = p.code };
	long rc;

	assert(n <= SYSCALLS_RULES_MAX);
	p.n = 0; /* the rest stays as it is: pages that nobody touches */
	if (!SYSCALLS_ARCH)
		return -ENOSYS;
	syscalls_load(&p, offsetof(struct seccomp_data, arch));
	syscalls_put(&p, BPF_JMP | BPF_JEQ | BPF_K, SYSCALLS_ARCH, 1, 0);
	syscalls_return(&p, SYSCALLS_KILL);
	syscalls_load(&p, offsetof(struct seccomp_data, nr));
	syscalls_put(&p, BPF_JMP | BPF_JGE | BPF_K, SYSCALLS_X32, 0, 1);
	syscalls_return(&p, SYSCALLS_KILL);
	for (size_t i = 0; i < n; i++)
		syscalls_put_rule(&p, &rules[i]);
	syscalls_return(&p, otherwise);
	prog.len = p.n;
	rc = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
	    SECCOMP_FILTER_FLAG_TSYNC, &prog);
	if (rc > 0)
		return -EBUSY; /* a thread with a filter of its own */
	if (rc < 0)
		return errno == EINVAL ? -ENOSYS : -errno;
	return 0;
}
