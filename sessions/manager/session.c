/*
 * A live session: the link to its keeper, what the keeper tells, and the end.
 * Every change of state is a row before anybody hears of it.
 */
#include "sessions/manager/session.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/proc.h"
#include "conf/conf.h"
#include "sessions/manager/adopt.h"
#include "sessions/manager/attachment.h"
#include "sessions/manager/reindex.h"
#include "sessions/wire/handoff.h"

struct session *
session_new(struct manager *m)
{
	struct session *s = xcalloc(1, sizeof(*s));

	s->m = m;
	s->keeper_pidfd = -1;
	s->wire.link.fd = -1;
	s->wire.is_closing = true;
	list_init(&s->requests);
	list_append(&m->sessions, &s->node);
	return s;
}

void
session_free(struct session *s)
{
	list_remove(&s->node);
	wire_release(&s->wire);
	if (s->reap_ev)
		event_free(s->reap_ev);
	if (s->start_ev)
		event_free(s->start_ev);
	if (s->adopt_ev)
		event_free(s->adopt_ev);
	if (s->keeper_pidfd >= 0)
		close(s->keeper_pidfd);
	transfer_release(&s->transfer);
	free(s->argv_json);
	free(s->cwd);
	free(s->viewers);
	free(s);
}

struct session *
session_by_name(struct manager *m, const char *sandbox, const char *name)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &m->sessions) {
		struct session *s = list_entry(pos, struct session, node);

		if (s->phase != PHASE_ENDED && s->name[0] &&
		    strcmp(s->sandbox, sandbox) == 0 &&
		    strcmp(s->name, name) == 0)
			return s;
	}
	return NULL;
}

struct session *
session_by_id(struct manager *m, const char *id)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &m->sessions) {
		struct session *s = list_entry(pos, struct session, node);

		if (s->phase != PHASE_ENDED && strcmp(s->id, id) == 0)
			return s;
	}
	return NULL;
}

static void
session_finish_recording(struct session *s, const char *state)
{
	struct store *store = s->m->store;

	if (!s->recording_id)
		return;
	store_recording_finished(store, s->recording_id, state,
	    s->stats.rec_bytes, (int64_t)s->stats.rec_duration_ms,
	    clock_wall_ms(), s->stats.rec_gaps);
	if (s->was_adopted)
		reindex_want(s->m, s->recording_id, s->id);
	s->recording_id = 0;
}

static void
session_spend_files(struct session *s)
{
	struct spent *f = xcalloc(1, sizeof(*f));

	memcpy(f->id, s->id, sizeof(f->id));
	list_append(&s->m->spent, &f->node);
}

void
session_remove_spent(struct manager *m)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &m->spent) {
		struct spent *f = list_entry(pos, struct spent, node);
		char name[STORE_ID_MAX + 8];

		snprintf(name, sizeof(name), "%s.sock", f->id);
		unlinkat(m->locks_fd, name, 0);
		snprintf(name, sizeof(name), "%s.lock", f->id);
		unlinkat(m->locks_fd, name, 0);
		list_remove(&f->node);
		free(f);
	}
}

void
session_maybe_free(struct session *s)
{
	if (s->phase == PHASE_ENDED && s->keeper_pidfd < 0 &&
	    s->wire.is_closing)
		session_free(s);
}

/* It began, or ended: whoever waits for that in its sandbox hears of it. */
static void
session_tell_box(struct session *s)
{
	struct box *b = box_find(s->m, s->sandbox);

	if (b)
		box_settle(b);
}

void
session_end(
    struct session *s, const struct store_session_end *end, const char *note)
{
	struct store_session_end last = *end;
	struct store *store = s->m->store;
	bool has_started;
	char code[16];

	if (s->phase == PHASE_ENDED)
		return;
	if (!last.reason[0])
		snprintf(last.reason, sizeof(last.reason), "%s", s->reason);
	end = &last;
	snprintf(code, sizeof(code), "%d", end->exit_code);
	log_info("session_end", "sid", s->id, "sandbox", s->sandbox, "name",
	    s->name, "status", store_status_name(end->status), "code",
	    end->has_exit_code ? code : NULL, "signal", end->exit_signal,
	    "note", note, NULL);
	store_session_ended(store, s->id, end);
	session_finish_recording(s, "truncated");
	copy_ended(s, end);
	transfer_end(s, end->exited_ms);
	store_attachment_end_all(store, s->id, end->exited_ms);
	store_audit(store, "session_end", NULL, NULL, s->sandbox, s->id, note);
	if (s->start_ev)
		event_del(s->start_ev);
	if (s->adopt_ev)
		event_del(s->adopt_ev);
	session_spend_files(s);
	has_started = s->phase == PHASE_RUNNING;
	s->phase = PHASE_ENDED;
	if (end->status != SESSION_EXITED || note)
		box_reap(s->m, s->sandbox, s->id);
	request_on_end(s, has_started, note);
	box_on_session_end(s, end, note);
	session_tell_box(s);
}

void
session_lost(struct session *s, const char *why)
{
	struct store_session_end end = {
		.status =
		    s->phase == PHASE_STARTING ? SESSION_FAILED : SESSION_LOST,
		.exited_ms = clock_wall_ms(),
		.bytes_out = s->stats.bytes_out,
		.bytes_in = s->stats.bytes_in,
	};

	session_end(s, &end, why);
}

void
session_stop(struct session *s)
{
	struct buf b = { 0 };

	s->wants_stop = !s->is_ready;
	if (!s->is_ready)
		return;
	buf_put_u32(&b, (uint32_t)s->m->conf->session.stop_grace_ms);
	wire_send_buf(&s->wire, FRAME_STOP, 0, 0, &b);
	buf_release(&b);
}

/* ---- what the keeper tells ---------------------------------------------- */

static int
session_on_hello(struct session *s, const struct frame *f)
{
	struct wire_hello h;

	if (wire_hello_decode(f->data, f->len, &h) < 0 ||
	    h.version < FRAME_VERSION_OLDEST)
		return -EPROTO;
	s->wire.version = frame_version(h.version);
	/* Right after the start it knows nothing yet. */
	return s->is_ready ? 0 : adopt_on_hello(s, &h);
}

void
session_runs(struct session *s, pid_t pid, int64_t started_ms)
{
	/* What was said before it read a byte from anybody is what counts. */
	if (s->phase != PHASE_STARTING)
		return;
	s->pid = pid;
	s->phase = PHASE_RUNNING;
	s->started_ms = started_ms;
	if (s->start_ev)
		event_del(s->start_ev);
	store_session_started(s->m->store, s->id, s->pid, s->started_ms);
	request_on_started(s);
	session_tell_box(s);
}

static int
session_on_started(struct session *s, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);

	pid_t pid = (pid_t)reader_u32(&r);
	int64_t started_ms;

	reader_u64(&r);
	started_ms = (int64_t)reader_u64(&r);
	if (!reader_done(&r) || s->phase != PHASE_STARTING)
		return -EPROTO;
	session_runs(s, pid, started_ms);
	return 0;
}

static int
session_on_failed(struct session *s, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	char why[256];

	reader_str_into(&r, why, sizeof(why));
	if (!reader_done(&r))
		return -EPROTO;
	s->exec_code = f->arg;
	session_lost(s, why);
	return 0;
}

static int
session_on_ack(struct session *s, const struct frame *f)
{
	if (f->len != 8 || f->arg > 1)
		return -EPROTO;
	request_on_ack(s, f->tag, f->arg == 1);
	return 0;
}

static int
session_on_viewer_gone(struct session *s, const struct frame *f)
{
	struct wire_left l;

	if (wire_left_decode(f->data, f->len, s->wire.version, &l) < 0)
		return -EPROTO;
	if (s->n_attached)
		s->n_attached--;
	attachment_gone(s, (int64_t)l.attachment);
	session_tell_box(s);
	store_attachment_ended(s->m->store, s->id, (int64_t)l.attachment,
	    l.left_ms ? (int64_t)l.left_ms : clock_wall_ms(), l.bytes_out,
	    l.bytes_in, l.resyncs);
	return 0;
}

static int
session_on_index(struct session *s, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	uint32_t n = reader_u32(&r);

	while (n-- > 0 && !r.failed) {
		uint64_t t_ms = reader_u64(&r);
		uint64_t offset = reader_u64(&r);

		if (!r.failed && s->recording_id)
			store_recording_index(s->m->store, s->recording_id,
			    (int64_t)t_ms, offset);
	}
	return reader_done(&r) ? 0 : -EPROTO;
}

static void
session_progress(struct session *s)
{
	/* A process without a terminal has no size. */
	if (!s->is_pty)
		s->stats.cols = s->stats.rows = 0;
	store_session_progress(s->m->store, s->id, s->stats.cols, s->stats.rows,
	    s->stats.bytes_out, s->stats.bytes_in);
}

static int
session_on_stats(struct session *s, const struct frame *f)
{
	if (wire_stats_decode(f->data, f->len, &s->stats) < 0)
		return -EPROTO;
	session_progress(s);
	if (s->recording_id)
		store_recording_progress(s->m->store, s->recording_id,
		    s->stats.rec_bytes, (int64_t)s->stats.rec_duration_ms);
	return 0;
}

void
session_exited(struct session *s, const struct wire_exited *x)
{
	struct store_session_end end = {
		.status = x->exit.is_signal ? SESSION_KILLED : SESSION_EXITED,
		.has_exit_code = !x->exit.is_signal,
		.exit_code = x->exit.is_signal ? 0 : (int)x->exit.value,
		.exited_ms = (int64_t)x->exited_ms,
		.bytes_out = x->stats.bytes_out,
		.bytes_in = x->stats.bytes_in,
	};

	s->stats = x->stats;
	session_progress(s);
	session_finish_recording(
	    s, x->rec_state == 1 ? "complete" : "truncated");
	if (x->exit.is_signal)
		snprintf(end.exit_signal, sizeof(end.exit_signal), "%s",
		    proc_signal_name((int)x->exit.value));
	if (strcmp(x->exit.note, WIRE_NOTE_OOM) == 0)
		snprintf(end.reason, sizeof(end.reason), "oom");
	session_end(s, &end, x->exit.note[0] ? x->exit.note : NULL);
}

static int
session_on_exited(struct session *s, const struct frame *f)
{
	struct wire_exited x;

	if (wire_exited_decode(f->data, f->len, &x) < 0)
		return -EPROTO;
	session_exited(s, &x);
	wire_send(&s->wire, FRAME_BYE, 0, 0, NULL, 0);
	return 0;
}

/* Rows that say attached and are not: the keeper does not know them. */
struct session_viewers {
	struct session *s;
	uint64_t *ids;
	uint32_t n;
};

static bool
session_close_stale(const struct store_attachment *a, void *arg)
{
	const struct session_viewers *v = arg;

	if (strcmp(a->session_id, v->s->id) != 0)
		return true;
	for (uint32_t i = 0; i < v->n; i++) {
		if (v->ids[i] == (uint64_t)a->id)
			return true;
	}
	store_attachment_ended(v->s->m->store, v->s->id, a->id, clock_wall_ms(),
	    a->bytes_out, a->bytes_in, a->resyncs);
	return true;
}

/* A takeover: rows of who is there and those of who is not become true. */
static int
session_on_viewers(struct session *s, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	struct session_viewers v = { .s = s, .n = reader_u32(&r) };
	int rc = 0;

	if (v.n > f->len / 12)
		return -EPROTO;
	v.ids = xcalloc(v.n + 1, sizeof(*v.ids));
	for (uint32_t i = 0; i < v.n && rc == 0; i++) {
		autofree char *label = NULL;

		v.ids[i] = reader_u64(&r);
		label = reader_str(&r, WIRE_LABEL_MAX);
		if (r.failed)
			rc = -EPROTO;
		else
			attachment_restore(s, v.ids[i], label);
	}
	s->n_attached = v.n;
	session_tell_box(s);
	if (rc == 0)
		store_attachment_each_open(
		    s->m->store, session_close_stale, &v);
	free(v.ids);
	return rc == 0 && reader_done(&r) ? 0 : -EPROTO;
}

static int
session_on_ok(struct session *s, const struct frame *f)
{
	request_on_ok(s, f->tag);
	return 0;
}

static int
session_on_text(struct session *s, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	struct wire_size size = { .cols = reader_u32(&r) };

	size.rows = reader_u32(&r);
	if (!reader_done(&r))
		return -EPROTO;
	request_on_text(s, f->tag, &size);
	return 0;
}

static int
session_on_error(struct session *s, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	char why[256];

	reader_str_into(&r, why, sizeof(why));
	if (!reader_done(&r))
		return -EPROTO;
	if (!request_on_error(s, f->tag, f->arg, why))
		log_warn("keeper_error", "sid", s->id, "why", why, NULL);
	return 0;
}

/* Somebody types in a sandbox that sleeps. */
static int
session_on_typed(struct session *s, const struct frame *f)
{
	struct box *b = box_find(s->m, s->sandbox);
	autofree char *why = xasprintf("keys in %s", s->id);

	if (f->len)
		return -EPROTO;
	if (b)
		box_wake(b, NULL, why);
	return 0;
}

static const struct {
	uint8_t type;
	int (*handle)(struct session *s, const struct frame *f);
} session_frames[] = {
	{ FRAME_HELLO, session_on_hello },
	{ FRAME_STARTED, session_on_started },
	{ FRAME_FAILED, session_on_failed },
	{ FRAME_VIEWER_ACK, session_on_ack },
	{ FRAME_VIEWER_GONE, session_on_viewer_gone },
	{ FRAME_INDEX, session_on_index },
	{ FRAME_STATS, session_on_stats },
	{ FRAME_EXITED, session_on_exited },
	{ FRAME_VIEWERS, session_on_viewers },
	{ FRAME_TEXT, session_on_text },
	{ FRAME_VIEWER_STATS, attachment_on_stats },
	{ FRAME_LOG, transfer_on_log },
	{ FRAME_TYPED, session_on_typed },
	{ FRAME_OK, session_on_ok },
	{ FRAME_ERROR, session_on_error },
};

static void
session_on_frame(struct wire *w, const struct frame *f)
{
	struct session *s = w->owner;
	int rc = -EPROTO;

	if (f->fd >= 0)
		close(f->fd);
	for (size_t i = 0; i < ARRAY_LEN(session_frames); i++) {
		if (session_frames[i].type == f->type)
			rc = session_frames[i].handle(s, f);
	}
	if (rc < 0) {
		log_err("keeper_protocol", "sid", s->id, "frame",
		    frame_name(f->type), NULL);
		wire_close(w, rc);
	}
}

static void
session_on_close(struct wire *w, int rc)
{
	struct session *s = w->owner;

	/* What speaks no sense is not left alone with people's terminals. */
	if (rc == -EPROTO && s->keeper_pidfd >= 0)
		proc_signal(s->keeper_pidfd, SIGKILL);
	if (s->phase == PHASE_ENDED)
		session_maybe_free(s);
	else
		adopt_look_soon(s);
}

static const struct wire_handler session_wire = {
	.on_frame = session_on_frame,
	.on_close = session_on_close,
};

void
session_connect(struct session *s, int fd)
{
	/* the one before is closing, and may not have come to say so */
	wire_release(&s->wire);
	wire_init(&s->wire, s->m->base, fd, &session_wire, s);
}

bool
session_continue(struct session *s, struct reader *r)
{
	return handoff_take_wire(r, &s->wire, s->m->base, &session_wire, s);
}

/* The keeper is our child: reap it, and free what it leaves. */
static void
session_on_reap(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	int status = 0;

	(void)what;
	if (proc_reap((int)fd, &status) == 0)
		return;
	event_del(s->reap_ev);
	close(take_fd(&s->keeper_pidfd));
	if (WIFSIGNALED(status))
		log_err("keeper_killed", "sid", s->id, "signal",
		    proc_signal_name(WTERMSIG(status)), NULL);
	session_maybe_free(s);
}

static void
session_on_start_timeout(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	(void)fd;
	(void)what;
	if (s->keeper_pidfd >= 0)
		proc_signal(s->keeper_pidfd, SIGKILL);
	session_lost(s, "the session did not start in time");
}

void
session_watch(struct session *s, int pidfd)
{
	struct timeval tv = { MANAGER_START_MS / 1000, 0 };

	s->keeper_pidfd = pidfd;
	s->reap_ev = event_new(
	    s->m->base, pidfd, EV_READ | EV_PERSIST, session_on_reap, s);
	s->start_ev = evtimer_new(s->m->base, session_on_start_timeout, s);
	if (!s->reap_ev || !s->start_ev)
		abort();
	event_add(s->reap_ev, NULL);
	if (s->phase == PHASE_STARTING)
		evtimer_add(s->start_ev, &tv);
}

void
session_watch_ended(struct manager *m, const char *id, int pidfd)
{
	struct session *s = session_new(m);

	snprintf(s->id, sizeof(s->id), "%s", id);
	s->phase = PHASE_ENDED;
	session_watch(s, pidfd);
}
