/* Descriptors, directories, memory files; see fd.h. */
#include "base/fd.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

#define FD_FIRST_INHERITED 3

int
fd_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) < 0 ? -errno : 0;
}

int
fd_set_cloexec(int fd, bool on)
{
	return fcntl(fd, F_SETFD, on ? FD_CLOEXEC : 0) < 0 ? -errno : 0;
}

int
fd_socketpair(int out[2], bool nonblock)
{
	int type = SOCK_STREAM | SOCK_CLOEXEC | (nonblock ? SOCK_NONBLOCK : 0);

	return socketpair(AF_UNIX, type, 0, out) < 0 ? -errno : 0;
}

int
fd_open_dir(const char *path, mode_t mode, struct err *e)
{
	autoclose int fd = -1;
	struct stat st;

	if (mkdir(path, mode) < 0 && errno != EEXIST)
		return err_sys(e, -errno, "cannot make directory %s", path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, -errno, "cannot open directory %s", path);
	if (st.st_uid != geteuid())
		return err_set(e, -EPERM,
		    "directory %s belongs to uid %u, not to uid %u", path,
		    st.st_uid, geteuid());
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, -EPERM,
		    "directory %s is writable by others; run chmod go-w on it",
		    path);
	return take_fd(&fd);
}

int
fd_open_dir_at(int dir_fd, const char *name, mode_t mode, struct err *e)
{
	int fd;

	if (mkdirat(dir_fd, name, mode) < 0 && errno != EEXIST)
		return err_sys(e, -errno, "cannot make directory %s", name);
	fd = openat(
	    dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, -errno, "cannot open directory %s", name);
	return fd;
}

int
fd_make_dirs(const char *path, struct err *e)
{
	autofree char *copy = xstrdup(path);

	if (!*path)
		return err_set(e, -ENOENT, "a directory without a name");
	for (char *p = copy + 1;; p++) {
		char c = *p;

		if (c != '/' && c != '\0')
			continue;
		*p = '\0';
		if (mkdir(copy, 0700) < 0 && errno != EEXIST)
			return err_sys(
			    e, -errno, "cannot make directory %s", copy);
		*p = c;
		if (c == '\0')
			return 0;
	}
}

int
fd_read_all(int fd, size_t max, struct buf *out)
{
	size_t total = 0;

	for (;;) {
		ssize_t n = read(fd, buf_reserve(out, 4096), 4096);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		total += (size_t)n;
		if (total > max)
			return -EFBIG;
		buf_commit(out, (size_t)n);
	}
}

int
fd_read_file(const char *path, size_t max, struct buf *out, struct err *e)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int rc;

	if (fd < 0)
		return err_sys(e, -errno, "cannot open %s", path);
	rc = fd_read_all(fd, max, out);
	return rc < 0 ? err_sys(e, rc, "cannot read %s", path) : 0;
}

int
fd_write_all(int fd, const void *p, size_t n)
{
	const char *s = p;

	while (n > 0) {
		ssize_t k = write(fd, s, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -errno;
		s += k;
		n -= (size_t)k;
	}
	return 0;
}

int
fd_sealed_memfd(const char *name, const void *p, size_t n)
{
	autoclose int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int rc;

	if (fd < 0)
		return -errno;
	rc = fd_write_all(fd, p, n);
	if (rc < 0)
		return rc;
	if (lseek(fd, 0, SEEK_SET) < 0 ||
	    fcntl(fd, F_ADD_SEALS,
		F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -errno;
	return take_fd(&fd);
}

int
fd_arrange(const int *fds, size_t n)
{
	int high[16];
	int floor = FD_FIRST_INHERITED + (int)n;

	if (n > ARRAY_LEN(high))
		return -EINVAL;
	/* First out of the way of 3..3+n, so that no dup2 hits a source. */
	for (size_t i = 0; i < n; i++) {
		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, floor);
		if (high[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < n; i++) {
		if (dup2(high[i], FD_FIRST_INHERITED + (int)i) < 0)
			return -errno;
	}
	return close_range((unsigned)floor, ~0U, 0) < 0 ? -errno : 0;
}

static int
fd_unix_addr(int dir_fd, const char *name, struct sockaddr_un *sa)
{
	int n;

	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	n = snprintf(sa->sun_path, sizeof(sa->sun_path), "/proc/self/fd/%d/%s",
	    dir_fd, name);
	return n < 0 || (size_t)n >= sizeof(sa->sun_path) ? -ENAMETOOLONG : 0;
}

static int
fd_connect_type(int dir_fd, const char *name, int type)
{
	autoclose int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	struct sockaddr_un sa;
	int rc = fd_unix_addr(dir_fd, name, &sa);

	if (rc < 0)
		return rc;
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return -errno;
	return take_fd(&fd);
}

int
fd_connect_unix(int dir_fd, const char *name)
{
	return fd_connect_type(dir_fd, name, SOCK_STREAM);
}

int
fd_connect_unix_nonblock(int dir_fd, const char *name)
{
	return fd_connect_type(dir_fd, name, SOCK_STREAM | SOCK_NONBLOCK);
}

int
fd_listen_unix(int dir_fd, const char *name)
{
	autoclose int fd = -1;
	struct sockaddr_un sa;
	int probe = fd_connect_unix(dir_fd, name);
	int rc = fd_unix_addr(dir_fd, name, &sa);
	mode_t old;

	if (probe >= 0) {
		close(probe);
		return -EADDRINUSE;
	}
	if (rc < 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
		return -errno;
	old = umask(0177);
	rc = bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ? -errno : 0;
	umask(old);
	if (rc < 0)
		return rc;
	return listen(fd, 128) < 0 ? -errno : take_fd(&fd);
}

/* ---- descriptors in messages ---------------------------------------------- */

union fd_control {
	char space[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
	struct cmsghdr align;
};

ssize_t
fd_send(int sock, const void *p, size_t n, const int *fds, size_t n_fds)
{
	union fd_control control = { .space = { 0 } };
	struct iovec iov = { (void *)(uintptr_t)p, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t sent;

	assert(n_fds <= FD_PASS_MAX);
	if (n_fds) {
		struct cmsghdr *c;

		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	do
		sent = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : sent;
}

ssize_t
fd_receive(int sock, void *p, size_t n, int *fds, size_t max)
{
	union fd_control control;
	struct iovec iov = { p, n };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = CMSG_SPACE(max * sizeof(int)),
	};
	int got[FD_PASS_MAX + 1]; /* alignment may leave room for one more */
	size_t n_got = 0;
	struct cmsghdr *c;
	ssize_t len;

	assert(max <= FD_PASS_MAX);
	do
		len = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (len < 0 && errno == EINTR);
	for (size_t i = 0; i < max; i++)
		fds[i] = -1;
	if (len < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		n_got = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(got, CMSG_DATA(c), n_got * sizeof(int));
	}
	if (n_got > max || msg.msg_flags & MSG_CTRUNC) {
		while (n_got)
			close(got[--n_got]);
		return -EPROTO;
	}
	memcpy(fds, got, n_got * sizeof(int));
	return len;
}
