/*
 * Verbs over recordings: rec ls, rec cat. The file arrives as an open
 * descriptor, so that no path and no permission is needed here.
 */
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/record_reader.h"
#include "cli/table.h"

static const struct column records_columns[] = {
	{ "ID", "id", COLUMN_NUMBER },
	{ "SESSION", "session_id", COLUMN_TEXT },
	{ "SANDBOX", "sandbox", COLUMN_TEXT },
	{ "NAME", "name", COLUMN_TEXT },
	{ "STATE", "state", COLUMN_TEXT },
	{ "BYTES", "bytes", COLUMN_BYTES },
	{ "DURATION", "duration_ms", COLUMN_DURATION },
	{ "STARTED", "started_ms", COLUMN_TIME },
	{ "GAPS", "gaps", COLUMN_NUMBER },
};

int
verb_rec_ls(struct cli *c, int argc, char **argv)
{
	bool is_json = false;
	const struct arg_option options[] = {
		{ 0, ARG_FLAG, "json", &is_json },
	};
	struct err e = { 0 };
	json_t *answer = NULL, *rows;
	int code;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 0)
		return cli_usage(
		    c, "%s", argc < 0 ? e.msg : "there are no arguments");
	code = client_ask_once(
	    c->socket, json_pack("{s:s}", "verb", "rec_ls"), &answer, NULL, &e);
	if (code != CLI_DONE)
		return cli_fail(code, "%s", e.msg);
	rows = json_object_get(answer, "rows");
	if (is_json)
		table_print_json(rows, stdout);
	else
		table_print(
		    rows, records_columns, ARRAY_LEN(records_columns), stdout);
	json_decref(answer);
	return CLI_DONE;
}

/* Copies the whole lines of FD to stdout; a live file ends where it ends. */
static int
records_copy(int fd, struct err *e)
{
	struct record_reader r = { .fd = fd };
	const char *p;
	size_t n;
	int rc;

	while ((rc = record_reader_next(&r, &p, &n, e)) > 0) {
		rc = fd_write_all(STDOUT_FILENO, p, n);
		if (rc < 0) {
			err_sys(e, rc, "cannot write the output");
			break;
		}
	}
	record_reader_release(&r);
	return rc;
}

int
verb_rec_cat(struct cli *c, int argc, char **argv)
{
	struct err e = { 0 };
	autoclose int fd = -1;
	int code;

	if (argc != 1 || argv[0][0] == '-')
		return cli_usage(c, "which recording?");
	code = record_open(c, argv[0], &fd, &e);
	if (code != CLI_DONE)
		return cli_fail(code, "%s", e.msg);
	if (records_copy(fd, &e) < 0)
		return cli_fail(CLI_FAILED, "%s", e.msg);
	return CLI_DONE;
}
