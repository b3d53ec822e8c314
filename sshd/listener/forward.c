/*
 * Forwards of a connection; see forward.h. Runs in berthd. What may be asked is
 * in forward_rule.c, listeners are in forward_listener.c.
 */
#include "sshd/listener/forward.h"

#include <errno.h>
#include <event2/event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/endpoint.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "sandbox/provider.h"
#include "sessions/manager/manager.h"
#include "sessions/wire/handoff.h"
#include "sshd/listener/connection.h"
#include "sshd/listener/forward_internal.h"
#include "sshd/listener/forward_rule.h"
#include "sshd/listener/server.h"
#include "store/store.h"

/* Refusals that the audit trail keeps of one connection. */
#define FORWARD_REFUSED_MAX 100

void
forward_init(struct connection *c)
{
	list_init(&c->forwards.open);
	list_init(&c->forwards.listeners);
}

void
forward_audit(struct connection *c, const char *event, const char *fmt, ...)
{
	char detail[FORWARD_DETAIL_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);
	log_debug(event, "conn", c->id, "detail", detail, NULL);
	store_audit(c->server->store, event, c->grant.who.identity, c->remote,
	    c->grant.name.sandbox, NULL, detail);
}

void
forward_refuse(struct connection *c, uint16_t tag, const char *what,
    const char *why, enum manager_code code)
{
	const char *event =
	    code == MANAGER_REFUSED ? "forward_refused" : "forward_failed";

	wire_reply_error(&c->wire, tag, (uint8_t)code, why);
	if (c->forwards.n_refused++ >= FORWARD_REFUSED_MAX)
		return;
	log_info(event, "conn", c->id, "identity", c->grant.who.identity,
	    "what", what, "why", why, NULL);
	forward_audit(c, event, "%s: %s%s", what, why,
	    c->forwards.n_refused == FORWARD_REFUSED_MAX
		? "; what follows on this connection is not listed"
		: "");
}

/* ---- one connection ------------------------------------------------------------ */

struct forward *
forward_new(struct connection *c, const char *what)
{
	struct forward *f = xcalloc(1, sizeof(*f));

	list_init(&f->node);
	f->c = c;
	f->id = ++c->forwards.last_id;
	snprintf(f->what, sizeof(f->what), "%s", what);
	list_append(&c->forwards.open, &f->node);
	c->forwards.n_open++;
	return f;
}

void
forward_free(struct forward *f)
{
	if (f->call) {
		f->call->cancel(f->call);
		f->c->forwards.n_pending--;
	}
	if (f->is_held)
		manager_sandbox_release(
		    f->c->server->manager, f->c->grant.name.sandbox);
	f->c->forwards.n_open--;
	list_remove(&f->node);
	free(f);
}

void
forward_hold(struct forward *f, bool is_new)
{
	f->is_held = true;
	manager_sandbox_hold(
	    f->c->server->manager, f->c->grant.name.sandbox, is_new);
}

bool
forward_is_full(const struct connection *c)
{
	return c->forwards.n_open >= c->server->conf->server.max_channels;
}

/* Why the socket FD, which is connected, may not be used, or NULL. */
static const char *
forward_check_peer(const struct connection *c, int fd)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t len = sizeof(sa);
	char host[ADDRESS_TEXT_MAX];

	if (getpeername(fd, (struct sockaddr *)&sa, &len) < 0)
		return "the connection is gone";
	/* A relay in the sandbox: what was asked for by name is all there is. */
	if (sa.ss_family == AF_UNIX)
		return NULL;
	address_host((struct sockaddr *)&sa, host);
	return forward_rule_reached(
	    c->server->conf, host, forward_port((struct sockaddr *)&sa));
}

static void
forward_hand_over(struct forward *f, int fd)
{
	struct connection *c = f->c;
	struct buf b = { 0 };

	buf_put_u32(&b, f->id);
	wire_send_fd(
	    &c->wire, FRAME_SOCKET, 0, f->tag, buf_head(&b), buf_len(&b), fd);
	buf_release(&b);
	forward_audit(c, "forward", "%s", f->what);
	forward_hold(f, true);
}

static void
forward_on_dialled(int fd, const char *why, void *arg)
{
	struct forward *f = arg;
	struct connection *c = f->c;
	const char *no = fd < 0 ? NULL : forward_check_peer(c, fd);
	char text[256];

	f->call = NULL;
	c->forwards.n_pending--;
	if (fd >= 0 && !no && link_has_fd_room(&c->wire.link)) {
		forward_hand_over(f, fd);
		return;
	}
	if (fd >= 0)
		close(fd);
	if (fd == -EOPNOTSUPP)
		no = why;
	snprintf(text, sizeof(text), "connect failed: %s",
	    fd < 0 ? why : "too much is under way");
	forward_refuse(c, f->tag, f->what, no ? no : text,
	    no ? MANAGER_REFUSED : MANAGER_FAILED);
	forward_free(f);
}

static void
forward_dial(struct connection *c, uint16_t tag, const struct wire_forward *m,
    const char *what)
{
	struct sandbox_socket s = {
		.base = c->server->base,
		.host = m->host,
		.port = m->port,
	};
	struct forward *f = forward_new(c, what);

	f->tag = tag;
	f->call = manager_dial(c->server->manager, &c->grant.who,
	    c->grant.name.sandbox, &s, forward_on_dialled, f);
	c->forwards.n_pending++;
}

int
forward_on_forward(struct connection *c, const struct frame *f)
{
	struct wire_forward m;
	char where[ENDPOINT_TEXT_MAX], what[FORWARD_WHAT_MAX];
	const char *why;
	int rc = wire_forward_decode(f->data, f->len, &m);

	if (rc < 0)
		return rc;
	endpoint_text(m.host, m.port, where);
	snprintf(what, sizeof(what), "to %s", where);
	why = forward_rule_open(&c->grant, c->server->conf, m.host, m.port);
	if (!why && forward_is_full(c))
		why = "too many forwarded connections";
	if (why)
		forward_refuse(c, f->tag, what, why, MANAGER_REFUSED);
	else
		forward_dial(c, f->tag, &m, what);
	return 0;
}

static struct forward *
forward_find(struct connection *c, uint32_t id)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &c->forwards.open) {
		struct forward *f = list_entry(pos, struct forward, node);

		if (f->id == id && !f->call)
			return f;
	}
	return NULL;
}

int
forward_on_end(struct connection *c, const struct frame *f)
{
	struct wire_forward_end m;
	struct forward *fw;
	int rc = wire_forward_end_decode(f->data, f->len, &m);

	if (rc < 0)
		return rc;
	fw = forward_find(c, m.id);
	if (!fw)
		return -EPROTO;
	/* Of listeners a sum is kept: whoever connects must not fill the store. */
	if (fw->is_reverse)
		forward_listener_count(c, fw, &m);
	else
		forward_audit(c, "forward_end", "%s: %llu bytes in, %llu out",
		    fw->what, (unsigned long long)m.bytes_in,
		    (unsigned long long)m.bytes_out);
	forward_free(fw);
	return 0;
}

/* ---- all of them --------------------------------------------------------------- */

void
forward_fail_pending(struct connection *c, const char *why)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &c->forwards.open) {
		struct forward *f = list_entry(pos, struct forward, node);

		if (!f->call)
			continue;
		forward_refuse(c, f->tag, f->what, why, MANAGER_FAILED);
		forward_free(f);
	}
	forward_listeners_fail(c, why);
}

void
forward_stop(struct connection *c)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &c->forwards.open) {
		struct forward *f = list_entry(pos, struct forward, node);

		if (f->call)
			forward_free(f);
	}
	forward_listeners_close(c);
	if (c->forwards.rest)
		event_free(take_ptr(c->forwards.rest));
}

void
forward_release(struct connection *c)
{
	struct list *pos, *tmp;

	forward_stop(c);
	list_for_each (pos, tmp, &c->forwards.open) {
		struct forward *f = list_entry(pos, struct forward, node);

		/* berth-sshd ended before it could tell. */
		if (!f->is_reverse && c->was_served && !c->server->is_stopping)
			forward_audit(
			    c, "forward_end", "%s: bytes unknown", f->what);
		forward_free(f);
	}
}

void
forward_save(struct connection *c, struct handoff *h)
{
	struct buf *b = &h->sections[HANDOFF_SERVER];
	struct list *pos, *tmp;

	buf_put_u32(b, c->forwards.last_id);
	buf_put_u32(b, c->forwards.n_refused);
	buf_put_u32(b, c->forwards.n_open);
	list_for_each (pos, tmp, &c->forwards.open) {
		struct forward *f = list_entry(pos, struct forward, node);

		buf_put_u32(b, f->id);
		buf_put_u8(b, f->is_reverse);
		buf_put_str(b, f->what);
	}
	forward_listeners_save(c, h);
}

void
forward_load(struct connection *c, struct reader *r)
{
	uint32_t last = reader_u32(r), n;

	c->forwards.n_refused = reader_u32(r);
	n = reader_u32(r);
	for (uint32_t i = 0; i < n && !r->failed; i++) {
		uint32_t id = reader_u32(r);
		bool is_reverse = reader_u8(r) == 1;
		char what[FORWARD_WHAT_MAX];
		struct forward *f;

		reader_str_into(r, what, sizeof(what));
		if (r->failed)
			break;
		f = forward_new(c, what);
		f->id = id;
		f->is_reverse = is_reverse;
		forward_hold(f, false);
	}
	c->forwards.last_id = last;
	forward_listeners_load(c, r);
}
