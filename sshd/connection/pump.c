/*
 * Bytes between keeper and client, see pump.h. Runs in berth-sshd. No queue
 * here grows beyond what this side granted or beyond libssh's own window.
 */
#include "sshd/connection/pump.h"

#include <errno.h>
#include <libssh/libssh.h>

#include "base/buf.h"
#include "sshd/connection/chan.h"
#include "sshd/connection/flow.h"
#include "sshd/connection/peer.h"
#include "sshd/connection/window.h"

/* More than this nobody grants; keeps the sum from wrapping. */
#define PUMP_CREDIT_MAX (1U << 30)

static void
pump_grant(struct chan *c, enum frame_stream stream, uint32_t n)
{
	struct buf b = { 0 };

	c->out_credit[stream] += n;
	buf_put_u32(&b, n);
	wire_send_buf(&c->wire, FRAME_CREDIT, (uint8_t)stream, 0, &b);
	buf_release(&b);
}

static uint32_t
pump_window(const struct chan *c)
{
	return c->run.has_pty ? FRAME_WINDOW : FRAME_WINDOW_PIPE;
}

void
pump_start(struct chan *c)
{
	pump_grant(c, STREAM_OUT, pump_window(c));
	pump_grant(c, STREAM_ERR, FRAME_WINDOW);
}

static int
pump_take_data(struct chan *c, const struct frame *f)
{
	if (f->arg != STREAM_OUT && f->arg != STREAM_ERR)
		return -EPROTO;
	if (f->len > c->out_credit[f->arg])
		return -EPROTO;
	c->out_credit[f->arg] -= (uint32_t)f->len;
	buf_put(&c->out[f->arg], f->data, f->len);
	if (f->arg == STREAM_OUT)
		tap_saw(c, f->len);
	return 0;
}

static int
pump_take_credit(struct chan *c, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	uint32_t n = reader_u32(&r);

	if (!reader_done(&r) || f->arg != STREAM_IN || n > PUMP_CREDIT_MAX ||
	    c->in_credit > PUMP_CREDIT_MAX - n)
		return -EPROTO;
	c->in_credit += n;
	return 0;
}

static int
pump_take_exit(struct chan *c, const struct frame *f)
{
	if (wire_exit_decode(f->data, f->len, &c->exit) < 0 || c->has_exit)
		return -EPROTO;
	c->has_exit = true;
	/* OpenSSH shows nothing of an exit-signal's own text. */
	if (c->exit.note[0])
		chan_say(c, c->exit.note);
	return 0;
}

static int
pump_take_detach(struct chan *c, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	char why[256];

	reader_str_into(&r, why, sizeof(why));
	if (!reader_done(&r))
		return -EPROTO;
	if (c->peer->leave_ms) {
		chan_fail(c, c->peer->farewell);
	} else if (f->arg == 1) {
		/* As the user wished: that is no failure. */
		chan_say(c, why);
		c->has_exit = c->has_end = true;
	} else {
		chan_fail(c, why[0] ? why : "detached");
	}
	return 0;
}

static int
pump_take(struct chan *c, const struct frame *f)
{
	switch (f->type) {
	case FRAME_DATA:
		return pump_take_data(c, f);
	case FRAME_CREDIT:
		return pump_take_credit(c, f);
	case FRAME_EXIT:
		return pump_take_exit(c, f);
	case FRAME_DETACH:
		return pump_take_detach(c, f);
	case FRAME_END:
		/* Still on loan: the session was stopped, nothing follows. */
		tap_close(c);
		c->has_end = true;
		return 0;
	case FRAME_EOF:
		/* A channel has one EOF for both streams: END brings it. */
		return 0;
	default:
		return -EPROTO;
	}
}

static void
pump_on_frame(struct wire *w, const struct frame *f)
{
	struct chan *c = w->owner;
	bool is_pipe = f->type == FRAME_PIPE && f->fd >= 0;
	bool is_live = c->state == CHAN_LIVE && !c->has_end;
	int rc = 0;

	if (f->fd >= 0 && !(is_pipe && is_live))
		close(f->fd);
	if (is_live)
		rc = is_pipe ? tap_open(c, f->fd) : pump_take(c, f);
	if (rc < 0)
		wire_close(w, rc);
}

static void
pump_on_close(struct wire *w, int rc)
{
	struct chan *c = w->owner;

	(void)rc;
	c->is_link_over = true;
}

const struct wire_handler *
pump_handler(void)
{
	static const struct wire_handler handler = {
		.on_frame = pump_on_frame,
		.on_close = pump_on_close,
	};

	return &handler;
}

static bool
pump_send_in(struct chan *c)
{
	bool moved = false;

	while (buf_len(&c->in) && c->in_credit && !c->wire.is_broken &&
	       link_is_idle(&c->wire.link)) {
		size_t n = buf_len(&c->in);
		size_t max = frame_data_max(c->wire.version);
		struct iovec iov;

		n = n < c->in_credit ? n : c->in_credit;
		n = n < max ? n : max;
		iov = (struct iovec){ .iov_base = c->in.data + c->in.start,
			.iov_len = n };
		wire_write_data(&c->wire, STREAM_IN, &iov, 1);
		buf_consume(&c->in, n);
		c->in_credit -= (uint32_t)n;
		moved = true;
	}
	return moved;
}

bool
pump_in(struct chan *c)
{
	bool moved = false;

	/* Nobody will read it any more: keep the client's window moving. */
	if (c->state > CHAN_LIVE || (c->has_wire && c->wire.is_broken))
		buf_clear(&c->in);
	else if (c->state == CHAN_LIVE)
		moved = pump_send_in(c);
	if (c->state < CHAN_CLOSING && c->is_in_paused &&
	    buf_len(&c->in) < FLOW_IN_LOW &&
	    flow_pull(c->ssh, &c->in, &c->is_in_paused))
		moved = true;
	if (c->state == CHAN_LIVE && !c->run.has_pty && !c->is_in_paused &&
	    !c->has_in_eof)
		window_widen(
		    c->ssh, &c->in, &c->in_taken, peer_channels(c->peer));
	if (c->state == CHAN_LIVE && c->has_in_eof && !c->is_in_eof_sent &&
	    !c->is_in_paused && buf_len(&c->in) == 0) {
		wire_send(&c->wire, FRAME_EOF, STREAM_IN, 0, NULL, 0);
		c->is_in_eof_sent = true;
	}
	return moved;
}

/* Bytes handed on that are worth a CREDIT. */
static uint32_t
pump_step(const struct chan *c, enum frame_stream stream)
{
	return (stream == STREAM_OUT ? pump_window(c) : FRAME_WINDOW) / 4;
}

static void
pump_regrant(struct chan *c, enum frame_stream stream)
{
	if (c->state != CHAN_LIVE || c->out_owed[stream] < pump_step(c, stream))
		return;
	pump_grant(c, stream, c->out_owed[stream]);
	c->out_owed[stream] = 0;
}

static bool
pump_write(struct chan *c, enum frame_stream stream)
{
	int k = flow_push(
	    &c->peer->transport, c->ssh, &c->out[stream], stream == STREAM_ERR);

	if (k < 0) {
		/* Closed by the client, or the whole session is in error. */
		c->is_client_closed = true;
		return true;
	}
	if (k == 0)
		return false;
	c->out_owed[stream] +=
	    stream == STREAM_OUT ? tap_on_credit(c, (uint32_t)k) : (uint32_t)k;
	pump_regrant(c, stream);
	return true;
}

bool
pump_out(struct chan *c)
{
	bool moved;

	/* What it waits for may be told. */
	if (c->state == CHAN_ASKED)
		return pump_write(c, STREAM_ERR);
	if (c->state != CHAN_LIVE && c->state != CHAN_DRAINING)
		return false;
	moved = pump_write(c, STREAM_ERR);
	if (tap_fill(c))
		moved = true;
	if (!c->is_client_closed && pump_write(c, STREAM_OUT))
		moved = true;
	return moved;
}

bool
pump_is_drained(const struct chan *c)
{
	return buf_len(&c->out[STREAM_OUT]) == 0 &&
	       buf_len(&c->out[STREAM_ERR]) == 0 && !tap_is_ready(c);
}
