/*
 * Ports that a client offers in its sandbox (ssh -R); see forward.h. Runs in
 * berthd. A listener accepts only what berth-sshd can take; the rest waits in
 * the kernel's backlog.
 */
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "sandbox/provider.h"
#include "sessions/wire/handoff.h"
#include "sshd/listener/connection.h"
#include "sshd/listener/forward.h"
#include "sshd/listener/forward_internal.h"
#include "sshd/listener/forward_rule.h"
#include "sshd/listener/server.h"

#define FORWARD_ACCEPTS_PER_TURN 8
#define FORWARD_REST_MS          100

struct forward_listener {
	struct list node; /* of forward_book.listeners */
	struct connection *c;
	uint16_t tag;                /* of the request, while `call` */
	char address[WIRE_HOST_MAX]; /* as the client wrote it */
	uint16_t port;               /* bound; 0 until it is known */
	char what[FORWARD_WHAT_MAX];
	struct sandbox_call *call;
	char binds[FORWARD_BINDS_MAX][WIRE_HOST_MAX];
	size_t n_binds, next;
	int fds[FORWARD_BINDS_MAX];
	struct event *events[FORWARD_BINDS_MAX];
	size_t n_fds;
	uint64_t n_connections, bytes_in, bytes_out;
};

static void forward_bind_next(struct forward_listener *l);
static void forward_on_accept(evutil_socket_t fd, short what, void *arg);

uint16_t
forward_port(const struct sockaddr *sa)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (sa->sa_family == AF_INET6) {
		memcpy(&v6, sa, sizeof(v6));
		return ntohs(v6.sin6_port);
	}
	memcpy(&v4, sa, sizeof(v4));
	return ntohs(v4.sin_port);
}

static struct forward_listener *
forward_listener_new(struct connection *c, const char *address)
{
	struct forward_listener *l = xcalloc(1, sizeof(*l));

	list_init(&l->node);
	l->c = c;
	snprintf(l->address, sizeof(l->address), "%s", address);
	list_append(&c->forwards.listeners, &l->node);
	c->forwards.n_listeners++;
	return l;
}

static void
forward_listener_name(struct forward_listener *l, uint16_t port)
{
	char where[ENDPOINT_TEXT_MAX];

	endpoint_text(*l->address ? l->address : "*", port, where);
	snprintf(l->what, sizeof(l->what), "listen %s", where);
}

/* Without an answer and without a row. */
static void
forward_listener_free(struct forward_listener *l)
{
	if (l->call) {
		l->call->cancel(l->call);
		l->c->forwards.n_pending--;
	}
	for (size_t i = 0; i < l->n_fds; i++) {
		if (l->events[i])
			event_free(l->events[i]);
		close(l->fds[i]);
	}
	list_remove(&l->node);
	l->c->forwards.n_listeners--;
	free(l);
}

/* One that was granted ends, because of WHY unless it is NULL. */
static void
forward_listener_end(struct forward_listener *l, const char *why)
{
	if (l->port)
		forward_audit(l->c, "forward_end",
		    "%s: %llu connections, %llu bytes in, %llu out%s%s",
		    l->what, (unsigned long long)l->n_connections,
		    (unsigned long long)l->bytes_in,
		    (unsigned long long)l->bytes_out, why ? ": " : "",
		    why ? why : "");
	forward_listener_free(l);
}

/* ---- accepting ---------------------------------------------------------------- */

static void
forward_listen(struct forward_listener *l, bool on)
{
	for (size_t i = 0; i < l->n_fds; i++) {
		if (!l->events[i])
			continue;
		if (on)
			event_add(l->events[i], NULL);
		else
			event_del(l->events[i]);
	}
}

void
forward_pause(struct connection *c, bool on)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &c->forwards.listeners)
		forward_listen(
		    list_entry(pos, struct forward_listener, node), !on);
}

static void
forward_on_rested(evutil_socket_t fd, short what, void *arg)
{
	struct connection *c = arg;

	(void)fd;
	(void)what;
	if (!c->server->is_paused)
		forward_pause(c, false);
}

/* Accepts nothing for a moment: there is no room, or no descriptor. */
static void
forward_rest(struct connection *c)
{
	struct timeval tv = { 0, FORWARD_REST_MS * 1000 };

	forward_pause(c, true);
	if (!c->forwards.rest)
		c->forwards.rest =
		    evtimer_new(c->server->base, forward_on_rested, c);
	if (!c->forwards.rest)
		abort();
	evtimer_add(c->forwards.rest, &tv);
}

static void
forward_accepted(
    struct forward_listener *l, int fd, const struct sockaddr *from)
{
	struct connection *c = l->c;
	struct forward *f = forward_new(c, l->what);
	struct wire_forward m = { .id = f->id, .port = l->port };
	struct buf b = { 0 };
	char host[ADDRESS_TEXT_MAX];
	int one = 1;

	f->is_reverse = true;
	forward_hold(f, true);
	l->n_connections++;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	address_host(from, host);
	snprintf(m.host, sizeof(m.host), "%s", l->address);
	snprintf(m.origin, sizeof(m.origin), "%s", host);
	m.origin_port = forward_port(from);
	wire_forward_encode(&b, &m);
	wire_send_fd(
	    &c->wire, FRAME_FORWARDED, 0, 0, buf_head(&b), buf_len(&b), fd);
	buf_release(&b);
}

static void
forward_on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct forward_listener *l = arg;

	(void)what;
	for (int i = 0; i < FORWARD_ACCEPTS_PER_TURN; i++) {
		struct sockaddr_storage sa = { 0 };
		struct sockaddr *p = (struct sockaddr *)&sa;
		socklen_t len = sizeof(sa);
		int s;

		if (forward_is_full(l->c) ||
		    !link_has_fd_room(&l->c->wire.link)) {
			forward_rest(l->c);
			return;
		}
		s = accept4(fd, p, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (s < 0 && (errno == ECONNABORTED || errno == EINTR))
			continue;
		if (s < 0 && errno != EAGAIN)
			forward_rest(l->c);
		if (s < 0)
			return;
		forward_accepted(l, s, p);
	}
}

void
forward_listener_count(struct connection *c, const struct forward *f,
    const struct wire_forward_end *m)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &c->forwards.listeners) {
		struct forward_listener *l =
		    list_entry(pos, struct forward_listener, node);

		if (strcmp(l->what, f->what) != 0)
			continue;
		l->bytes_in += m->bytes_in;
		l->bytes_out += m->bytes_out;
	}
}

/* ---- beginning ---------------------------------------------------------------- */

static void
forward_listener_watch(struct forward_listener *l)
{
	for (size_t i = 0; i < l->n_fds; i++) {
		l->events[i] = event_new(l->c->server->base, l->fds[i],
		    EV_READ | EV_PERSIST, forward_on_accept, l);
		if (!l->events[i])
			abort();
	}
	if (!l->c->server->is_paused)
		forward_listen(l, true);
}

/* Every address was tried and at least one is bound. */
static void
forward_granted(struct forward_listener *l)
{
	struct buf b = { 0 };

	forward_listener_name(l, l->port);
	forward_listener_watch(l);
	buf_put_u32(&b, l->port);
	wire_send_buf(&l->c->wire, FRAME_LISTENING, 0, l->tag, &b);
	buf_release(&b);
	forward_audit(l->c, "forward", "%s", l->what);
}

/* A family that this network does not have. */
static bool
forward_is_absent(int rc)
{
	return rc == -EADDRNOTAVAIL || rc == -EAFNOSUPPORT ||
	       rc == -EPROTONOSUPPORT;
}

static void
forward_on_bound(int fd, const char *why, void *arg)
{
	struct forward_listener *l = arg;
	struct sockaddr_storage sa = { 0 };
	socklen_t len = sizeof(sa);
	bool is_last = l->next == l->n_binds;

	l->call = NULL;
	l->c->forwards.n_pending--;
	if (fd >= 0) {
		getsockname(fd, (struct sockaddr *)&sa, &len);
		l->port = forward_port((struct sockaddr *)&sa);
		l->fds[l->n_fds++] = fd;
	}
	/* The second family is welcome and not necessary. */
	if (!is_last && (fd >= 0 || forward_is_absent(fd))) {
		forward_bind_next(l);
	} else if (l->n_fds > 0) {
		forward_granted(l);
	} else {
		forward_refuse(l->c, l->tag, l->what, why,
		    fd == -EOPNOTSUPP ? MANAGER_REFUSED : MANAGER_FAILED);
		forward_listener_free(l);
	}
}

static void
forward_bind_next(struct forward_listener *l)
{
	struct sandbox_socket s = {
		.base = l->c->server->base,
		.host = l->binds[l->next++],
		.port = l->port,
	};

	l->call = manager_listen(l->c->server->manager, &l->c->grant.who,
	    l->c->grant.name.sandbox, &s, forward_on_bound, l);
	l->c->forwards.n_pending++;
}

static struct forward_listener *
forward_listener_find(struct connection *c, const struct wire_listen *m)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &c->forwards.listeners) {
		struct forward_listener *l =
		    list_entry(pos, struct forward_listener, node);

		if (l->port == m->port && !l->call &&
		    strcmp(l->address, m->address) == 0)
			return l;
	}
	return NULL;
}

static void
forward_begin_listen(struct connection *c, uint16_t tag,
    const struct wire_listen *m, const char *const *binds, size_t n)
{
	struct forward_listener *l = forward_listener_new(c, m->address);

	l->tag = tag;
	l->port = m->port;
	forward_listener_name(l, m->port);
	for (l->n_binds = 0; l->n_binds < n; l->n_binds++)
		snprintf(l->binds[l->n_binds], sizeof(*l->binds), "%s",
		    binds[l->n_binds]);
	forward_bind_next(l);
}

int
forward_on_listen(struct connection *c, const struct frame *f)
{
	const char *binds[FORWARD_BINDS_MAX], *why;
	char where[ENDPOINT_TEXT_MAX], what[FORWARD_WHAT_MAX];
	struct wire_listen m;
	size_t n = 0;
	int rc = wire_listen_decode(f->data, f->len, &m);

	if (rc < 0)
		return rc;
	why = forward_rule_listen(
	    &c->grant, c->server->conf, m.address, m.port, binds, &n);
	if (!why && c->forwards.n_listeners >= FORWARD_LISTENERS_MAX)
		why = "too many listeners";
	if (!why && m.port && forward_listener_find(c, &m))
		why = "it is forwarded already";
	if (!why) {
		forward_begin_listen(c, f->tag, &m, binds, n);
		return 0;
	}
	endpoint_text(*m.address ? m.address : "*", m.port, where);
	snprintf(what, sizeof(what), "listen %s", where);
	forward_refuse(c, f->tag, what, why, MANAGER_REFUSED);
	return 0;
}

int
forward_on_unlisten(struct connection *c, const struct frame *f)
{
	struct forward_listener *l;
	struct wire_listen m;
	int rc = wire_listen_decode(f->data, f->len, &m);

	if (rc < 0)
		return rc;
	l = forward_listener_find(c, &m);
	if (!l) {
		wire_reply_error(&c->wire, f->tag, MANAGER_NOT_FOUND,
		    "there is no such listener");
		return 0;
	}
	forward_listener_end(l, NULL);
	wire_reply_ok(&c->wire, f->tag);
	return 0;
}

/* ---- all of them --------------------------------------------------------------- */

void
forward_listeners_fail(struct connection *c, const char *why)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &c->forwards.listeners) {
		struct forward_listener *l =
		    list_entry(pos, struct forward_listener, node);

		if (!l->call)
			continue;
		forward_refuse(c, l->tag, l->what, why, MANAGER_FAILED);
		forward_listener_free(l);
	}
}

void
forward_unlisten_all(struct connection *c, const char *why)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &c->forwards.listeners) {
		struct forward_listener *l =
		    list_entry(pos, struct forward_listener, node);

		if (!l->call)
			forward_listener_end(l, why);
	}
}

void
forward_listeners_close(struct connection *c)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &c->forwards.listeners) {
		struct forward_listener *l =
		    list_entry(pos, struct forward_listener, node);

		if (l->call)
			forward_listener_free(l);
	}
	forward_unlisten_all(c, NULL);
}

void
forward_listeners_save(struct connection *c, struct handoff *h)
{
	struct buf *b = &h->sections[HANDOFF_SERVER];
	struct list *pos, *tmp;

	buf_put_u32(b, c->forwards.n_listeners);
	list_for_each (pos, tmp, &c->forwards.listeners) {
		struct forward_listener *l =
		    list_entry(pos, struct forward_listener, node);

		buf_put_str(b, l->address);
		buf_put_u32(b, l->port);
		buf_put_u64(b, l->n_connections);
		buf_put_u64(b, l->bytes_in);
		buf_put_u64(b, l->bytes_out);
		buf_put_u32(b, (uint32_t)l->n_fds);
		for (size_t i = 0; i < l->n_fds; i++)
			handoff_put_fd(h, HANDOFF_SERVER, l->fds[i]);
	}
}

static void
forward_listener_load(struct connection *c, struct reader *r)
{
	char address[WIRE_HOST_MAX];
	struct forward_listener *l;
	uint32_t n;

	reader_str_into(r, address, sizeof(address));
	l = forward_listener_new(c, address);
	l->port = (uint16_t)reader_u32(r);
	l->n_connections = reader_u64(r);
	l->bytes_in = reader_u64(r);
	l->bytes_out = reader_u64(r);
	n = reader_u32(r);
	for (uint32_t i = 0; i < n && !r->failed; i++) {
		int fd = handoff_take_fd(r);

		if (fd < 0 || l->n_fds == FORWARD_BINDS_MAX)
			r->failed = true;
		else
			l->fds[l->n_fds++] = fd;
	}
	forward_listener_name(l, l->port);
	forward_listener_watch(l);
}

void
forward_listeners_load(struct connection *c, struct reader *r)
{
	uint32_t n = reader_u32(r);

	for (uint32_t i = 0; i < n && !r->failed; i++)
		forward_listener_load(c, r);
}
