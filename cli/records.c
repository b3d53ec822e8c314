/*
 * Verbs over recordings: rec ls, rec cat. The file arrives as an open
 * descriptor, so that no path and no permission is needed here.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/lines.h"
#include "cli/table.h"

#define RECORDS_READ_MAX (64U << 10)

/* No event is nearly as long; what is, is no recording. */
#define RECORDS_LINE_MAX (8U << 20)

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
	struct buf b = { 0 };
	bool is_bad = false;
	int rc = 0;

	while (rc == 0 && !is_bad) {
		ssize_t n = read(
		    fd, buf_reserve(&b, RECORDS_READ_MAX), RECORDS_READ_MAX);
		size_t whole;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = err_sys(e, -errno, "cannot read the recording");
		if (n <= 0)
			break;
		buf_commit(&b, (size_t)n);
		whole = lines_whole(
		    (const char *)buf_head(&b), buf_len(&b), &is_bad);
		rc = fd_write_all(STDOUT_FILENO, buf_head(&b), whole);
		if (rc < 0)
			err_sys(e, rc, "cannot write the output");
		buf_consume(&b, whole);
		if (rc == 0 && buf_len(&b) > RECORDS_LINE_MAX)
			rc = err_set(e, -EBADMSG,
			    "the recording has a line over %u bytes",
			    RECORDS_LINE_MAX);
	}
	buf_release(&b);
	return rc;
}

int
verb_rec_cat(struct cli *c, int argc, char **argv)
{
	struct err e = { 0 };
	json_t *answer = NULL;
	autoclose int fd = -1;
	int code;

	if (argc != 1 || argv[0][0] == '-')
		return cli_usage(c, "which recording?");
	code = client_ask_once(c->socket,
	    json_pack("{s:s, s:s}", "verb", "rec_cat", "recording", argv[0]),
	    &answer, &fd, &e);
	if (code != CLI_DONE)
		return cli_fail(code, "%s", e.msg);
	json_decref(answer);
	if (records_copy(fd, &e) < 0)
		return cli_fail(CLI_FAILED, "%s", e.msg);
	return CLI_DONE;
}
