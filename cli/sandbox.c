/* Verbs over sandboxes. The work is berthd's and its helper's. */
#include "cli/sandbox.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/table.h"

static const struct column sandbox_columns[] = {
	{ "NAME", "name", COLUMN_TEXT },
	{ "PROVIDER", "provider", COLUMN_TEXT },
	{ "TEMPLATE", "template", COLUMN_TEXT },
	{ "STATE", "state", COLUMN_TEXT },
	{ "SESSIONS", "sessions", COLUMN_NUMBER },
	{ "CREATED", "created_ms", COLUMN_TIME },
	{ "ACTIVE", "last_active_ms", COLUMN_TIME },
	{ "DETAIL", "detail", COLUMN_TEXT },
};

static const struct column sandbox_provider_columns[] = {
	{ "NAME", "name", COLUMN_TEXT },
	{ "CAPABILITIES", "capabilities", COLUMN_TEXT },
	{ "DESCRIPTION", "description", COLUMN_TEXT },
};

int
sandbox_print(struct cli *c, const char *name, bool is_json)
{
	struct err e = { 0 };
	json_t *answer = NULL, *rows, *row, *shown;
	size_t i;
	int code = client_ask_once(c->socket,
	    json_pack("{s:s}", "verb", "sandbox_ls"), &answer, NULL, &e);

	if (code != CLI_DONE)
		return cli_fail(code, "%s", e.msg);
	rows = json_object_get(answer, "rows");
	shown = json_array();
	json_array_foreach(rows, i, row)
	{
		const char *is =
		    json_string_value(json_object_get(row, "name"));

		if (!name || (is && strcmp(is, name) == 0))
			json_array_append(shown, row);
	}
	if (is_json)
		table_print_json(shown, stdout);
	else
		table_print(
		    shown, sandbox_columns, ARRAY_LEN(sandbox_columns), stdout);
	json_decref(shown);
	json_decref(answer);
	return CLI_DONE;
}

/* Verbs that name one sandbox, ask VERB of it, and then say how it is. */
static int
sandbox_change(struct cli *c, int argc, char **argv, const char *verb)
{
	bool is_json = false;
	const struct arg_option options[] = {
		{ 0, ARG_FLAG, "json", &is_json },
	};
	struct err e = { 0 };
	int code;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 1)
		return cli_usage(c, "%s", argc < 0 ? e.msg : "which sandbox?");
	code = client_order(
	    c, json_pack("{s:s, s:s}", "verb", verb, "sandbox", argv[0]));
	if (code != CLI_DONE || !is_json)
		return code;
	return sandbox_print(c, argv[0], true);
}

int
verb_sandbox_suspend(struct cli *c, int argc, char **argv)
{
	return sandbox_change(c, argc, argv, "sandbox_suspend");
}

int
verb_sandbox_resume(struct cli *c, int argc, char **argv)
{
	return sandbox_change(c, argc, argv, "sandbox_resume");
}

int
sandbox_print_rows(struct cli *c, json_t *request, const struct column *columns,
    size_t n, bool is_json)
{
	struct err e = { 0 };
	json_t *answer = NULL, *rows;
	int code;

	if (!request)
		return cli_usage(c, "an argument is not valid UTF-8");
	code = client_ask_once(c->socket, request, &answer, NULL, &e);
	if (code != CLI_DONE)
		return cli_fail(code, "%s", e.msg);
	rows = json_object_get(answer, "rows");
	if (is_json)
		table_print_json(rows, stdout);
	else
		table_print(rows, columns, n, stdout);
	json_decref(answer);
	return CLI_DONE;
}

/* Verbs that take nothing but --json. */
static int
sandbox_json_only(struct cli *c, int argc, char **argv, bool *is_json)
{
	const struct arg_option options[] = {
		{ 0, ARG_FLAG, "json", is_json },
	};
	struct err e = { 0 };

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 0)
		return cli_usage(
		    c, "%s", argc < 0 ? e.msg : "there are no arguments");
	return CLI_DONE;
}

int
verb_sandbox_providers(struct cli *c, int argc, char **argv)
{
	bool is_json = false;
	int code = sandbox_json_only(c, argc, argv, &is_json);

	if (code != CLI_DONE)
		return code;
	return sandbox_print_rows(c,
	    json_pack("{s:s}", "verb", "sandbox_providers"),
	    sandbox_provider_columns, ARRAY_LEN(sandbox_provider_columns),
	    is_json);
}

int
verb_sandbox_ls(struct cli *c, int argc, char **argv)
{
	bool is_json = false;
	int code = sandbox_json_only(c, argc, argv, &is_json);

	if (code != CLI_DONE)
		return code;
	return sandbox_print(c, NULL, is_json);
}

int
verb_sandbox_create(struct cli *c, int argc, char **argv)
{
	const char *template = NULL;
	bool is_json = false;
	const struct arg_option options[] = {
		{ 't', ARG_TEXT, "template", &template },
		{ 0, ARG_FLAG, "json", &is_json },
	};
	struct err e = { 0 };
	int code;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 1)
		return cli_usage(
		    c, "%s", argc < 0 ? e.msg : "which name is it to have?");
	code = client_order(
	    c, json_pack("{s:s, s:s, s:s*}", "verb", "sandbox_create",
		   "sandbox", argv[0], "template", template));
	if (code == CLI_DONE && is_json)
		return sandbox_print(c, argv[0], true);
	return code;
}

int
verb_sandbox_rm(struct cli *c, int argc, char **argv)
{
	bool is_json = false;
	const struct arg_option options[] = {
		{ 0, ARG_FLAG, "json", &is_json },
	};
	struct err e = { 0 };
	json_t *rows;
	int code;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 1)
		return cli_usage(c, "%s", argc < 0 ? e.msg : "which sandbox?");
	code = client_order(c,
	    json_pack("{s:s, s:s}", "verb", "sandbox_rm", "sandbox", argv[0]));
	if (code != CLI_DONE || !is_json)
		return code;
	rows = json_pack("[{s:s, s:s}]", "name", argv[0], "state", "gone");
	table_print_json(rows, stdout);
	json_decref(rows);
	return CLI_DONE;
}
