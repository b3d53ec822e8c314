/*
 * Verbs that put something into a session: send, eof, resize. Bytes travel as
 * base64 in pieces that fit into a request and into a frame.
 */
#include <jansson.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/base64.h"
#include "cli/cli.h"
#include "cli/client.h"

#define INPUT_PIECE_MAX (30U << 10)

/* Asks REQUEST over the open connection; nothing comes back but yes or no. */
static int
input_order(struct client *client, json_t *request, struct err *e)
{
	json_t *answer = NULL;
	int code = client_ask(client, request, &answer, e);

	json_decref(answer);
	return code;
}

static int
input_send(
    struct client *client, const char *session, const char *text, struct err *e)
{
	size_t n = strlen(text);
	int code = CLI_DONE;

	do {
		size_t piece = n < INPUT_PIECE_MAX ? n : INPUT_PIECE_MAX;
		autofree char *data = base64_encode(text, piece);

		code = input_order(client,
		    json_pack("{s:s, s:s, s:s}", "verb", "send", "session",
			session, "data", data),
		    e);
		text += piece;
		n -= piece;
	} while (n > 0 && code == CLI_DONE);
	return code;
}

int
verb_send(struct cli *c, int argc, char **argv)
{
	struct err e = { 0 };
	struct client client;
	int code;

	/* "--" may stand before a TEXT that looks like an option. */
	if (argc == 3 && strcmp(argv[1], "--") == 0)
		argv[1] = argv[--argc];
	if (argc != 2)
		return cli_usage(c, "which session, and which text?");
	if (client_open(&client, c->socket, &e) < 0)
		return cli_fail(CLI_FAILED, "%s", e.msg);
	code = input_send(&client, argv[0], argv[1], &e);
	client_close(&client);
	return code == CLI_DONE ? code : cli_fail(code, "%s", e.msg);
}

int
verb_eof(struct cli *c, int argc, char **argv)
{
	if (argc != 1 || argv[0][0] == '-')
		return cli_usage(c, "which session?");
	return client_order(
	    c, json_pack("{s:s, s:s}", "verb", "eof", "session", argv[0]));
}

int
verb_resize(struct cli *c, int argc, char **argv)
{
	bool is_unpin = false;
	const struct arg_option options[] = {
		{ 0, ARG_FLAG, "unpin", &is_unpin },
	};
	struct err e = { 0 };
	unsigned cols, rows;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc < 0)
		return cli_usage(c, "%s", e.msg);
	if (is_unpin && argc == 1)
		return client_order(
		    c, json_pack("{s:s, s:s, s:b}", "verb", "resize", "session",
			   argv[0], "unpin", true));
	if (is_unpin || argc != 2)
		return cli_usage(c, "which session, and which size?");
	if (text_parse_size2d(argv[1], &cols, &rows) < 0)
		return cli_usage(c, "%s is not a size like 80x24", argv[1]);
	return client_order(
	    c, json_pack("{s:s, s:s, s:i, s:i}", "verb", "resize", "session",
		   argv[0], "cols", (int)cols, "rows", (int)rows));
}
