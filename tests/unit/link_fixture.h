/*
 * What the tests of links and of wires share: small sockets, descriptors that
 * can be told apart, waiting for a frame.
 */
#ifndef TESTS_UNIT_LINK_FIXTURE_H
#define TESTS_UNIT_LINK_FIXTURE_H

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sessions/wire/link.h"
#include "tests/unit/unit.h"

/* Makes the socket take little, so that writes stay partial. */
static inline void
shrink(int fd)
{
	int size = 1;

	assert_int_equal(
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
}

/* A descriptor that can be recognised: a memory file holding C. */
static inline int
marked_fd(char c)
{
	int fd = memfd_create("mark", MFD_CLOEXEC);

	assert_int_equal(pwrite(fd, &c, 1, 0), 1);
	return fd;
}

/* Reads until the next frame is whole; it must be of TYPE. */
static inline struct frame
expect(struct link *l, uint8_t type)
{
	struct frame f;
	int rc;

	while ((rc = link_next(l, &f)) == 0)
		assert_true(link_fill(l) > 0);
	assert_int_equal(rc, 1);
	assert_int_equal(f.type, type);
	return f;
}

/* How many descriptors are open. */
static inline unsigned
count_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

#endif
