/*
 * Verbs over sessions: ls, new, kill, rm, info. Each asks once and prints the
 * answer; the decisions are berthd's.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/table.h"
#include "cli/who.h"

static const struct column sessions_columns[] = {
	{ "ID", "id", COLUMN_TEXT },
	{ "SANDBOX", "sandbox", COLUMN_TEXT },
	{ "NAME", "name", COLUMN_TEXT },
	{ "KIND", "kind", COLUMN_TEXT },
	{ "STATUS", "status", COLUMN_TEXT },
	{ "PID", "pid", COLUMN_NUMBER },
	{ "COLS", "cols", COLUMN_NUMBER },
	{ "ROWS", "rows", COLUMN_NUMBER },
	{ "ATTACHED", "attached", COLUMN_NUMBER },
	{ "OUT", "bytes_out", COLUMN_BYTES },
	{ "CREATED", "created_ms", COLUMN_TIME },
	/* with -a only */
	{ "EXITED", "exited_ms", COLUMN_TIME },
	{ "CODE", "exit_code", COLUMN_NUMBER },
	{ "SIGNAL", "exit_signal", COLUMN_TEXT },
};

#define SESSIONS_COLUMNS_ENDED 3

/* What `info` prints, a line each. */
static const struct column sessions_info[] = {
	{ "id", "id", COLUMN_TEXT },
	{ "sandbox", "sandbox", COLUMN_TEXT },
	{ "name", "name", COLUMN_TEXT },
	{ "kind", "kind", COLUMN_TEXT },
	{ "status", "status", COLUMN_TEXT },
	{ "exit code", "exit_code", COLUMN_NUMBER },
	{ "exit signal", "exit_signal", COLUMN_TEXT },
	{ "reason", "reason", COLUMN_TEXT },
	{ "pid", "pid", COLUMN_NUMBER },
	{ "columns", "cols", COLUMN_NUMBER },
	{ "rows", "rows", COLUMN_NUMBER },
	{ "cwd", "cwd", COLUMN_TEXT },
	{ "created", "created_ms", COLUMN_TIME },
	{ "started", "started_ms", COLUMN_TIME },
	{ "exited", "exited_ms", COLUMN_TIME },
	{ "bytes out", "bytes_out", COLUMN_NUMBER },
	{ "bytes in", "bytes_in", COLUMN_NUMBER },
	{ "recording", "recording_id", COLUMN_TEXT },
	{ "path", "path", COLUMN_TEXT },
};

int
verb_ls(struct cli *c, int argc, char **argv)
{
	bool is_all = false, is_json = false;
	const struct arg_option options[] = {
		{ 'a', ARG_FLAG, "all", &is_all },
		{ 0, ARG_FLAG, "json", &is_json },
	};
	struct err e = { 0 };
	json_t *answer = NULL, *rows;
	size_t n = ARRAY_LEN(sessions_columns);
	int code;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 0)
		return cli_usage(
		    c, "%s", argc < 0 ? e.msg : "there are no arguments");
	code = client_ask_once(c->socket,
	    json_pack("{s:s, s:b}", "verb", "ls", "all", is_all), &answer, NULL,
	    &e);
	if (code != CLI_DONE)
		return cli_fail(code, "%s", e.msg);
	rows = json_object_get(answer, "rows");
	if (is_json)
		table_print_json(rows, stdout);
	else
		table_print(rows, sessions_columns,
		    is_all ? n : n - SESSIONS_COLUMNS_ENDED, stdout);
	json_decref(answer);
	return CLI_DONE;
}

static json_t *
sessions_strings(const char *const *items, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++) {
		/* Invalid UTF-8 has no place in JSON. */
		if (json_array_append_new(array, json_string(items[i])) < 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

int
verb_new(struct cli *c, int argc, char **argv)
{
	const char *sandbox = NULL, *name = NULL, *cwd = NULL;
	struct arg_list env = { .n = 0 };
	bool has_no_pty = false;
	const struct arg_option options[] = {
		{ 's', ARG_TEXT, "sandbox", &sandbox },
		{ 'n', ARG_TEXT, "name", &name },
		{ 0, ARG_FLAG, "no-pty", &has_no_pty },
		{ 'd', ARG_TEXT, "dir", &cwd },
		{ 'e', ARG_LIST, "env", &env },
	};
	struct err e = { 0 };
	json_t *request, *answer = NULL;
	int code;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), true, &e);
	if (argc < 0)
		return cli_usage(c, "%s", e.msg);
	for (size_t i = 0; i < env.n; i++) {
		if (!strchr(env.items[i], '='))
			return cli_usage(
			    c, "-e %s is not NAME=VALUE", env.items[i]);
	}
	request = json_pack("{s:s, s:s*, s:s*, s:b, s:s*, s:o*, s:o*}", "verb",
	    "new", "sandbox", sandbox, "name", name, "pty", !has_no_pty, "cwd",
	    cwd, "env", sessions_strings(env.items, env.n), "argv",
	    sessions_strings((const char *const *)argv, (size_t)argc));
	/* A vector that is no UTF-8 would be left out without a word. */
	if (!json_object_get(request, "env") ||
	    !json_object_get(request, "argv")) {
		json_decref(request);
		return cli_usage(c, "an argument is not valid UTF-8");
	}
	if (env.n == 0)
		json_object_del(request, "env");
	if (argc == 0)
		json_object_del(request, "argv");
	code = client_ask_once(c->socket, request, &answer, NULL, &e);
	if (code != CLI_DONE)
		return cli_fail(code, "%s", e.msg);
	printf("%s\n", json_string_value(json_object_get(answer, "id")));
	json_decref(answer);
	return CLI_DONE;
}

/* The name ("KILL") of "KILL", "SIGKILL", "kill" or "9"; NULL for others. */
static const char *
sessions_signal(const char *text)
{
	uint64_t number = 0;
	int sig = proc_signal_parse(text);

	if (sig < 0 && text_parse_u64(text, 1, 31, &number) == 0)
		sig = (int)number;
	return sig > 0 ? proc_signal_name(sig) : NULL;
}

int
verb_kill(struct cli *c, int argc, char **argv)
{
	const char *sig = NULL, *session = NULL;

	for (int i = 0; i < argc; i++) {
		if (argv[i][0] == '-') {
			sig = sessions_signal(argv[i] + 1);
			if (!sig)
				return cli_usage(
				    c, "there is no signal %s", argv[i] + 1);
		} else if (!session) {
			session = argv[i];
		} else {
			return cli_usage(c, "one session at a time");
		}
	}
	if (!session)
		return cli_usage(c, "which session?");
	return client_order(c, json_pack("{s:s, s:s, s:s*}", "verb", "kill",
				   "session", session, "signal", sig));
}

int
verb_rm(struct cli *c, int argc, char **argv)
{
	if (argc != 1 || argv[0][0] == '-')
		return cli_usage(c, "which session?");
	return client_order(
	    c, json_pack("{s:s, s:s}", "verb", "rm", "session", argv[0]));
}

static void
sessions_print_info(const json_t *session)
{
	json_t *argv = json_object_get(session, "argv"), *word;
	char text[4096];
	size_t i;

	for (i = 0; i < ARRAY_LEN(sessions_info); i++) {
		const json_t *v =
		    json_object_get(session, sessions_info[i].key);

		if (!v || json_is_null(v))
			continue;
		table_format(v, sessions_info[i].kind, text, sizeof(text));
		printf("%-12s %s\n", sessions_info[i].title, text);
	}
	if (!json_is_array(argv))
		return;
	printf("%-12s", "command");
	json_array_foreach(argv, i, word)
	{
		table_format(word, COLUMN_TEXT, text, sizeof(text));
		printf(" %s", text);
	}
	printf("\n");
}

int
verb_info(struct cli *c, int argc, char **argv)
{
	bool is_json = false;
	const struct arg_option options[] = {
		{ 0, ARG_FLAG, "json", &is_json },
	};
	struct err e = { 0 };
	json_t *answer = NULL, *session, *attachments;
	int code;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 1)
		return cli_usage(c, "%s", argc < 0 ? e.msg : "which session?");
	code = client_ask_once(c->socket,
	    json_pack("{s:s, s:s}", "verb", "info", "session", argv[0]),
	    &answer, NULL, &e);
	if (code != CLI_DONE)
		return cli_fail(code, "%s", e.msg);
	session = json_object_get(answer, "session");
	attachments = json_object_get(answer, "attachments");
	if (is_json) {
		json_object_set(session, "attachments", attachments);
		table_print_json(session, stdout);
	} else {
		sessions_print_info(session);
		if (json_array_size(attachments) > 0)
			printf("\n");
		who_print(attachments, stdout);
	}
	json_decref(answer);
	return CLI_DONE;
}
