/*
 * Sockets for forwarded ports; see dial.h. Runs in berthd. A call has one timer
 * and ends exactly once: by its function from the loop, or by its cancel.
 */
#include "sandbox/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/endpoint.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "sandbox/relay.h"

#define DIAL_BACKLOG      128
#define DIAL_UNPRIVILEGED 1024 /* where the kernel does not say it */
#define DIAL_PORT_START   "/proc/sys/net/ipv4/ip_unprivileged_port_start"

struct dial {
	struct sandbox_call call;
	struct event_base *base;
	char host[ENDPOINT_HOST_MAX];
	uint16_t port;
	struct resolve_as as;
	sandbox_socket_fn fn;
	void *arg;
	struct resolve *resolve; /* while the name is looked up */
	struct inside *inside;   /* while sockets are fetched */
	struct inside_place place;
	bool is_inside, has_begun;
	int sockets[2]; /* fetched, of IPv4 and IPv6, or -1 */
	struct sockaddr_storage to[RESOLVE_ADDRESSES_MAX];
	size_t n_to, next;
	int fd;              /* connecting, or the result */
	struct event *ev;    /* of the fd */
	struct event *timer; /* the deadline, or the end from the loop */
	void (*go_on)(struct dial *d); /* when there may be sockets */
	int rc;                        /* why the last address failed */
	char why[160];
};

static void
dial_free(struct dial *d)
{
	resolve_cancel(d->resolve);
	inside_cancel(d->inside);
	if (d->place.pidfd >= 0)
		close(d->place.pidfd);
	for (size_t i = 0; i < ARRAY_LEN(d->sockets); i++) {
		if (d->sockets[i] >= 0)
			close(d->sockets[i]);
	}
	if (d->ev)
		event_free(d->ev);
	event_free(d->timer);
	if (d->fd >= 0)
		close(d->fd);
	free(d);
}

static void
dial_cancel(struct sandbox_call *call)
{
	dial_free(container_of(call, struct dial, call));
}

/* The end: D->fd is the socket, or D->rc and D->why say what failed. */
static void
dial_end(struct dial *d)
{
	int fd = d->rc < 0 ? d->rc : take_fd(&d->fd);

	d->fn(fd, d->why, d->arg);
	dial_free(d);
}

static void
dial_fail(struct dial *d, int rc, const char *why)
{
	d->rc = rc;
	snprintf(d->why, sizeof(d->why), "%s", why);
}

/* ---- sockets ------------------------------------------------------------------ */

/* A socket that the kernel takes for one of D->as. */
static int
dial_socket(struct dial *d, int family)
{
	const struct resolve_as *as = &d->as;
	int fd, rc;

	if (d->is_inside) {
		fd = take_fd(&d->sockets[family == AF_INET6]);
		return fd < 0 ? -EAFNOSUPPORT : fd;
	}
	if (as->must_become) {
		setfsgid(as->gid);
		setfsuid(as->uid);
	}
	fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	rc = errno;
	if (as->must_become) {
		setfsuid(geteuid());
		setfsgid(getegid());
	}
	return fd < 0 ? -rc : fd;
}

static socklen_t
dial_length(const struct sockaddr_storage *sa)
{
	return sa->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					 : sizeof(struct sockaddr_in);
}

static void
dial_set_port(struct sockaddr_storage *sa, uint16_t port)
{
	if (sa->ss_family == AF_INET6)
		((struct sockaddr_in6 *)sa)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)sa)->sin_port = htons(port);
}

/* The numeric address TEXT; false if it is a name. */
static bool
dial_parse(const char *text, struct sockaddr_storage *out)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	*out = (struct sockaddr_storage){ 0 };
	out->ss_family = AF_INET;
	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1)
		return true;
	out->ss_family = AF_INET6;
	return inet_pton(AF_INET6, text, &v6->sin6_addr) == 1;
}

/* ---- connecting ------------------------------------------------------------------ */

static void dial_try(struct dial *d);

static void
dial_on_connected(evutil_socket_t fd, short what, void *arg)
{
	struct dial *d = arg;
	int error = 0;
	socklen_t len = sizeof(error);

	(void)what;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	event_free(take_ptr(d->ev));
	if (error == 0) {
		d->rc = 0;
		dial_end(d);
		return;
	}
	dial_fail(d, -error, strerrordesc_np(error));
	close(take_fd(&d->fd));
	dial_try(d);
}

/* Begins to connect to SA; false, and D->rc, if that failed at once. */
static bool
dial_begin(struct dial *d, struct sockaddr_storage *sa)
{
	int one = 1;
	int fd = dial_socket(d, sa->ss_family);

	if (fd < 0) {
		dial_fail(d, fd, strerrordesc_np(-fd));
		return false;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	dial_set_port(sa, d->port);
	if (connect(fd, (struct sockaddr *)sa, dial_length(sa)) < 0 &&
	    errno != EINPROGRESS) {
		dial_fail(d, -errno, strerrordesc_np(errno));
		close(fd);
		return false;
	}
	d->fd = fd;
	d->ev = event_new(d->base, fd, EV_WRITE, dial_on_connected, d);
	if (!d->ev)
		abort();
	event_add(d->ev, NULL);
	return true;
}

/* The next address; the end when there is none. */
static void
dial_try(struct dial *d)
{
	while (d->next < d->n_to) {
		if (dial_begin(d, &d->to[d->next++]))
			return;
	}
	dial_end(d);
}

static void
dial_on_resolved(
    const struct sockaddr_storage *sa, size_t n, const char *why, void *arg)
{
	struct dial *d = arg;

	/* It frees itself behind this call. */
	d->resolve = NULL;
	memcpy(d->to, sa, n * sizeof(*sa));
	d->n_to = n;
	dial_fail(d, -ENOENT, why);
	dial_try(d);
}

static void
dial_on_fetched(int v4_fd, int v6_fd, const char *why, void *arg)
{
	struct dial *d = arg;

	/* It frees itself behind this call. */
	d->inside = NULL;
	d->sockets[0] = v4_fd;
	d->sockets[1] = v6_fd;
	if (v4_fd < 0 && v6_fd < 0) {
		dial_fail(d, -EIO, why);
		dial_end(d);
		return;
	}
	d->go_on(d);
}

static void
dial_look_up(struct dial *d)
{
	d->resolve =
	    resolve_start(d->base, d->host, &d->as, dial_on_resolved, d);
}

/* At the deadline, or at once when there is nothing to look up. */
static void
dial_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct dial *d = arg;
	struct timeval limit = { SANDBOX_CALL_MS / 1000,
		SANDBOX_CALL_MS % 1000 * 1000 };

	(void)fd;
	(void)what;
	if (d->has_begun) {
		dial_fail(d, -ETIMEDOUT, strerrordesc_np(ETIMEDOUT));
		dial_end(d);
		return;
	}
	d->has_begun = true;
	evtimer_add(d->timer, &limit);
	if (!d->is_inside) {
		d->go_on(d);
		return;
	}
	d->inside = inside_start(d->base, &d->place, dial_on_fetched, d);
	d->place.pidfd = -1;
}

static struct dial *
dial_new(const struct sandbox_socket *s, const struct resolve_as *as,
    sandbox_socket_fn fn, void *arg, void (*go_on)(struct dial *d))
{
	struct timeval now = { 0, 0 };
	struct dial *d = xcalloc(1, sizeof(*d));

	d->call.cancel = dial_cancel;
	d->base = s->base;
	snprintf(d->host, sizeof(d->host), "%s", s->host);
	d->port = s->port;
	d->as = *as;
	d->fn = fn;
	d->arg = arg;
	d->fd = d->place.pidfd = d->sockets[0] = d->sockets[1] = -1;
	d->go_on = go_on;
	d->timer = evtimer_new(s->base, dial_on_timer, d);
	if (!d->timer)
		abort();
	evtimer_add(d->timer, &now);
	return d;
}

static void
dial_set_place(struct dial *d, const struct inside_place *p)
{
	d->is_inside = true;
	d->place = *p;
}

/* The addresses of TEXT that need no looking up; false if it is a name. */
static bool
dial_addresses(struct dial *d, const char *text)
{
	if (strcasecmp(text, "localhost") == 0) {
		dial_parse("127.0.0.1", &d->to[0]);
		dial_parse("::1", &d->to[1]);
		d->n_to = 2;
	} else if (dial_parse(text, &d->to[0])) {
		d->n_to = 1;
	}
	return d->n_to > 0;
}

/* What is left when there is nothing to try: the sentence of D. */
static void
dial_give_up(struct dial *d)
{
	dial_end(d);
}

struct sandbox_call *
dial_fail_later(const struct sandbox_socket *s, int rc, const char *why,
    sandbox_socket_fn fn, void *arg)
{
	const struct resolve_as nobody = { .must_become = 0 };
	struct dial *d = dial_new(s, &nobody, fn, arg, dial_give_up);

	dial_fail(d, rc, why);
	return &d->call;
}

struct sandbox_call *
dial_connect(const struct sandbox_socket *s, const struct resolve_as *as,
    sandbox_socket_fn fn, void *arg)
{
	struct dial *d = dial_new(s, as, fn, arg, dial_try);

	if (!dial_addresses(d, s->host))
		d->go_on = dial_look_up;
	return &d->call;
}

struct sandbox_call *
dial_connect_inside(const struct sandbox_socket *s, const struct resolve_as *as,
    const struct inside_place *p, sandbox_socket_fn fn, void *arg)
{
	struct dial *d = dial_new(s, as, fn, arg, dial_try);

	dial_set_place(d, p);
	if (!dial_addresses(d, s->host)) {
		/* What its files call a host must not load its libraries. */
		dial_fail(d, -ENOENT,
		    "in the network of a sandbox only localhost is a name");
		d->is_inside = false;
		d->go_on = dial_give_up;
	}
	return &d->call;
}

/* ---- listening -------------------------------------------------------------------- */

/* The first port that needs no privilege. */
static uint64_t
dial_first_port(void)
{
	uint64_t port = DIAL_UNPRIVILEGED;
	struct buf b = { 0 };

	if (fd_read_file(DIAL_PORT_START, 64, &b, NULL) == 0) {
		autofree char *text =
		    xstrndup((const char *)buf_head(&b), buf_len(&b));

		text[strcspn(text, "\n")] = '\0';
		text_parse_u64(text, 0, UINT16_MAX, &port);
	}
	buf_release(&b);
	return port;
}

static int
dial_bind(struct dial *d, struct sockaddr_storage *sa)
{
	int fd = dial_socket(d, sa->ss_family);
	int one = 1;

	if (fd < 0)
		return fd;
	d->fd = fd;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (sa->ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	dial_set_port(sa, d->port);
	if (bind(fd, (struct sockaddr *)sa, dial_length(sa)) < 0 ||
	    listen(fd, DIAL_BACKLOG) < 0)
		return -errno;
	return 0;
}

static void
dial_start_listening(struct dial *d)
{
	struct sockaddr_storage sa;
	uint64_t first = d->is_inside ? DIAL_UNPRIVILEGED : dial_first_port();
	int rc;

	if (d->port && d->as.uid != 0 && d->port < first)
		rc = -EACCES;
	else if (!dial_parse(d->host, &sa))
		rc = -EADDRNOTAVAIL;
	else
		rc = dial_bind(d, &sa);
	if (rc < 0)
		dial_fail(d, rc, strerrordesc_np(-rc));
	dial_end(d);
}

struct sandbox_call *
dial_listen(const struct sandbox_socket *s, const struct resolve_as *as,
    sandbox_socket_fn fn, void *arg)
{
	return &dial_new(s, as, fn, arg, dial_start_listening)->call;
}

struct sandbox_call *
dial_listen_inside(const struct sandbox_socket *s, const struct resolve_as *as,
    const struct inside_place *p, sandbox_socket_fn fn, void *arg)
{
	struct dial *d = dial_new(s, as, fn, arg, dial_start_listening);

	dial_set_place(d, p);
	return &d->call;
}

/* ---- for providers ------------------------------------------------------------------ */

static struct resolve_as
dial_user(const struct sandbox_spec *s)
{
	return (struct resolve_as){ s->uid, s->gid, s->must_setuid };
}

static struct sandbox_call *
dial_connect_for(const struct sandbox_spec *spec,
    const struct sandbox_socket *s, sandbox_socket_fn fn, void *arg)
{
	struct resolve_as as = dial_user(spec);

	return dial_connect(s, &as, fn, arg);
}

static struct sandbox_call *
dial_connect_inside_for(const struct sandbox_spec *spec,
    const struct sandbox_socket *s, const struct inside_place *p,
    sandbox_socket_fn fn, void *arg)
{
	struct resolve_as as = dial_user(spec);

	return dial_connect_inside(s, &as, p, fn, arg);
}

static struct sandbox_call *
dial_listen_for(const struct sandbox_spec *spec, const struct sandbox_socket *s,
    sandbox_socket_fn fn, void *arg)
{
	struct resolve_as as = dial_user(spec);

	return dial_listen(s, &as, fn, arg);
}

static struct sandbox_call *
dial_listen_inside_for(const struct sandbox_spec *spec,
    const struct sandbox_socket *s, const struct inside_place *p,
    sandbox_socket_fn fn, void *arg)
{
	struct resolve_as as = dial_user(spec);

	return dial_listen_inside(s, &as, p, fn, arg);
}

void
dial_provide(void)
{
	static const struct dial_calls calls = {
		.connect = dial_connect_for,
		.listen = dial_listen_for,
		.connect_inside = dial_connect_inside_for,
		.listen_inside = dial_listen_inside_for,
		.relay = relay_start,
		.fail = dial_fail_later,
	};

	sandbox_dial = &calls;
}
