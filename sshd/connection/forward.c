/*
 * Forwarded connections, see forward.h. Runs in berth-sshd. Callbacks of libssh
 * and libevent only copy bytes and set flags; everything else is in steps. A
 * socket is watched only while something would be done about it.
 */
#include "sshd/connection/forward.h"

#include <errno.h>
#include <event2/event.h>
#include <libssh/callbacks.h>
#include <libssh/server.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "sshd/connection/flow.h"
#include "sshd/connection/peer.h"
#include "sshd/connection/window.h"

#define FORWARD_CLOSE_MS 10000 /* for the client's CLOSE, or the last bytes */
#define FORWARD_READ_MIN (16U << 10)

enum forward_state {
	FORWARD_OPENING, /* the client was offered the channel */
	FORWARD_LIVE,
	FORWARD_FLUSHING, /* the client closed; its last bytes go out */
	FORWARD_CLOSING,  /* our CLOSE is sent, the client's is awaited */
	FORWARD_DEAD      /* to be freed when libssh lets us */
};

struct forward {
	struct list node; /* of peer->forwards */
	struct peer *peer;
	enum forward_state state;
	uint32_t id; /* the manager's */
	ssh_channel ssh;
	struct ssh_channel_callbacks_struct callbacks;
	int fd; /* -1 once it is closed */
	struct event *read_ev, *write_ev;
	bool is_read_armed, is_write_armed;
	bool is_readable, is_writable; /* as far as we know */
	size_t slice;                  /* to read at a time */
	struct buf in, out;            /* from the client, for the client */
	bool is_in_paused;             /* libssh keeps what comes */
	uint32_t in_taken;             /* for window_widen() */
	bool has_in_eof, is_in_shut; /* of the client; passed on, or refused */
	bool has_out_eof, is_out_sent; /* of the socket; passed on */
	bool is_client_closed;
	uint64_t bytes_in, bytes_out;
	int64_t close_ms;          /* deadline, monotonic */
	struct wire_forward offer; /* of FORWARD_OPENING */
	uint64_t heard;            /* packets when it was last asked about */
};

/* ---- callbacks ------------------------------------------------------------------ */

/* Takes all or nothing; nothing makes libssh keep it and close its window. */
static int
forward_on_data(ssh_session session, ssh_channel ssh, void *data, uint32_t len,
    int is_stderr, void *arg)
{
	struct forward *f = arg;

	(void)session;
	(void)ssh;
	/* Taken, it would open the window behind our CLOSE: see chan.c. */
	if (f->state >= FORWARD_CLOSING)
		return 0;
	if (is_stderr || f->is_in_shut || f->fd < 0)
		return (int)len;
	if (f->is_in_paused || buf_len(&f->in) >= FLOW_IN_HIGH) {
		f->is_in_paused = true;
		return 0;
	}
	buf_put(&f->in, data, len);
	window_took(&f->in_taken, len);
	return (int)len;
}

static void
forward_on_eof(ssh_session session, ssh_channel ssh, void *arg)
{
	(void)session;
	(void)ssh;
	((struct forward *)arg)->has_in_eof = true;
}

static void
forward_on_close(ssh_session session, ssh_channel ssh, void *arg)
{
	(void)session;
	(void)ssh;
	((struct forward *)arg)->is_client_closed = true;
}

static void
forward_on_event(evutil_socket_t fd, short what, void *arg)
{
	struct forward *f = arg;

	(void)fd;
	if (what & EV_READ)
		f->is_readable = true;
	if (what & EV_WRITE)
		f->is_writable = true;
}

/* ---- life ------------------------------------------------------------------------- */

static void
forward_watch_channel(struct forward *f)
{
	f->callbacks = (struct ssh_channel_callbacks_struct){
		.userdata = f,
		.channel_data_function = forward_on_data,
		.channel_eof_function = forward_on_eof,
		.channel_close_function = forward_on_close,
	};
	ssh_callbacks_init(&f->callbacks);
	ssh_set_channel_callbacks(f->ssh, &f->callbacks);
}

/* Owns FD, a connected nonblocking socket that the manager calls ID. */
static struct forward *
forward_new(struct peer *p, int fd, uint32_t id)
{
	struct forward *f = xcalloc(1, sizeof(*f));

	f->peer = p;
	f->fd = fd;
	f->id = id;
	f->slice = FORWARD_READ_MIN;
	f->is_writable = true;
	f->read_ev =
	    event_new(p->base, fd, EV_READ | EV_PERSIST, forward_on_event, f);
	f->write_ev =
	    event_new(p->base, fd, EV_WRITE | EV_PERSIST, forward_on_event, f);
	if (!f->read_ev || !f->write_ev)
		abort();
	list_init(&f->node);
	list_append(&p->forwards, &f->node);
	p->n_forwards++;
	p->is_busy = true;
	return f;
}

static void
forward_tell_end(struct peer *p, uint32_t id, uint64_t in, uint64_t out)
{
	struct wire_forward_end m = { id, in, out };
	struct buf b = { 0 };

	if (p->is_orphan)
		return;
	wire_forward_end_encode(&b, &m);
	wire_send_buf(&p->manager, FRAME_FORWARD_END, 0, 0, &b);
	buf_release(&b);
}

/* The socket is done with; the channel may live on for a moment. */
static void
forward_hang_up(struct forward *f)
{
	if (f->fd < 0)
		return;
	event_free(take_ptr(f->read_ev));
	event_free(take_ptr(f->write_ev));
	close(take_fd(&f->fd));
	buf_release(&f->in);
	buf_release(&f->out);
	forward_tell_end(f->peer, f->id, f->bytes_in, f->bytes_out);
}

static void
forward_free(struct forward *f)
{
	forward_hang_up(f);
	list_remove(&f->node);
	f->peer->n_forwards--;
	if (f->ssh) {
		/* libssh lists a freed channel until its CLOSE came */
		ssh_remove_channel_callbacks(f->ssh, &f->callbacks);
		ssh_channel_free(f->ssh);
	}
	free(f);
}

/* ---- bytes -------------------------------------------------------------------------- */

/* The socket takes nothing any more: what the client sends is dropped. */
static void
forward_shut_in(struct forward *f)
{
	f->is_in_shut = true;
	buf_release(&f->in);
}

/* As much as the socket takes. */
static void
forward_write(struct forward *f)
{
	while (buf_len(&f->in) && f->is_writable) {
		ssize_t n = write(f->fd, buf_head(&f->in), buf_len(&f->in));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			f->is_writable = false;
		} else if (n < 0) {
			forward_shut_in(f);
		} else {
			buf_consume(&f->in, (size_t)n);
			f->bytes_in += (uint64_t)n;
		}
	}
}

/* Client to socket, and the client's EOF when nothing is before it. */
static bool
forward_step_in(struct forward *f)
{
	bool moved = false;

	forward_write(f);
	if (f->is_in_paused && buf_len(&f->in) < FLOW_IN_LOW &&
	    flow_pull(f->ssh, &f->in, &f->is_in_paused))
		moved = true;
	if (!f->is_in_paused && !f->has_in_eof && !f->is_in_shut)
		window_widen(
		    f->ssh, &f->in, &f->in_taken, peer_channels(f->peer));
	if (f->is_in_shut)
		buf_clear(&f->in);
	if (f->has_in_eof && !f->is_in_paused && buf_len(&f->in) == 0 &&
	    !f->is_in_shut) {
		shutdown(f->fd, SHUT_WR);
		forward_shut_in(f);
		moved = true;
	}
	return moved;
}

/* One read, when all before it has gone to libssh. */
static bool
forward_read(struct forward *f)
{
	size_t want = f->slice;
	ssize_t n;

	if (f->has_out_eof || !f->is_readable || buf_len(&f->out))
		return false;
	do
		n = read(f->fd, buf_reserve(&f->out, want), want);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		buf_commit(&f->out, (size_t)n);
		f->bytes_out += (uint64_t)n;
		/* A short read was the last for now. */
		f->is_readable = (size_t)n == want;
		if (f->is_readable && want < FLOW_SLICE)
			f->slice = 2 * want;
		return true;
	}
	f->slice = FORWARD_READ_MIN;
	buf_release(&f->out);
	if (n < 0 && errno == EAGAIN) {
		f->is_readable = false;
		return false;
	}
	/* After a reset nothing more goes either way. */
	if (n < 0)
		forward_shut_in(f);
	f->has_out_eof = true;
	return true;
}

/*
 * Socket to client, and the socket's EOF behind it. What waits for the client's
 * window or our socket is woken by the transport.
 */
static bool
forward_step_out(struct forward *f)
{
	bool has_read = forward_read(f);
	int k = flow_push(&f->peer->transport, f->ssh, &f->out, false);

	if (k < 0) {
		f->is_client_closed = true;
		return true;
	}
	if (f->has_out_eof && buf_len(&f->out) == 0 && !f->is_out_sent) {
		/* It may say "again" though it is queued. */
		ssh_channel_send_eof(f->ssh);
		f->is_out_sent = true;
		return true;
	}
	return f->is_readable ? has_read || k > 0
			      : k > 0 && buf_len(&f->out) > 0;
}

/* Arms what there is a use for; a system call only when that changes. */
static void
forward_arm(struct forward *f)
{
	bool is_live = f->state == FORWARD_LIVE;
	bool wants_read = is_live && !f->has_out_eof && !f->is_readable &&
			  buf_len(&f->out) == 0;
	bool wants_write = f->fd >= 0 && buf_len(&f->in) > 0 && !f->is_writable;

	if (f->fd < 0)
		return;
	if (wants_read && !f->is_read_armed)
		event_add(f->read_ev, NULL);
	else if (!wants_read && f->is_read_armed)
		event_del(f->read_ev);
	if (wants_write && !f->is_write_armed)
		event_add(f->write_ev, NULL);
	else if (!wants_write && f->is_write_armed)
		event_del(f->write_ev);
	f->is_read_armed = wants_read;
	f->is_write_armed = wants_write;
}

/* ---- states --------------------------------------------------------------------------- */

/* Offers the channel, or asks libssh what the client said to that. */
static bool
forward_step_opening(struct forward *f)
{
	struct transport *t = &f->peer->transport;
	const struct wire_forward *o = &f->offer;
	int rc;

	if (!f->ssh) {
		f->ssh = ssh_channel_new(t->session);
		if (!f->ssh)
			abort();
		forward_watch_channel(f);
	} else if (f->heard == t->packets.in_packets) {
		return false;
	}
	f->heard = t->packets.in_packets;
	rc = ssh_channel_open_reverse_forward(
	    f->ssh, o->host, o->port, o->origin, (int)o->origin_port);
	if (rc == SSH_AGAIN)
		return false;
	if (rc == SSH_OK) {
		f->state = FORWARD_LIVE;
		return true;
	}
	log_info("forward_unwanted", "why", transport_error(t), NULL);
	forward_hang_up(f);
	f->state = FORWARD_DEAD;
	return true;
}

/* The client closed. What it sent before still goes out. */
static void
forward_client_closed(struct forward *f)
{
	while (!f->is_in_shut && flow_pull(f->ssh, &f->in, &f->is_in_paused))
		;
	ssh_channel_send_eof(f->ssh);
	ssh_channel_close(f->ssh);
	f->state = FORWARD_FLUSHING;
	f->close_ms = clock_mono_ms() + FORWARD_CLOSE_MS;
}

static bool
forward_step_live(struct forward *f)
{
	bool moved = forward_step_in(f);

	if (forward_step_out(f))
		moved = true;
	if (f->is_in_shut && f->is_out_sent) {
		f->state = FORWARD_CLOSING;
		ssh_channel_close(f->ssh);
		forward_hang_up(f);
		f->close_ms = clock_mono_ms() + FORWARD_CLOSE_MS;
		return true;
	}
	return moved;
}

static bool
forward_step_flushing(struct forward *f)
{
	forward_write(f);
	if (buf_len(&f->in) && clock_mono_ms() < f->close_ms)
		return false;
	forward_hang_up(f);
	f->state = FORWARD_DEAD;
	return true;
}

static bool
forward_step(struct forward *f)
{
	if (f->state == FORWARD_LIVE && f->is_client_closed)
		forward_client_closed(f);
	switch (f->state) {
	case FORWARD_OPENING:
		return forward_step_opening(f);
	case FORWARD_LIVE:
		return forward_step_live(f);
	case FORWARD_FLUSHING:
		return forward_step_flushing(f);
	case FORWARD_CLOSING:
		if (!f->is_client_closed && clock_mono_ms() < f->close_ms)
			return false;
		f->state = FORWARD_DEAD;
		return true;
	default:
		return false;
	}
}

void
forward_step_all(struct peer *p)
{
	uint64_t heard = p->transport.packets.in_packets;
	struct list *pos, *next;

	list_for_each (pos, next, &p->forwards) {
		struct forward *f = list_entry(pos, struct forward, node);

		if (forward_step(f))
			p->is_busy = true;
		forward_arm(f);
		if (!transport_is_alive(&p->transport))
			return;
	}
	/* libssh reads while it writes; that may be for any channel. */
	if (p->transport.packets.in_packets != heard)
		p->is_busy = true;
	/* Another one goes first next time. */
	if (!list_empty(&p->forwards)) {
		pos = p->forwards.next;
		list_remove(pos);
		list_append(&p->forwards, pos);
	}
}

void
forward_reap(struct peer *p)
{
	struct list *pos, *next;

	list_for_each (pos, next, &p->forwards) {
		struct forward *f = list_entry(pos, struct forward, node);

		if (f->state == FORWARD_DEAD)
			forward_free(f);
	}
}

int64_t
forward_deadline(struct peer *p)
{
	struct list *pos, *next;
	int64_t at = 0;

	list_for_each (pos, next, &p->forwards) {
		struct forward *f = list_entry(pos, struct forward, node);

		if (f->state != FORWARD_DEAD && f->close_ms &&
		    (at == 0 || f->close_ms < at))
			at = f->close_ms;
	}
	return at;
}

void
forward_hang_up_all(struct peer *p)
{
	struct list *pos, *next;

	list_for_each (pos, next, &p->forwards) {
		struct forward *f = list_entry(pos, struct forward, node);

		/* What the client sent last, as far as the socket takes it. */
		if (f->fd >= 0)
			forward_write(f);
		forward_hang_up(f);
	}
}

/* ---- the manager's word --------------------------------------------------------------- */

void
forward_opened(struct peer *p, struct held *h, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	ssh_channel ssh;
	struct forward *fw;
	uint32_t id;

	p->n_opens_held--;
	if (f->fd < 0) {
		ssh_message_reply_default(h->msg);
		peer_release_held(p, h);
		return;
	}
	id = reader_u32(&r);
	ssh = ssh_message_channel_request_open_reply_accept(h->msg);
	peer_release_held(p, h);
	fw = forward_new(p, f->fd, id);
	fw->ssh = ssh;
	fw->state = ssh ? FORWARD_LIVE : FORWARD_DEAD;
	/* It may have sent bytes before anybody could watch it. */
	fw->is_readable = true;
	if (ssh)
		forward_watch_channel(fw);
}

bool
forward_offered(struct peer *p, const struct frame *f)
{
	struct wire_forward m;
	struct forward *fw;

	if (f->fd < 0 || wire_forward_decode(f->data, f->len, &m) < 0)
		return false;
	if (p->phase != PHASE_SERVE ||
	    peer_channels(p) >= p->settings.max_channels) {
		close(f->fd);
		forward_tell_end(p, m.id, 0, 0);
		return true;
	}
	fw = forward_new(p, f->fd, m.id);
	fw->offer = m;
	fw->is_readable = true;
	return true;
}

bool
forward_has(struct peer *p, ssh_channel ssh)
{
	struct list *pos, *next;

	list_for_each (pos, next, &p->forwards) {
		struct forward *f = list_entry(pos, struct forward, node);

		if (f->ssh == ssh && f->state != FORWARD_DEAD)
			return true;
	}
	return false;
}
