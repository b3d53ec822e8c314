/*
 * Wires, links on a loop: frames are handed out in order, a pause holds them
 * back, and the end of a link is told exactly once.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "sessions/wire/link.h"
#include "sessions/wire/wire.h"
#include "tests/unit/link_fixture.h"
#include "tests/unit/unit.h"

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
