/*
 * The loop of one SSH connection, see peer.h. Runs in berth-sshd. Events only
 * mark what is ready; then one turn lets libssh work, handles messages, steps
 * the channels, and looks at the deadlines, so that libssh is never entered
 * twice.
 */
#include "sshd/connection/peer.h"

#include <errno.h>
#include <event2/event.h>
#include <libssh/server.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "sshd/connection/auth.h"
#include "sshd/connection/chan.h"
#include "sshd/connection/confine.h"
#include "sshd/connection/forward.h"
#include "sshd/connection/ident.h"
#include "sshd/connection/lib_log.h"
#include "sshd/connection/request.h"

#define PEER_GOODBYE_MS     2000
#define PEER_LEAVE_MS       500
#define PEER_GRACE_EXTRA_MS 2000 /* the manager's own clock comes first */
#define PEER_FEED_MS        1000
#define PEER_POLLS_AUTH     1
#define PEER_POLLS_SERVE    16
#define PEER_RESTARTING     "the server is restarting"

static void
peer_note(char *out, size_t size, const char *text)
{
	snprintf(out, size, "%s", text);
}

void
peer_goodbye(struct peer *p, const char *farewell, const char *why)
{
	if (p->phase >= PHASE_GOODBYE)
		return;
	p->phase = PHASE_GOODBYE;
	p->is_auth_held = false;
	p->goodbye_ms = clock_mono_ms() + PEER_GOODBYE_MS;
	peer_note(p->farewell, sizeof(p->farewell), farewell);
	peer_note(p->why, sizeof(p->why), why ? why : farewell);
}

void
peer_end(struct peer *p, const char *why)
{
	if (p->phase == PHASE_OVER)
		return;
	p->phase = PHASE_OVER;
	p->farewell[0] = '\0';
	peer_note(p->why, sizeof(p->why), why);
}

static struct held *
peer_find_held(struct peer *p, uint16_t tag)
{
	struct list *pos, *next;

	list_for_each (pos, next, &p->held) {
		struct held *h = list_entry(pos, struct held, node);

		if (h->tag == tag)
			return h;
	}
	return NULL;
}

struct held *
peer_hold(struct peer *p, ssh_message msg, uint8_t asked)
{
	struct held *h = xcalloc(1, sizeof(*h));

	do
		p->last_tag++;
	while (peer_find_held(p, p->last_tag));
	h->tag = p->last_tag;
	h->asked = asked;
	h->msg = msg;
	list_init(&h->node);
	list_append(&p->held, &h->node);
	return h;
}

void
peer_release_held(struct peer *p, struct held *h)
{
	(void)p;
	list_remove(&h->node);
	if (h->msg)
		ssh_message_free(h->msg);
	free(h);
}

/* What may be asked, how it is answered, besides with FRAME_ERROR. */
static const struct peer_question {
	uint8_t asked, answer;
	bool takes_error, takes_fd;
	void (*handle)(struct peer *p, struct held *h, const struct frame *f);
} peer_questions[] = {
	{ FRAME_AUTH, FRAME_AUTH_REPLY, false, false, auth_reply },
	{ FRAME_OPEN, FRAME_OK, true, false, request_opened },
	{ FRAME_ATTACH, FRAME_CHANNEL, true, true, request_started },
	{ FRAME_ATTACH, FRAME_PROGRESS, false, false, request_progress },
	{ FRAME_RUN, FRAME_CHANNEL, true, true, request_started },
	{ FRAME_FORWARD, FRAME_SOCKET, true, true, forward_opened },
	{ FRAME_LISTEN, FRAME_LISTENING, true, false, request_listening },
	{ FRAME_UNLISTEN, FRAME_OK, true, false, request_listening },
};

/* A reply to a held message; false if it does not fit the question. */
static bool
peer_take_reply(struct peer *p, struct held *h, const struct frame *f)
{
	if (p->phase != PHASE_AUTH && p->phase != PHASE_SERVE) {
		if (f->fd >= 0)
			close(f->fd);
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(peer_questions); i++) {
		const struct peer_question *q = &peer_questions[i];
		bool is_error = q->takes_error && f->type == FRAME_ERROR;

		if (q->asked != h->asked || (f->type != q->answer && !is_error))
			continue;
		if (f->fd >= 0 && (is_error || !q->takes_fd))
			return false;
		q->handle(p, h, f);
		return true;
	}
	return false;
}

/*
 * Channels on shared terminals that still have to be given back: until the
 * client's own CLOSE, for OpenSSH's drops what it has not yet printed when it
 * reads a disconnect.
 */
static unsigned
peer_count_shared(struct peer *p, bool is_asking)
{
	struct list *pos, *next;
	unsigned n = 0;

	list_for_each (pos, next, &p->channels) {
		struct chan *c = list_entry(pos, struct chan, node);

		if (!c->run.has_pty || c->run.kind != RUN_SHELL ||
		    c->state < CHAN_LIVE || c->state == CHAN_DEAD)
			continue;
		n++;
		if (is_asking && c->state == CHAN_LIVE &&
		    c->wire.version >= 2 && !c->wire.is_broken)
			wire_send(&c->wire, FRAME_DETACH, 0, 0, NULL, 0);
	}
	return n;
}

/* The manager wants the connection to end; first the terminals are given back. */
static void
peer_take_leave(struct peer *p, const char *why)
{
	if (p->phase != PHASE_SERVE || peer_count_shared(p, true) == 0) {
		peer_goodbye(p, why, NULL);
		return;
	}
	peer_note(p->farewell, sizeof(p->farewell), why);
	p->leave_ms = clock_mono_ms() + PEER_LEAVE_MS;
}

static void
peer_on_frame(struct wire *w, const struct frame *f)
{
	struct peer *p = w->owner;
	struct held *h = peer_find_held(p, f->tag);

	p->is_busy = true;
	if (f->type == FRAME_CLOSE) {
		struct reader r = reader_over(f->data, f->len);
		char why[256];

		reader_str_into(&r, why, sizeof(why));
		peer_take_leave(p, why);
		return;
	}
	if (f->type == FRAME_FORWARDED ? forward_offered(p, f)
				       : h && peer_take_reply(p, h, f))
		return;
	if (f->fd >= 0)
		close(f->fd);
	peer_end(p, "a frame of the manager that nothing asked for");
}

/* Answers a held message when nobody else will any more. */
static void
peer_give_up_held(struct peer *p, struct held *h)
{
	static const struct frame away = { .type = FRAME_ERROR, .fd = -1 };

	if (h->asked == FRAME_AUTH) {
		peer_goodbye(p, PEER_RESTARTING, NULL);
		peer_release_held(p, h);
	} else if (h->asked == FRAME_OPEN) {
		request_opened(p, h, &away);
	} else if (h->asked == FRAME_FORWARD) {
		forward_opened(p, h, &away);
	} else if (h->asked == FRAME_LISTEN || h->asked == FRAME_UNLISTEN) {
		request_listening(p, h, &away);
	} else {
		struct buf why = { 0 };
		struct frame f = away;

		buf_put_str(&why, PEER_RESTARTING "; please connect again");
		f.data = buf_head(&why);
		f.len = buf_len(&why);
		request_started(p, h, &f);
		buf_release(&why);
	}
}

static void
peer_on_manager_gone(struct wire *w, int rc)
{
	struct peer *p = w->owner;
	struct list *pos, *next;

	(void)rc;
	wire_release(w);
	p->is_orphan = true;
	p->is_busy = true;
	list_for_each (pos, next, &p->held)
		peer_give_up_held(p, list_entry(pos, struct held, node));
	if (p->phase < PHASE_SERVE)
		peer_goodbye(p, PEER_RESTARTING, NULL);
	else
		log_info("orphaned", NULL);
}

static const struct wire_handler peer_handler = {
	.on_frame = peer_on_frame,
	.on_close = peer_on_manager_gone,
};

/* Looks at the peer's first bytes and lets libssh have them if they are SSH. */
static void
peer_look(struct peer *p)
{
	enum ident_verdict v = IDENT_OK;

	/* What libssh took while it said hello it judges itself. */
	if (transport_bytes_read(&p->transport) == 0)
		v = ident_peek(p->transport.fd);
	p->transport.is_ready = v == IDENT_OK;
	if (v == IDENT_OK) {
		ident_finish(p->transport.fd);
		p->phase = PHASE_AUTH;
	} else if (v != IDENT_MORE) {
		peer_end(p, ident_refuse(p->transport.fd, v));
	}
}

static bool
peer_check_alive(struct peer *p)
{
	const char *error;

	if (p->phase == PHASE_OVER)
		return false;
	/* libssh leaves these unanswered, and the client waiting. */
	if (p->phase == PHASE_AUTH && lib_log_offence()) {
		peer_goodbye(p, lib_log_offence(), NULL);
		return false;
	}
	if (transport_is_alive(&p->transport))
		return true;
	error = transport_error(&p->transport);
	peer_end(p, *error ? error : "closed by the client");
	return false;
}

static void
peer_probe(struct peer *p, int64_t now)
{
	p->probe_ms = now + p->settings.keepalive_ms;
	if (transport_was_heard(&p->transport)) {
		p->n_silent = 0;
		return;
	}
	if (p->phase != PHASE_SERVE)
		return;
	if (p->n_silent++ == p->settings.keepalive_count) {
		peer_end(p, "the client does not answer");
		return;
	}
	transport_probe(&p->transport);
}

static void
peer_check_deadlines(struct peer *p)
{
	int64_t now = clock_mono_ms();

	if (p->grace_ms && now >= p->grace_ms)
		peer_end(p, "not authenticated in time");
	if (p->probe_ms && now >= p->probe_ms && p->phase != PHASE_OVER)
		peer_probe(p, now);
	if (p->leave_ms && p->phase == PHASE_SERVE &&
	    (now >= p->leave_ms || peer_count_shared(p, false) == 0)) {
		char why[sizeof(p->farewell)];

		p->leave_ms = 0;
		peer_note(why, sizeof(why), p->farewell);
		peer_goodbye(p, why, NULL);
	}
	if (p->phase == PHASE_GOODBYE &&
	    (now >= p->goodbye_ms || transport_is_flushed(&p->transport)))
		p->phase = PHASE_OVER;
}

static void
peer_step_channels(struct peer *p)
{
	struct list *pos, *next;

	list_for_each (pos, next, &p->channels) {
		if (chan_step(list_entry(pos, struct chan, node)))
			p->is_busy = true;
		if (!peer_check_alive(p))
			return;
	}
	/* Another one goes first next time. */
	if (!list_empty(&p->channels)) {
		pos = p->channels.next;
		list_remove(pos);
		list_append(&p->channels, pos);
	}
	forward_step_all(p);
	peer_check_alive(p);
}

/*
 * Frees dead channels when libssh holds no message any more that points at
 * one: request_dispatch() has just emptied its queue.
 */
static void
peer_reap_channels(struct peer *p)
{
	struct list *pos, *next;

	list_for_each (pos, next, &p->channels) {
		struct chan *c = list_entry(pos, struct chan, node);

		if (c->state == CHAN_DEAD)
			chan_free(c);
	}
	forward_reap(p);
}

static void
peer_turn(struct peer *p)
{
	p->is_busy = false;
	if (p->phase == PHASE_IDENT)
		peer_look(p);
	if (p->phase == PHASE_IDENT || p->phase == PHASE_OVER) {
		peer_check_deadlines(p);
		return;
	}
	if (p->transport.is_ready)
		transport_poll(&p->transport, p->phase == PHASE_SERVE
						  ? PEER_POLLS_SERVE
						  : PEER_POLLS_AUTH);
	if (!peer_check_alive(p))
		return;
	request_dispatch(p);
	if (!peer_check_alive(p))
		return;
	if (!p->is_busy && !p->n_globals_held)
		peer_reap_channels(p);
	if (p->phase == PHASE_SERVE)
		peer_step_channels(p);
	if (p->phase == PHASE_SERVE && p->is_orphan && peer_channels(p) == 0)
		peer_goodbye(p, PEER_RESTARTING, NULL);
	peer_check_deadlines(p);
	peer_check_alive(p);
}

static void
peer_nearest(int64_t *at, int64_t deadline)
{
	if (deadline && (*at == 0 || deadline < *at))
		*at = deadline;
}

/* Arms the socket and one timer for the nearest deadline. */
static void
peer_arm(struct peer *p)
{
	struct list *pos, *next;
	int64_t at = 0, left;
	struct timeval tv;

	if (p->phase == PHASE_IDENT)
		event_add(p->transport.read_ev, NULL);
	else
		transport_arm(&p->transport, !p->is_auth_held &&
						 !p->n_globals_held &&
						 p->phase != PHASE_GOODBYE);
	peer_nearest(&at, p->grace_ms);
	peer_nearest(&at, p->probe_ms);
	peer_nearest(&at, p->leave_ms);
	if (p->phase == PHASE_GOODBYE)
		peer_nearest(&at, p->goodbye_ms);
	list_for_each (pos, next, &p->channels)
		peer_nearest(&at, list_entry(pos, struct chan, node)->close_ms);
	peer_nearest(&at, forward_deadline(p));
	event_del(p->timer);
	if (at == 0)
		return;
	left = at - clock_mono_ms();
	left = left > 0 ? left : 0;
	tv = (struct timeval){ .tv_sec = left / 1000,
		.tv_usec = left % 1000 * 1000 + 1000 };
	event_add(p->timer, &tv);
}

/* The timer only wakes the loop. */
static void
peer_on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

static void
peer_feed_watchdog(struct peer *p)
{
	int64_t now = clock_mono_ms();

	if (p->fed_ms && now - p->fed_ms < PEER_FEED_MS)
		return;
	p->fed_ms = now;
	confine_feed_watchdog();
}

static void
peer_loop(struct peer *p)
{
	while (p->phase != PHASE_OVER) {
		peer_feed_watchdog(p);
		peer_arm(p);
		/* Without ONCE it stays in while any event is active. */
		event_base_loop(
		    p->base, EVLOOP_ONCE | (p->is_busy ? EVLOOP_NONBLOCK : 0));
		peer_turn(p);
	}
}

/* Hangs up everywhere first: the client's last message may take a moment. */
static void
peer_finish(struct peer *p)
{
	struct list *pos, *next;

	list_for_each (pos, next, &p->channels)
		chan_hang_up(list_entry(pos, struct chan, node));
	forward_hang_up_all(p);
	log_info("disconnect", "reason", p->why, NULL);
	transport_disconnect(
	    &p->transport, p->farewell[0] ? p->farewell : NULL);
}

static int
peer_start(struct peer *p, int tcp_fd, int manager_fd, struct err *e)
{
	int64_t now = clock_mono_ms();
	int rc =
	    transport_init(&p->transport, p->base, tcp_fd, &p->settings, e);

	if (rc < 0)
		return rc;
	rc = fd_set_nonblock(manager_fd, true);
	if (rc < 0)
		return err_sys(e, rc, "link to the manager");
	wire_init(&p->manager, p->base, manager_fd, &peer_handler, p);
	if (p->settings.version < p->manager.version)
		p->manager.version = p->settings.version;
	if (p->settings.login_grace_ms)
		p->grace_ms =
		    now + p->settings.login_grace_ms + PEER_GRACE_EXTRA_MS;
	if (p->settings.keepalive_ms)
		p->probe_ms = now + p->settings.keepalive_ms;
	peer_look(p);
	if (p->phase == PHASE_OVER)
		return 0;
	/* libssh may have read already what an event would announce. */
	p->is_busy = true;
	rc = transport_start(&p->transport, e);
	if (rc == -EPROTO) {
		/* The peer's garbage, not our failure. */
		peer_end(p, e->msg);
		return 0;
	}
	return rc;
}

int
peer_serve(int tcp_fd, int manager_fd, struct wire_settings *s)
{
	/* Static: what is left at the end goes with the process, in sight. */
	static struct peer p;
	struct err e = { 0 };
	int rc;

	p = (struct peer){ .settings = *s, .phase = PHASE_IDENT };
	list_init(&p.held);
	list_init(&p.channels);
	list_init(&p.forwards);
	p.base = event_base_new();
	if (!p.base)
		abort();
	p.timer = event_new(p.base, -1, 0, peer_on_timer, &p);
	if (!p.timer)
		abort();
	rc = peer_start(&p, tcp_fd, manager_fd, &e);
	/* libssh has its own copy of the keys now. */
	wire_settings_release(s);
	p.settings.host_keys = NULL;
	if (rc < 0) {
		log_err("connection_failed", "reason", e.msg, NULL);
		return 1;
	}
	peer_loop(&p);
	peer_finish(&p);
	return 0;
}
