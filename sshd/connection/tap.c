/*
 * Reads the stdout of a process straight from its pipe, see tap.h. Runs in
 * berth-sshd. Nothing is read before the output that came through the keeper
 * has gone out, so the order of bytes is that of the pipe.
 */
#include "sshd/connection/tap.h"

#include <errno.h>
#include <event2/event.h>
#include <libssh/libssh.h>
#include <unistd.h>

#include "base/buf.h"
#include "sshd/connection/chan.h"
#include "sshd/connection/peer.h"

/* Shorter output is not worth the frames that it takes. */
#define TAP_AFTER (1U << 20)

#define TAP_SLICE (256U << 10)

/* The keeper hears of so many bytes at a time, for its figures. */
#define TAP_REPORT (4U << 20)

/* Each takes a second descriptor, and their number is limited. */
#define TAP_CHANNELS_MAX 16

static void
tap_on_event(evutil_socket_t fd, short what, void *arg)
{
	struct chan *c = arg;

	(void)fd;
	(void)what;
	c->tap.is_ready = true;
}

void
tap_saw(struct chan *c, size_t n)
{
	struct tap *t = &c->tap;

	t->seen += n;
	if (t->is_asked || t->seen < TAP_AFTER || c->run.has_pty ||
	    c->wire.version < 2 || c->peer->n_channels > TAP_CHANNELS_MAX)
		return;
	t->is_asked = true;
	wire_send(&c->wire, FRAME_BORROW, STREAM_OUT, 0, NULL, 0);
}

int
tap_open(struct chan *c, int fd)
{
	struct tap *t = &c->tap;

	if (!t->is_asked || t->ev) {
		close(fd);
		return -EPROTO;
	}
	t->fd = fd;
	t->is_ready = true;
	t->ev = event_new(c->peer->base, fd, EV_READ, tap_on_event, c);
	if (!t->ev)
		abort();
	return 0;
}

static void
tap_report(struct chan *c)
{
	struct buf b = { 0 };

	buf_put_u32(&b, c->tap.taken);
	wire_send_buf(&c->wire, FRAME_BORROWED, STREAM_OUT, 0, &b);
	buf_release(&b);
	c->tap.taken = 0;
}

/* The pipe is at its end, as the keeper will see for itself. */
static void
tap_give_back(struct chan *c)
{
	tap_report(c);
	wire_send(&c->wire, FRAME_EOF, STREAM_OUT, 0, NULL, 0);
	tap_close(c);
}

static bool
tap_may_read(const struct chan *c)
{
	return c->tap.ev && c->tap.is_ready && c->state == CHAN_LIVE &&
	       !c->wire.is_broken && buf_len(&c->out[STREAM_OUT]) == 0;
}

bool
tap_fill(struct chan *c)
{
	struct tap *t = &c->tap;
	struct buf *b = &c->out[STREAM_OUT];
	ssize_t n;

	if (!tap_may_read(c))
		return false;
	do
		n = read(t->fd, buf_reserve(b, TAP_SLICE), TAP_SLICE);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN) {
		t->is_ready = false;
		event_add(t->ev, NULL);
		return false;
	}
	if (n <= 0) {
		tap_give_back(c);
		return true;
	}
	buf_commit(b, (size_t)n);
	t->taken += (uint32_t)n;
	t->unsent = (uint32_t)n;
	if (t->taken >= TAP_REPORT)
		tap_report(c);
	return true;
}

uint32_t
tap_on_credit(struct chan *c, uint32_t n)
{
	uint32_t ours = n < c->tap.unsent ? n : c->tap.unsent;

	c->tap.unsent -= ours;
	return n - ours;
}

bool
tap_is_ready(const struct chan *c)
{
	return c->tap.ev && c->tap.is_ready && c->state == CHAN_LIVE;
}

void
tap_close(struct chan *c)
{
	struct tap *t = &c->tap;

	if (!t->ev)
		return;
	event_free(t->ev);
	t->ev = NULL;
	close(t->fd);
	t->fd = -1;
}
