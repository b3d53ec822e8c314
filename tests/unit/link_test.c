/*
 * Links: frames survive any cutting of the stream, descriptors keep to their
 * frames, and on a loop the end of a link is told exactly once.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "sessions/wire/link.h"
#include "sessions/wire/wire.h"
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

/* Makes the socket take little, so that writes stay partial. */
static void
shrink(int fd)
{
	int size = 1;

	assert_int_equal(
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
}

/* A descriptor that can be recognised: a memory file holding C. */
static int
marked_fd(char c)
{
	int fd = memfd_create("mark", MFD_CLOEXEC);

	assert_int_equal(pwrite(fd, &c, 1, 0), 1);
	return fd;
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

static struct frame
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

static unsigned
count_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* ---- link ---------------------------------------------------------------- */

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

/* ---- wire ---------------------------------------------------------------- */

struct end {
	struct wire wire;
	struct event_base *base;
	unsigned n_frames, n_closed, n_idle;
	int close_rc;
	uint8_t types[64];
	bool close_on_frame, pause_on_frame, release_on_close;
};

static void
end_on_frame(struct wire *w, const struct frame *f)
{
	struct end *end = w->owner;

	assert_int_equal(end->n_closed, 0);
	if (f->fd >= 0)
		close(f->fd);
	end->types[end->n_frames++ % ARRAY_LEN(end->types)] = f->type;
	if (end->pause_on_frame)
		wire_pause(w, true);
	if (end->close_on_frame)
		wire_close(w, -ECANCELED);
}

static void
end_on_close(struct wire *w, int rc)
{
	struct end *end = w->owner;

	end->n_closed++;
	end->close_rc = rc;
	if (end->release_on_close)
		wire_release(w);
}

static void
end_on_idle(struct wire *w)
{
	((struct end *)w->owner)->n_idle++;
}

static const struct wire_handler end_handler = {
	.on_frame = end_on_frame,
	.on_close = end_on_close,
	.on_idle = end_on_idle,
};

/* A wire on a loop and, in *PEER, the bare other end. */
static void
end_start(struct end *end, struct link *peer)
{
	int fds[2];

	*end = (struct end){ .base = event_base_new() };
	assert_int_equal(fd_socketpair(fds, true), 0);
	wire_init(&end->wire, end->base, fds[0], &end_handler, end);
	link_init(peer, fds[1]);
}

static void
end_run(struct end *end)
{
	for (int i = 0; i < 20; i++)
		event_base_loop(end->base, EVLOOP_NONBLOCK);
}

static void
end_finish(struct end *end, struct link *peer)
{
	wire_release(&end->wire);
	wire_release(&end->wire);
	event_base_free(end->base);
	link_release(peer);
}

static void
wire_hands_out_frames_then_the_end_once(void **state)
{
	struct link peer;
	struct end end;

	(void)state;
	end_start(&end, &peer);
	link_send(&peer, FRAME_STATS, 0, 0, "x", 1);
	link_send(&peer, FRAME_EXITED, 0, 0, "y", 1);
	assert_int_equal(link_flush(&peer), 0);
	link_release(&peer);
	end_run(&end);
	assert_int_equal(end.n_frames, 2);
	assert_int_equal(end.types[1], FRAME_EXITED);
	assert_int_equal(end.n_closed, 1);
	assert_int_equal(end.close_rc, 0);
	wire_close(&end.wire, -EIO);
	wire_send(&end.wire, FRAME_OK, 0, 0, NULL, 0);
	end_run(&end);
	assert_int_equal(end.n_closed, 1);
	end_finish(&end, &peer);
}

static void
wire_may_be_released_in_on_close(void **state)
{
	struct link peer;
	struct end end;

	(void)state;
	for (int how = 0; how < 2; how++) {
		end_start(&end, &peer);
		end.release_on_close = true;
		if (how)
			wire_close(&end.wire, -ETIMEDOUT);
		else
			link_release(&peer);
		end_run(&end);
		assert_int_equal(end.n_closed, 1);
		assert_int_equal(end.close_rc, how ? -ETIMEDOUT : 0);
		end_finish(&end, &peer);
	}
}

static void
wire_close_is_told_from_the_loop_not_from_within(void **state)
{
	struct link peer;
	struct end end;

	(void)state;
	end_start(&end, &peer);
	end.close_on_frame = true;
	link_send(&peer, FRAME_STATS, 0, 0, NULL, 0);
	link_send(&peer, FRAME_STATS, 0, 0, NULL, 0);
	link_flush(&peer);
	end_run(&end);
	assert_int_equal(end.n_frames, 1);
	assert_int_equal(end.n_closed, 1);
	assert_int_equal(end.close_rc, -ECANCELED);
	wire_close(&end.wire, 0);
	end_run(&end);
	assert_int_equal(end.n_closed, 1);
	end_finish(&end, &peer);
}

static void
wire_ends_on_garbage(void **state)
{
	struct link peer;
	struct end end;

	(void)state;
	end_start(&end, &peer);
	assert_int_equal(write(peer.fd, "\xff\xff\xff\xff garbage", 12), 12);
	end_run(&end);
	assert_int_equal(end.n_frames, 0);
	assert_int_equal(end.n_closed, 1);
	assert_int_equal(end.close_rc, -EPROTO);
	end_finish(&end, &peer);
}

static void
what_was_sent_before_the_peer_went_is_read_after_epipe(void **state)
{
	struct link peer;
	struct end end;

	(void)state;
	end_start(&end, &peer);
	link_send(&peer, FRAME_EXITED, 0, 0, "status", 6);
	link_flush(&peer);
	link_release(&peer);
	/* The answer meets a closed socket before the frame was read. */
	wire_send(&end.wire, FRAME_STOP, 0, 0, NULL, 0);
	assert_true(end.wire.is_broken);
	wire_send_fd(&end.wire, FRAME_VIEWER, 0, 0, NULL, 0, marked_fd('x'));
	end_run(&end);
	assert_int_equal(end.n_frames, 1);
	assert_int_equal(end.types[0], FRAME_EXITED);
	assert_int_equal(end.n_closed, 1);
	assert_int_equal(end.n_idle, 0);
	end_finish(&end, &peer);
}

static void
paused_wire_reads_nothing_until_it_resumes(void **state)
{
	struct link peer;
	struct end end;

	(void)state;
	end_start(&end, &peer);
	end.pause_on_frame = true;
	for (int i = 0; i < 5; i++)
		link_send(&peer, FRAME_STATS, 0, 0, NULL, 0);
	link_flush(&peer);
	for (unsigned i = 1; i <= 5; i++) {
		end_run(&end);
		assert_int_equal(end.n_frames, i);
		wire_pause(&end.wire, false);
	}
	link_release(&peer);
	end_run(&end);
	assert_int_equal(end.n_closed, 1);
	end_finish(&end, &peer);
}

static void
paused_wire_whose_peer_is_gone_still_ends(void **state)
{
	struct link peer;
	struct end end;

	(void)state;
	end_start(&end, &peer);
	wire_pause(&end.wire, true);
	link_release(&peer);
	end_run(&end);
	assert_int_equal(end.n_closed, 0);
	wire_send(&end.wire, FRAME_OK, 0, 0, NULL, 0);
	end_run(&end);
	assert_int_equal(end.n_closed, 1);
	assert_int_equal(end.close_rc, -EPIPE);
	end_finish(&end, &peer);
}

static void
waiting_bytes_drain_and_idle_is_told(void **state)
{
	autofree uint8_t *data = xcalloc(1, FRAME_DATA_MAX);
	struct iovec iov = { data, FRAME_DATA_MAX };
	unsigned n_sent = 0, n_got = 0;
	struct link peer;
	struct end end;

	(void)state;
	end_start(&end, &peer);
	shrink(end.wire.link.fd);
	do
		n_sent++;
	while (wire_write_data(&end.wire, STREAM_OUT, &iov, 1));
	wire_reply_ok(&end.wire, 5);
	end_run(&end);
	assert_int_equal(end.n_idle, 0);
	for (;;) {
		struct frame f;

		if (link_next(&peer, &f) == 0) {
			assert_true(link_fill(&peer) > 0);
			end_run(&end);
			continue;
		}
		if (f.type == FRAME_OK)
			break;
		n_got++;
	}
	assert_int_equal(n_got, n_sent);
	assert_int_equal(end.n_idle, 1);
	end_finish(&end, &peer);
}

static void
peer_that_never_reads_is_let_go(void **state)
{
	unsigned before = count_fds();
	struct link peer;
	struct end end;

	(void)state;
	for (int with_fd = 0; with_fd < 2; with_fd++) {
		autofree uint8_t *big = xcalloc(1, FRAME_DATA_MAX);

		end_start(&end, &peer);
		for (int i = 0; i < 2000; i++)
			wire_send_fd(&end.wire, FRAME_VIEWER, 0, 0, big,
			    with_fd ? 16384 : FRAME_DATA_MAX,
			    with_fd ? marked_fd('x') : -1);
		assert_true(link_pending(&end.wire.link) <=
			    WIRE_PENDING_MAX + FRAME_HEADER_SIZE + FRAME_MAX);
		end_run(&end);
		assert_int_equal(end.n_closed, 1);
		assert_int_equal(end.close_rc, -ENOBUFS);
		end_finish(&end, &peer);
	}
	assert_int_equal(count_fds(), before);
}

static void
error_reply_carries_code_and_sentence(void **state)
{
	struct link peer;
	struct end end;
	struct frame f;
	struct reader r;
	char why[32];

	(void)state;
	end_start(&end, &peer);
	wire_reply_error(&end.wire, 77, 3, "no such session");
	f = expect(&peer, FRAME_ERROR);
	assert_int_equal(f.tag, 77);
	assert_int_equal(f.arg, 3);
	r = reader_over(f.data, f.len);
	reader_str_into(&r, why, sizeof(why));
	assert_true(reader_done(&r));
	assert_string_equal(why, "no such session");
	end_finish(&end, &peer);
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
		cmocka_unit_test(wire_hands_out_frames_then_the_end_once),
		cmocka_unit_test(wire_may_be_released_in_on_close),
		cmocka_unit_test(
		    wire_close_is_told_from_the_loop_not_from_within),
		cmocka_unit_test(wire_ends_on_garbage),
		cmocka_unit_test(
		    what_was_sent_before_the_peer_went_is_read_after_epipe),
		cmocka_unit_test(paused_wire_reads_nothing_until_it_resumes),
		cmocka_unit_test(paused_wire_whose_peer_is_gone_still_ends),
		cmocka_unit_test(waiting_bytes_drain_and_idle_is_told),
		cmocka_unit_test(peer_that_never_reads_is_let_go),
		cmocka_unit_test(error_reply_carries_code_and_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
