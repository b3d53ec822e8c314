/* `berth upgrade`: the connection outlives the berthd that it was made to. */
#include <jansson.h>
#include <stdio.h>

#include "base/err.h"
#include "cli/cli.h"
#include "cli/client.h"

int
verb_upgrade(struct cli *c, int argc, char **argv)
{
	struct err e = { 0 };
	json_t *answer = NULL;
	const char *from = "?", *to = "?";
	int code;

	(void)argv;
	if (argc != 0)
		return cli_usage(c, "it takes no arguments");
	code = client_ask_once(c->socket, json_pack("{s:s}", "verb", "upgrade"),
	    &answer, NULL, &e);
	if (code != CLI_DONE)
		return cli_fail(code, "%s", e.msg);
	json_unpack(answer, "{s:s, s:s}", "from", &from, "version", &to);
	printf("berthd was upgraded from %s to %s\n", from, to);
	json_decref(answer);
	return CLI_DONE;
}
