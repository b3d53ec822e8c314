/*
 * Links: frames survive any cutting of the stream, descriptors keep to their
 * frames, and what lies about itself ends the link.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "sessions/wire/link.h"
#include "tests/unit/link_fixture.h"
#include "tests/unit/unit.h"

static void
pair_of_links(struct link *a, struct link *b)
{
	int fds[2];

	assert_int_equal(fd_socketpair(fds, true), 0);
	link_init(a, fds[0]);
	link_init(b, fds[1]);
}

static void
release_links(struct link *a, struct link *b)
{
	link_release(a);
	link_release(b);
}

static char
mark_of(int fd)
{
	char c = 0;

	assert_int_equal(pread(fd, &c, 1, 0), 1);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	return c;
}

static void
frame_arrives_as_it_was_sent(void **state)
{
	struct link a, b;
	struct frame f;

	(void)state;
	pair_of_links(&a, &b);
	assert_int_equal(link_fill(&b), -EAGAIN);
	link_send(&a, FRAME_OK, 7, 0xbeef, "hello", 5);
	link_send(&a, FRAME_BYE, 0, 0, NULL, 0);
	assert_int_equal(link_pending(&a), 2 * FRAME_HEADER_SIZE + 5);
	assert_false(link_is_idle(&a));
	assert_int_equal(link_flush(&a), 0);
	assert_true(link_is_idle(&a));
	f = expect(&b, FRAME_OK);
	assert_int_equal(f.arg, 7);
	assert_int_equal(f.tag, 0xbeef);
	assert_int_equal(f.fd, -1);
	assert_int_equal(f.len, 5);
	assert_memory_equal(f.data, "hello", 5);
	f = expect(&b, FRAME_BYE);
	assert_int_equal(f.len, 0);
	assert_int_equal(link_next(&b, &f), 0);
	link_release(&a);
	assert_int_equal(link_fill(&b), 0);
	link_release(&b);
}

static void
one_byte_reads_give_the_same_frames(void **state)
{
	struct link a, b;
	uint8_t bytes[512];
	int fds[2];
	ssize_t n;

	(void)state;
	pair_of_links(&a, &b);
	link_send(&a, FRAME_CREDIT, 1, 2, "abcd", 4);
	link_send(&a, FRAME_END, 0, 0, NULL, 0);
	link_send(&a, FRAME_OK, 0, 9, "x", 1);
	assert_int_equal(link_flush(&a), 0);
	n = read(b.fd, bytes, sizeof(bytes));
	release_links(&a, &b);
	assert_int_equal(fd_socketpair(fds, true), 0);
	link_init(&b, fds[1]);
	for (ssize_t i = 0, seen = 0; i < n; i++) {
		static const uint8_t types[] = { FRAME_CREDIT, FRAME_END,
			FRAME_OK };
		struct frame f;

		assert_int_equal(write(fds[0], bytes + i, 1), 1);
		assert_int_equal(link_fill(&b), 1);
		if (link_next(&b, &f) == 1) {
			assert_int_equal(f.type, types[seen++]);
			assert_int_equal(link_next(&b, &f), 0);
		}
		assert_int_equal(seen, i < 11   ? 0
				       : i < 19 ? 1
				       : i < 28 ? 2
						: 3);
	}
	close(fds[0]);
	link_release(&b);
}

static void
largest_frame_passes_in_pieces(void **state)
{
	autofree uint8_t *big = xmalloc(FRAME_MAX);
	struct link a, b;
	struct frame f;
	int rc;

	(void)state;
	for (size_t i = 0; i < FRAME_MAX; i++)
		big[i] = (uint8_t)(i * 7);
	pair_of_links(&a, &b);
	shrink(a.fd);
	link_send(&a, FRAME_LAUNCH, 0, 0, big, FRAME_MAX);
	while ((rc = link_next(&b, &f)) == 0) {
		rc = link_flush(&a);
		assert_true(rc == 0 || rc == -EAGAIN);
		assert_true(link_fill(&b) > 0);
	}
	assert_int_equal(rc, 1);
	assert_int_equal(f.len, FRAME_MAX);
	assert_memory_equal(f.data, big, FRAME_MAX);
	release_links(&a, &b);
}

static void
descriptors_keep_to_their_frames(void **state)
{
	struct link a, b;
	unsigned before = count_fds();

	(void)state;
	pair_of_links(&a, &b);
	for (char c = 'a'; c < 'a' + LINK_FDS_MAX; c++) {
		link_send(&a, FRAME_CREDIT, 0, 0, "1234", 4);
		link_send_fd(
		    &a, FRAME_VIEWER, 0, (uint16_t)c, "v", 1, marked_fd(c));
		link_send(&a, FRAME_STATS, 0, 0, NULL, 0);
	}
	assert_false(link_has_fd_room(&a));
	assert_int_equal(link_flush(&a), 0);
	assert_true(link_has_fd_room(&a));
	for (char c = 'a'; c < 'a' + LINK_FDS_MAX; c++) {
		struct frame f = expect(&b, FRAME_CREDIT);

		assert_int_equal(f.fd, -1);
		f = expect(&b, FRAME_VIEWER);
		assert_int_equal(f.tag, c);
		assert_true(f.fd >= 0);
		assert_int_equal(mark_of(f.fd), c);
		assert_int_equal(expect(&b, FRAME_STATS).fd, -1);
	}
	release_links(&a, &b);
	assert_int_equal(count_fds(), before);
}

static void
descriptors_keep_to_their_frames_when_writes_are_partial(void **state)
{
	autofree uint8_t *big = xcalloc(1, 30000);
	struct link a, b;
	unsigned before = count_fds();
	int n = 0;

	(void)state;
	pair_of_links(&a, &b);
	shrink(a.fd);
	for (char c = 'a'; c < 'i'; c++) {
		link_send(&a, FRAME_STATS, 0, 0, big, 30000);
		link_send_fd(&a, FRAME_VIEWER, 0, 0, big, 30000, marked_fd(c));
	}
	assert_int_equal(link_flush(&a), -EAGAIN);
	while (n < 16) {
		struct frame f;
		int rc = link_next(&b, &f);

		assert_true(rc >= 0);
		if (rc == 0) {
			link_flush(&a);
			assert_true(link_fill(&b) > 0);
			continue;
		}
		assert_int_equal(f.len, 30000);
		if (n % 2 == 0)
			assert_int_equal(f.fd, -1);
		else
			assert_int_equal(mark_of(f.fd), 'a' + n / 2);
		n++;
	}
	release_links(&a, &b);
	assert_int_equal(count_fds(), before);
}

static void
unfetched_and_unsent_descriptors_are_closed(void **state)
{
	struct link a, b;
	unsigned before = count_fds();

	(void)state;
	pair_of_links(&a, &b);
	link_send_fd(&a, FRAME_VIEWER, 0, 0, NULL, 0, marked_fd('a'));
	assert_int_equal(link_flush(&a), 0);
	assert_int_equal(link_fill(&b), FRAME_HEADER_SIZE);
	link_send_fd(&a, FRAME_VIEWER, 0, 0, NULL, 0, marked_fd('b'));
	release_links(&a, &b);
	assert_int_equal(count_fds(), before);
}

static void
control_overtakes_data_but_never_cuts_a_frame(void **state)
{
	autofree uint8_t *data = xmalloc(FRAME_DATA_MAX);
	struct link a, b;
	struct iovec iov[2] = { { data, 20000 },
		{ data + 20000, FRAME_DATA_MAX - 20000 } };
	struct frame f;
	unsigned n_sent = 0, n_got = 0;

	(void)state;
	for (size_t i = 0; i < FRAME_DATA_MAX; i++)
		data[i] = (uint8_t)(i * 11);
	pair_of_links(&a, &b);
	shrink(a.fd);
	/* Until one frame is stuck half-way. */
	while (link_is_idle(&a)) {
		assert_int_equal(link_write_data(&a, STREAM_OUT, iov, 2), 0);
		n_sent++;
	}
	/* No copy beyond the rest of that frame. */
	assert_true(link_pending(&a) <= FRAME_HEADER_SIZE + FRAME_DATA_MAX);
	link_send(&a, FRAME_KILL, 9, 0, NULL, 0);
	for (;;) {
		int rc = link_next(&b, &f);

		assert_true(rc >= 0);
		if (rc == 0) {
			link_flush(&a);
			assert_true(link_fill(&b) > 0);
			continue;
		}
		if (f.type == FRAME_KILL)
			break;
		assert_int_equal(f.type, FRAME_DATA);
		assert_int_equal(f.arg, STREAM_OUT);
		assert_int_equal(f.len, FRAME_DATA_MAX);
		assert_memory_equal(f.data, data, FRAME_DATA_MAX);
		n_got++;
	}
	assert_int_equal(n_got, n_sent);
	assert_int_equal(f.arg, 9);
	release_links(&a, &b);
}

static void
write_to_a_full_socket_keeps_the_whole_frame(void **state)
{
	uint8_t junk[4096] = { 0 };
	struct link a, b;
	struct iovec iov = { junk, 100 };

	(void)state;
	pair_of_links(&a, &b);
	while (send(a.fd, junk, sizeof(junk), MSG_DONTWAIT) > 0)
		;
	assert_int_equal(link_write_data(&a, STREAM_ERR, &iov, 1), 0);
	assert_int_equal(link_pending(&a), FRAME_HEADER_SIZE + 100);
	assert_int_equal(link_flush(&a), -EAGAIN);
	release_links(&a, &b);
}

static void
send_fds(int sock, const int *fds, size_t n)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(16 * sizeof(int))];
	} control = { 0 };
	uint8_t byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	assert_int_equal(sendmsg(sock, &msg, 0), 1);
}

static void
cut_descriptors_are_eproto(void **state)
{
	int fds[8];
	struct link a, b;
	unsigned before = count_fds();

	(void)state;
	pair_of_links(&a, &b);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		fds[i] = marked_fd('x');
	send_fds(a.fd, fds, ARRAY_LEN(fds)); /* MSG_CTRUNC at the receiver */
	assert_int_equal(link_fill(&b), -EPROTO);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		close(fds[i]);
	release_links(&a, &b);
	assert_int_equal(count_fds(), before);
}

static void
hoarded_descriptors_are_eproto(void **state)
{
	struct link a, b;
	unsigned before = count_fds();
	int fd, rc = 0;

	(void)state;
	pair_of_links(&a, &b);
	fd = marked_fd('x');
	for (int i = 0; i <= LINK_FDS_MAX && rc >= 0; i++) {
		send_fds(a.fd, &fd, 1);
		rc = link_fill(&b);
	}
	assert_int_equal(rc, -EPROTO);
	close(fd);
	release_links(&a, &b);
	assert_int_equal(count_fds(), before);
}

static void
oversized_and_lying_headers_are_eproto(void **state)
{
	static const uint8_t headers[][FRAME_HEADER_SIZE] = {
		{ 0x00, 0x10, 0x00, 0x01, FRAME_DATA, 0, 0, 0 },
		{ 0x7f, 0xff, 0xff, 0xff, FRAME_DATA, 0, 0, 0 },
		{ 0xff, 0xff, 0xff, 0xff, FRAME_DATA, 0, 0, 0 },
		/* Promises a descriptor and brings none. */
		{ 0x80, 0x00, 0x00, 0x00, FRAME_VIEWER, 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(headers); i++) {
		struct link a, b;
		struct frame f;

		pair_of_links(&a, &b);
		assert_int_equal(write(a.fd, headers[i], FRAME_HEADER_SIZE),
		    FRAME_HEADER_SIZE);
		assert_int_equal(link_fill(&b), FRAME_HEADER_SIZE);
		assert_int_equal(link_next(&b, &f), -EPROTO);
		/* Nothing of the promised length was allocated. */
		assert_true(b.in.cap <= 128U << 10);
		release_links(&a, &b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_arrives_as_it_was_sent),
		cmocka_unit_test(one_byte_reads_give_the_same_frames),
		cmocka_unit_test(largest_frame_passes_in_pieces),
		cmocka_unit_test(descriptors_keep_to_their_frames),
		cmocka_unit_test(
		    descriptors_keep_to_their_frames_when_writes_are_partial),
		cmocka_unit_test(unfetched_and_unsent_descriptors_are_closed),
		cmocka_unit_test(control_overtakes_data_but_never_cuts_a_frame),
		cmocka_unit_test(write_to_a_full_socket_keeps_the_whole_frame),
		cmocka_unit_test(cut_descriptors_are_eproto),
		cmocka_unit_test(hoarded_descriptors_are_eproto),
		cmocka_unit_test(oversized_and_lying_headers_are_eproto),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
