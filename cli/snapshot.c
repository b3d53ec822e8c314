/* Verbs over snapshots of sandboxes. The work is berthd's and its helper's. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/sandbox.h"
#include "cli/table.h"

static const struct column snapshot_columns[] = {
	{ "ID", "id", COLUMN_TEXT },
	{ "SANDBOX", "sandbox", COLUMN_TEXT },
	{ "NAME", "name", COLUMN_TEXT },
	{ "TEMPLATE", "template", COLUMN_TEXT },
	{ "STATE", "state", COLUMN_TEXT },
	{ "SIZE", "bytes", COLUMN_BYTES },
	{ "FILES", "files", COLUMN_NUMBER },
	{ "SKIPPED", "skipped", COLUMN_NUMBER },
	{ "CREATED", "created_ms", COLUMN_TIME },
	{ "DESCRIPTION", "description", COLUMN_TEXT },
};

/* The row ID as JSON, and what it left out on stderr. */
static int
snapshot_tell(struct cli *c, const char *id, bool is_json)
{
	struct err e = { 0 };
	json_t *answer = NULL, *rows, *row, *shown;
	json_int_t skipped = 0;
	size_t i;
	int code = client_ask_once(c->socket,
	    json_pack("{s:s}", "verb", "sandbox_snapshots"), &answer, NULL, &e);

	if (code != CLI_DONE)
		return cli_fail(code, "%s", e.msg);
	rows = json_object_get(answer, "rows");
	shown = json_array();
	json_array_foreach(rows, i, row)
	{
		const char *is = json_string_value(json_object_get(row, "id"));

		if (!is || strcmp(is, id) != 0)
			continue;
		json_array_append(shown, row);
		skipped = json_integer_value(json_object_get(row, "skipped"));
	}
	if (is_json)
		table_print_json(shown, stdout);
	else
		printf("%s\n", id);
	if (skipped)
		fprintf(stderr,
		    "berth: %lld sockets, devices or mounts were left out\n",
		    (long long)skipped);
	json_decref(shown);
	json_decref(answer);
	return CLI_DONE;
}

int
verb_sandbox_snapshot(struct cli *c, int argc, char **argv)
{
	const char *name = NULL, *description = NULL, *id;
	bool is_json = false;
	const struct arg_option options[] = {
		{ 'n', ARG_TEXT, "name", &name },
		{ 'd', ARG_TEXT, "description", &description },
		{ 0, ARG_FLAG, "json", &is_json },
	};
	struct err e = { 0 };
	json_t *request, *answer = NULL;
	int code;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 1)
		return cli_usage(c, "%s", argc < 0 ? e.msg : "which sandbox?");
	request =
	    json_pack("{s:s, s:s, s:s*, s:s*}", "verb", "sandbox_snapshot",
		"sandbox", argv[0], "name", name, "description", description);
	if (!request)
		return cli_usage(c, "an argument is not valid UTF-8");
	code = client_ask_once(c->socket, request, &answer, NULL, &e);
	if (code != CLI_DONE)
		return cli_fail(code, "%s", e.msg);
	id = json_string_value(json_object_get(answer, "id"));
	code = snapshot_tell(c, id ? id : "", is_json);
	json_decref(answer);
	return code;
}

int
verb_sandbox_snapshots(struct cli *c, int argc, char **argv)
{
	bool is_json = false;
	const struct arg_option options[] = {
		{ 0, ARG_FLAG, "json", &is_json },
	};
	struct err e = { 0 };

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc < 0 || argc > 1)
		return cli_usage(
		    c, "%s", argc < 0 ? e.msg : "of one sandbox, or of all");
	return sandbox_print_rows(c,
	    json_pack("{s:s, s:s*}", "verb", "sandbox_snapshots", "sandbox",
		argc ? argv[0] : NULL),
	    snapshot_columns, ARRAY_LEN(snapshot_columns), is_json);
}

int
verb_sandbox_restore(struct cli *c, int argc, char **argv)
{
	const char *to = NULL, *name;
	bool is_json = false;
	const struct arg_option options[] = {
		{ 't', ARG_TEXT, "to", &to },
		{ 0, ARG_FLAG, "json", &is_json },
	};
	struct err e = { 0 };
	json_t *request, *answer = NULL;
	int code;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 1)
		return cli_usage(c, "%s", argc < 0 ? e.msg : "which snapshot?");
	request = json_pack("{s:s, s:s, s:s*}", "verb", "sandbox_restore",
	    "snapshot", argv[0], "to", to);
	if (!request)
		return cli_usage(c, "an argument is not valid UTF-8");
	code = client_ask_once(c->socket, request, &answer, NULL, &e);
	if (code != CLI_DONE)
		return cli_fail(code, "%s", e.msg);
	name = json_string_value(json_object_get(answer, "sandbox"));
	if (is_json)
		code = sandbox_print(c, name, true);
	json_decref(answer);
	return code;
}

int
verb_sandbox_forget(struct cli *c, int argc, char **argv)
{
	bool is_json = false;
	const struct arg_option options[] = {
		{ 0, ARG_FLAG, "json", &is_json },
	};
	struct err e = { 0 };
	int code;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 1)
		return cli_usage(c, "%s", argc < 0 ? e.msg : "which snapshot?");
	code = client_order(c, json_pack("{s:s, s:s}", "verb", "sandbox_forget",
				   "snapshot", argv[0]));
	if (code == CLI_DONE && is_json)
		puts("{\"ok\": true}");
	return code;
}
