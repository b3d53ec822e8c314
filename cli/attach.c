/*
 * The verbs attach and tail: they ask for a viewer link and run it. attach's
 * exit code is that of the process; tail's says only whether it could print.
 */
#include "cli/attach.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/terminal.h"
#include "cli/viewer.h"

#define ATTACH_LINES_MAX 10000000

static const struct wire_detach_key attach_key = { 1, { { ']', 1 } } };

json_t *
attach_env(void)
{
	json_t *env = json_array();

	for (char **p = environ; *p; p++) {
		autofree char *name = xstrndup(*p, strcspn(*p, "="));

		if (text_glob_list("TERM,LANG,LC_*,COLORTERM", name))
			json_array_append_new(env, json_string(*p));
	}
	return env;
}

static json_t *
attach_request(const char *session, bool is_view)
{
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
	const char *term = getenv("TERM");
	struct wire_size size;

	terminal_size(&size);
	return json_pack("{s:s, s:s, s:b, s:b, s:i, s:i, s:i, s:i, s:s*, s:o}",
	    "verb", "attach", "session", session, "view", is_view, "terminal",
	    isatty(STDOUT_FILENO), "cols", (int)size.cols, "rows",
	    (int)size.rows, "xpixel", (int)size.xpixel, "ypixel",
	    (int)size.ypixel, "term", term, "env", attach_env());
}

int
attach_report(const struct viewer_outcome *o)
{
	const char *note = o->exit.note;
	char text[sizeof(o->exit.note) * 2];

	switch (o->result) {
	case VIEWER_EXITED:
		if (*note) {
			text_escape(note, strlen(note), text, sizeof(text));
			fprintf(stderr, "berth: %s\n", text);
		}
		if (o->exit.is_signal)
			return (int)(128 + (o->exit.value & 127));
		return (int)(o->exit.value & 255);
	case VIEWER_DETACHED:
		if (isatty(STDERR_FILENO))
			fputs("berth: detached\n", stderr);
		return CLI_DONE;
	case VIEWER_DROPPED:
		return cli_fail(CLI_OWN_FAILURE, "detached: %s",
		    *o->why ? o->why : "no reason given");
	case VIEWER_SIGNALLED:
		return 128 + o->signal_number;
	case VIEWER_ENDED:
		return cli_fail(
		    CLI_OWN_FAILURE, "the session ended without saying how");
	case VIEWER_BROKEN:
		break;
	}
	return cli_fail(CLI_OWN_FAILURE, "%s", o->why);
}

int
verb_attach(struct cli *c, int argc, char **argv)
{
	bool is_view = false;
	const struct arg_option options[] = {
		{ 0, ARG_FLAG, "view", &is_view },
	};
	struct viewer_options viewer = {
		.is_terminal = isatty(STDIN_FILENO),
		.detach_key = &attach_key,
		.sends_size = true,
	};
	struct viewer_outcome outcome;
	struct err e = { 0 };
	json_t *answer = NULL;
	int fd = -1;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 1)
		return cli_usage(c, "%s", argc < 0 ? e.msg : "which session?");
	viewer.reads_stdin = !is_view;
	if (client_ask_once(c->socket, attach_request(argv[0], is_view),
		&answer, &fd, &e) != CLI_DONE)
		return cli_fail(CLI_OWN_FAILURE, "%s", e.msg);
	json_decref(answer);
	viewer_run(fd, &viewer, &outcome);
	return attach_report(&outcome);
}

static int
attach_report_tail(const struct viewer_outcome *o)
{
	switch (o->result) {
	case VIEWER_DROPPED:
		return cli_fail(CLI_FAILED, "detached: %s", o->why);
	case VIEWER_BROKEN:
		return cli_fail(CLI_FAILED, "%s", o->why);
	case VIEWER_SIGNALLED:
		/* Ctrl-C is how one ends `tail -f`. */
		return o->signal_number == SIGINT ? CLI_DONE
						  : 128 + o->signal_number;
	default:
		return CLI_DONE;
	}
}

int
verb_tail(struct cli *c, int argc, char **argv)
{
	const char *lines_text = NULL;
	bool is_follow = false;
	const struct arg_option options[] = {
		{ 'n', ARG_TEXT, "lines", &lines_text },
		{ 'f', ARG_FLAG, "follow", &is_follow },
	};
	const struct viewer_options viewer = { 0 };
	struct viewer_outcome outcome;
	struct err e = { 0 };
	json_t *answer = NULL;
	uint64_t lines = 0;
	int fd = -1, code;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 1)
		return cli_usage(c, "%s", argc < 0 ? e.msg : "which session?");
	if (lines_text &&
	    text_parse_u64(lines_text, 1, ATTACH_LINES_MAX, &lines) < 0)
		return cli_usage(c, "%s is not a number of lines", lines_text);
	code = client_ask_once(c->socket,
	    json_pack("{s:s, s:s, s:I, s:b}", "verb", "tail", "session",
		argv[0], "lines", (json_int_t)lines, "follow", is_follow),
	    &answer, &fd, &e);
	if (code != CLI_DONE)
		return cli_fail(code, "%s", e.msg);
	json_decref(answer);
	viewer_run(fd, &viewer, &outcome);
	return attach_report_tail(&outcome);
}
