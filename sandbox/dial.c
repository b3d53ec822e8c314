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
	struct sockaddr_storage to[RESOLVE_ADDRESSES_MAX];
	size_t n_to, next;
	int fd;              /* connecting, or the result */
	struct event *ev;    /* of the fd */
	struct event *timer; /* the deadline, or the end from the loop */
	int rc;              /* why the last address failed */
	char why[160];
};

static void
dial_free(struct dial *d)
{
	resolve_cancel(d->resolve);
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

/* A socket that the kernel takes for one of AS. */
static int
dial_socket(const struct resolve_as *as, int family)
{
	int fd, rc;

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
	int fd = dial_socket(&d->as, sa->ss_family);

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

/* At the deadline, or at once when there is nothing to look up. */
static void
dial_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct dial *d = arg;
	struct timeval limit = { SANDBOX_CALL_MS / 1000,
		SANDBOX_CALL_MS % 1000 * 1000 };

	(void)fd;
	(void)what;
	if (d->next == 0 && !d->resolve) {
		evtimer_add(d->timer, &limit);
		dial_try(d);
		return;
	}
	dial_fail(d, -ETIMEDOUT, strerrordesc_np(ETIMEDOUT));
	dial_end(d);
}

static struct dial *
dial_new(const struct sandbox_socket *s, const struct resolve_as *as,
    sandbox_socket_fn fn, void *arg, event_callback_fn on_timer)
{
	struct dial *d = xcalloc(1, sizeof(*d));

	d->call.cancel = dial_cancel;
	d->base = s->base;
	snprintf(d->host, sizeof(d->host), "%s", s->host);
	d->port = s->port;
	d->as = *as;
	d->fn = fn;
	d->arg = arg;
	d->fd = -1;
	d->timer = evtimer_new(s->base, on_timer, d);
	if (!d->timer)
		abort();
	return d;
}

struct sandbox_call *
dial_connect(const struct sandbox_socket *s, const struct resolve_as *as,
    sandbox_socket_fn fn, void *arg)
{
	struct dial *d = dial_new(s, as, fn, arg, dial_on_timer);
	struct timeval wait = { 0, 0 };

	if (strcasecmp(s->host, "localhost") == 0) {
		dial_parse("127.0.0.1", &d->to[0]);
		dial_parse("::1", &d->to[1]);
		d->n_to = 2;
	} else if (dial_parse(s->host, &d->to[0])) {
		d->n_to = 1;
	} else {
		d->resolve =
		    resolve_start(s->base, s->host, as, dial_on_resolved, d);
		wait.tv_sec = SANDBOX_CALL_MS / 1000;
	}
	evtimer_add(d->timer, &wait);
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
	int fd = dial_socket(&d->as, sa->ss_family);
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
dial_on_listen(evutil_socket_t fd, short what, void *arg)
{
	struct dial *d = arg;
	struct sockaddr_storage sa;
	int rc;

	(void)fd;
	(void)what;
	if (d->port && d->as.uid != 0 && d->port < dial_first_port())
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
	struct dial *d = dial_new(s, as, fn, arg, dial_on_listen);
	struct timeval now = { 0, 0 };

	evtimer_add(d->timer, &now);
	return &d->call;
}
