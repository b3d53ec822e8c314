/*
 * Sockets in the network of a sandbox, for forwarded ports: first the sandbox,
 * then its provider's call. Runs in berthd. A call is in exactly one of the two
 * stages, and ends once: by its function from the loop, or by its cancel.
 */
#include <errno.h>
#include <stdio.h>

#include "base/endpoint.h"
#include "base/err.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "sessions/manager/session.h"

struct manager_call {
	struct sandbox_call call;
	struct manager *m;
	struct request *r;          /* waits for the sandbox, or NULL */
	struct sandbox_call *inner; /* of the provider, or NULL */
	struct sandbox_socket to;
	char name[SANDBOX_NAME_SIZE], host[ENDPOINT_HOST_MAX];
	bool is_listener;
	sandbox_socket_fn fn;
	void *arg;
};

static void
socket_cancel(struct sandbox_call *call)
{
	struct manager_call *c = container_of(call, struct manager_call, call);

	manager_cancel(c->r);
	if (c->inner)
		c->inner->cancel(c->inner);
	free(c);
}

static void
socket_on_end(int fd, const char *why, void *arg)
{
	struct manager_call *c = arg;

	c->fn(fd, why, c->arg);
	free(c);
}

static void
socket_fail(struct manager_call *c, int rc, const char *why)
{
	c->fn(rc, why, c->arg);
	free(c);
}

static int
socket_check_template(const struct box *b, struct err *e)
{
	struct conf_template t;

	if (!box_template(b, &t) || t.forward)
		return 0;
	return err_set(e, -EOPNOTSUPP,
	    "the template %s of sandbox %s allows no forwarding", b->template,
	    b->spec.name);
}

static void
socket_on_ready(const struct manager_answer *a, void *arg)
{
	struct manager_call *c = arg;
	struct box *b = box_find(c->m, c->name);
	struct err e = { .code = 0 };

	/* It frees itself behind this call. */
	c->r = NULL;
	if (a->code != MANAGER_OK || !b || !b->provider) {
		socket_fail(c, a->code == MANAGER_REFUSED ? -EOPNOTSUPP : -EIO,
		    a->code == MANAGER_OK ? "the sandbox is gone" : a->why);
		return;
	}
	if (sandbox_require(b->provider, SANDBOX_CAP_PORT_FORWARD, &e) < 0 ||
	    socket_check_template(b, &e) < 0) {
		socket_fail(c, -EOPNOTSUPP, e.msg);
		return;
	}
	c->inner = c->is_listener
		       ? b->provider->listen(&b->spec, &c->to, socket_on_end, c)
		       : b->provider->dial(&b->spec, &c->to, socket_on_end, c);
}

static struct sandbox_call *
socket_call(struct manager *m, const struct principal *who, const char *name,
    const struct sandbox_socket *s, sandbox_socket_fn fn, void *arg,
    bool is_listener)
{
	struct manager_call *c = xcalloc(1, sizeof(*c));

	c->call.cancel = socket_cancel;
	c->m = m;
	snprintf(c->name, sizeof(c->name), "%s", name);
	snprintf(c->host, sizeof(c->host), "%s", s->host);
	c->to = *s;
	c->to.host = c->host;
	c->is_listener = is_listener;
	c->fn = fn;
	c->arg = arg;
	c->r = manager_sandbox_want(m, who, name, socket_on_ready, c);
	return &c->call;
}

struct sandbox_call *
manager_dial(struct manager *m, const struct principal *who, const char *name,
    const struct sandbox_socket *s, sandbox_socket_fn fn, void *arg)
{
	return socket_call(m, who, name, s, fn, arg, false);
}

struct sandbox_call *
manager_listen(struct manager *m, const struct principal *who, const char *name,
    const struct sandbox_socket *s, sandbox_socket_fn fn, void *arg)
{
	return socket_call(m, who, name, s, fn, arg, true);
}
