/*
 * The verbs that run a private process for whoever asks, and hand its link out.
 */
#include <string.h>

#include "sessions/manager/control_internal.h"

/* True unless REQ has more words or pairs than a process may be given. */
static bool
control_command_fits(struct control_client *cl, const json_t *req)
{
	if (json_array_size(json_object_get(req, "argv")) > WIRE_ARGV_MAX)
		control_error(cl, MANAGER_USAGE,
		    "a command has at most %u words", WIRE_ARGV_MAX);
	else if (json_array_size(json_object_get(req, "env")) > WIRE_ENV_MAX)
		control_error(cl, MANAGER_USAGE,
		    "an environment has at most %u variables", WIRE_ENV_MAX);
	else
		return true;
	return false;
}

void
control_run(struct control_client *cl, const json_t *req)
{
	struct manager_command c = {
		.sandbox = control_str(req, "sandbox", ""),
		.must_exist = json_is_true(json_object_get(req, "exists")),
		.has_pty = json_is_true(json_object_get(req, "pty")),
		.cwd = control_str(req, "cwd", NULL),
		.term = control_str(req, "term", NULL),
		.size = control_size(req),
	};

	if (!control_command_fits(cl, req))
		return;
	c.argv = control_strv(req, "argv", WIRE_ARGV_MAX);
	c.env = control_strv(req, "env", WIRE_ENV_MAX);
	c.client_env = control_strv(req, "client_env", WIRE_ENV_MAX);
	cl->pending =
	    manager_command(cl->c->m, &cl->who, &c, control_on_answer, cl);
	strv_free(c.argv);
	strv_free(c.env);
	strv_free(c.client_env);
}

void
control_sandbox_cp(struct control_client *cl, const json_t *req)
{
	const char *direction = control_str(req, "direction", "");
	struct manager_copy c = {
		.sandbox = control_str(req, "sandbox", ""),
		.path = control_str(req, "path", ""),
		.is_in = strcmp(direction, "in") == 0,
		.wants_total = json_is_true(json_object_get(req, "total")),
	};

	if (!c.is_in && strcmp(direction, "out") != 0)
		control_error(cl, MANAGER_USAGE, "a direction is in or out");
	else
		cl->pending =
		    manager_copy(cl->c->m, &cl->who, &c, control_on_answer, cl);
}

void
control_sandbox_logs(struct control_client *cl, const json_t *req)
{
	const json_t *tail = json_object_get(req, "tail");
	json_int_t n = json_integer_value(tail);
	struct sandbox_log_query q = {
		.follow = json_is_true(json_object_get(req, "follow")),
		.timestamps = json_is_true(json_object_get(req, "timestamps")),
		.has_tail = json_is_integer(tail) && n >= 0,
		.tail = n < 0 ? 0 : (uint64_t)n,
	};

	cl->pending = manager_logs(cl->c->m, &cl->who,
	    control_str(req, "sandbox", ""), &q, control_on_answer, cl);
}
