/*
 * For programs that valgrind runs (test_valgrind.py links this into a build of
 * its own): older valgrinds do not know pidfds, so a helper outside hands them
 * out, and a limit of addresses would be valgrind's own. Each function tries
 * the real call first.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SHIM_NAME
#define SHIM_NAME "berth-valgrind" /* of the helper's abstract socket */
#endif

int __real_pidfd_open(pid_t pid, unsigned flags);
int __wrap_pidfd_open(pid_t pid, unsigned flags);
int __real_pidfd_send_signal(
    int pidfd, int sig, siginfo_t *info, unsigned flags);
int __wrap_pidfd_send_signal(
    int pidfd, int sig, siginfo_t *info, unsigned flags);
int __real_setrlimit(__rlimit_resource_t what, const struct rlimit *r);
int __wrap_setrlimit(__rlimit_resource_t what, const struct rlimit *r);

/* The answer of the helper: a descriptor, or -1 and what was in the message. */
static int
shim_receive(int s)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	int code = EIO, fd;
	struct iovec iov = { .iov_base = &code, .iov_len = sizeof(code) };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space) };
	struct cmsghdr *c;

	if (recvmsg(s, &msg, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(code))
		code = EIO;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || code) {
		errno = code ? code : EIO;
		return -1;
	}
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

int
__wrap_pidfd_open(pid_t pid, unsigned flags)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	socklen_t len = offsetof(struct sockaddr_un, sun_path) +
			(socklen_t)sizeof(SHIM_NAME);
	int fd = __real_pidfd_open(pid, flags), s;

	if (fd >= 0 || errno != ENOSYS)
		return fd;
	/* an abstract name: a NUL, then the letters */
	memcpy(sa.sun_path + 1, SHIM_NAME, sizeof(SHIM_NAME) - 1);
	s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s < 0)
		return -1;
	if (connect(s, (const struct sockaddr *)&sa, len) == 0 &&
	    send(s, &pid, sizeof(pid), MSG_NOSIGNAL) == (ssize_t)sizeof(pid))
		fd = shim_receive(s);
	close(s);
	return fd;
}

/* The process behind a pidfd, -1 when it is gone. */
static pid_t
shim_pid(int pidfd)
{
	char path[64], line[128];
	int pid = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "Pid: %d", &pid) == 1)
			break;
	}
	if (f)
		fclose(f);
	return pid;
}

int
__wrap_pidfd_send_signal(int pidfd, int sig, siginfo_t *info, unsigned flags)
{
	int rc = __real_pidfd_send_signal(pidfd, sig, info, flags);
	pid_t pid;

	if (rc == 0 || errno != ENOSYS)
		return rc;
	pid = shim_pid(pidfd);
	if (pid <= 0) {
		errno = ESRCH;
		return -1;
	}
	return kill(pid, sig);
}

int
__wrap_setrlimit(__rlimit_resource_t what, const struct rlimit *r)
{
	return what == RLIMIT_AS ? 0 : __real_setrlimit(what, r);
}
