/* Accepting connections; see server.h. Runs in berthd. */
#include "sshd/listener/server.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "sessions/wire/handoff.h"
#include "sshd/listener/access.h"
#include "sshd/listener/address.h"
#include "sshd/listener/connection.h"

#define SERVER_ACCEPTS_PER_TURN 16
#define SERVER_REST_MS          100
#define SERVER_WAIT_TICK_MS     250

/*
 * A burst of honest logins from one address is served in turns; who sees none
 * of its kind get through for this long is turned away.
 */
#define SERVER_WAIT_MS 2000

/* Waiting sockets in all, and from one address per login it may have. */
#define SERVER_WAITING_MAX        128
#define SERVER_WAITING_PER_SOURCE 3

/* An accepted socket without a process, until its source has a login free. */
struct server_waiter {
	struct list node;
	int fd;
	struct sockaddr_storage sa;
	int64_t until_ms, last_ms; /* monotonic; the second never moves */
};

static struct limits_max
server_max(const struct conf *c)
{
	return (struct limits_max){
		.total = c->server.max_connections,
		.startups = c->server.max_startups,
		.per_source = c->server.max_per_source,
	};
}

bool
server_may_log(struct server *s)
{
	uint64_t dropped = 0;
	char number[24];

	if (!gate_pass(&s->gate, clock_mono_ms(), &dropped))
		return false;
	if (dropped) {
		snprintf(number, sizeof(number), "%llu",
		    (unsigned long long)dropped);
		log_info("held_back", "lines", number, NULL);
	}
	return true;
}

static void
server_timer(struct event *ev, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	evtimer_add(ev, &tv);
}

static void
server_listen(struct server *s, bool on)
{
	for (size_t i = 0; i < s->n_fds; i++) {
		if (on)
			event_add(s->events[i], NULL);
		else
			event_del(s->events[i]);
	}
}

/* Out of descriptors, processes or memory: better soon than badly now. */
static void
server_rest(struct server *s, int rc)
{
	if (server_may_log(s))
		log_warn("accept", "why", strerrordesc_np(-rc), NULL);
	server_listen(s, false);
	server_timer(s->rest_ev, SERVER_REST_MS);
}

static void
server_on_rested(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;

	(void)fd;
	(void)what;
	if (!s->is_stopping && !s->is_paused)
		server_listen(s, true);
}

/* A line before the identification string is allowed (RFC 4253 4.2). */
static void
server_turn_away(
    struct server *s, int fd, const struct sockaddr *sa, enum limits_verdict v)
{
	static const char line[] = "Too many connections; try again later\r\n";
	char text[ADDRESS_TEXT_MAX];

	address_text(sa, text);
	if (server_may_log(s))
		log_info("refused", "addr", text, "why", limits_verdict_name(v),
		    NULL);
	send(fd, line, sizeof(line) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	close(fd);
}

static bool
server_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	char x[ADDRESS_TEXT_MAX], y[ADDRESS_TEXT_MAX];

	address_host(a, x);
	address_host(b, y);
	return strcmp(x, y) == 0;
}

static uint64_t
server_count_waiting(struct server *s, const struct sockaddr *sa)
{
	struct list *pos, *tmp;
	uint64_t n = 0;

	list_for_each (pos, tmp, &s->waiting) {
		struct server_waiter *w =
		    list_entry(pos, struct server_waiter, node);

		if (server_same_host((struct sockaddr *)&w->sa, sa))
			n++;
	}
	return n;
}

/* Puts FD on the bench; false when it is full. */
static bool
server_wait(struct server *s, int fd, const struct sockaddr *sa, size_t sa_len)
{
	uint64_t max = s->limits.max.per_source * SERVER_WAITING_PER_SOURCE;
	struct server_waiter *w;

	if (s->n_waiting >= SERVER_WAITING_MAX ||
	    server_count_waiting(s, sa) >= max)
		return false;
	w = xcalloc(1, sizeof(*w));
	w->fd = fd;
	memcpy(&w->sa, sa, sa_len);
	w->until_ms = clock_mono_ms() + SERVER_WAIT_MS;
	w->last_ms = clock_mono_ms() + (int64_t)s->conf->server.login_grace_ms;
	list_append(&s->waiting, &w->node);
	s->n_waiting++;
	if (!evtimer_pending(s->wait_ev, NULL))
		server_timer(s->wait_ev, SERVER_WAIT_TICK_MS);
	return true;
}

static void
server_wait_end(struct server *s, struct server_waiter *w)
{
	list_remove(&w->node);
	s->n_waiting--;
	free(w);
}

/* Who hung up in the backlog or while waiting is not worth a process. */
static bool
server_is_gone(int fd)
{
	char c;
	ssize_t n = recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* Tries to let FD in; LIMITS_ADMIT when it is taken care of. */
static enum limits_verdict
server_admit(struct server *s, int fd, const struct sockaddr *sa)
{
	struct limits_slot slot = { 0 };
	enum limits_verdict v;
	uint32_t dice = 0;
	int rc;

	if (server_is_gone(fd)) {
		close(fd);
		return LIMITS_ADMIT;
	}
	if (getrandom(&dice, sizeof(dice), 0) != sizeof(dice))
		abort();
	v = limits_enter(&s->limits, sa, dice, &slot);
	if (v != LIMITS_ADMIT)
		return v;
	rc = connection_new(s, fd, sa, &slot);
	if (rc < 0) {
		limits_leave(&s->limits, &slot);
		server_rest(s, rc);
	}
	return LIMITS_ADMIT;
}

/* Others of the same host saw somebody get in: they may hope again. */
static void
server_wait_refresh(struct server *s, const struct sockaddr *sa)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &s->waiting) {
		struct server_waiter *w =
		    list_entry(pos, struct server_waiter, node);

		if (server_same_host((struct sockaddr *)&w->sa, sa))
			w->until_ms = clock_mono_ms() + SERVER_WAIT_MS;
	}
}

void
server_on_slot_free(struct server *s)
{
	struct list *pos, *tmp;

	if (s->is_stopping || s->is_paused)
		return;
	list_for_each (pos, tmp, &s->waiting) {
		struct server_waiter *w =
		    list_entry(pos, struct server_waiter, node);
		struct sockaddr_storage sa = w->sa;

		if (server_admit(s, w->fd, (struct sockaddr *)&sa) !=
		    LIMITS_ADMIT)
			continue;
		server_wait_end(s, w);
		server_wait_refresh(s, (struct sockaddr *)&sa);
	}
}

static void
server_on_wait_tick(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;
	struct list *pos, *tmp;
	int64_t now = clock_mono_ms();

	(void)fd;
	(void)what;
	list_for_each (pos, tmp, &s->waiting) {
		struct server_waiter *w =
		    list_entry(pos, struct server_waiter, node);

		if (s->is_paused || (now < w->until_ms && now < w->last_ms))
			continue;
		server_turn_away(
		    s, w->fd, (struct sockaddr *)&w->sa, LIMITS_SOURCE);
		server_wait_end(s, w);
	}
	if (s->n_waiting)
		server_timer(s->wait_ev, SERVER_WAIT_TICK_MS);
}

static void
server_on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct server *s = arg;

	(void)what;
	/* At rest, who is not accepted keeps its place in the backlog. */
	for (int i = 0;
	     i < SERVER_ACCEPTS_PER_TURN && !evtimer_pending(s->rest_ev, NULL);
	     i++) {
		struct sockaddr_storage sa = { 0 };
		struct sockaddr *p = (struct sockaddr *)&sa;
		socklen_t len = sizeof(sa);
		int c = accept4(fd, p, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
		enum limits_verdict v;

		if (c < 0 && (errno == EMFILE || errno == ENFILE ||
				 errno == ENOMEM || errno == ENOBUFS)) {
			server_rest(s, -errno);
			return;
		}
		if (c < 0 && (errno == ECONNABORTED || errno == EINTR))
			continue;
		if (c < 0)
			return;
		v = server_admit(s, c, p);
		if (v == LIMITS_ADMIT ||
		    (v == LIMITS_SOURCE && server_wait(s, c, p, len)))
			continue;
		server_turn_away(s, c, p, v);
	}
}

int
server_bind(struct server *s, const struct conf *conf, struct err *e)
{
	autofree char *copy = xstrdup(conf->server.listen);
	char *next = copy, *spec;
	int rc = 0;

	while (rc == 0 && (spec = strsep(&next, ","))) {
		spec += strspn(spec, " \t");
		spec[strcspn(spec, " \t")] = '\0';
		if (*spec)
			rc = address_listen(
			    spec, s->fds, SERVER_LISTENERS_MAX, &s->n_fds, e);
	}
	if (rc == 0 && s->n_fds == 0)
		rc = err_set(e, -EINVAL, "server.listen names no address");
	return rc;
}

static void
server_bound(int fd, char out[ADDRESS_TEXT_MAX])
{
	struct sockaddr_storage sa = { 0 };
	socklen_t len = sizeof(sa);

	getsockname(fd, (struct sockaddr *)&sa, &len);
	address_text((struct sockaddr *)&sa, out);
}

char *
server_addresses(const struct server *s)
{
	char *all = xstrdup("");

	for (size_t i = 0; i < s->n_fds; i++) {
		autofree char *old = all;
		char text[ADDRESS_TEXT_MAX];

		server_bound(s->fds[i], text);
		all = xasprintf("%s%s%s", old, i ? "," : "", text);
	}
	return all;
}

int
server_load_listeners(struct server *s, const struct handoff *h)
{
	struct reader r = handoff_reader(h, HANDOFF_SERVER);

	s->n_fds = reader_u32(&r);
	if (s->n_fds > SERVER_LISTENERS_MAX)
		return -EPROTO;
	for (size_t i = 0; i < s->n_fds; i++)
		s->fds[i] = handoff_take_fd(&r);
	return r.failed ? -EPROTO : 0;
}

void
server_save(struct server *s, struct handoff *h)
{
	struct buf *b = &h->sections[HANDOFF_SERVER];
	struct list *pos, *tmp;
	uint32_t n = 0;

	buf_put_u32(b, (uint32_t)s->n_fds);
	for (size_t i = 0; i < s->n_fds; i++)
		handoff_put_fd(h, HANDOFF_SERVER, s->fds[i]);
	buf_put_u32(b, (uint32_t)s->n_waiting);
	list_for_each (pos, tmp, &s->waiting)
		handoff_put_fd(h, HANDOFF_SERVER,
		    list_entry(pos, struct server_waiter, node)->fd);
	list_for_each (pos, tmp, &s->connections)
		n++;
	buf_put_u32(b, n);
	list_for_each (pos, tmp, &s->connections)
		connection_save(list_entry(pos, struct connection, node), h);
}

/* Waits anew: it has been patient once already. */
static void
server_load_waiter(struct server *s, int fd)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t len = sizeof(sa);

	if (fd >= 0 && getpeername(fd, (struct sockaddr *)&sa, &len) == 0 &&
	    server_wait(s, fd, (struct sockaddr *)&sa, len))
		return;
	if (fd >= 0)
		close(fd);
}

static int
server_load(struct server *s, const struct handoff *h)
{
	struct reader r = handoff_reader(h, HANDOFF_SERVER);
	uint32_t n = reader_u32(&r);

	while (n-- > 0 && !r.failed)
		handoff_take_fd(&r); /* the listeners: taken before */
	n = reader_u32(&r);
	while (n-- > 0 && !r.failed)
		server_load_waiter(s, handoff_take_fd(&r));
	n = reader_u32(&r);
	while (n-- > 0 && !r.failed)
		connection_load(s, &r, h->version);
	/* A login may have ended while everything was at rest. */
	server_on_slot_free(s);
	return reader_done(&r) ? 0 : -EPROTO;
}

void
server_pause(struct server *s, bool on)
{
	struct list *pos, *tmp;

	if (on)
		evtimer_del(s->rest_ev);
	s->is_paused = on;
	server_listen(s, !on);
	list_for_each (pos, tmp, &s->connections)
		connection_pause(list_entry(pos, struct connection, node), on);
	server_on_slot_free(s);
}

bool
server_is_quiet(struct server *s)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &s->connections) {
		if (list_entry(pos, struct connection, node)
			->forwards.n_pending)
			return false;
	}
	return true;
}

void
server_fail_pending(struct server *s, const char *why)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &s->connections)
		forward_fail_pending(
		    list_entry(pos, struct connection, node), why);
}

static void
server_on_sandbox_end(const char *name, void *arg)
{
	struct server *s = arg;
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &s->connections) {
		struct connection *c = list_entry(pos, struct connection, node);

		if (strcmp(c->grant.name.sandbox, name) == 0)
			forward_unlisten_all(c, "its sandbox has ended");
	}
}

int
server_start(struct server *s, const struct handoff *h)
{
	struct limits_max max = server_max(s->conf);
	char text[ADDRESS_TEXT_MAX];

	list_init(&s->connections);
	list_init(&s->waiting);
	limits_init(&s->limits, &max);
	manager_on_sandbox_end(s->manager, server_on_sandbox_end, s);
	s->rest_ev = evtimer_new(s->base, server_on_rested, s);
	s->wait_ev = evtimer_new(s->base, server_on_wait_tick, s);
	if (!s->rest_ev || !s->wait_ev)
		abort();
	for (size_t i = 0; i < s->n_fds; i++) {
		s->events[i] = event_new(s->base, s->fds[i],
		    EV_READ | EV_PERSIST, server_on_accept, s);
		if (!s->events[i])
			abort();
		server_bound(s->fds[i], text);
		log_info("listen", "addr", text, NULL);
	}
	server_listen(s, true);
	return h ? server_load(s, h) : 0;
}

void
server_reconfigure(struct server *s, const struct conf *conf)
{
	struct limits_max max = server_max(conf);

	s->conf = conf;
	limits_set(&s->limits, &max);
}

static void
server_close_listeners(struct server *s)
{
	for (size_t i = 0; i < s->n_fds; i++) {
		if (s->events[i])
			event_free(s->events[i]);
		close(s->fds[i]);
	}
	s->n_fds = 0;
	while (s->base && s->n_waiting) {
		struct server_waiter *w =
		    list_entry(s->waiting.next, struct server_waiter, node);

		close(w->fd);
		server_wait_end(s, w);
	}
}

void
server_stop(struct server *s, const char *why)
{
	struct list *pos, *tmp;

	s->is_stopping = true;
	server_close_listeners(s);
	list_for_each (pos, tmp, &s->connections)
		connection_close(list_entry(pos, struct connection, node), why);
	if (list_empty(&s->connections))
		s->on_empty(s->arg);
}

void
server_kill_all(struct server *s)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &s->connections)
		connection_kill(list_entry(pos, struct connection, node));
}

void
server_on_gone(struct server *s)
{
	server_on_slot_free(s);
	if (s->is_stopping && list_empty(&s->connections))
		s->on_empty(s->arg);
}

void
server_release(struct server *s)
{
	struct list *pos, *tmp;

	server_close_listeners(s);
	if (!s->rest_ev)
		return;
	manager_on_sandbox_end(s->manager, NULL, NULL);
	list_for_each (pos, tmp, &s->connections) {
		connection_kill(list_entry(pos, struct connection, node));
		connection_free(list_entry(pos, struct connection, node));
	}
	event_free(s->rest_ev);
	event_free(s->wait_ev);
	limits_release(&s->limits);
}
