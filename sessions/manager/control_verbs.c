/*
 * The verbs that act. Each checks its arguments, finds its session, and sends
 * one answer, at once or when the manager has it.
 */
#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/proc.h"
#include "sessions/manager/control_internal.h"

#define CONTROL_ENV_MAX WIRE_ENV_MAX

/* The live session that REQ names, or NULL after an error was sent. */
static struct session *
control_session(struct control_client *cl, const json_t *req)
{
	const char *ref = control_str(req, "session", NULL);
	struct store_session row;
	struct session *s;
	int rc;

	if (!ref) {
		control_error(
		    cl, MANAGER_USAGE, "the request names no session");
		return NULL;
	}
	s = manager_find(cl->c->m, ref);
	if (s)
		return s;
	rc = store_session_find(cl->c->m->store, ref, &row);
	if (rc == -ENOTUNIQ) {
		control_error(cl, MANAGER_NOT_FOUND,
		    "more than one session begins with %s", ref);
		return NULL;
	}
	if (rc < 0) {
		control_error(
		    cl, MANAGER_NOT_FOUND, "there is no session %s", ref);
		return NULL;
	}
	control_error(cl, MANAGER_NOT_FOUND, "session %s has ended (%s)",
	    row.id, store_status_name(row.status));
	store_session_release(&row);
	return NULL;
}

/* The same for a verb that speaks to the keeper at once. */
static struct session *
control_ready_session(struct control_client *cl, const json_t *req)
{
	struct session *s = control_session(cl, req);

	if (s && !s->is_ready) {
		control_error(cl, MANAGER_FAILED,
		    "the keeper of session %s does not answer; try again",
		    s->id);
		return NULL;
	}
	return s;
}

char **
control_strv(const json_t *req, const char *key, size_t max)
{
	const json_t *a = json_object_get(req, key);
	size_t n = json_array_size(a);
	char **v;

	if (!json_is_array(a) || n == 0 || n > max)
		return NULL;
	v = xcalloc(n + 1, sizeof(*v));
	for (size_t i = 0; i < n; i++) {
		const char *s = json_string_value(json_array_get(a, i));

		v[i] = xstrdup(s ? s : "");
	}
	return v;
}

static uint32_t
control_u32(const json_t *req, const char *key)
{
	json_int_t v = json_integer_value(json_object_get(req, key));

	return v < 0 || v > UINT32_MAX ? 0 : (uint32_t)v;
}

struct wire_size
control_size(const json_t *req)
{
	return (struct wire_size){ control_u32(req, "cols"),
		control_u32(req, "rows"), control_u32(req, "xpixel"),
		control_u32(req, "ypixel") };
}

void
control_on_answer(const struct manager_answer *a, void *arg)
{
	struct control_client *cl = arg;
	json_t *o;

	if (a->code != MANAGER_OK) {
		control_error(cl, a->code, "%s", a->why);
	} else {
		o = json_object();
		if (a->sid)
			json_object_set_new(o, "id", json_string(a->sid));
		control_ok_fd(cl, o, a->fd >= 0 ? "viewer" : NULL, a->fd);
	}
	control_resume(cl);
}

static void
control_new_verb(struct control_client *cl, const json_t *req)
{
	char **env = control_strv(req, "env", CONTROL_ENV_MAX);
	char **argv = control_strv(req, "argv", WIRE_ARGV_MAX);
	const json_t *pty = json_object_get(req, "pty");
	struct manager_new_session spec = {
		.sandbox = control_str(req, "sandbox", "default"),
		.name = control_str(req, "name", "default"),
		.is_pty = !json_is_false(pty),
		.cwd = control_str(req, "cwd", NULL),
		.env = env,
		.argv = argv,
	};

	/* A command that does not fit must not become a login shell. */
	if (!argv && json_array_size(json_object_get(req, "argv")))
		control_error(cl, MANAGER_USAGE,
		    "a command has at most %u words", WIRE_ARGV_MAX);
	else
		cl->pending = manager_create(
		    cl->c->m, &cl->who, &spec, control_on_answer, cl);
	strv_free(env);
	strv_free(argv);
}

static void
control_attach_verb(struct control_client *cl, const json_t *req)
{
	const char *ref = control_str(req, "session", "");
	bool is_view = json_is_true(json_object_get(req, "view"));
	struct session *s = manager_find(cl->c->m, ref);
	struct wire_viewer viewer = { .size = control_size(req) };
	/* Whoever tells a size has a terminal. */
	bool is_terminal = json_is_true(json_object_get(req, "terminal")) ||
			   (viewer.size.cols && viewer.size.rows);
	struct wire_run run = { .has_pty = is_terminal, .size = viewer.size };
	char sandbox[STORE_NAME_MAX], name[STORE_NAME_MAX];
	const char *plus = strchr(ref, '+');
	size_t n = plus ? (size_t)(plus - ref) : strlen(ref);

	viewer.flags = VIEWER_REPLAY | VIEWER_FOLLOW |
		       (is_view ? 0 : VIEWER_MAY_TYPE) |
		       (is_terminal ? VIEWER_TERMINAL : 0);
	if (is_view || strncmp(ref, "ses-", 4) == 0) {
		if (!s && !plus && strncmp(ref, "ses-", 4) != 0) {
			snprintf(name, sizeof(name), "default");
			s = session_by_name(cl->c->m, ref, name);
		}
		if (!s)
			s = control_session(cl, req);
		if (s)
			cl->pending = manager_attach_session(cl->c->m, &cl->who,
			    s, &viewer, control_on_answer, cl);
		return;
	}
	if (n >= sizeof(sandbox) ||
	    (plus && strlen(plus + 1) >= sizeof(name))) {
		control_error(cl, MANAGER_USAGE, "that name is too long");
		return;
	}
	snprintf(sandbox, sizeof(sandbox), "%.*s", (int)n, ref);
	snprintf(
	    name, sizeof(name), "%s", plus && plus[1] ? plus + 1 : "default");
	snprintf(run.term, sizeof(run.term), "%s",
	    control_str(req, "term", "xterm-256color"));
	run.env = control_strv(req, "env", CONTROL_ENV_MAX);
	cl->pending = manager_attach(
	    cl->c->m, &cl->who, sandbox, name, &run, control_on_answer, cl);
	strv_free(run.env);
}

/* Something for the processes of S, which may be asleep. */
static void
control_wake(
    struct control_client *cl, const struct session *s, const char *what)
{
	struct box *b = box_find(cl->c->m, s->sandbox);
	autofree char *why = xasprintf("%s for %s", what, s->id);

	if (b)
		box_wake(b, &cl->who, why);
}

static void
control_kill(struct control_client *cl, const json_t *req)
{
	const char *name = control_str(req, "signal", NULL);
	int sig = name ? proc_signal_parse(name) : 0;
	struct session *s;

	if (sig < 0) {
		control_error(cl, MANAGER_USAGE, "there is no signal %s", name);
		return;
	}
	s = name ? control_ready_session(cl, req) : control_session(cl, req);
	if (!s)
		return;
	store_audit(cl->c->m->store, "kill", cl->who.identity, NULL, s->sandbox,
	    s->id, name ? name : "stop");
	control_wake(cl, s, name ? "signal" : "stop");
	if (name)
		wire_send(&s->wire, FRAME_KILL, (uint8_t)sig, 0, NULL, 0);
	else
		session_stop(s);
	control_ok(cl, NULL);
}

static void
control_rm(struct control_client *cl, const json_t *req)
{
	const char *ref = control_str(req, "session", "");
	struct store_session row;
	int rc;

	if (manager_find(cl->c->m, ref)) {
		control_error(cl, MANAGER_CONFLICT,
		    "session %s is running; kill it first", ref);
		return;
	}
	rc = store_session_find(cl->c->m->store, ref, &row);
	if (rc < 0) {
		control_error(
		    cl, MANAGER_NOT_FOUND, "there is no session %s", ref);
		return;
	}
	rc = store_session_delete(cl->c->m->store, row.id);
	if (rc < 0)
		control_error(cl, MANAGER_FAILED, "cannot forget %s: %s",
		    row.id, strerrordesc_np(-rc));
	else
		control_ok(cl, NULL);
	store_audit(cl->c->m->store, "rm", cl->who.identity, NULL, row.sandbox,
	    NULL, row.id);
	store_session_release(&row);
}

static void
control_send_verb(struct control_client *cl, const json_t *req)
{
	const char *b64 = control_str(req, "data", "");
	size_t len = strlen(b64), n = 0, max;
	struct session *s = control_ready_session(cl, req);
	autofree uint8_t *bytes = NULL;

	if (!s)
		return;
	bytes = xmalloc(len + 1);
	if (sodium_base642bin(bytes, len + 1, b64, len, NULL, &n, NULL,
		sodium_base64_VARIANT_ORIGINAL) != 0) {
		control_error(cl, MANAGER_USAGE, "data is not base64");
		return;
	}
	control_wake(cl, s, "keys");
	max = frame_data_max(s->wire.version);
	for (size_t at = 0; at < n; at += max) {
		size_t part = n - at < max ? n - at : max;

		wire_send(&s->wire, FRAME_INPUT, 0, 0, bytes + at, part);
	}
	control_ok(cl, NULL);
}

static void
control_eof(struct control_client *cl, const json_t *req)
{
	struct session *s = control_ready_session(cl, req);

	if (!s)
		return;
	if (s->is_pty) {
		control_error(cl, MANAGER_CONFLICT,
		    "session %s has a terminal; send it ctrl-d instead", s->id);
		return;
	}
	control_wake(cl, s, "end of input");
	wire_send(&s->wire, FRAME_INPUT_EOF, 0, 0, NULL, 0);
	control_ok(cl, NULL);
}

static void
control_resize(struct control_client *cl, const json_t *req)
{
	struct wire_size size = control_size(req);
	struct session *s = control_ready_session(cl, req);
	struct buf b = { 0 };

	if (!s)
		return;
	if (json_is_true(json_object_get(req, "unpin")))
		size = (struct wire_size){ 0 };
	else if (size.cols < 1 || size.rows < 1 || size.cols > UINT16_MAX ||
		 size.rows > UINT16_MAX) {
		control_error(
		    cl, MANAGER_USAGE, "a size is COLSxROWS, each 1 to 65535");
		return;
	}
	if (!s->is_pty) {
		control_error(
		    cl, MANAGER_CONFLICT, "session %s has no terminal", s->id);
		return;
	}
	buf_put_u32(&b, size.cols);
	buf_put_u32(&b, size.rows);
	wire_send_buf(&s->wire, FRAME_SET_SIZE, 0, 0, &b);
	buf_release(&b);
	control_ok(cl, NULL);
}

static void
control_on_screen(const struct manager_answer *a, void *arg)
{
	struct control_client *cl = arg;
	json_t *o;

	if (a->code != MANAGER_OK) {
		control_error(cl, a->code, "%s", a->why);
	} else {
		o = json_object();
		json_object_set_new(o, "id", json_string(a->sid));
		json_object_set_new(o, "cols", json_integer(a->cols));
		json_object_set_new(o, "rows", json_integer(a->rows));
		control_ok_fd(cl, o, "text", a->fd);
	}
	control_resume(cl);
}

static void
control_screen(struct control_client *cl, const json_t *req)
{
	struct session *s = control_ready_session(cl, req);
	unsigned flags = 0;

	if (!s)
		return;
	if (!s->is_pty) {
		control_error(
		    cl, MANAGER_CONFLICT, "session %s has no terminal", s->id);
		return;
	}
	if (json_is_true(json_object_get(req, "ansi")))
		flags |= WIRE_SCREEN_ANSI;
	if (json_is_true(json_object_get(req, "history")))
		flags |= WIRE_SCREEN_HISTORY;
	cl->pending =
	    manager_screen_text(cl->c->m, s, flags, control_on_screen, cl);
}

static void
control_kick(struct control_client *cl, const json_t *req)
{
	const json_t *id = json_object_get(req, "attachment");
	enum manager_code code;
	struct err e = { 0 };

	if (!json_is_integer(id)) {
		control_error(cl, MANAGER_USAGE,
		    "the request names no attachment by its number");
		return;
	}
	code = manager_kick(cl->c->m, &cl->who, json_integer_value(id), &e);
	if (code == MANAGER_OK)
		control_ok(cl, NULL);
	else
		control_error(cl, code, "%s", e.msg);
}

static void
control_tail(struct control_client *cl, const json_t *req)
{
	struct session *s = control_session(cl, req);
	bool is_follow = json_is_true(json_object_get(req, "follow"));
	struct wire_viewer viewer = {
		.flags = VIEWER_REPLAY | VIEWER_RAW_TAIL | VIEWER_RAW |
			 (is_follow ? VIEWER_FOLLOW : 0),
		.tail_lines = control_u32(req, "lines"),
	};

	if (s)
		cl->pending = manager_attach_session(
		    cl->c->m, &cl->who, s, &viewer, control_on_answer, cl);
}

static void
control_rec_cat(struct control_client *cl, const json_t *req)
{
	struct store_recording r;
	struct err e = { 0 };
	json_t *o;
	int fd;

	if (store_recording_find(
		cl->c->m->store, control_str(req, "recording", ""), &r) < 0) {
		control_error(cl, MANAGER_NOT_FOUND, "there is no recording %s",
		    control_str(req, "recording", ""));
		return;
	}
	if (strcmp(r.state, "pruned") == 0) {
		control_error(cl, MANAGER_NOT_FOUND,
		    "the recording of %s was pruned", r.session_id);
		return;
	}
	fd = recordings_open(cl->c->m, &r, &e);
	if (fd < 0) {
		control_error(cl, MANAGER_FAILED, "%s", e.msg);
		return;
	}
	store_audit(cl->c->m->store, "recording_read", cl->who.identity, NULL,
	    r.sandbox, r.session_id, NULL);
	o = json_object();
	json_object_set_new(o, "state", json_string(r.state));
	control_ok_fd(cl, o, "recording", fd);
}

static void
control_rec_flush(struct control_client *cl, const json_t *req)
{
	struct session *s = control_ready_session(cl, req);

	if (s)
		cl->pending =
		    manager_flush_recording(cl->c->m, s, control_on_answer, cl);
}

static void
control_sandbox_create(struct control_client *cl, const json_t *req)
{
	cl->pending = manager_sandbox_create(cl->c->m, &cl->who,
	    control_str(req, "sandbox", ""), control_str(req, "template", NULL),
	    control_on_answer, cl);
}

static void
control_sandbox_act(
    struct control_client *cl, const json_t *req, enum manager_sandbox_act act)
{
	cl->pending = manager_sandbox_act(cl->c->m, &cl->who,
	    control_str(req, "sandbox", ""), act, control_on_answer, cl);
}

static void
control_sandbox_rm(struct control_client *cl, const json_t *req)
{
	control_sandbox_act(cl, req, MANAGER_SANDBOX_REMOVE);
}

static void
control_sandbox_suspend(struct control_client *cl, const json_t *req)
{
	control_sandbox_act(cl, req, MANAGER_SANDBOX_SUSPEND);
}

static void
control_sandbox_resume(struct control_client *cl, const json_t *req)
{
	control_sandbox_act(cl, req, MANAGER_SANDBOX_RESUME);
}

static void
control_upgrade(struct control_client *cl, const json_t *req)
{
	struct err e = { 0 };
	int rc = cl->c->upgrade(cl->c->upgrade_arg, cl->who.identity, &e);

	(void)req;
	if (rc < 0)
		control_error(cl,
		    rc == -EBUSY ? MANAGER_CONFLICT : MANAGER_FAILED, "%s",
		    e.msg);
	else
		cl->is_upgrading = true;
}

static const struct {
	const char *name;
	control_verb_fn fn;
} control_verbs[] = {
	{ "ls", control_ls },
	{ "new", control_new_verb },
	{ "run", control_run },
	{ "attach", control_attach_verb },
	{ "kill", control_kill },
	{ "rm", control_rm },
	{ "send", control_send_verb },
	{ "eof", control_eof },
	{ "resize", control_resize },
	{ "screen", control_screen },
	{ "kick", control_kick },
	{ "tail", control_tail },
	{ "info", control_info },
	{ "who", control_who },
	{ "rec_ls", control_rec_ls },
	{ "rec_cat", control_rec_cat },
	{ "rec_flush", control_rec_flush },
	{ "sandbox_ls", control_sandbox_ls },
	{ "sandbox_stats", control_sandbox_stats },
	{ "sandbox_create", control_sandbox_create },
	{ "sandbox_cp", control_sandbox_cp },
	{ "sandbox_logs", control_sandbox_logs },
	{ "sandbox_rm", control_sandbox_rm },
	{ "sandbox_suspend", control_sandbox_suspend },
	{ "sandbox_resume", control_sandbox_resume },
	{ "sandbox_pools", control_sandbox_pools },
	{ "sandbox_pool_scale", control_sandbox_pool_scale },
	{ "sandbox_providers", control_sandbox_providers },
	{ "sandbox_snapshot", control_sandbox_snapshot },
	{ "sandbox_snapshots", control_sandbox_snapshots },
	{ "sandbox_restore", control_sandbox_restore },
	{ "sandbox_forget", control_sandbox_forget },
	{ "status", control_status_verb },
	{ "upgrade", control_upgrade },
};

control_verb_fn
control_verb(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(control_verbs); i++) {
		if (strcmp(control_verbs[i].name, name) == 0)
			return control_verbs[i].fn;
	}
	return NULL;
}
