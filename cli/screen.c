/*
 * The verb screen: what a session's terminal shows, as text. It arrives as an
 * open file, however long it is. What is printed holds no control but the line
 * ends, unless colours were asked for.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/table.h"

/* More than the longest scrollback with colours in every cell. */
#define SCREEN_TEXT_MAX (1U << 30)

/* The keeper promises it; a terminal must not depend on that. */
static void
screen_disarm(char *p, size_t n)
{
	for (size_t i = 0; i < n;) {
		int len = text_utf8_len((uint8_t *)p + i, n - i);
		uint8_t c = (uint8_t)p[i];
		bool is_c1 = len == 2 && c == 0xc2 && (uint8_t)p[i + 1] < 0xa0;

		if (len <= 0 || (c < ' ' && c != '\n') || c == 0x7f)
			p[i] = '?';
		else if (is_c1)
			memset(p + i, '?', 2);
		i += len > 0 ? (size_t)len : 1;
	}
}

/* Adds the lines of TEXT to ANSWER and leaves out what is no news. */
static void
screen_print_json(json_t *answer, const char *p, size_t n)
{
	json_t *lines = json_array();

	while (n) {
		const char *nl = memchr(p, '\n', n);
		size_t len = nl ? (size_t)(nl - p) : n;
		json_t *line = json_stringn(p, len);

		json_array_append_new(lines, line ? line : json_string(""));
		len += nl != NULL;
		p += len;
		n -= len;
	}
	json_object_del(answer, "ok");
	json_object_del(answer, "fd");
	json_object_set_new(answer, "lines", lines);
	table_print_json(answer, stdout);
}

static int
screen_print(json_t *answer, int fd, bool is_ansi, bool is_json)
{
	struct buf b = { 0 };
	struct err e = { 0 };
	int rc = fd_read_all(fd, SCREEN_TEXT_MAX, &b);

	if (rc < 0)
		err_sys(&e, rc, "cannot read the screen");
	if (rc == 0 && !is_ansi && buf_len(&b))
		screen_disarm((char *)b.data + b.start, buf_len(&b));
	if (rc == 0 && is_json) {
		screen_print_json(
		    answer, (const char *)buf_head(&b), buf_len(&b));
	} else if (rc == 0) {
		rc = fd_write_all(STDOUT_FILENO, buf_head(&b), buf_len(&b));
		if (rc < 0)
			err_sys(&e, rc, "cannot write the output");
	}
	buf_release(&b);
	return rc < 0 ? cli_fail(CLI_FAILED, "%s", e.msg) : CLI_DONE;
}

int
verb_screen(struct cli *c, int argc, char **argv)
{
	bool is_ansi = false, has_history = false, is_json = false;
	const struct arg_option options[] = {
		{ 0, ARG_FLAG, "ansi", &is_ansi },
		{ 0, ARG_FLAG, "history", &has_history },
		{ 0, ARG_FLAG, "json", &is_json },
	};
	struct err e = { 0 };
	json_t *answer = NULL;
	autoclose int fd = -1;
	int code;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 1)
		return cli_usage(c, "%s", argc < 0 ? e.msg : "which session?");
	code = client_ask_once(c->socket,
	    json_pack("{s:s, s:s, s:b, s:b}", "verb", "screen", "session",
		argv[0], "ansi", is_ansi, "history", has_history),
	    &answer, &fd, &e);
	if (code != CLI_DONE)
		return cli_fail(code, "%s", e.msg);
	code = screen_print(answer, fd, is_ansi, is_json);
	json_decref(answer);
	return code;
}
