/*
 * The verbs run and sandbox exec: a private process in a sandbox, its streams
 * and signals ours, its exit code ours too. It ends when we do.
 */
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/attach.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/terminal.h"
#include "cli/viewer.h"

struct exec_options {
	bool wants_pty, wants_pipes;
	const char *dir;
	struct arg_list env;
};

static json_t *
exec_strings(const char *const *items, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++) {
		/* What is no UTF-8 has no place in JSON. */
		if (json_array_append_new(array, json_string(items[i])) < 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

/* NULL if something is not valid UTF-8. */
static json_t *
exec_request(const struct exec_options *o, bool exists, bool has_pty, int argc,
    char **argv)
{
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
	const char *term = getenv("TERM");
	struct wire_size size = { 0 };

	if (has_pty)
		terminal_size(&size);
	return json_pack("{s:s, s:s, s:b, s:b, s:s*, s:s*, s:i, s:i, s:i, s:i,"
			 " s:o, s:o, s:o}",
	    "verb", "run", "sandbox", argv[0], "exists", exists, "pty", has_pty,
	    "cwd", o->dir, "term", term, "cols", (int)size.cols, "rows",
	    (int)size.rows, "xpixel", (int)size.xpixel, "ypixel",
	    (int)size.ypixel, "client_env", attach_env(), "env",
	    exec_strings(o->env.items, o->env.n), "argv",
	    exec_strings((const char *const *)argv + 1, (size_t)argc - 1));
}

/* A terminal if it was asked for, or if there is one here at both ends. */
static bool
exec_wants_pty(const struct exec_options *o)
{
	return o->wants_pty || (!o->wants_pipes && isatty(STDIN_FILENO) &&
				   isatty(STDOUT_FILENO));
}

/* berth's own failures are 125 for `run`, and codes of their own for `exec`. */
static int
exec_do(struct cli *c, int argc, char **argv, bool exists)
{
	struct exec_options o = { .dir = NULL };
	const struct arg_option options[] = {
		{ 't', ARG_FLAG, "tty", &o.wants_pty },
		{ 'i', ARG_FLAG, "interactive", &o.wants_pipes },
		{ 'd', ARG_TEXT, "dir", &o.dir },
		{ 'e', ARG_LIST, "env", &o.env },
	};
	struct viewer_options viewer = { .reads_stdin = true,
		.is_bound = true };
	struct viewer_outcome outcome;
	struct err e = { 0 };
	json_t *answer = NULL, *request;
	bool has_pty;
	int fd = -1, code, n = 0;

	/* Options may stand before the sandbox and behind it. */
	argc = args_parse(argc, argv, options, ARRAY_LEN(options), true, &e);
	if (argc > 0)
		n = args_parse(
		    argc - 1, argv + 1, options, ARRAY_LEN(options), true, &e);
	if (n < 0 || argc > 0)
		argc = n < 0 ? n : n + 1;
	if (argc < 2)
		return cli_usage(c, "%s",
		    argc < 0    ? e.msg
		    : argc == 0 ? "which sandbox?"
				: "which command?");
	has_pty = exec_wants_pty(&o);
	viewer.is_terminal = has_pty && isatty(STDIN_FILENO);
	viewer.sends_size = has_pty;
	request = exec_request(&o, exists, has_pty, argc, argv);
	if (!request)
		return cli_usage(c, "an argument is not valid UTF-8");
	code = client_ask_once(c->socket, request, &answer, &fd, &e);
	if (code != CLI_DONE)
		return cli_fail(
		    exists || code >= CLI_OWN_FAILURE ? code : CLI_OWN_FAILURE,
		    "%s", e.msg);
	json_decref(answer);
	viewer_run(fd, &viewer, &outcome);
	return attach_report(&outcome);
}

int
verb_run(struct cli *c, int argc, char **argv)
{
	return exec_do(c, argc, argv, false);
}

int
verb_sandbox_exec(struct cli *c, int argc, char **argv)
{
	return exec_do(c, argc, argv, true);
}
