/*
 * The verb sandbox stats: what sandboxes use, once, or again and again until it
 * is interrupted; on a terminal in place, else one list after the other.
 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "sessions/wire/messages.h"

#define STATS_SECONDS_MIN 0.1
#define STATS_SECONDS_MAX 86400

static const struct column stats_columns[] = {
	{ "NAME", "name", COLUMN_TEXT },
	{ "CPU", "cpu_ms", COLUMN_DURATION },
	{ "MEMORY", "memory_bytes", COLUMN_BYTES },
	{ "PEAK", "memory_peak_bytes", COLUMN_BYTES },
	{ "LIMIT", "memory_limit_bytes", COLUMN_BYTES },
	{ "PROCESSES", "processes", COLUMN_NUMBER },
	{ "LIMIT", "processes_limit", COLUMN_NUMBER },
	{ "RECEIVED", "net_rx_bytes", COLUMN_BYTES },
	{ "SENT", "net_tx_bytes", COLUMN_BYTES },
	{ "OOM", "oom_kills", COLUMN_NUMBER },
	{ "DETAIL", "detail", COLUMN_TEXT },
};

static volatile sig_atomic_t stats_is_stopped;

static void
stats_on_signal(int number)
{
	stats_is_stopped = number;
}

/*
 * TEXT in the place of what the terminal shows: each line cut at the right edge
 * and erased behind, and not more of them than there are rows.
 */
static void
stats_repaint(const char *text)
{
	struct wire_size size = { 0 };
	uint32_t left;

	terminal_size(&size);
	left = size.rows;
	fputs("\033[H", stdout);
	while (*text && (size.rows == 0 || --left > 0)) {
		size_t n = strcspn(text, "\n");
		size_t shown = size.cols && n > size.cols ? size.cols : n;

		printf("%.*s\033[K\r\n", (int)shown, text);
		text += n + (text[n] == '\n');
	}
	fputs("\033[J", stdout);
}

static void
stats_print(const json_t *rows, bool is_json, bool is_watch)
{
	char *text = NULL;
	size_t n = 0;
	FILE *memory;

	if (is_json && is_watch) {
		json_dumpf(rows, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
		fputc('\n', stdout);
		return;
	}
	if (is_json) {
		table_print_json(rows, stdout);
		return;
	}
	if (!is_watch || !isatty(STDOUT_FILENO)) {
		table_print(
		    rows, stats_columns, ARRAY_LEN(stats_columns), stdout);
		return;
	}
	memory = open_memstream(&text, &n);
	if (!memory)
		return;
	table_print(rows, stats_columns, ARRAY_LEN(stats_columns), memory);
	(void)fclose(memory);
	stats_repaint(text);
	free(text);
}

/* Asks once and prints; an exit code, its sentence in E. */
static int
stats_once(const struct cli *c, const char *name, bool is_json, bool is_watch,
    struct err *e)
{
	json_t *answer = NULL;
	json_t *request =
	    json_pack("{s:s, s:s*}", "verb", "sandbox_stats", "sandbox", name);
	int code = request
		       ? client_ask_once(c->socket, request, &answer, NULL, e)
		       : CLI_USAGE;

	if (!request)
		err_set(e, -EINVAL, "an argument is not valid UTF-8");
	if (code != CLI_DONE)
		return code;
	stats_print(json_object_get(answer, "rows"), is_json, is_watch);
	json_decref(answer);
	return CLI_DONE;
}

/* Every MS until a signal comes, which is how one ends it. */
static int
stats_watch(const struct cli *c, const char *name, bool is_json, int64_t ms,
    struct err *e)
{
	bool is_terminal = !is_json && isatty(STDOUT_FILENO);
	struct sigaction a = { .sa_handler = stats_on_signal };
	int64_t next_ms = clock_mono_ms();
	int code = CLI_DONE;

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
	if (is_terminal)
		fputs("\033[2J\033[?25l", stdout);
	while (code == CLI_DONE && !stats_is_stopped) {
		code = stats_once(c, name, is_json, true, e);
		if (code == CLI_DONE && (fflush(stdout) != 0 || ferror(stdout)))
			return CLI_FAILED;
		next_ms += ms;
		while (code == CLI_DONE && !stats_is_stopped &&
		       clock_mono_ms() < next_ms)
			poll(NULL, 0, (int)(next_ms - clock_mono_ms()));
	}
	if (is_terminal)
		fputs("\033[?25h", stdout);
	(void)fflush(stdout);
	return stats_is_stopped ? CLI_DONE : code;
}

int
verb_sandbox_stats(struct cli *c, int argc, char **argv)
{
	bool is_json = false, is_watch = false;
	const char *every = NULL;
	const struct arg_option options[] = {
		{ 0, ARG_FLAG, "json", &is_json },
		{ 'w', ARG_FLAG, "watch", &is_watch },
		{ 'n', ARG_TEXT, "interval", &every },
	};
	struct err e = { 0 };
	double seconds = 2;
	char *end = NULL;
	int code;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc < 0 || argc > 1)
		return cli_usage(
		    c, "%s", argc < 0 ? e.msg : "one sandbox, or all");
	if (every) {
		seconds = strtod(every, &end);
		if (end == every || *end || !(seconds >= STATS_SECONDS_MIN) ||
		    seconds > STATS_SECONDS_MAX)
			return cli_usage(
			    c, "%s is not a number of seconds", every);
	}
	code = is_watch
		   ? stats_watch(c, argc ? argv[0] : NULL, is_json,
			 (int64_t)(seconds * 1000), &e)
		   : stats_once(c, argc ? argv[0] : NULL, is_json, false, &e);
	return code == CLI_DONE ? code : cli_fail(code, "%s", e.msg);
}
