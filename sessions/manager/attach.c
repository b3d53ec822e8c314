/*
 * Attach, run and create: who may, which session, a new one when there is none.
 * The role check sits here, where the act is decided, and once more in the
 * keeper, where it happens.
 */
#include <stdio.h>
#include <string.h>

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

/* Checks that WHO may use the names; answers R and returns false if not. */
static bool
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

static bool
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
	enum manager_code code;
	char why[256];

	if (s) {
		attach_note_joined(r, s);
		request_join(r, s);
		return;
	}
	if (!attach_may_type(r)) {
		request_fail(r, MANAGER_NOT_FOUND,
		    "%s+%s does not run, and a viewer cannot start it",
		    r->sandbox, r->name);
		return;
	}
	attach_note_new(r);
	code = launch_session(r->m, &r->who, &spec, &s, why);
	if (code == MANAGER_OK)
		request_join(r, s);
	else
		request_fail(r, code, "%s", why);
}

static void
attach_copy_run(struct wire_run *out, const struct wire_run *run)
{
	size_t n = 0;

	*out = *run;
	out->command = run->command ? xstrdup(run->command) : NULL;
	out->env = NULL;
	while (run->env && run->env[n])
		n++;
	if (!run->env)
		return;
	out->env = xcalloc(n + 1, sizeof(*out->env));
	for (size_t i = 0; i < n; i++)
		out->env[i] = xstrdup(run->env[i]);
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
attach_original(const struct request *r, const struct wire_run *run)
{
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
attach_env_build(
    struct attach_env *env, const struct request *r, const struct wire_run *run)
{
	const char *ends = r->who.ssh_connection;
	const char *own_port = strrchr(ends, ' ');

	*env = (struct attach_env){ 0 };
	attach_env_add(env, attach_original(r, run));
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

static void
attach_launch(struct request *r, const struct launch_spec *spec)
{
	struct session *s;
	char why[256];
	enum manager_code code = launch_session(r->m, &r->who, spec, &s, why);

	if (code == MANAGER_OK)
		request_join(r, s);
	else
		request_fail(r, code, "%s", why);
}

/* Without a user's shell, whose login files could print into the stream. */
static void
attach_sftp(struct request *r, const char *sandbox, const struct wire_run *run,
    const struct sftp_args *args)
{
	struct attach_env env;
	struct launch_spec spec = {
		.sandbox = sandbox,
		.name = "",
		.flags = LAUNCH_BOUND | LAUNCH_LOG_STDERR,
		.sftp_args = args->v,
		.client_env = run->env,
		.extra_env = env.v,
	};

	attach_env_build(&env, r, run);
	attach_launch(r, &spec);
	attach_env_release(&env);
}

static void
attach_run(struct request *r, const char *sandbox, const struct wire_run *run)
{
	struct attach_env env;
	bool is_shell = run->kind == RUN_SHELL && !r->who.forced_command;
	struct launch_spec spec = {
		.sandbox = sandbox,
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

	attach_env_build(&env, r, run);
	attach_launch(r, &spec);
	attach_env_release(&env);
}

struct request *
manager_run(struct manager *m, const struct principal *who, const char *sandbox,
    const struct wire_run *run, manager_answer_fn fn, void *arg)
{
	struct request *r = request_new(m, who, fn, arg);
	enum manager_code code;
	struct sftp_args args;
	const char *why;
	bool is_sftp;

	r->wants_link = true;
	r->viewer.flags = VIEWER_MAY_TYPE | VIEWER_REPLAY | VIEWER_FOLLOW |
			  (run->has_pty ? VIEWER_TERMINAL : 0);
	r->viewer.size = run->size;
	if (!attach_may(r, sandbox, NULL))
		return r;
	code = sftp_plan(m->conf, who, run, &is_sftp, &args, &why);
	if (code == MANAGER_NOT_FOUND)
		request_fail(r, code, "%s", why);
	else if (!attach_may_type(r))
		request_fail(r, MANAGER_REFUSED,
		    "this key may only watch, not run commands");
	else if (code != MANAGER_OK)
		request_fail(r, code, "%s", why);
	else if (is_sftp)
		attach_sftp(r, sandbox, run, &args);
	else if (run->has_pty && !who->may_pty)
		request_fail(r, MANAGER_REFUSED, "this key may have no PTY");
	else
		attach_run(r, sandbox, run);
	sftp_args_release(&args);
	return r;
}

struct request *
manager_create(struct manager *m, const struct principal *who,
    const struct manager_new_session *spec, manager_answer_fn fn, void *arg)
{
	struct request *r = request_new(m, who, fn, arg);
	const char *name = spec->name ? spec->name : "default";
	struct launch_spec launch = {
		.sandbox = spec->sandbox,
		.name = name,
		.flags = (spec->is_pty ? LAUNCH_PTY : 0) |
			 (spec->argv ? 0 : LAUNCH_LOGIN),
		.argv = spec->argv,
		.extra_env = spec->env,
		.cwd = spec->cwd,
		.is_recorded = true,
	};
	struct session *s;
	enum manager_code code;
	char why[256];

	if (!attach_may(r, spec->sandbox, name))
		return r;
	if (!attach_may_type(r)) {
		request_fail(r, MANAGER_REFUSED, "this key may only watch");
		return r;
	}
	if (session_by_name(m, spec->sandbox, name)) {
		request_fail(r, MANAGER_CONFLICT, "%s+%s is already running",
		    spec->sandbox, name);
		return r;
	}
	code = launch_session(m, who, &launch, &s, why);
	if (code == MANAGER_OK)
		request_join(r, s);
	else
		request_fail(r, code, "%s", why);
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
