/*
 * Client messages by table, see request.h. Runs in berth-sshd. A message is
 * freed exactly once: by the dispatcher, or by whoever its handler gave it to.
 */
#include "sshd/connection/request.h"

#include <libssh/server.h>
#include <stdbool.h>

#include "base/log.h"
#include "base/mem.h"
#include "sshd/connection/auth.h"
#include "sshd/connection/chan.h"
#include "sshd/connection/forward.h"
#include "sshd/connection/lib_log.h"
#include "sshd/connection/peer.h"

#define REQUEST_PER_TURN  256
#define REQUEST_ANY       (-1)
#define REQUEST_NOT_FOUND 3   /* arg of FRAME_ERROR: as berth(1) exits */
#define REQUEST_BREAK_MS  500 /* libssh hides the length; RFC 4335's default */

#define REQUEST_AWAY "the server is restarting; please connect again"

enum request_flags {
	ONCE = 1u << 0,   /* refused the second time on the same channel */
	DECIDES = 1u << 1 /* shell, exec, subsystem: one of them a channel */
};

struct request {
	struct peer *peer;
	struct chan *channel; /* of channel requests */
	ssh_message msg;
	bool is_break;
	bool is_taken; /* the handler gave `msg` to a new owner */
};

struct request_row {
	int type, subtype;
	enum peer_phase phase;
	unsigned flags;
	void (*handle)(struct request *r);
};

static void
request_refuse(struct request *r)
{
	ssh_message_reply_default(r->msg);
}

static void
request_service(struct request *r)
{
	const char *name = ssh_message_service_service(r->msg);

	if (name && strcmp(name, "ssh-userauth") == 0)
		ssh_message_service_reply_success(r->msg);
	else
		peer_end(r->peer, "a service that is not ssh-userauth");
}

static void
request_auth(struct request *r)
{
	r->is_taken = true;
	if (!r->peer->is_orphan) {
		auth_request(r->peer, r->msg);
		return;
	}
	ssh_message_free(r->msg);
	peer_goodbye(r->peer, REQUEST_AWAY, NULL);
}

/* Accepts the channel that MSG opens. */
static void
request_accept(struct peer *p, ssh_message msg)
{
	ssh_channel ssh = ssh_message_channel_request_open_reply_accept(msg);

	if (ssh)
		chan_new(p, ssh);
}

/* Asks the manager for a connection to where the client wants it. */
static void
request_forward(struct request *r)
{
	const char *host = ssh_message_channel_request_open_destination(r->msg);
	const char *origin =
	    ssh_message_channel_request_open_originator(r->msg);
	int port = ssh_message_channel_request_open_destination_port(r->msg);
	struct wire_forward m = { .port = (uint16_t)port };
	struct buf b = { 0 };
	struct held *h;

	if (!host || strlen(host) >= sizeof(m.host) || port < 0 ||
	    port > UINT16_MAX) {
		request_refuse(r);
		return;
	}
	snprintf(m.host, sizeof(m.host), "%s", host);
	snprintf(m.origin, sizeof(m.origin), "%s", origin ? origin : "");
	m.origin_port =
	    (uint32_t)ssh_message_channel_request_open_originator_port(r->msg);
	h = peer_hold(r->peer, r->msg, FRAME_FORWARD);
	r->is_taken = true;
	r->peer->n_opens_held++;
	wire_forward_encode(&b, &m);
	wire_send_buf(&r->peer->manager, FRAME_FORWARD, 0, h->tag, &b);
	buf_release(&b);
}

static void
request_open(struct request *r)
{
	struct peer *p = r->peer;
	int type = ssh_message_subtype(r->msg);
	enum wire_open what = type == SSH_CHANNEL_SESSION ? OPEN_SESSION
			      : type == SSH_CHANNEL_DIRECT_TCPIP
				  ? OPEN_DIRECT_TCPIP
				  : OPEN_OTHER;
	struct held *h;

	if (peer_channels(p) >= p->settings.max_channels) {
		log_info(
		    "channel_refused", "reason", "too many channels", NULL);
		request_refuse(r);
		return;
	}
	if (p->is_orphan) {
		/* Accepted, so that its shell or exec can be told why not. */
		if (what == OPEN_SESSION)
			request_accept(p, r->msg);
		else
			request_refuse(r);
		return;
	}
	if (what == OPEN_DIRECT_TCPIP && p->manager.version >= 2) {
		request_forward(r);
		return;
	}
	h = peer_hold(p, r->msg, FRAME_OPEN);
	r->is_taken = true;
	p->n_opens_held++;
	wire_send(&p->manager, FRAME_OPEN, (uint8_t)what, h->tag, NULL, 0);
}

void
request_opened(struct peer *p, struct held *h, const struct frame *f)
{
	p->n_opens_held--;
	if (f->type == FRAME_OK &&
	    ssh_message_subtype(h->msg) == SSH_CHANNEL_SESSION)
		request_accept(p, h->msg);
	else
		ssh_message_reply_default(h->msg);
	peer_release_held(p, h);
}

/*
 * tcpip-forward and its end. Replies to global requests have no number but their
 * order, so nothing else is read before this one is answered.
 */
static void
request_ask_port(struct request *r, uint8_t frame)
{
	struct peer *p = r->peer;
	const char *address = ssh_message_global_request_address(r->msg);
	int port = ssh_message_global_request_port(r->msg);
	struct wire_listen m = { .port = (uint16_t)port };
	struct buf b = { 0 };
	struct held *h;

	if (!address || strlen(address) >= sizeof(m.address) || port < 0 ||
	    port > UINT16_MAX || p->is_orphan || p->manager.version < 2) {
		request_refuse(r);
		return;
	}
	snprintf(m.address, sizeof(m.address), "%s", address);
	h = peer_hold(p, r->msg, frame);
	r->is_taken = true;
	p->n_globals_held++;
	wire_listen_encode(&b, &m);
	wire_send_buf(&p->manager, frame, 0, h->tag, &b);
	buf_release(&b);
}

static void
request_listen(struct request *r)
{
	request_ask_port(r, FRAME_LISTEN);
}

static void
request_unlisten(struct request *r)
{
	request_ask_port(r, FRAME_UNLISTEN);
}

void
request_listening(struct peer *p, struct held *h, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);

	p->n_globals_held--;
	if (f->type == FRAME_ERROR)
		ssh_message_reply_default(h->msg);
	else
		ssh_message_global_request_reply_success(
		    h->msg, (uint16_t)reader_u32(&r));
	peer_release_held(p, h);
}

static struct wire_size
request_size(ssh_message msg)
{
	return (struct wire_size){
		.cols = (uint32_t)ssh_message_channel_request_pty_width(msg),
		.rows = (uint32_t)ssh_message_channel_request_pty_height(msg),
		.xpixel =
		    (uint32_t)ssh_message_channel_request_pty_pxwidth(msg),
		.ypixel =
		    (uint32_t)ssh_message_channel_request_pty_pxheight(msg),
	};
}

static void
request_pty(struct request *r)
{
	struct chan *c = r->channel;
	const char *term = ssh_message_channel_request_pty_term(r->msg);

	if (c->state != CHAN_FRESH || !(r->peer->may & WIRE_MAY_PTY) || !term ||
	    strlen(term) >= sizeof(c->run.term)) {
		request_refuse(r);
		return;
	}
	c->run.has_pty = 1;
	c->run.size = request_size(r->msg);
	snprintf(c->run.term, sizeof(c->run.term), "%s", term);
	if (r->peer->n_ptys++ == 0)
		lib_log_set_packets(true);
	ssh_message_channel_request_reply_success(r->msg);
}

static void
request_window(struct request *r)
{
	struct wire_size size = request_size(r->msg);

	/* Without a terminal there is nothing to resize; no reply either way */
	if (r->channel->run.has_pty)
		chan_resize(r->channel, &size);
}

static void
request_env(struct request *r)
{
	struct chan *c = r->channel;
	const char *name = ssh_message_channel_request_env_name(r->msg);
	const char *value = ssh_message_channel_request_env_value(r->msg);

	if (c->state != CHAN_FRESH || c->n_env == WIRE_ENV_MAX || !name ||
	    !value || !*name || strchr(name, '=') ||
	    strlen(name) + 1 + strlen(value) > WIRE_ENV_LEN_MAX) {
		request_refuse(r);
		return;
	}
	if (!c->run.env)
		c->run.env = xcalloc(WIRE_ENV_MAX + 1, sizeof(char *));
	c->run.env[c->n_env++] = xasprintf("%s=%s", name, value);
	ssh_message_channel_request_reply_success(r->msg);
}

/* Asks the manager for the process that c->run describes. */
static void
request_ask(struct request *r, uint8_t frame)
{
	struct peer *p = r->peer;
	struct chan *c = r->channel;
	struct buf b = { 0 };
	struct held *h;

	wire_run_encode(&b, &c->run);
	if (buf_len(&b) > FRAME_MAX || p->is_orphan) {
		ssh_message_channel_request_reply_success(r->msg);
		chan_fail(c, p->is_orphan
				 ? REQUEST_AWAY
				 : "command and environment are too long");
		buf_release(&b);
		return;
	}
	h = peer_hold(p, r->msg, frame);
	h->channel = c;
	r->is_taken = true;
	c->state = CHAN_ASKED;
	c->asked_size = c->run.size;
	wire_send_buf(&p->manager, frame, 0, h->tag, &b);
	buf_release(&b);
}

static void
request_shell(struct request *r)
{
	r->channel->run.kind = RUN_SHELL;
	request_ask(r, r->channel->run.has_pty ? FRAME_ATTACH : FRAME_RUN);
}

/* Notes the command line or the name of a subsystem and asks. */
static void
request_command(struct request *r, enum wire_run_kind kind, const char *text)
{
	struct chan *c = r->channel;

	if (!text || strlen(text) > WIRE_COMMAND_MAX) {
		request_refuse(r);
		return;
	}
	c->run.kind = (uint8_t)kind;
	free(c->run.command);
	c->run.command = xstrdup(text);
	request_ask(r, FRAME_RUN);
}

static void
request_exec(struct request *r)
{
	request_command(
	    r, RUN_EXEC, ssh_message_channel_request_command(r->msg));
}

static void
request_subsystem(struct request *r)
{
	request_command(
	    r, RUN_SUBSYSTEM, ssh_message_channel_request_subsystem(r->msg));
}

static void
request_unknown(struct request *r)
{
	if (!r->is_break || !r->channel->run.has_pty ||
	    r->channel->state != CHAN_LIVE) {
		request_refuse(r);
		return;
	}
	chan_break(r->channel, REQUEST_BREAK_MS);
	ssh_message_channel_request_reply_success(r->msg);
}

#define ANY  REQUEST_ANY
#define CHAN SSH_REQUEST_CHANNEL

static const struct request_row request_rows[] = {
	{ SSH_REQUEST_SERVICE, ANY, PHASE_AUTH, 0, request_service },
	{ SSH_REQUEST_AUTH, ANY, PHASE_AUTH, 0, request_auth },
	{ SSH_REQUEST_CHANNEL_OPEN, ANY, PHASE_SERVE, 0, request_open },
	{ SSH_REQUEST_GLOBAL, SSH_GLOBAL_REQUEST_TCPIP_FORWARD, PHASE_SERVE, 0,
	    request_listen },
	{ SSH_REQUEST_GLOBAL, SSH_GLOBAL_REQUEST_CANCEL_TCPIP_FORWARD,
	    PHASE_SERVE, 0, request_unlisten },
	{ SSH_REQUEST_GLOBAL, ANY, PHASE_SERVE, 0, request_refuse },
	{ CHAN, SSH_CHANNEL_REQUEST_PTY, PHASE_SERVE, ONCE, request_pty },
	{ CHAN, SSH_CHANNEL_REQUEST_WINDOW_CHANGE, PHASE_SERVE, 0,
	    request_window },
	{ CHAN, SSH_CHANNEL_REQUEST_ENV, PHASE_SERVE, 0, request_env },
	{ CHAN, SSH_CHANNEL_REQUEST_SHELL, PHASE_SERVE, DECIDES,
	    request_shell },
	{ CHAN, SSH_CHANNEL_REQUEST_EXEC, PHASE_SERVE, DECIDES, request_exec },
	{ CHAN, SSH_CHANNEL_REQUEST_SUBSYSTEM, PHASE_SERVE, DECIDES,
	    request_subsystem },
	{ CHAN, SSH_CHANNEL_REQUEST_X11, PHASE_SERVE, 0, request_refuse },
	{ CHAN, ANY, PHASE_SERVE, 0, request_unknown },
};

#undef ANY
#undef CHAN

static const struct request_row *
request_lookup(const struct request *r)
{
	int type = ssh_message_type(r->msg);
	int subtype = ssh_message_subtype(r->msg);

	for (size_t i = 0; i < ARRAY_LEN(request_rows); i++) {
		const struct request_row *row = &request_rows[i];

		if (row->type == type && row->phase == r->peer->phase &&
		    (row->subtype == REQUEST_ANY || row->subtype == subtype))
			return row;
	}
	return NULL;
}

/* True if the row's flags allow it on this channel; notes that it was seen. */
static bool
request_is_allowed(const struct request_row *row, struct chan *c)
{
	uint32_t bit = 1U << (row - request_rows);

	if ((row->flags & ONCE) && (c->seen & bit))
		return false;
	if ((row->flags & DECIDES) && c->state != CHAN_FRESH)
		return false;
	c->seen |= bit;
	return true;
}

static void
request_run(struct request *r)
{
	const struct request_row *row = request_lookup(r);

	if (!row)
		peer_end(r->peer, "a message that this phase does not permit");
	else if (r->channel && !request_is_allowed(row, r->channel))
		request_refuse(r);
	else
		row->handle(r);
	if (!r->is_taken)
		ssh_message_free(r->msg);
}

/*
 * Replies of one channel go out in the order of the requests, so what comes
 * behind a held one waits; only a new size needs no reply and does not.
 */
static bool
request_must_wait(const struct request *r)
{
	return (r->channel->state == CHAN_ASKED || r->channel->n_waiting > 0) &&
	       ssh_message_subtype(r->msg) != SSH_CHANNEL_REQUEST_WINDOW_CHANGE;
}

static void
request_wait(struct request *r)
{
	struct chan_waiting *w;

	if (r->channel->n_waiting == CHAN_WAITING_MAX) {
		ssh_message_free(r->msg);
		peer_end(r->peer, "too many requests behind a shell or exec");
		return;
	}
	w = xcalloc(1, sizeof(*w));
	w->msg = r->msg;
	w->is_break = r->is_break;
	list_init(&w->node);
	list_append(&r->channel->waiting, &w->node);
	r->channel->n_waiting++;
}

static void
request_handle(struct peer *p, ssh_message msg)
{
	struct request r = { .peer = p, .msg = msg };
	ssh_channel ssh;

	if (ssh_message_type(msg) != SSH_REQUEST_CHANNEL) {
		request_run(&r);
		return;
	}
	r.is_break = lib_log_next_break();
	ssh = ssh_message_channel_request_channel(msg);
	r.channel = chan_find(p, ssh);
	/* PuTTY measures by what nobody knows, and waits for the refusal. */
	if (!r.channel && forward_has(p, ssh))
		ssh_message_reply_default(msg);
	/* Of a channel that is freed: a reply would read freed memory. */
	if (!r.channel)
		ssh_message_free(msg);
	else if (request_must_wait(&r))
		request_wait(&r);
	else
		request_run(&r);
}

void
request_resume(struct peer *p, struct chan *c)
{
	struct list *pos, *next;

	list_for_each (pos, next, &c->waiting) {
		struct chan_waiting *w =
		    list_entry(pos, struct chan_waiting, node);
		struct request r = {
			.peer = p,
			.channel = c,
			.msg = w->msg,
			.is_break = w->is_break,
		};

		if (c->state == CHAN_ASKED || p->phase != PHASE_SERVE)
			return;
		list_remove(&w->node);
		c->n_waiting--;
		free(w);
		request_run(&r);
	}
}

void
request_progress(struct peer *p, struct held *h, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	char line[512];

	(void)p;
	reader_str_into(&r, line, sizeof(line));
	if (h->channel)
		chan_tell(h->channel, line);
}

void
request_started(struct peer *p, struct held *h, const struct frame *f)
{
	struct chan *c = h->channel;
	char why[256] = "the manager gave no session";
	struct reader r = reader_over(f->data, f->len);

	if (f->type == FRAME_ERROR)
		reader_str_into(&r, why, sizeof(why));
	if (!c) {
		if (f->fd >= 0)
			close(f->fd);
	} else if (f->fd >= 0) {
		ssh_message_channel_request_reply_success(h->msg);
		chan_join(c, f->fd, f->len ? reader_u32(&r) : 1);
	} else if (c->run.kind == RUN_SUBSYSTEM && f->type == FRAME_ERROR &&
		   f->arg == REQUEST_NOT_FOUND) {
		/* The client may ask for something else on this channel. */
		c->state = CHAN_FRESH;
		ssh_message_reply_default(h->msg);
	} else {
		ssh_message_channel_request_reply_success(h->msg);
		chan_fail(c, why);
	}
	peer_release_held(p, h);
	if (c)
		request_resume(p, c);
}

void
request_dispatch(struct peer *p)
{
	for (int i = 0; i < REQUEST_PER_TURN; i++) {
		ssh_message msg;

		if (p->is_auth_held || p->n_globals_held ||
		    (p->phase != PHASE_AUTH && p->phase != PHASE_SERVE))
			return;
		/* Polls the socket when nothing waits. */
		msg = ssh_message_get(p->transport.session);
		if (!msg)
			return;
		if (transport_is_alive(&p->transport))
			request_handle(p, msg);
		else
			ssh_message_free(msg);
	}
	p->is_busy = true;
}
