/*
 * poll() and recv() for libssh, see read_ahead.h. Runs in berth-sshd. Only plain
 * reads of the one descriptor are different, and never in what they return:
 * bytes in order, then the end or the error that the socket has.
 */
#include "sshd/connection/read_ahead.h"

#include <dlfcn.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define READ_AHEAD_SIZE (64U << 10)

static struct {
	bool is_on;
	bool is_dry; /* the last read emptied it, no event came since */
	int fd;
	size_t start, end;
	/* not malloced: what is never filled is never paid for */
	uint8_t data[READ_AHEAD_SIZE];
} read_ahead;

/* The functions that ours stand before. */
static struct {
	int (*poll)(struct pollfd *fds, nfds_t n, int timeout_ms);
	ssize_t (*recv)(int fd, void *p, size_t n, int flags);
} read_ahead_real;

static void *
read_ahead_find(const char *name)
{
	void *p = dlsym(RTLD_NEXT, name);

	if (!p)
		abort();
	return p;
}

/* Before main(): whoever may call them, and before confinement. */
__attribute__((constructor)) static void
read_ahead_resolve(void)
{
	read_ahead_real.poll =
	    (int (*)(struct pollfd *, nfds_t, int))read_ahead_find("poll");
	read_ahead_real.recv =
	    (ssize_t(*)(int, void *, size_t, int))read_ahead_find("recv");
}

void
read_ahead_start(int fd)
{
	read_ahead.fd = fd;
	read_ahead.start = read_ahead.end = 0;
	read_ahead.is_dry = false;
	read_ahead.is_on = true;
}

void
read_ahead_wake(void)
{
	read_ahead.is_dry = false;
}

bool
read_ahead_has_bytes(void)
{
	return read_ahead.start < read_ahead.end;
}

ssize_t
read_ahead_recv(int fd, void *p, size_t n, int flags)
{
	size_t left;

	if (!read_ahead.is_on || fd != read_ahead.fd || flags)
		return read_ahead_real.recv(fd, p, n, flags);
	if (!read_ahead_has_bytes()) {
		ssize_t got = read_ahead_real.recv(
		    fd, read_ahead.data, sizeof(read_ahead.data), 0);

		if (got <= 0)
			return got;
		read_ahead.is_dry = got < READ_AHEAD_SIZE;
		read_ahead.start = 0;
		read_ahead.end = (size_t)got;
	}
	left = read_ahead.end - read_ahead.start;
	n = n < left ? n : left;
	memcpy(p, read_ahead.data + read_ahead.start, n);
	read_ahead.start += n;
	return (ssize_t)n;
}

/* FDS[AT] wants to read and can. */
static int
read_ahead_say(struct pollfd *fds, nfds_t n, nfds_t at)
{
	int rc;

	if (n == 1 && !(fds[at].events & POLLOUT)) {
		fds[at].revents = POLLIN;
		return 1;
	}
	rc = read_ahead_real.poll(fds, n, 0);
	if (rc < 0)
		return rc;
	if (fds[at].revents == 0)
		rc++;
	fds[at].revents |= POLLIN;
	return rc;
}

/* A question whether bytes came, while nothing can have told of any. */
static bool
read_ahead_knows(const struct pollfd *fds, nfds_t n, int timeout_ms)
{
	return read_ahead.is_on && read_ahead.is_dry &&
	       !read_ahead_has_bytes() && n == 1 && timeout_ms == 0 &&
	       fds[0].fd == read_ahead.fd && fds[0].events == POLLIN;
}

int
read_ahead_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
	if (read_ahead_knows(fds, n, timeout_ms)) {
		fds[0].revents = 0;
		return 0;
	}
	for (nfds_t i = 0; i < n && read_ahead_has_bytes(); i++) {
		if (fds[i].fd == read_ahead.fd && (fds[i].events & POLLIN))
			return read_ahead_say(fds, n, i);
	}
	return read_ahead_real.poll(fds, n, timeout_ms);
}
