/* A link on a libevent loop; see wire.h. */
#include "sessions/wire/wire.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>

#include "base/mem.h"

static void
wire_finish(struct wire *w, int rc)
{
	const struct wire_handler *h = w->handler;

	w->is_closing = true;
	event_del(w->read_ev);
	event_del(w->write_ev);
	event_del(w->deferred_ev);
	h->on_close(w, rc);
}

static void
wire_on_deferred(evutil_socket_t fd, short what, void *arg)
{
	struct wire *w = arg;

	(void)fd;
	(void)what;
	wire_finish(w, w->close_rc);
}

void
wire_close(struct wire *w, int rc)
{
	if (w->is_closing)
		return;
	w->is_closing = true;
	w->close_rc = rc;
	event_del(w->read_ev);
	event_del(w->write_ev);
	event_active(w->deferred_ev, EV_TIMEOUT, 0);
}

/* Hands out every whole frame that is there; stops when paused or closed. */
static int
wire_dispatch(struct wire *w)
{
	struct frame f;
	int rc = 0;

	w->in_callback = true;
	while (!w->is_paused && !w->is_closing &&
	       (rc = link_next(&w->link, &f)) == 1)
		w->handler->on_frame(w, &f);
	w->in_callback = false;
	return rc < 0 ? rc : 0;
}

static void
wire_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct wire *w = arg;
	int n, rc;

	(void)fd;
	if (w->is_closing)
		return;
	/* A resumed wire first hands out what it read before the pause. */
	rc = wire_dispatch(w);
	if (rc == 0 && !w->is_paused && !w->is_closing && (what & EV_READ)) {
		n = link_fill(&w->link);
		if (n == -EAGAIN)
			return;
		if (n <= 0) {
			wire_finish(w, n);
			return;
		}
		rc = wire_dispatch(w);
	}
	if (rc < 0 && !w->is_closing)
		wire_finish(w, rc);
}

/*
 * The peer takes nothing more. What it sent before it went (an exit status,
 * say) is still read; the end of the stream then closes the link.
 */
static void
wire_break(struct wire *w, int rc)
{
	w->is_broken = true;
	link_drop_out(&w->link);
	event_del(w->write_ev);
	if (w->is_paused)
		wire_close(w, rc);
}

/* Flushes and keeps the write event armed while anything waits. */
static void
wire_flush(struct wire *w)
{
	int rc;

	if (w->is_closing)
		return;
	rc = link_flush(&w->link);
	if (rc == -EAGAIN)
		event_add(w->write_ev, NULL);
	else if (rc < 0)
		wire_break(w, rc);
}

static void
wire_on_write(evutil_socket_t fd, short what, void *arg)
{
	struct wire *w = arg;

	(void)fd;
	(void)what;
	wire_flush(w);
	if (!w->is_closing && !w->is_broken && link_is_idle(&w->link) &&
	    w->handler->on_idle)
		w->handler->on_idle(w);
}

void
wire_init(struct wire *w, struct event_base *base, int fd,
    const struct wire_handler *handler, void *owner)
{
	*w = (struct wire){ .base = base,
		.handler = handler,
		.owner = owner,
		.version = FRAME_VERSION };
	link_init(&w->link, fd);
	w->read_ev = event_new(base, fd, EV_READ | EV_PERSIST, wire_on_read, w);
	w->write_ev = event_new(base, fd, EV_WRITE, wire_on_write, w);
	w->deferred_ev = event_new(base, -1, 0, wire_on_deferred, w);
	if (!w->read_ev || !w->write_ev || !w->deferred_ev)
		abort();
	event_add(w->read_ev, NULL);
}

void
wire_continue(
    struct wire *w, const void *in, size_t n_in, const void *out, size_t n_out)
{
	buf_put(&w->link.in, in, n_in);
	/* The tail of a frame whose head is sent comes first. */
	buf_put(&w->link.partial, out, n_out);
	if (n_in)
		event_active(w->read_ev, EV_TIMEOUT, 0);
	if (n_out)
		event_add(w->write_ev, NULL);
}

void
wire_release(struct wire *w)
{
	if (!w->base)
		return;
	event_free(w->read_ev);
	event_free(w->write_ev);
	event_free(w->deferred_ev);
	link_release(&w->link);
	memset(w, 0, sizeof(*w));
	w->link.fd = -1;
	w->is_closing = true;
}

void
wire_send_fd(struct wire *w, uint8_t type, uint8_t arg, uint16_t tag,
    const void *p, size_t n, int fd)
{
	if (w->is_closing || w->is_broken) {
		if (fd >= 0)
			close(fd);
		return;
	}
	/* A peer that asks without ever reading the answers is let go. */
	if (link_pending(&w->link) > WIRE_PENDING_MAX ||
	    (fd >= 0 && !link_has_fd_room(&w->link))) {
		if (fd >= 0)
			close(fd);
		wire_close(w, -ENOBUFS);
		return;
	}
	link_send_fd(&w->link, type, arg, tag, p, n, fd);
	wire_flush(w);
}

void
wire_send(struct wire *w, uint8_t type, uint8_t arg, uint16_t tag,
    const void *p, size_t n)
{
	wire_send_fd(w, type, arg, tag, p, n, -1);
}

void
wire_send_buf(struct wire *w, uint8_t type, uint8_t arg, uint16_t tag,
    const struct buf *b)
{
	wire_send(w, type, arg, tag, b->data ? buf_head(b) : NULL, buf_len(b));
}

void
wire_reply_ok(struct wire *w, uint16_t tag)
{
	wire_send(w, FRAME_OK, 0, tag, NULL, 0);
}

void
wire_reply_error(struct wire *w, uint16_t tag, uint8_t code, const char *why)
{
	struct buf b = { 0 };

	buf_put_str(&b, why);
	wire_send_buf(w, FRAME_ERROR, code, tag, &b);
	buf_release(&b);
}

bool
wire_write_data(
    struct wire *w, enum frame_stream stream, const struct iovec *iov, int n)
{
	int rc;

	if (w->is_closing || w->is_broken)
		return false;
	rc = link_write_data(&w->link, stream, iov, n);
	if (rc < 0) {
		wire_break(w, rc);
		return false;
	}
	if (link_is_idle(&w->link))
		return true;
	event_add(w->write_ev, NULL);
	return false;
}

void
wire_pause(struct wire *w, bool paused)
{
	if (w->is_closing || w->is_paused == paused)
		return;
	w->is_paused = paused;
	if (paused) {
		event_del(w->read_ev);
		if (w->is_broken)
			wire_close(w, -EPIPE);
		return;
	}
	event_add(w->read_ev, NULL);
	if (buf_len(&w->link.in) && !w->in_callback)
		event_active(w->read_ev, EV_TIMEOUT, 0);
}
