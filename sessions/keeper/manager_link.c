/* What the manager may ask and is told; see manager_link.h. */
#include "sessions/keeper/manager_link.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "sessions/keeper/keeper.h"
#include "sessions/keeper/size.h"
#include "sessions/keeper/viewer.h"

/* Exit codes of the berth command line, in FRAME_ERROR. */
#define MANAGER_FAILED   1
#define MANAGER_CONFLICT 4

#define MANAGER_INPUT_MAX FRAME_WINDOW

static void
manager_link_send_hello(struct manager_link *m)
{
	struct keeper *k = m->k;
	struct wire_hello h = {
		.version = FRAME_VERSION,
		.generation = k->generation,
		.state = (uint8_t)k->state,
		.pid = k->state == STATE_STARTING ? 0 : (uint32_t)k->child.pid,
		.pid_start = k->child.start_ticks,
		.n_viewers = k->n_viewers,
	};
	struct buf b = { 0 };

	memcpy(h.sid, k->launch.sid, sizeof(h.sid));
	keeper_stats(k, &h.stats);
	wire_hello_encode(&b, &h);
	manager_link_send(m, FRAME_HELLO, 0, 0, &b);
	buf_release(&b);
}

void
manager_link_send(struct manager_link *m, uint8_t type, uint8_t arg,
    uint16_t tag, const struct buf *b)
{
	static const struct buf nothing;

	if (m->is_up)
		wire_send_buf(&m->wire, type, arg, tag, b ? b : &nothing);
}

bool
manager_link_is_flushed(const struct manager_link *m)
{
	return !m->is_up || m->wire.is_broken || link_is_idle(&m->wire.link);
}

void
manager_link_started(struct manager_link *m)
{
	struct buf b = { 0 };

	buf_put_u32(&b, (uint32_t)m->k->child.pid);
	buf_put_u64(&b, m->k->child.start_ticks);
	buf_put_u64(&b, (uint64_t)clock_wall_ms());
	manager_link_send(m, FRAME_STARTED, 0, 0, &b);
	buf_release(&b);
}

void
manager_link_failed(struct manager_link *m, const char *why)
{
	struct buf b = { 0 };

	buf_put_str(&b, why);
	manager_link_send(m, FRAME_FAILED, 0, 0, &b);
	buf_release(&b);
}

void
manager_link_exited(struct manager_link *m)
{
	struct buf b = { 0 };

	wire_exited_encode(&b, &m->k->exited);
	manager_link_send(m, FRAME_EXITED, 0, 0, &b);
	buf_release(&b);
}

static void
manager_link_on_stats(evutil_socket_t fd, short what, void *arg)
{
	struct manager_link *m = arg;
	struct wire_stats s;
	struct buf b = { 0 };

	(void)fd;
	(void)what;
	if (m->k->is_reported)
		return;
	/* One that does not read gets no queue of figures. */
	if (!manager_link_is_flushed(m)) {
		manager_link_stats_changed(m);
		return;
	}
	keeper_stats(m->k, &s);
	wire_stats_encode(&b, &s);
	manager_link_send(m, FRAME_STATS, 0, 0, &b);
	buf_release(&b);
}

void
manager_link_stats_changed(struct manager_link *m)
{
	struct timeval tv = { .tv_sec = 1 };

	if (m->is_up && !event_pending(m->stats_ev, EV_TIMEOUT, NULL))
		event_add(m->stats_ev, &tv);
}

static int
manager_link_launch(struct manager_link *m, struct frame *f)
{
	struct keeper *k = m->k;
	struct wire_launch l;
	int rc;

	if (k->is_launched)
		return -EPROTO;
	rc = wire_launch_decode(f->data, f->len, &l);
	if (rc < 0)
		return rc;
	keeper_launch(k, &l, take_fd(&f->fd));
	return 0;
}

/* A bound session that ended before its client came still owes it the end. */
static bool
manager_link_may_attach(struct keeper *k)
{
	bool is_first = keeper_has(k, LAUNCH_BOUND) && !k->had_viewer;

	keeper_reap(k);
	if (k->is_failed || k->is_reported)
		return false;
	if (keeper_is_bound_pipe(k))
		return is_first;
	return k->state != STATE_EXITED || is_first;
}

static int
manager_link_viewer(struct manager_link *m, struct frame *f)
{
	struct wire_viewer spec;
	struct buf b = { 0 };
	bool may_attach;
	int rc = wire_viewer_decode(f->data, f->len, &spec);

	if (rc < 0 || f->fd < 0 || !m->k->is_launched)
		return -EPROTO;
	rc = fd_set_nonblock(f->fd, true);
	if (rc < 0)
		return rc;
	may_attach = manager_link_may_attach(m->k);
	buf_put_u64(&b, spec.attachment);
	manager_link_send(m, FRAME_VIEWER_ACK, may_attach, f->tag, &b);
	buf_release(&b);
	if (may_attach)
		viewer_attach(m->k, &spec, take_fd(&f->fd));
	return 0;
}

static int
manager_link_kill(struct manager_link *m, struct frame *f)
{
	if (f->len || f->arg == 0 || f->arg >= NSIG)
		return -EPROTO;
	child_signal(&m->k->child, f->arg);
	return 0;
}

static int
manager_link_stop(struct manager_link *m, struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	uint32_t grace = reader_u32(&r);

	if (!reader_done(&r))
		return -EPROTO;
	if (m->k->child.pid > 0)
		stop_begin(
		    &m->k->stop, STOP_ALL, grace, "the session was stopped");
	return 0;
}

static int
manager_link_drop(struct manager_link *m, struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	uint64_t attachment = reader_u64(&r);
	autofree char *why = reader_str(&r, 1024);
	struct list *pos, *tmp;

	if (!reader_done(&r) || !why)
		return -EPROTO;
	list_for_each (pos, tmp, &m->k->viewers) {
		struct viewer *v = list_entry(pos, struct viewer, node);

		if (v->attachment == attachment)
			viewer_detach(v, why);
	}
	return 0;
}

static int
manager_link_input(struct manager_link *m, struct frame *f)
{
	struct keeper *k = m->k;

	if (f->len > FRAME_DATA_MAX)
		return -EPROTO;
	if (k->state == STATE_EXITED || k->input.is_closed) {
		wire_reply_error(&m->wire, f->tag, MANAGER_CONFLICT,
		    "nothing reads the session's input any more");
		return 0;
	}
	if (m->input.queued + f->len > MANAGER_INPUT_MAX) {
		wire_reply_error(&m->wire, f->tag, MANAGER_FAILED,
		    "the session does not read its input; try again later");
		return 0;
	}
	input_push(&k->input, &m->input, f->data, f->len);
	manager_link_stats_changed(m);
	wire_reply_ok(&m->wire, f->tag);
	return 0;
}

static int
manager_link_input_eof(struct manager_link *m, struct frame *f)
{
	if (f->len)
		return -EPROTO;
	if (keeper_has(m->k, LAUNCH_PTY)) {
		wire_reply_error(&m->wire, f->tag, MANAGER_CONFLICT,
		    "a terminal session has no stdin to close");
		return 0;
	}
	input_eof(&m->k->input);
	wire_reply_ok(&m->wire, f->tag);
	return 0;
}

static int
manager_link_set_size(struct manager_link *m, struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	struct wire_size s = { .cols = reader_u32(&r) };

	s.rows = reader_u32(&r);
	if (!reader_done(&r))
		return -EPROTO;
	if (!keeper_has(m->k, LAUNCH_PTY)) {
		wire_reply_error(&m->wire, f->tag, MANAGER_CONFLICT,
		    "the session has no terminal");
		return 0;
	}
	size_set(m->k, &s);
	wire_reply_ok(&m->wire, f->tag);
	return 0;
}

static int
manager_link_flush(struct manager_link *m, struct frame *f)
{
	if (f->len)
		return -EPROTO;
	recording_flush(&m->k->recording, f->tag);
	return 0;
}

static int
manager_link_bye(struct manager_link *m, struct frame *f)
{
	if (f->len)
		return -EPROTO;
	m->k->is_released = m->k->is_reported;
	keeper_advance(m->k);
	return 0;
}

static const struct {
	uint8_t type;
	int (*handle)(struct manager_link *m, struct frame *f);
} manager_link_table[] = {
	{ FRAME_LAUNCH, manager_link_launch },
	{ FRAME_VIEWER, manager_link_viewer },
	{ FRAME_KILL, manager_link_kill },
	{ FRAME_STOP, manager_link_stop },
	{ FRAME_DROP, manager_link_drop },
	{ FRAME_INPUT, manager_link_input },
	{ FRAME_INPUT_EOF, manager_link_input_eof },
	{ FRAME_SET_SIZE, manager_link_set_size },
	{ FRAME_FLUSH, manager_link_flush },
	{ FRAME_BYE, manager_link_bye },
};

static void
manager_link_on_frame(struct wire *w, const struct frame *frame)
{
	struct manager_link *m = w->owner;
	struct frame f = *frame;
	int rc = -EPROTO;

	for (size_t i = 0; i < ARRAY_LEN(manager_link_table); i++) {
		if (manager_link_table[i].type == f.type)
			rc = manager_link_table[i].handle(m, &f);
	}
	if (f.fd >= 0)
		close(f.fd);
	if (rc == 0)
		return;
	log_err("manager_protocol", "frame", frame_name(f.type), NULL);
	wire_close(w, rc);
}

static void
manager_link_on_close(struct wire *w, int rc)
{
	struct manager_link *m = w->owner;

	(void)rc;
	wire_release(w);
	m->is_up = false;
	m->lost_ms = clock_mono_ms();
	m->k->recording.n_flush_tags = 0;
	event_del(m->stats_ev);
	keeper_advance(m->k);
}

static void
manager_link_on_idle(struct wire *w)
{
	struct manager_link *m = w->owner;

	keeper_advance(m->k);
}

static void
manager_link_up(struct manager_link *m, int fd)
{
	static const struct wire_handler handler = {
		.on_frame = manager_link_on_frame,
		.on_close = manager_link_on_close,
		.on_idle = manager_link_on_idle,
	};

	m->is_up = true;
	wire_init(&m->wire, m->k->base, fd, &handler, m);
	manager_link_send_hello(m);
	if (m->k->is_reported)
		manager_link_exited(m);
}

/* A later manager: of our own uid or root, and only one at a time. */
static void
manager_link_on_listen(evutil_socket_t fd, short what, void *arg)
{
	struct manager_link *m = arg;
	autoclose int peer =
	    accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred cred;
	socklen_t len = sizeof(cred);

	(void)what;
	if (peer < 0)
		return;
	if (getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ||
	    (cred.uid != geteuid() && cred.uid != 0)) {
		log_warn("manager_refused", "why", "uid", NULL);
		return;
	}
	if (m->is_up) {
		log_warn("manager_refused", "why", "there is one", NULL);
		return;
	}
	manager_link_up(m, take_fd(&peer));
}

void
manager_link_init(
    struct manager_link *m, struct keeper *k, int fd, int listen_fd)
{
	*m = (struct manager_link){ .k = k, .listen_fd = listen_fd };
	input_source_init(&m->input, NULL);
	m->stats_ev = event_new(k->base, -1, 0, manager_link_on_stats, m);
	if (!m->stats_ev)
		abort();
	if (listen_fd >= 0) {
		m->listen_ev = event_new(k->base, listen_fd,
		    EV_READ | EV_PERSIST, manager_link_on_listen, m);
		if (!m->listen_ev)
			abort();
		event_add(m->listen_ev, NULL);
	}
	manager_link_up(m, fd);
}

void
manager_link_release(struct manager_link *m)
{
	if (m->listen_ev)
		event_free(m->listen_ev);
	if (m->stats_ev)
		event_free(m->stats_ev);
	if (m->listen_fd >= 0)
		close(m->listen_fd);
	if (m->is_up)
		wire_release(&m->wire);
	input_source_release(&m->k->input, &m->input);
}
