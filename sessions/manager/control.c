/*
 * The control socket's lines: accepts, checks the peer's uid, reads requests,
 * writes answers with their descriptors. A client that does not read its
 * answers is cut off at a limit; nothing here blocks.
 */
#include "sessions/manager/control.h"

#include <errno.h>
#include <event2/event.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/text.h"
#include "conf/conf.h"
#include "sessions/manager/control_internal.h"

#define CONTROL_CLIENTS_MAX 128
#define CONTROL_GROUPS_MAX  256

static void
control_client_free(struct control_client *cl)
{
	list_remove(&cl->node);
	cl->c->n_clients--;
	manager_cancel(cl->pending);
	event_free(cl->read_ev);
	event_free(cl->write_ev);
	if (cl->out_fd >= 0)
		close(cl->out_fd);
	close(cl->fd);
	buf_release(&cl->in);
	buf_release(&cl->out);
	principal_release(&cl->who);
	free(cl);
}

/* ---- out ------------------------------------------------------------------- */

/* One sendmsg(): up to the descriptor's place, or with it. */
static ssize_t
control_send(struct control_client *cl)
{
	bool has_fd = cl->out_fd >= 0 && cl->out_fd_at == 0;
	size_t len =
	    cl->out_fd >= 0 && !has_fd ? cl->out_fd_at : buf_len(&cl->out);
	ssize_t n =
	    fd_send(cl->fd, buf_head(&cl->out), len, &cl->out_fd, has_fd);

	if (n <= 0)
		return n < 0 ? n : -EPIPE;
	if (has_fd)
		close(take_fd(&cl->out_fd));
	else if (cl->out_fd >= 0)
		cl->out_fd_at -= (size_t)n;
	buf_consume(&cl->out, (size_t)n);
	return n;
}

static void
control_flush(struct control_client *cl)
{
	while (buf_len(&cl->out)) {
		ssize_t n = control_send(cl);

		if (n == -EAGAIN) {
			event_add(cl->write_ev, NULL);
			return;
		}
		if (n < 0) {
			cl->is_closing = true;
			return;
		}
	}
}

static void
control_line(struct control_client *cl, json_t *o, int fd)
{
	char *text = json_dumps(o, JSON_COMPACT);

	if (buf_len(&cl->out) > CONTROL_OUT_MAX || !text) {
		cl->is_closing = true;
	} else {
		if (fd >= 0) {
			cl->out_fd = fd;
			cl->out_fd_at = buf_len(&cl->out);
			fd = -1;
		}
		buf_put(&cl->out, text, strlen(text));
		buf_put(&cl->out, "\n", 1);
	}
	if (fd >= 0)
		close(fd);
	free(text);
	json_decref(o);
	control_flush(cl);
}

void
control_ok_fd(struct control_client *cl, json_t *o, const char *what, int fd)
{
	if (!o)
		o = json_object();
	json_object_set_new(o, "ok", json_true());
	if (what)
		json_object_set_new(o, "fd", json_string(what));
	control_line(cl, o, fd);
}

void
control_ok(struct control_client *cl, json_t *o)
{
	control_ok_fd(cl, o, NULL, -1);
}

void
control_rows(struct control_client *cl, json_t *rows)
{
	size_t n = json_array_size(rows), i = 0;

	do {
		json_t *o = json_object(), *part = json_array();
		size_t size = 64;

		for (; i < n; i++) {
			json_t *row = json_array_get(rows, i);
			size_t len = json_dumpb(row, NULL, 0, JSON_COMPACT);

			if (size + len + 1 > CONTROL_LINE_MAX &&
			    json_array_size(part))
				break;
			size += len + 1;
			json_array_append(part, row);
		}
		json_object_set_new(o, "rows", part);
		if (i < n)
			json_object_set_new(o, "more", json_true());
		control_ok(cl, o);
	} while (i < n);
	json_decref(rows);
}

/*
 * What a request named may stand in the sentence: no control stays, and no
 * character that the end cut off, for JSON could not hold it.
 */
static void
control_clean(char *s)
{
	size_t n = strlen(s);

	while (n) {
		uint8_t *p = (uint8_t *)s;
		int len = text_utf8_len(p, n);
		bool is_c1 = len == 2 && p[0] == 0xc2 && p[1] < 0xa0;
		size_t step = len > 1 ? (size_t)len : 1;

		if (len < 0) {
			*s = '\0';
			return;
		}
		if (len == 0 || is_c1 || *p < ' ' || *p == 0x7f)
			memset(s, '?', step);
		s += step;
		n -= step;
	}
}

void
control_error(
    struct control_client *cl, enum manager_code code, const char *fmt, ...)
{
	char why[512];
	json_t *o = json_object(), *text;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	control_clean(why);
	text = json_string(why);
	json_object_set_new(o, "ok", json_false());
	json_object_set_new(o, "code", json_integer(code));
	json_object_set_new(o, "error", text ? text : json_string("error"));
	control_line(cl, o, -1);
}

const char *
control_str(const json_t *req, const char *key, const char *fallback)
{
	const json_t *v = json_object_get(req, key);

	return json_is_string(v) ? json_string_value(v) : fallback;
}

/* ---- in -------------------------------------------------------------------- */

/* Not for who does not read: it is only said meanwhile. */
static void
control_on_progress(const char *line, void *arg)
{
	struct control_client *cl = arg;
	char text[512];
	json_t *o;

	if (buf_len(&cl->out) > CONTROL_LINE_MAX)
		return;
	snprintf(text, sizeof(text), "%s", line);
	control_clean(text);
	o = json_pack("{s:s}", "progress", text);
	if (o)
		control_line(cl, o, -1);
}

static void
control_request(struct control_client *cl, const uint8_t *line, size_t n)
{
	json_error_t je;
	json_t *req =
	    json_loadb((const char *)line, n, JSON_REJECT_DUPLICATES, &je);
	const char *name = control_str(req, "verb", NULL);
	control_verb_fn fn = name ? control_verb(name) : NULL;

	if (!json_is_object(req))
		control_error(cl, MANAGER_USAGE, "not a JSON object: %s",
		    req ? "another type" : je.text);
	else if (!fn)
		control_error(cl, MANAGER_USAGE, "no such verb");
	else
		fn(cl, req);
	if (json_is_true(json_object_get(req, "progress")))
		manager_on_progress(cl->pending, control_on_progress);
	json_decref(req);
}

/* True while no more lines may be handled: an answer is not out yet. */
static bool
control_is_held(const struct control_client *cl)
{
	/* There is room for one descriptor. */
	return cl->pending || cl->out_fd >= 0 || cl->is_upgrading ||
	       cl->c->is_paused;
}

/* Handles whole lines until one has to wait, for the manager or the client. */
static void
control_next(struct control_client *cl)
{
	while (!control_is_held(cl) && !cl->is_closing && buf_len(&cl->in)) {
		const uint8_t *p = buf_head(&cl->in);
		const uint8_t *nl = memchr(p, '\n', buf_len(&cl->in));
		size_t n;

		if (!nl && buf_len(&cl->in) > CONTROL_LINE_MAX) {
			control_error(
			    cl, MANAGER_USAGE, "a request is at most 64 KiB");
			cl->is_closing = true;
		}
		if (!nl)
			break;
		n = (size_t)(nl - p);
		if (n > 0)
			control_request(cl, p, n);
		buf_consume(&cl->in, n + 1);
	}
}

/* Frees a client that is done with; true if it did. */
static bool
control_maybe_free(struct control_client *cl)
{
	bool is_done = cl->is_eof && !cl->pending && !cl->is_upgrading &&
		       !cl->c->is_paused && !buf_len(&cl->out);

	if (!is_done && !cl->is_closing)
		return false;
	control_client_free(cl);
	return true;
}

static void
control_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct control_client *cl = arg;
	ssize_t n = 1;

	if (what & EV_READ) {
		n = read(fd, buf_reserve(&cl->in, 4096), 4096);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n > 0)
			buf_commit(&cl->in, (size_t)n);
	}
	if (n <= 0) {
		/* A half-close: what was asked is still answered. */
		cl->is_eof = true;
		event_del(cl->read_ev);
	}
	control_next(cl);
	if (!control_maybe_free(cl) && control_is_held(cl) &&
	    buf_len(&cl->in) > CONTROL_LINE_MAX)
		event_del(cl->read_ev); /* until the answer is out */
}

static void
control_on_write(evutil_socket_t fd, short what, void *arg)
{
	struct control_client *cl = arg;

	(void)fd;
	(void)what;
	control_flush(cl);
	control_next(cl);
	if (!control_maybe_free(cl) && !control_is_held(cl) && !cl->is_eof)
		event_add(cl->read_ev, NULL);
}

/* A pending answer is out: the lines behind it have their turn. */
void
control_resume(struct control_client *cl)
{
	cl->pending = NULL;
	if (!cl->is_eof)
		event_add(cl->read_ev, NULL);
	event_active(cl->read_ev, EV_TIMEOUT, 0);
}

/* ---- accept ---------------------------------------------------------------- */

static bool
control_is_member(const char *group_name, const struct passwd *pw)
{
	const struct group *g = group_name[0] ? getgrnam(group_name) : NULL;
	gid_t groups[CONTROL_GROUPS_MAX];
	int n = CONTROL_GROUPS_MAX;

	if (!g || !pw || getgrouplist(pw->pw_name, pw->pw_gid, groups, &n) < 0)
		return false;
	for (int i = 0; i < n; i++) {
		if (groups[i] == g->gr_gid)
			return true;
	}
	return false;
}

static bool
control_admit(struct control_client *cl)
{
	const char *group = cl->c->m->conf->server.admin_group;
	struct ucred cred;
	socklen_t len = sizeof(cred);
	const struct passwd *pw;

	if (getsockopt(cl->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return false;
	pw = getpwuid(cred.uid);
	snprintf(cl->who.identity, sizeof(cl->who.identity), "uid:%u(%s)",
	    cred.uid, pw ? pw->pw_name : "?");
	snprintf(cl->who.remote_addr, sizeof(cl->who.remote_addr), "local");
	snprintf(
	    cl->who.client_version, sizeof(cl->who.client_version), "berth");
	cl->who.frame_version = FRAME_VERSION_OLDEST;
	cl->who.role = ROLE_OWNER;
	cl->who.is_admin = cl->who.may_pty = true;
	if (cred.uid == 0 || cred.uid == geteuid())
		return true;
	return control_is_member(group, pw);
}

struct control_client *
control_new_client(struct control *c, int fd)
{
	struct control_client *cl = xcalloc(1, sizeof(*cl));

	cl->c = c;
	cl->fd = fd;
	cl->out_fd = -1;
	list_append(&c->clients, &cl->node);
	c->n_clients++;
	cl->read_ev =
	    event_new(c->base, fd, EV_READ | EV_PERSIST, control_on_read, cl);
	cl->write_ev = event_new(c->base, fd, EV_WRITE, control_on_write, cl);
	if (!cl->read_ev || !cl->write_ev)
		abort();
	event_add(cl->read_ev, NULL);
	return cl;
}

static void
control_add_client(struct control *c, int fd)
{
	struct control_client *cl = control_new_client(c, fd);

	if (control_admit(cl))
		return;
	log_warn("control_refused", "who", cl->who.identity, NULL);
	control_error(
	    cl, MANAGER_REFUSED, "this user may not use the control socket");
	control_client_free(cl);
}

static void
control_on_again(evutil_socket_t fd, short what, void *arg)
{
	struct control *c = arg;

	(void)fd;
	(void)what;
	event_add(c->accept_ev, NULL);
}

static void
control_on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct timeval pause = { 0, 100000 };
	struct control *c = arg;
	int s = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)what;
	if (s >= 0 && c->n_clients < CONTROL_CLIENTS_MAX) {
		control_add_client(c, s);
		return;
	}
	if (s >= 0) {
		close(s);
		return;
	}
	if (errno == EMFILE || errno == ENFILE) {
		event_del(c->accept_ev);
		evtimer_add(c->again_ev, &pause);
	}
}

void
control_set_mode(const struct conf *conf, int runtime_fd)
{
	mode_t mode = conf->server.admin_group[0] ? 0666 : 0600;

	if (fchmodat(runtime_fd, "control.sock", mode, 0) < 0)
		log_warn("control_mode", "why", strerrordesc_np(errno), NULL);
}

/* Listens anew, or goes on with what the handoff tells. */
static int
control_open(struct control *c, int runtime_fd, const struct handoff *h)
{
	if (h)
		return control_load(c, h);
	c->fd = fd_listen_unix(runtime_fd, "control.sock");
	return c->fd < 0 ? c->fd : 0;
}

int
control_new(struct event_base *base, const struct conf *conf, int runtime_fd,
    const struct control_status *status, struct control **out, struct err *e)
{
	struct control *c = xcalloc(1, sizeof(*c));
	int rc;

	c->base = base;
	c->listen = xstrdup(status->listen);
	c->state_dir = xstrdup(status->state_dir);
	c->started_ms = status->started_ms;
	c->warning = status->warning ? xstrdup(status->warning) : NULL;
	c->upgrade = status->upgrade;
	c->upgrade_arg = status->arg;
	c->fd = -1;
	list_init(&c->clients);
	rc = control_open(c, runtime_fd, status->handoff);
	if (rc < 0) {
		err_sys(e, rc, "cannot listen on control.sock");
		control_free(c);
		return rc;
	}
	control_set_mode(conf, runtime_fd);
	c->accept_ev =
	    event_new(base, c->fd, EV_READ | EV_PERSIST, control_on_accept, c);
	c->again_ev = evtimer_new(base, control_on_again, c);
	if (!c->accept_ev || !c->again_ev)
		abort();
	*out = c;
	return 0;
}

void
control_start(struct control *c, struct manager *m)
{
	struct list *pos, *tmp;

	c->m = m;
	list_for_each (pos, tmp, &c->clients) {
		struct control_client *cl =
		    list_entry(pos, struct control_client, node);

		if (!control_admit(cl))
			cl->is_closing = true;
	}
	control_pause(c, false);
}

void
control_pause(struct control *c, bool on)
{
	struct list *pos, *tmp;

	c->is_paused = on;
	if (on) {
		event_del(c->accept_ev);
		event_del(c->again_ev);
		return;
	}
	event_add(c->accept_ev, NULL);
	/* What was read meanwhile has its turn. */
	list_for_each (pos, tmp, &c->clients) {
		struct control_client *cl =
		    list_entry(pos, struct control_client, node);

		if (!cl->is_eof)
			event_add(cl->read_ev, NULL);
		event_active(cl->read_ev, EV_TIMEOUT, 0);
	}
}

void
control_free(struct control *c)
{
	struct list *pos, *tmp;

	if (!c)
		return;
	list_for_each (pos, tmp, &c->clients)
		control_client_free(
		    list_entry(pos, struct control_client, node));
	if (c->accept_ev)
		event_free(c->accept_ev);
	if (c->again_ev)
		event_free(c->again_ev);
	if (c->fd >= 0)
		close(c->fd);
	free(c->listen);
	free(c->state_dir);
	free(c->warning);
	free(c);
}
