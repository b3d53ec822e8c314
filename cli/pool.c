/* `berth sandbox pool`: sandboxes that are made ahead. The work is berthd's. */
#include <jansson.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/sandbox.h"
#include "cli/table.h"

static const struct column pool_columns[] = {
	{ "TEMPLATE", "template", COLUMN_TEXT },
	{ "PROVIDER", "provider", COLUMN_TEXT },
	{ "READY", "ready", COLUMN_NUMBER },
	{ "ALLOCATED", "allocated", COLUMN_NUMBER },
	{ "TARGET", "target", COLUMN_NUMBER },
	{ "CONFIGURED", "configured", COLUMN_NUMBER },
	{ "DETAIL", "detail", COLUMN_TEXT },
};

/* The request for the words ARGV; NULL: one of them is no UTF-8. */
static int
pool_request(struct cli *c, int argc, char **argv, json_t **out)
{
	uint64_t size;

	if (argc == 1 && strcmp(argv[0], "ls") == 0) {
		*out = json_pack("{s:s}", "verb", "sandbox_pools");
		return CLI_DONE;
	}
	if (argc == 2 && strcmp(argv[0], "get") == 0) {
		*out = json_pack(
		    "{s:s, s:s}", "verb", "sandbox_pools", "template", argv[1]);
		return CLI_DONE;
	}
	if (argc != 3 || strcmp(argv[0], "scale") != 0)
		return cli_usage(c, "ls, get with a template, or scale with a "
				    "template and a number?");
	if (text_parse_u64(argv[2], 0, UINT32_MAX, &size) < 0)
		return cli_usage(
		    c, "\"%s\" is not a number of sandboxes", argv[2]);
	*out = json_pack("{s:s, s:s, s:I}", "verb", "sandbox_pool_scale",
	    "template", argv[1], "size", (json_int_t)size);
	return CLI_DONE;
}

int
verb_sandbox_pool(struct cli *c, int argc, char **argv)
{
	bool is_json = false;
	const struct arg_option options[] = {
		{ 0, ARG_FLAG, "json", &is_json },
	};
	struct err e = { 0 };
	json_t *request = NULL;
	int code;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc < 0)
		return cli_usage(c, "%s", e.msg);
	code = pool_request(c, argc, argv, &request);
	if (code != CLI_DONE)
		return code;
	return sandbox_print_rows(
	    c, request, pool_columns, ARRAY_LEN(pool_columns), is_json);
}
