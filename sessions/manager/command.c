/*
 * Private processes for the command line (berth run, berth sandbox exec, logs): what
 * manager_run() is for SSH, with a list of words instead of a shell's line.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include "base/mem.h"
#include "conf/conf.h"
#include "sessions/manager/session.h"

static void
command_begin(struct request *r)
{
	struct launch_spec spec = {
		.sandbox = r->sandbox,
		.name = "",
		.flags = LAUNCH_BOUND | (r->run.has_pty ? LAUNCH_PTY : 0U) |
			 (r->spec.argv ? 0U : LAUNCH_LOGIN),
		.argv = r->spec.argv,
		.client_env = r->run.env,
		.extra_env = r->spec.env,
		.term = r->run.term,
		.cwd = r->spec.cwd,
		.size = r->run.size,
		.is_recorded = r->run.has_pty || r->m->conf->recording.exec,
	};

	/* Asked for last, for it may be gone when it was waited for. */
	if (r->must_exist && !box_find(r->m, r->sandbox))
		request_fail(
		    r, MANAGER_NOT_FOUND, "there is no sandbox %s", r->sandbox);
	else if (attach_box(r, command_begin))
		attach_launch(r, &spec);
}

struct request *
manager_command(struct manager *m, const struct principal *who,
    const struct manager_command *c, manager_answer_fn fn, void *arg)
{
	struct request *r = request_new(m, who, fn, arg);

	r->wants_link = r->tells_exec = true;
	r->must_exist = c->must_exist;
	r->viewer.flags = VIEWER_MAY_TYPE | VIEWER_REPLAY | VIEWER_FOLLOW |
			  (c->has_pty ? VIEWER_TERMINAL : 0U);
	r->viewer.size = r->run.size = c->size;
	r->run.has_pty = c->has_pty;
	snprintf(
	    r->run.term, sizeof(r->run.term), "%s", c->term ? c->term : "");
	r->run.env = strv_copy(c->client_env);
	r->spec.env = strv_copy(c->env);
	r->spec.argv = strv_copy(c->argv);
	r->spec.cwd = c->cwd ? xstrdup(c->cwd) : NULL;
	if (!attach_may(r, c->sandbox, NULL))
		return r;
	if (!attach_may_type(r))
		request_fail(r, MANAGER_REFUSED,
		    "this key may only watch, not run commands");
	else if (c->has_pty && !r->who.may_pty)
		request_fail(r, MANAGER_REFUSED, "this key may have no PTY");
	else
		command_begin(r);
	return r;
}

static void
command_log(struct request *r)
{
	char *argv[] = { (char *)(uintptr_t) "logs", NULL };
	const struct box *b = box_find(r->m, r->sandbox);
	struct launch_spec spec = {
		.sandbox = r->sandbox,
		.name = "",
		.flags = LAUNCH_BOUND,
		.argv = argv,
		.log = &r->log,
	};

	if (!b || !b->provider)
		request_fail(
		    r, MANAGER_NOT_FOUND, "there is no sandbox %s", r->sandbox);
	else if (!b->provider->logs)
		request_fail(r, MANAGER_REFUSED,
		    "unsupported: provider %s keeps no log of its own",
		    b->provider->name);
	else
		attach_launch(r, &spec);
}

struct request *
manager_logs(struct manager *m, const struct principal *who,
    const char *sandbox, const struct sandbox_log_query *q,
    manager_answer_fn fn, void *arg)
{
	struct request *r = request_new(m, who, fn, arg);

	r->wants_link = true;
	r->viewer.flags = VIEWER_MAY_TYPE | VIEWER_REPLAY | VIEWER_FOLLOW;
	r->log = *q;
	if (attach_may(r, sandbox, NULL))
		command_log(r);
	return r;
}
