/*
 * One SSH connection as berthd sees it; see connection.h. The link may end
 * before the process does: the struct lives until the process is reaped.
 */
#include "sshd/listener/connection.h"

#include <assert.h>
#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/text.h"
#include "conf/conf.h"
#include "sessions/manager/manager.h"
#include "sessions/wire/handoff.h"
#include "sshd/listener/host_key.h"
#include "sshd/listener/login.h"
#include "sshd/listener/server.h"
#include "sshd/listener/spawn.h"

#define CONNECTION_END_MS    3000
#define CONNECTION_EXEC_FAIL 127 /* what a failed exec ends with */

/* A request that the manager has not answered yet. */
struct connection_request {
	struct list node;
	struct connection *c;
	struct request *request;
	uint16_t tag;
};

enum connection_flags {
	CONNECTION_DECIDES = 1u << 0 /* may change the phase */
};

struct connection_rule {
	uint8_t type;
	unsigned phases; /* enum connection_phase */
	unsigned flags;  /* enum connection_flags */
	int (*handle)(struct connection *c, const struct frame *f);
};

static int connection_on_open(struct connection *c, const struct frame *f);
static int connection_on_run(struct connection *c, const struct frame *f);

/* Every frame that berth-sshd may send. Anything else ends it. */
static const struct connection_rule connection_rules[] = {
	{ FRAME_AUTH, CONNECTION_LOGIN, CONNECTION_DECIDES, login_on_auth },
	{ FRAME_OPEN, CONNECTION_SERVE, 0, connection_on_open },
	{ FRAME_ATTACH, CONNECTION_SERVE, 0, connection_on_run },
	{ FRAME_RUN, CONNECTION_SERVE, 0, connection_on_run },
	{ FRAME_FORWARD, CONNECTION_SERVE, 0, forward_on_forward },
	{ FRAME_LISTEN, CONNECTION_SERVE, 0, forward_on_listen },
	{ FRAME_UNLISTEN, CONNECTION_SERVE, 0, forward_on_unlisten },
	{ FRAME_FORWARD_END, CONNECTION_SERVE | CONNECTION_ENDING, 0,
	    forward_on_end },
};

static void
connection_arm(struct connection *c, uint64_t ms)
{
	struct timeval tv = {
		.tv_sec = (time_t)(ms / 1000),
		.tv_usec = (suseconds_t)(ms % 1000 * 1000),
	};

	evtimer_add(c->timer, &tv);
}

void
connection_kill(struct connection *c)
{
	proc_signal(c->pidfd, SIGKILL);
}

static void
connection_end(struct connection *c)
{
	c->phase = CONNECTION_ENDING;
	connection_arm(c, CONNECTION_END_MS);
}

static void
connection_cancel_all(struct connection *c)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &c->requests) {
		struct connection_request *r =
		    list_entry(pos, struct connection_request, node);

		manager_cancel(r->request);
		list_remove(&r->node);
		free(r);
	}
	c->n_requests = 0;
	forward_stop(c);
}

static void
connection_send_channel(
    struct connection *c, uint16_t tag, const struct manager_answer *a)
{
	struct buf b = { 0 };

	if (c->wire.version >= 2)
		buf_put_u32(&b, a->frame_version);
	wire_send_fd(&c->wire, FRAME_CHANNEL, a->is_pty, tag, buf_head(&b),
	    buf_len(&b), a->fd);
	buf_release(&b);
}

static void
connection_on_answer(const struct manager_answer *a, void *arg)
{
	struct connection_request *r = arg;
	struct connection *c = r->c;

	if (a->code == MANAGER_OK)
		connection_send_channel(c, r->tag, a);
	else
		wire_reply_error(&c->wire, r->tag, (uint8_t)a->code, a->why);
	c->n_requests--;
	list_remove(&r->node);
	free(r);
}

static int
connection_on_open(struct connection *c, const struct frame *f)
{
	if (f->arg == OPEN_SESSION)
		wire_reply_ok(&c->wire, f->tag);
	else
		wire_reply_error(&c->wire, f->tag, MANAGER_REFUSED,
		    "only session channels are served");
	return 0;
}

/* Hands the request to the manager: shared shell or private process. */
static void
connection_on_progress(const char *line, void *arg)
{
	struct connection_request *r = arg;
	struct buf b = { 0 };

	buf_put_str(&b, line);
	wire_send_buf(&r->c->wire, FRAME_PROGRESS, 0, r->tag, &b);
	buf_release(&b);
}

static void
connection_ask(
    struct connection *c, const struct frame *f, const struct wire_run *run)
{
	struct connection_request *r = xcalloc(1, sizeof(*r));
	const struct principal *who = &c->grant.who;
	const struct user_name *name = &c->grant.name;
	bool is_shared =
	    f->type == FRAME_ATTACH && !name->is_exec && !who->forced_command;

	r->c = c;
	r->tag = f->tag;
	list_append(&c->requests, &r->node);
	c->n_requests++;
	r->request =
	    is_shared ? manager_attach(c->server->manager, who, name->sandbox,
			    name->session, run, connection_on_answer, r)
		      : manager_run(c->server->manager, who, name->sandbox, run,
			    connection_on_answer, r);
	/* A person waits; programs would take it for what they asked. */
	if (f->type == FRAME_ATTACH && c->wire.version >= 2)
		manager_on_progress(r->request, connection_on_progress);
}

static int
connection_on_run(struct connection *c, const struct frame *f)
{
	struct wire_run run;
	int rc = wire_run_decode(f->data, f->len, &run);

	if (rc < 0)
		return rc;
	if (f->type == FRAME_ATTACH && (run.kind != RUN_SHELL || !run.has_pty))
		rc = -EPROTO;
	else if (c->n_requests >= c->server->conf->server.max_channels)
		rc = -EPROTO;
	else if (run.has_pty && !c->grant.who.may_pty)
		wire_reply_error(&c->wire, f->tag, MANAGER_REFUSED,
		    "this key may not have a terminal");
	else
		connection_ask(c, f, &run);
	wire_run_release(&run);
	return rc;
}

static const struct connection_rule *
connection_find_rule(const struct connection *c, uint8_t type)
{
	for (size_t i = 0; i < ARRAY_LEN(connection_rules); i++) {
		const struct connection_rule *r = &connection_rules[i];

		if (r->type == type && (r->phases & c->phase))
			return r;
	}
	return NULL;
}

static void
connection_on_frame(struct wire *w, const struct frame *f)
{
	struct connection *c = w->owner;
	enum connection_phase before = c->phase;
	const struct connection_rule *r = connection_find_rule(c, f->type);
	int rc = -EPROTO;

	/* No frame of this link brings a descriptor. */
	if (f->fd >= 0)
		close(f->fd);
	/* What was asked before the child heard that is not its fault. */
	if (c->phase == CONNECTION_ENDING && !r)
		return;
	if (r && f->fd < 0)
		rc = r->handle(c, f);
	if (rc < 0) {
		log_warn("violation", "conn", c->id, "addr", c->remote, "frame",
		    frame_name(f->type), NULL);
		connection_end(c);
		connection_kill(c);
		wire_close(w, -EPROTO);
		return;
	}
	assert(c->phase == before || (r->flags & CONNECTION_DECIDES));
}

/* The child closed its end: it is on its way out, or is made to be. */
static void
connection_on_close(struct wire *w, int rc)
{
	struct connection *c = w->owner;

	connection_cancel_all(c);
	wire_release(w);
	if (rc == -EPROTO && c->phase != CONNECTION_ENDING) {
		log_warn("violation", "conn", c->id, "addr", c->remote, "frame",
		    "none", NULL);
		connection_kill(c);
	}
	connection_end(c);
}

static const struct wire_handler connection_handler = {
	.on_frame = connection_on_frame,
	.on_close = connection_on_close,
};

static void
connection_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;

	(void)fd;
	(void)what;
	if (c->phase == CONNECTION_LOGIN && server_may_log(c->server))
		log_info("refused", "conn", c->id, "addr", c->remote, "why",
		    "no login within login_grace", NULL);
	connection_end(c);
	connection_kill(c);
}

static void
connection_log_end(const struct connection *c, int status)
{
	char ms[24];

	snprintf(ms, sizeof(ms), "%lld",
	    (long long)(clock_mono_ms() - c->started_ms));
	if (WIFEXITED(status) && WEXITSTATUS(status) == CONNECTION_EXEC_FAIL)
		log_err("sshd_failed", "conn", c->id, "why",
		    "berth-sshd cannot be executed", NULL);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		log_err("sshd_forbidden", "conn", c->id, "addr", c->remote,
		    "why", "it made a system call that it may not make", NULL);
	else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		log_warn("sshd_crashed", "conn", c->id, "signal",
		    proc_signal_name(WTERMSIG(status)), NULL);
	if (c->was_served)
		log_info("closed", "conn", c->id, "addr", c->remote, "identity",
		    c->grant.who.identity, "ms", ms, NULL);
	else if (server_may_log(c->server))
		log_info("closed", "conn", c->id, "addr", c->remote, "why",
		    "no login", "ms", ms, NULL);
}

static void
connection_on_pid(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;
	struct server *server = c->server;
	int status = 0;

	(void)what;
	if (proc_reap(fd, &status) != 1)
		return;
	connection_log_end(c, status);
	connection_free(c);
	server_on_gone(server);
}

void
connection_free(struct connection *c)
{
	connection_cancel_all(c);
	forward_release(c);
	wire_release(&c->wire);
	list_remove(&c->node);
	limits_leave(&c->server->limits, &c->slot);
	if (c->pid_ev)
		event_free(c->pid_ev);
	if (c->timer)
		event_free(c->timer);
	if (c->pidfd >= 0)
		close(c->pidfd);
	access_grant_release(&c->grant);
	free(c);
}

/* Starts the child; *LINK_OUT is our end of the link to it. */
static int
connection_spawn(struct connection *c, int client_fd, int *link_out)
{
	const struct conf *conf = c->server->conf;
	struct host_keys *keys = c->server->host_keys;
	struct wire_settings s = {
		.version = FRAME_VERSION,
		.login_grace_ms = (uint32_t)conf->server.login_grace_ms,
		.keepalive_ms = (uint32_t)conf->server.keepalive_ms,
		.keepalive_count = (uint32_t)conf->server.keepalive_count,
		.max_channels = (uint32_t)conf->server.max_channels,
		.rekey_bytes = conf->server.rekey_bytes,
		.log_level = (uint8_t)conf->server.log_level,
		.log_json = conf->server.log_json,
		.host_keys = keys->pems,
	};
	int pair[2];
	int rc = fd_socketpair(pair, true);

	if (rc < 0)
		return rc;
	snprintf(s.conn_id, sizeof(s.conn_id), "%s", c->id);
	snprintf(s.remote_addr, sizeof(s.remote_addr), "%s", c->remote);
	rc = (int)spawn_connection(
	    c->server->sshd_path, client_fd, pair[1], &s, &c->pidfd);
	close(pair[1]);
	if (rc < 0) {
		close(pair[0]);
		return rc;
	}
	*link_out = pair[0];
	return 0;
}

/* From here on it is freed when its process is reaped. */
static void
connection_watch(struct connection *c)
{
	struct event_base *base = c->server->base;

	c->pid_ev = event_new(
	    base, c->pidfd, EV_READ | EV_PERSIST, connection_on_pid, c);
	c->timer = evtimer_new(base, connection_on_timer, c);
	if (!c->pid_ev || !c->timer)
		abort();
	event_add(c->pid_ev, NULL);
	list_append(&c->server->connections, &c->node);
}

int
connection_new(struct server *server, int client_fd, const struct sockaddr *sa,
    const struct limits_slot *slot)
{
	struct connection *c = xcalloc(1, sizeof(*c));
	int link_fd = -1, rc;

	list_init(&c->node);
	list_init(&c->requests);
	forward_init(c);
	c->server = server;
	c->pidfd = -1;
	c->phase = CONNECTION_LOGIN;
	c->started_ms = clock_mono_ms();
	text_random_id("con-", 4, c->id, sizeof(c->id));
	address_host(sa, c->address);
	address_text(sa, c->remote);
	address_ends(client_fd, sa, c->ends);
	rc = connection_spawn(c, client_fd, &link_fd);
	close(client_fd);
	if (rc < 0) {
		connection_free(c);
		return rc;
	}
	c->slot = *slot;
	wire_init(&c->wire, server->base, link_fd, &connection_handler, c);
	connection_watch(c);
	connection_arm(c, server->conf->server.login_grace_ms);
	log_debug("connection", "conn", c->id, "addr", c->remote, NULL);
	return 0;
}

/* What the connection knows of who it is bound to, and no grant has. */
static void
connection_complete(struct connection *c)
{
	struct principal *who = &c->grant.who;

	who->frame_version = c->wire.version;
	snprintf(
	    who->ssh_connection, sizeof(who->ssh_connection), "%s", c->ends);
}

void
connection_bind(struct connection *c, struct access_grant *grant)
{
	assert(c->phase == CONNECTION_LOGIN && !c->was_served);
	c->grant = *grant;
	connection_complete(c);
	*grant = (struct access_grant){ 0 };
	c->phase = CONNECTION_SERVE;
	c->was_served = true;
	evtimer_del(c->timer);
	limits_authenticated(&c->server->limits, &c->slot);
	server_on_slot_free(c->server);
}

void
connection_give_up(struct connection *c)
{
	connection_end(c);
}

void
connection_close(struct connection *c, const char *why)
{
	struct buf b = { 0 };

	if (c->phase == CONNECTION_ENDING)
		return;
	connection_cancel_all(c);
	buf_put_str(&b, why);
	wire_send_buf(&c->wire, FRAME_CLOSE, 0, 0, &b);
	buf_release(&b);
	connection_end(c);
}

void
connection_pause(struct connection *c, bool on)
{
	if (!c->wire.is_closing)
		wire_pause(&c->wire, on);
	forward_pause(c, on);
}

/* NULL and "" differ: no restriction, and one that nothing meets. */
static void
connection_save_list(const char *s, struct buf *b)
{
	buf_put_u8(b, s != NULL);
	buf_put_str(b, s);
}

static char *
connection_load_list(struct reader *r)
{
	bool is_there = reader_u8(r) == 1;
	char *s = reader_str(r, KEY_LINE_MAX);

	if (!is_there)
		free(take_ptr(s));
	return s;
}

static void
connection_save_grant(const struct access_grant *g, struct buf *b)
{
	principal_save(&g->who, b);
	buf_put_str(b, g->name.sandbox);
	buf_put_str(b, g->name.session);
	buf_put_u8(b, g->name.is_exec);
	buf_put_u8(b, g->may_forward);
	connection_save_list(g->permit_open, b);
	connection_save_list(g->permit_listen, b);
}

static void
connection_load_grant(struct reader *r, struct access_grant *out)
{
	principal_load(r, &out->who);
	reader_str_into(r, out->name.sandbox, sizeof(out->name.sandbox));
	reader_str_into(r, out->name.session, sizeof(out->name.session));
	out->name.is_exec = reader_u8(r) == 1;
	out->may_forward = reader_u8(r) == 1;
	out->permit_open = connection_load_list(r);
	out->permit_listen = connection_load_list(r);
}

void
connection_save(struct connection *c, struct handoff *h)
{
	struct buf *b = &h->sections[HANDOFF_SERVER];
	int64_t age_ms = clock_mono_ms() - c->started_ms;

	handoff_put_fd(h, HANDOFF_SERVER, c->pidfd);
	buf_put_u8(b, (uint8_t)c->phase);
	buf_put_u8(b, c->was_served);
	buf_put_str(b, c->id);
	buf_put_str(b, c->address);
	buf_put_str(b, c->remote);
	buf_put_str(b, c->ends);
	buf_put_u32(b, c->n_none);
	buf_put_u32(b, c->n_offered);
	buf_put_u32(b, c->n_tries);
	buf_put_u64(b, (uint64_t)age_ms);
	connection_save_grant(&c->grant, b);
	forward_save(c, h);
	handoff_put_wire(h, HANDOFF_SERVER, &c->wire);
}

/* What is left of the login grace, or of the time to go. */
static void
connection_rearm(struct connection *c, uint64_t age_ms)
{
	uint64_t grace_ms = c->server->conf->server.login_grace_ms;

	if (c->phase == CONNECTION_ENDING)
		connection_arm(c, CONNECTION_END_MS);
	else if (c->phase == CONNECTION_LOGIN)
		connection_arm(c, age_ms < grace_ms ? grace_ms - age_ms : 1);
}

void
connection_load(struct server *server, struct reader *r, uint32_t version)
{
	struct connection *c = xcalloc(1, sizeof(*c));
	uint64_t age_ms;

	list_init(&c->node);
	list_init(&c->requests);
	forward_init(c);
	c->server = server;
	c->pidfd = handoff_take_fd(r);
	c->phase = reader_u8(r);
	c->was_served = reader_u8(r) == 1;
	reader_str_into(r, c->id, sizeof(c->id));
	reader_str_into(r, c->address, sizeof(c->address));
	reader_str_into(r, c->remote, sizeof(c->remote));
	if (version >= 2)
		reader_str_into(r, c->ends, sizeof(c->ends));
	c->n_none = reader_u32(r);
	c->n_offered = reader_u32(r);
	c->n_tries = reader_u32(r);
	age_ms = reader_u64(r);
	connection_load_grant(r, &c->grant);
	forward_load(c, r);
	if (r->failed) {
		forward_release(c);
		access_grant_release(&c->grant);
		free(c);
		return;
	}
	c->started_ms = clock_mono_ms() - (int64_t)age_ms;
	limits_restore(&server->limits, c->address, &c->slot);
	if (c->was_served)
		limits_authenticated(&server->limits, &c->slot);
	connection_watch(c);
	connection_rearm(c, age_ms);
	/* Its link was over, or in the middle of something: so is it. */
	if (!handoff_take_wire(
		r, &c->wire, server->base, &connection_handler, c)) {
		connection_end(c);
		forward_stop(c);
		c->wire.is_closing = true;
		c->wire.link.fd = -1;
	}
	connection_complete(c);
}
