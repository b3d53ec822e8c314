/*
 * `berth`, the command line for admins and scripts: finds the control socket
 * and hands over to a verb. Everything it knows it asks berthd; its exit code
 * says how that went.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "conf/conf.h"

static void
main_help(FILE *out)
{
	size_t n;
	const struct verb *verbs = verbs_all(&n);

	fputs("usage: berth [-S SOCKET] [-c FILE] VERB ...\n\n", out);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "  %s %s\n        %s\n", verbs[i].name,
		    verbs[i].args, verbs[i].help);
	fputs(
	    "\nSESSION is an id, a unique prefix of one, or SANDBOX+NAME. The "
	    "socket is -S,\n"
	    "the one of the configuration FILE, $BERTH_SOCKET, or the default "
	    "one.\n"
	    "Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 conflict, 5 "
	    "refused;\n"
	    "attach: the code of the process, 128 and its signal, or 125.\n",
	    out);
}

/* The path of the control socket, which the caller frees; NULL on failure. */
static char *
main_socket(const char *socket, const char *conf_file, struct err *e)
{
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
	const char *env = getenv("BERTH_SOCKET");
	autofree char *dir = NULL;

	if (socket)
		return xstrdup(socket);
	if (conf_file) {
		struct conf *c = NULL;

		if (conf_load(conf_file, NULL, 0, &c, e) < 0)
			return NULL;
		dir = xstrdup(c->server.runtime_dir);
		conf_free(c);
	} else if (env && *env) {
		return xstrdup(env);
	} else {
		dir = conf_default_runtime_dir();
	}
	return xasprintf("%s/control.sock", dir);
}

static int
main_run(int argc, char **argv, const char *socket, const char *conf_file)
{
	struct err e = { 0 };
	struct cli c = { 0 };
	autofree char *path = NULL;
	int n_words = 0;

	if (argc == 0) {
		main_help(stderr);
		return CLI_USAGE;
	}
	c.verb = verb_find(argc, argv, &n_words);
	if (!c.verb)
		return cli_fail(CLI_USAGE,
		    "there is no verb \"%s\"; berth --help lists them",
		    argv[0]);
	path = main_socket(socket, conf_file, &e);
	if (!path)
		return cli_fail(CLI_FAILED, "%s", e.msg);
	c.socket = path;
	return c.verb->handler(&c, argc - n_words, argv + n_words);
}

int
main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	const char *socket = NULL, *conf_file = NULL;
	int c, code;

	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
	while ((c = getopt_long(argc, argv, "+S:c:h", longs, NULL)) != -1) {
		switch (c) {
		case 'S':
			socket = optarg;
			break;
		case 'c':
			conf_file = optarg;
			break;
		case 'h':
			main_help(stdout);
			return CLI_DONE;
		case 'V':
			puts("berth " BERTH_VERSION);
			return CLI_DONE;
		default:
			return CLI_USAGE;
		}
	}
	code = main_run(argc - optind, argv + optind, socket, conf_file);
	if (fflush(stdout) != 0 && code == CLI_DONE)
		return cli_fail(CLI_FAILED, "cannot write the output");
	return code;
}
