/*
 * Attach, run and create: who may, which session, a new one when there is none.
 * The role check sits here, where the act is decided, and once more in the
 * keeper, where it happens.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "conf/conf.h"
#include "sessions/manager/session.h"
#include "sessions/manager/sftp.h"

bool
manager_name_is_valid(const char *name)
{
	size_t n = strlen(name);

	if (n == 0 || n >= STORE_NAME_MAX || strcmp(name, "exec") == 0 ||
	    strcmp(name, "admin") == 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		char c = name[i];
		bool is_alnum = (c >= 'a' && c <= 'z') ||
				(c >= 'A' && c <= 'Z') ||
				(c >= '0' && c <= '9');

		if (!is_alnum && (i == 0 || !strchr("._-+", c)))
			return false;
	}
	return true;
}

bool
attach_may(struct request *r, const char *sandbox, const char *name)
{
	if (!sandbox_name_is_valid(sandbox) ||
	    (name && !manager_name_is_valid(name))) {
		request_fail(r, MANAGER_USAGE,
		    "that is not a name of a sandbox and a session");
		return false;
	}
	if (!r->who.is_admin && !principal_may_use(&r->who, sandbox, name)) {
		request_fail(r, MANAGER_REFUSED, "this key may not use %s%s%s",
		    sandbox, name ? "+" : "", name ? name : "");
		return false;
	}
	snprintf(r->sandbox, sizeof(r->sandbox), "%s", sandbox);
	snprintf(r->name, sizeof(r->name), "%s", name ? name : "");
	return true;
}

bool
attach_may_type(const struct request *r)
{
	return r->who.role != ROLE_VIEWER || r->who.is_admin;
}

/* Who joins a running session, with so many others, may want to know. */
static void
attach_note_joined(struct request *r, const struct session *s)
{
	char others[48] = "nobody else here";

	r->notice[0] = '\0';
	if (r->m->conf->session.notice != CONF_NOTICE_YES)
		return;
	if (s->n_attached)
		snprintf(others, sizeof(others), "%u other%s here",
		    s->n_attached, s->n_attached == 1 ? "" : "s");
	snprintf(r->notice, sizeof(r->notice), "joined %s+%s, %s", r->sandbox,
	    r->name, others);
}

/* Who gets a new shell where there was one must know that, and why. */
static void
attach_note_new(struct request *r)
{
	enum conf_notice level = r->m->conf->session.notice;
	struct store_session last;
	char ref[2 * STORE_NAME_MAX + 2];

	r->notice[0] = '\0';
	if (level == CONF_NOTICE_YES)
		snprintf(r->notice, sizeof(r->notice), "new session %s+%s",
		    r->sandbox, r->name);
	if (level == CONF_NOTICE_NO)
		return;
	snprintf(ref, sizeof(ref), "%s+%s", r->sandbox, r->name);
	if (store_session_find(r->m->store, ref, &last) < 0)
		return;
	if (last.status == SESSION_LOST)
		snprintf(r->notice, sizeof(r->notice),
		    "the former session %s was lost; this is new", last.id);
	store_session_release(&last);
}

bool
attach_box(struct request *r, void (*go_on)(struct request *r))
{
	enum manager_code code = MANAGER_FAILED;
	struct err e = { .code = 0 };

	r->go_on = go_on;
	switch (box_want(
	    r, r->who.template[0] ? r->who.template : NULL, &code, &e)) {
	case BOX_READY:
		return true;
	case BOX_REFUSED:
		request_fail(r, code, "%s", e.msg);
		return false;
	default:
		return false;
	}
}

/*
 * Whoever attaches to S finds its screen in the keeper, which never sleeps; its
 * sandbox goes on meanwhile, if that is somebody who may type or its template
 * says that watchers count.
 */
static void
attach_wake(const struct request *r, const struct session *s)
{
	struct box *b = box_find(r->m, s->sandbox);
	autofree char *why = xasprintf("attach to %s", s->id);

	if (!b)
		return;
	if ((r->viewer.flags & VIEWER_MAY_TYPE) ||
	    (b->life.rules.viewers_wake &&
		!(r->viewer.flags & VIEWER_RAW_TAIL)))
		box_wake(b, &r->who, why);
}

void
attach_launch(struct request *r, const struct launch_spec *spec)
{
	struct session *s;
	char why[256];
	enum manager_code code = launch_session(r->m, &r->who, spec, &s, why);

	if (code != MANAGER_OK) {
		request_fail(r, code, "%s", why);
		return;
	}
	request_join(r, s);
	/* Behind the attachment, whose identity it is of. */
	copy_started(s, spec);
}

void
attach_begin(struct request *r)
{
	struct session *s = session_by_name(r->m, r->sandbox, r->name);
	struct launch_spec spec = {
		.sandbox = r->sandbox,
		.name = r->name,
		.flags = LAUNCH_PTY | LAUNCH_LOGIN,
		.client_env = r->run.env,
		.term = r->run.term,
		.size = r->run.size,
		.is_recorded = true,
	};

	if (s) {
		attach_note_joined(r, s);
		attach_wake(r, s);
		request_join(r, s);
		return;
	}
	if (!attach_may_type(r)) {
		request_fail(r, MANAGER_NOT_FOUND,
		    "%s+%s does not run, and a viewer cannot start it",
		    r->sandbox, r->name);
		return;
	}
	if (!attach_box(r, attach_begin))
		return;
	attach_note_new(r);
	attach_launch(r, &spec);
}

static void
attach_copy_run(struct wire_run *out, const struct wire_run *run)
{
	*out = *run;
	out->command = run->command ? xstrdup(run->command) : NULL;
	out->env = strv_copy(run->env);
}

struct request *
manager_attach(struct manager *m, const struct principal *who,
    const char *sandbox, const char *name, const struct wire_run *run,
    manager_answer_fn fn, void *arg)
{
	struct request *r;

	if (who->forced_command)
		return manager_run(m, who, sandbox, run, fn, arg);
	r = request_new(m, who, fn, arg);
	r->is_shell = r->wants_link = true;
	r->viewer.flags = VIEWER_REPLAY | VIEWER_FOLLOW |
			  (run->has_pty ? VIEWER_TERMINAL : 0);
	r->viewer.size = run->size;
	if (attach_may_type(r))
		r->viewer.flags |= VIEWER_MAY_TYPE;
	attach_copy_run(&r->run, run);
	if (attach_may(r, sandbox, name))
		attach_begin(r);
	return r;
}

/* The bytes of "host port" at the beginning of both ends. */
static size_t
attach_peer_len(const char *ends)
{
	size_t n = strcspn(ends, " ");

	return ends[n] ? n + 1 + strcspn(ends + n + 1, " ") : n;
}

/* SSH_ORIGINAL_COMMAND for a key with command=, as OpenSSH sets it. */
static char *
attach_original(const struct request *r)
{
	const struct wire_run *run = &r->run;

	if (!r->who.forced_command || run->kind == RUN_SHELL)
		return NULL;
	return xasprintf("SSH_ORIGINAL_COMMAND=%s",
	    run->kind == RUN_SUBSYSTEM ? r->m->conf->sandbox.sftp_server
				       : run->command);
}

/*
 * The variables of a private process that are not its sandbox's: of the
 * connection that it is bound to. A shared shell outlives its clients and gets
 * none of them.
 */
struct attach_env {
	char *v[4];
	size_t n;
};

static void
attach_env_add(struct attach_env *env, char *pair)
{
	if (pair)
		env->v[env->n++] = pair;
}

static void
attach_env_build(struct attach_env *env, const struct request *r)
{
	const char *ends = r->who.ssh_connection;
	const char *own_port = strrchr(ends, ' ');

	*env = (struct attach_env){ 0 };
	attach_env_add(env, attach_original(r));
	if (!own_port)
		return;
	attach_env_add(env, xasprintf("SSH_CONNECTION=%s", ends));
	attach_env_add(env, xasprintf("SSH_CLIENT=%.*s%s",
				(int)attach_peer_len(ends), ends, own_port));
}

static void
attach_env_release(struct attach_env *env)
{
	while (env->n)
		free(env->v[--env->n]);
}

/* Without a user's shell, whose login files could print into the stream. */
static void
attach_sftp(struct request *r, const struct sftp_args *args)
{
	struct attach_env env;
	struct launch_spec spec = {
		.sandbox = r->sandbox,
		.name = "",
		.flags = LAUNCH_BOUND | LAUNCH_LOG_STDERR,
		.sftp_args = args->v,
		.client_env = r->run.env,
		.extra_env = env.v,
	};

	attach_env_build(&env, r);
	attach_launch(r, &spec);
	attach_env_release(&env);
}

static void
attach_command(struct request *r)
{
	const struct wire_run *run = &r->run;
	struct attach_env env;
	bool is_shell = run->kind == RUN_SHELL && !r->who.forced_command;
	struct launch_spec spec = {
		.sandbox = r->sandbox,
		.name = "",
		.flags = LAUNCH_BOUND |
			 (run->has_pty ? LAUNCH_PTY | LAUNCH_SSH_TTY : 0U) |
			 (is_shell ? LAUNCH_LOGIN : 0),
		.command = r->who.forced_command ? r->who.forced_command
			   : is_shell            ? NULL
						 : run->command,
		.client_env = run->env,
		.extra_env = env.v,
		.term = run->term,
		.size = run->size,
		.is_recorded = run->has_pty || r->m->conf->recording.exec,
	};

	attach_env_build(&env, r);
	attach_launch(r, &spec);
	attach_env_release(&env);
}

/* ARGS are sftp-server's; NULL: what the client wants to run. */
static void
attach_plan(struct request *r, const struct sftp_args *args)
{
	if (args)
		attach_sftp(r, args);
	else
		attach_command(r);
}

bool
attach_may_transfer(struct request *r)
{
	const struct box *b = box_find(r->m, r->sandbox);
	struct conf_template t;

	if (!b || !box_template(b, &t) || t.sftp)
		return true;
	request_fail(r, MANAGER_REFUSED,
	    "the template %s of sandbox %s allows no file transfer",
	    b->template, r->sandbox);
	return false;
}

static void
attach_run(struct request *r)
{
	struct sftp_args args;
	enum manager_code code;
	const char *why;
	bool is_sftp;

	code = sftp_plan(r->m->conf, &r->who, &r->run, &is_sftp, &args, &why);
	if (code == MANAGER_NOT_FOUND)
		request_fail(r, code, "%s", why);
	else if (!attach_may_type(r))
		request_fail(r, MANAGER_REFUSED,
		    "this key may only watch, not run commands");
	else if (code != MANAGER_OK)
		request_fail(r, code, "%s", why);
	else if (!is_sftp && r->run.has_pty && !r->who.may_pty)
		request_fail(r, MANAGER_REFUSED, "this key may have no PTY");
	else if (attach_box(r, attach_run) &&
		 (!is_sftp || attach_may_transfer(r)))
		attach_plan(r, is_sftp ? &args : NULL);
	sftp_args_release(&args);
}

struct request *
manager_run(struct manager *m, const struct principal *who, const char *sandbox,
    const struct wire_run *run, manager_answer_fn fn, void *arg)
{
	struct request *r = request_new(m, who, fn, arg);

	r->wants_link = true;
	r->viewer.flags = VIEWER_MAY_TYPE | VIEWER_REPLAY | VIEWER_FOLLOW |
			  (run->has_pty ? VIEWER_TERMINAL : 0);
	r->viewer.size = run->size;
	attach_copy_run(&r->run, run);
	if (attach_may(r, sandbox, NULL))
		attach_run(r);
	return r;
}

static void
attach_create(struct request *r)
{
	struct launch_spec launch = {
		.sandbox = r->sandbox,
		.name = r->name,
		.flags = (r->spec.is_pty ? LAUNCH_PTY : 0) |
			 (r->spec.argv ? 0 : LAUNCH_LOGIN),
		.argv = r->spec.argv,
		.extra_env = r->spec.env,
		.cwd = r->spec.cwd,
		.is_recorded = true,
	};

	/* Again, for others may have been here while this one waited. */
	if (session_by_name(r->m, r->sandbox, r->name)) {
		request_fail(r, MANAGER_CONFLICT, "%s+%s is already running",
		    r->sandbox, r->name);
		return;
	}
	if (attach_box(r, attach_create))
		attach_launch(r, &launch);
}

struct request *
manager_create(struct manager *m, const struct principal *who,
    const struct manager_new_session *spec, manager_answer_fn fn, void *arg)
{
	struct request *r = request_new(m, who, fn, arg);
	const char *name = spec->name ? spec->name : "default";

	if (!attach_may(r, spec->sandbox, name))
		return r;
	if (!attach_may_type(r)) {
		request_fail(r, MANAGER_REFUSED, "this key may only watch");
		return r;
	}
	r->spec.is_pty = spec->is_pty;
	r->spec.cwd = spec->cwd ? xstrdup(spec->cwd) : NULL;
	r->spec.env = strv_copy(spec->env);
	r->spec.argv = strv_copy(spec->argv);
	attach_create(r);
	return r;
}

struct request *
manager_attach_session(struct manager *m, const struct principal *who,
    struct session *s, const struct wire_viewer *viewer, manager_answer_fn fn,
    void *arg)
{
	struct request *r = request_new(m, who, fn, arg);

	r->wants_link = true;
	r->viewer = *viewer;
	if (!attach_may(r, s->sandbox, s->name[0] ? s->name : NULL))
		return r;
	if (!attach_may_type(r))
		r->viewer.flags &= ~(uint32_t)VIEWER_MAY_TYPE;
	if ((viewer->flags & VIEWER_TERMINAL) && s->name[0])
		attach_note_joined(r, s);
	attach_wake(r, s);
	request_join(r, s);
	return r;
}

struct request *
manager_flush_recording(
    struct manager *m, struct session *s, manager_answer_fn fn, void *arg)
{
	struct principal self = { .identity = "manager", .is_admin = true };
	struct request *r = request_new(m, &self, fn, arg);

	request_flush(r, s);
	return r;
}

struct request *
manager_screen_text(struct manager *m, struct session *s, unsigned flags,
    manager_answer_fn fn, void *arg)
{
	struct principal self = { .identity = "manager", .is_admin = true };
	struct request *r = request_new(m, &self, fn, arg);

	request_screen(r, s, flags);
	return r;
}
