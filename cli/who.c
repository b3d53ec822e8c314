/* The verbs who and kick: who is attached where, and an end to that. */
#include "cli/who.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/table.h"

static const struct column who_columns[] = {
	{ "ID", "id", COLUMN_NUMBER },
	{ "SANDBOX", "sandbox", COLUMN_TEXT },
	{ "NAME", "name", COLUMN_TEXT },
	{ "SESSION", "session_id", COLUMN_TEXT },
	{ "IDENTITY", "identity", COLUMN_TEXT },
	{ "ROLE", "role", COLUMN_TEXT },
	{ "COLS", "cols", COLUMN_NUMBER },
	{ "ROWS", "rows", COLUMN_NUMBER },
	{ "RESYNCS", "resyncs", COLUMN_NUMBER },
	{ "FROM", "remote_addr", COLUMN_TEXT },
	{ "SINCE", "attached_ms", COLUMN_TIME },
	{ "CLIENT", "client_version", COLUMN_TEXT },
};

void
who_print(const json_t *rows, FILE *out)
{
	table_print(rows, who_columns, ARRAY_LEN(who_columns), out);
}

int
verb_who(struct cli *c, int argc, char **argv)
{
	bool is_json = false;
	const struct arg_option options[] = {
		{ 0, ARG_FLAG, "json", &is_json },
	};
	struct err e = { 0 };
	json_t *answer = NULL;
	int code;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 0)
		return cli_usage(
		    c, "%s", argc < 0 ? e.msg : "there are no arguments");
	code = client_ask_once(
	    c->socket, json_pack("{s:s}", "verb", "who"), &answer, NULL, &e);
	if (code != CLI_DONE)
		return cli_fail(code, "%s", e.msg);
	if (is_json)
		table_print_json(json_object_get(answer, "rows"), stdout);
	else
		who_print(json_object_get(answer, "rows"), stdout);
	json_decref(answer);
	return CLI_DONE;
}

int
verb_kick(struct cli *c, int argc, char **argv)
{
	struct err e = { 0 };
	json_t *answer = NULL;
	uint64_t id = 0;
	int code;

	if (argc != 1)
		return cli_usage(c, "which attachment?");
	if (text_parse_u64(argv[0], 1, INT64_MAX, &id) < 0)
		return cli_usage(
		    c, "%s is not the number of an attachment", argv[0]);
	code = client_ask_once(c->socket,
	    json_pack(
		"{s:s, s:I}", "verb", "kick", "attachment", (json_int_t)id),
	    &answer, NULL, &e);
	json_decref(answer);
	return code == CLI_DONE ? code : cli_fail(code, "%s", e.msg);
}
