/*
 * What libssh's poll() and recv() give when berth-sshd reads ahead: the same
 * bytes, the same end, the same errors, with fewer system calls.
 */
#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sshd/connection/read_ahead.h"
#include "tests/unit/unit.h"

struct pair {
	int ours, theirs;
};

static int
setup(void **state)
{
	static struct pair p;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) < 0)
		return -1;
	p = (struct pair){ fds[0], fds[1] };
	read_ahead_start(p.ours);
	*state = &p;
	return 0;
}

static int
teardown(void **state)
{
	struct pair *p = *state;

	close(p->ours);
	if (p->theirs >= 0)
		close(p->theirs);
	return 0;
}

static void
fill(const struct pair *p, size_t n)
{
	uint8_t bytes[20000];

	assert_true(n <= sizeof(bytes));
	for (size_t i = 0; i < n; i++)
		bytes[i] = (uint8_t)(i % 251);
	assert_int_equal(send(p->theirs, bytes, n, 0), n);
}

static short
look(const struct pair *p, short events)
{
	struct pollfd fd = { .fd = p->ours, .events = events };
	int rc = poll(&fd, 1, 0);

	assert_int_equal(rc, fd.revents != 0);
	return fd.revents;
}

static void
recv_in_small_pieces_empties_the_socket_at_once(void **state)
{
	struct pair *p = *state;
	uint8_t piece[4096];
	size_t seen = 0;
	int left = -1;

	fill(p, 20000);
	while (look(p, POLLIN) & POLLIN) {
		ssize_t n = recv(p->ours, piece, sizeof(piece), 0);

		assert_in_range(n, 1, sizeof(piece));
		for (ssize_t i = 0; i < n; i++)
			assert_int_equal(piece[i], (seen + (size_t)i) % 251);
		seen += (size_t)n;
		assert_int_equal(ioctl(p->ours, FIONREAD, &left), 0);
		assert_int_equal(left, 0);
		assert_int_equal(read_ahead_has_bytes(), seen < 20000);
	}
	assert_int_equal(seen, 20000);
	assert_int_equal(recv(p->ours, piece, sizeof(piece), 0), -1);
	assert_int_equal(errno, EAGAIN);
}

static void
end_of_stream_comes_behind_the_last_byte(void **state)
{
	struct pair *p = *state;
	uint8_t piece[60];

	fill(p, 100);
	close(p->theirs);
	p->theirs = -1;
	assert_int_equal(recv(p->ours, piece, 60, 0), 60);
	assert_int_equal(look(p, POLLIN), POLLIN);
	assert_int_equal(recv(p->ours, piece, 60, 0), 40);
	assert_int_equal(piece[39], 99);
	read_ahead_wake();
	assert_true(look(p, POLLIN) & POLLHUP);
	assert_int_equal(recv(p->ours, piece, 60, 0), 0);
	assert_int_equal(recv(p->ours, piece, 60, 0), 0);
}

static void
poll_tells_of_writing_too(void **state)
{
	struct pair *p = *state;
	uint8_t piece[10];

	assert_int_equal(look(p, POLLIN | POLLOUT), POLLOUT);
	fill(p, 100);
	assert_int_equal(recv(p->ours, piece, 10, 0), 10);
	assert_int_equal(look(p, POLLIN | POLLOUT), POLLIN | POLLOUT);
	assert_int_equal(look(p, POLLOUT), POLLOUT);
	assert_int_equal(look(p, 0), 0);
}

static void
poll_does_not_ask_again_until_an_event(void **state)
{
	struct pair *p = *state;
	uint8_t piece[10];

	fill(p, 10);
	assert_int_equal(look(p, POLLIN), POLLIN);
	assert_int_equal(recv(p->ours, piece, 10, 0), 10);
	assert_int_equal(look(p, POLLIN), 0);
	fill(p, 10);
	assert_int_equal(look(p, POLLIN), 0);
	assert_int_equal(look(p, POLLIN | POLLOUT), POLLIN | POLLOUT);
	read_ahead_wake();
	assert_int_equal(look(p, POLLIN), POLLIN);
}

static void
poll_finds_the_descriptor_among_others(void **state)
{
	struct pair *p = *state;
	struct pollfd fds[2] = { { .fd = p->theirs, .events = POLLIN },
		{ .fd = p->ours, .events = POLLIN } };
	uint8_t piece[10];

	fill(p, 100);
	assert_int_equal(recv(p->ours, piece, 10, 0), 10);
	assert_int_equal(poll(fds, 2, 1000), 1);
	assert_int_equal(fds[0].revents, 0);
	assert_int_equal(fds[1].revents, POLLIN);
}

static void
other_descriptors_and_peeks_are_left_alone(void **state)
{
	struct pair *p = *state;
	uint8_t piece[10];

	assert_int_equal(send(p->ours, "abc", 3, 0), 3);
	assert_int_equal(recv(p->theirs, piece, 1, 0), 1);
	assert_int_equal(recv(p->theirs, piece, 10, 0), 2);
	fill(p, 5);
	assert_int_equal(recv(p->ours, piece, 10, MSG_PEEK), 5);
	assert_false(read_ahead_has_bytes());
	assert_int_equal(recv(p->ours, piece, 10, 0), 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    recv_in_small_pieces_empties_the_socket_at_once, setup,
		    teardown),
		cmocka_unit_test_setup_teardown(
		    end_of_stream_comes_behind_the_last_byte, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    poll_tells_of_writing_too, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    poll_does_not_ask_again_until_an_event, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    poll_finds_the_descriptor_among_others, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    other_descriptors_and_peeks_are_left_alone, setup,
		    teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
