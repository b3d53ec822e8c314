/* What the manager may ask and is told; see manager_link.h. */
#include "sessions/keeper/manager_link.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "sessions/keeper/keeper.h"
#include "sessions/keeper/manager_frames.h"
#include "sessions/keeper/viewer.h"

/* FRAME_ERROR to a manager that may not take over: `refused` of berth(1). */
#define MANAGER_LINK_REFUSED 5

/* Bytes of FRAME_VIEWERS with labels; as much is left for 40000 without. */
#define MANAGER_LINK_LABELS (FRAME_MAX / 2)

/* More viewers than that are left out of FRAME_VIEWER_STATS. */
#define MANAGER_LINK_STATS 40000U

static void
manager_link_send_hello(struct manager_link *m, struct wire *w)
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
	wire_send_buf(w, FRAME_HELLO, 0, 0, &b);
	buf_release(&b);
}

void
manager_link_send(struct manager_link *m, uint8_t type, uint8_t arg,
    uint16_t tag, const struct buf *b)
{
	static const struct buf nothing;

	if (m->wire)
		wire_send_buf(m->wire, type, arg, tag, b ? b : &nothing);
}

bool
manager_link_is_flushed(const struct manager_link *m)
{
	return !m->wire || m->wire->is_broken || link_is_idle(&m->wire->link);
}

void
manager_link_started(struct manager_link *m)
{
	struct buf b = { 0 };

	buf_put_u32(&b, (uint32_t)m->k->child.pid);
	buf_put_u64(&b, m->k->child.start_ticks);
	buf_put_u64(&b, m->k->started_ms);
	manager_link_send(m, FRAME_STARTED, 0, 0, &b);
	buf_release(&b);
}

void
manager_link_failed(struct manager_link *m, const char *why)
{
	struct buf b = { 0 };

	buf_put_str(&b, why);
	manager_link_send(m, FRAME_FAILED, m->k->child.exec_code, 0, &b);
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

/* Sizes and resyncs of all viewers, unless the manager knows them. */
static void
manager_link_send_viewer_stats(struct manager_link *m)
{
	struct list *pos, *tmp;
	struct buf b = { 0 };
	uint32_t n = 0;

	if (!m->wire || m->wire->version < 2)
		return;
	list_for_each (pos, tmp, &m->k->viewers)
		n += n < MANAGER_LINK_STATS;
	buf_put_u32(&b, n);
	list_for_each (pos, tmp, &m->k->viewers) {
		const struct viewer *v = list_entry(pos, struct viewer, node);

		if (n-- == 0)
			break;
		buf_put_u64(&b, v->attachment);
		buf_put_u32(&b, v->size.cols);
		buf_put_u32(&b, v->size.rows);
		buf_put_u32(&b, v->resyncs);
	}
	if (buf_len(&b) == buf_len(&m->viewer_stats) &&
	    memcmp(buf_head(&b), buf_head(&m->viewer_stats), buf_len(&b)) ==
		0) {
		buf_release(&b);
		return;
	}
	manager_link_send(m, FRAME_VIEWER_STATS, 0, 0, &b);
	buf_release(&m->viewer_stats);
	m->viewer_stats = b;
}

void
manager_link_tell_viewers(struct manager_link *m)
{
	buf_clear(&m->viewer_stats);
	manager_link_send_viewer_stats(m);
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
	manager_link_send_viewer_stats(m);
}

void
manager_link_stats_changed(struct manager_link *m)
{
	struct timeval tv = { .tv_sec = 1 };

	if (m->wire && !event_pending(m->stats_ev, EV_TIMEOUT, NULL))
		event_add(m->stats_ev, &tv);
}

void
manager_link_typed(struct manager_link *m)
{
	if (m->k->is_asleep)
		manager_link_send(m, FRAME_TYPED, 0, 0, NULL);
	m->k->is_asleep = false;
}

static void
manager_link_send_left(struct manager_link *m, const struct wire_left *left)
{
	struct buf b = { 0 };

	wire_left_encode(&b, left, m->wire->version);
	manager_link_send(m, FRAME_VIEWER_GONE, 0, 0, &b);
	buf_release(&b);
}

void
manager_link_left(struct manager_link *m, const struct wire_left *left)
{
	if (m->wire) {
		manager_link_send_left(m, left);
		return;
	}
	if (m->n_left == STATE_FILE_LEFT_MAX)
		memmove(m->left, m->left + 1, --m->n_left * sizeof(m->left[0]));
	m->left[m->n_left++] = *left;
}

/*
 * Everybody who is attached now. Clients have a say in how long labels are: of
 * so many that they do not fit a frame, the rest goes without.
 */
static void
manager_link_send_viewers(struct manager_link *m)
{
	struct list *pos, *tmp;
	struct buf b = { 0 };
	uint32_t n = 0;

	list_for_each (pos, tmp, &m->k->viewers)
		n++;
	buf_put_u32(&b, n);
	list_for_each (pos, tmp, &m->k->viewers) {
		struct viewer *v = list_entry(pos, struct viewer, node);

		buf_put_u64(&b, v->attachment);
		buf_put_str(
		    &b, buf_len(&b) < MANAGER_LINK_LABELS ? v->label : NULL);
	}
	manager_link_send(m, FRAME_VIEWERS, 0, 0, &b);
	buf_release(&b);
}

/* ---- which manager it is ------------------------------------------------- */

static void
manager_link_drop(struct manager_link *m)
{
	wire_release(take_ptr(m->wire));
	m->lost_ms = clock_mono_ms();
	m->k->recording.n_flush_tags = 0;
	event_del(m->stats_ev);
}

/* NEXT has said TAKE: it is the manager now, and hears what it missed. */
static void
manager_link_take(struct manager_link *m, const struct wire_take *take)
{
	if (m->wire)
		manager_link_drop(m);
	m->wire = take_ptr(m->next);
	m->wire->version = take->version;
	m->k->generation = take->generation;
	manager_link_send_hello(m, m->wire);
	for (unsigned i = 0; i < m->n_left; i++)
		manager_link_send_left(m, &m->left[i]);
	m->n_left = 0;
	manager_link_send_viewers(m);
	manager_link_tell_viewers(m);
	log_lines_flush(&m->k->log);
	if (m->k->is_reported)
		manager_link_exited(m);
}

static void
manager_link_on_take(struct manager_link *m, const struct frame *f)
{
	struct wire_take take;
	const char *why = NULL;
	int rc = f->type == FRAME_TAKE
		     ? wire_take_decode(f->data, f->len, &take)
		     : -EPROTO;

	if (f->fd >= 0)
		close(f->fd);
	if (rc < 0)
		why = "a manager begins with TAKE";
	else if (take.version < FRAME_VERSION_OLDEST ||
		 take.version > FRAME_VERSION)
		why = "that version of the frames is not spoken here";
	else if (take.generation <= m->k->generation)
		why = "another manager came after that one";
	if (!why) {
		manager_link_take(m, &take);
		return;
	}
	log_warn("manager_refused", "why", why, NULL);
	wire_reply_error(m->next, f->tag, MANAGER_LINK_REFUSED, why);
	wire_close(m->next, -EPROTO);
}

static void
manager_link_on_frame(struct wire *w, const struct frame *f)
{
	struct manager_link *m = w->owner;
	int rc;

	if (w == m->next) {
		manager_link_on_take(m, f);
		return;
	}
	rc = manager_frames_handle(m, f);
	if (rc < 0)
		wire_close(w, rc);
}

static void
manager_link_on_close(struct wire *w, int rc)
{
	struct manager_link *m = w->owner;

	(void)rc;
	if (w == m->next) {
		wire_release(take_ptr(m->next));
		return;
	}
	manager_link_drop(m);
	keeper_advance(m->k);
}

static void
manager_link_on_idle(struct wire *w)
{
	struct manager_link *m = w->owner;

	keeper_advance(m->k);
}

/* Greets on FD, in the slot that is not taken. */
static struct wire *
manager_link_greet(struct manager_link *m, int fd)
{
	static const struct wire_handler handler = {
		.on_frame = manager_link_on_frame,
		.on_close = manager_link_on_close,
		.on_idle = manager_link_on_idle,
	};
	struct wire *w = &m->wires[m->wire == &m->wires[0]];

	wire_init(w, m->k->base, fd, &handler, m);
	manager_link_send_hello(m, w);
	return w;
}

/*
 * Somebody connects: of our own uid or root. Until it has said TAKE it is
 * nobody, and gives way to who comes later.
 */
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
	if (m->next)
		wire_release(take_ptr(m->next));
	m->next = manager_link_greet(m, take_fd(&peer));
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
	m->wire = manager_link_greet(m, fd);
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
	for (size_t i = 0; i < ARRAY_LEN(m->wires); i++)
		wire_release(&m->wires[i]);
	buf_release(&m->viewer_stats);
	input_source_release(&m->k->input, &m->input);
}
