/*
 * The verb sandbox logs: what the sessions of a sandbox printed, as it was
 * recorded, in the order of time. A recording is open only while it has
 * something to say.
 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/copy_link.h"
#include "cli/log_text.h"
#include "cli/record_reader.h"

#define LOGS_LOOK_MS  250  /* at recordings that grow */
#define LOGS_ASK_MS   1000 /* whether there are more of them */
#define LOGS_TAIL_MAX 1000000

struct logs_line {
	struct list node;
	int64_t ms;
	char *text;
};

/* One recording. */
struct logs_source {
	struct list node;
	json_int_t id;
	char label[80];
	int64_t started_ms;
	bool is_live; /* the last time that berthd was asked */
	bool is_begun, is_over;
	struct record_reader reader;
	struct log_text text;
	struct list lines;
};

struct logs {
	struct cli *cli;
	const char *sandbox;
	int64_t
	    created_ms; /* of this sandbox; recordings before are another's */
	bool is_follow, is_json, has_timestamps, has_labels;
	bool is_first; /* the lines that are there at the start are collected */
	bool has_tail;
	uint64_t tail;
	struct list sources; /* by their start */
	unsigned n_sources;
	json_int_t newest; /* id of the newest one that is known */
	struct list kept;  /* struct logs_line, the last `tail` ones */
	uint64_t n_kept;
	struct err *e;
};

static volatile sig_atomic_t logs_is_stopped;

static void
logs_on_signal(int number)
{
	logs_is_stopped = number;
}

/* ---- lines ----------------------------------------------------------------- */

/* There is one. */
static struct logs_line *
logs_first(const struct list *lines)
{
	return list_entry(lines->next, struct logs_line, node);
}

static void
logs_line_free(struct logs_line *l)
{
	list_remove(&l->node);
	free(l->text);
	free(l);
}

static void
logs_on_line(int64_t ms, const char *text, void *arg)
{
	struct logs_source *s = arg;
	struct logs_line *l = xcalloc(1, sizeof(*l));

	l->ms = ms;
	l->text = xstrdup(text);
	list_append(&s->lines, &l->node);
}

/* Takes O over; what cannot be told is null. */
static char *
logs_json(json_t *o)
{
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;

	json_decref(o);
	return text ? text : xstrdup("null");
}

/* "2026-01-02T03:04:05.678Z ", "name | " and the line. */
static char *
logs_format(const struct logs *g, const struct logs_source *s,
    const struct logs_line *l)
{
	time_t seconds = (time_t)(l->ms / 1000);
	char when[40] = "";
	struct tm tm;
	size_t n;

	if (g->is_json)
		return logs_json(json_pack("{s:I, s:s, s:s}", "time_ms",
		    (json_int_t)l->ms, "session", s->label, "text", l->text));
	if (g->has_timestamps && gmtime_r(&seconds, &tm)) {
		n = strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
		snprintf(
		    when + n, sizeof(when) - n, ".%03dZ ", (int)(l->ms % 1000));
	}
	return xasprintf("%s%s%s%s", when, g->has_labels ? s->label : "",
	    g->has_labels ? " | " : "", l->text);
}

/* Prints L of S, or keeps it while only the last ones are wanted; frees it. */
static void
logs_put(struct logs *g, const struct logs_source *s, struct logs_line *l)
{
	char *text = logs_format(g, s, l);

	if (!g->is_first || !g->has_tail) {
		puts(text);
		free(text);
		logs_line_free(l);
		return;
	}
	list_remove(&l->node);
	free(l->text);
	l->text = text;
	list_append(&g->kept, &l->node);
	if (++g->n_kept > g->tail) {
		logs_line_free(logs_first(&g->kept));
		g->n_kept--;
	}
}

/* ---- sources --------------------------------------------------------------- */

static void
logs_source_free(struct logs_source *s)
{
	list_remove(&s->node);
	while (!list_empty(&s->lines))
		logs_line_free(logs_first(&s->lines));
	if (s->reader.fd >= 0)
		close(s->reader.fd);
	record_reader_release(&s->reader);
	log_text_release(&s->text);
	free(s);
}

/* An event of a recording; others than output say nothing here. */
static void
logs_take_event(struct logs_source *s, const char *p, size_t n)
{
	json_t *event = json_loadb(p, n, JSON_ALLOW_NUL, NULL);
	json_t *data = json_array_get(event, 2);
	const char *kind = json_string_value(json_array_get(event, 1));
	double at = json_number_value(json_array_get(event, 0));

	if (kind && strcmp(kind, "o") == 0 && json_is_string(data) && at >= 0 &&
	    at < 1e10)
		log_text_feed(&s->text, json_string_value(data),
		    json_string_length(data),
		    s->started_ms + (int64_t)(at * 1000));
	json_decref(event);
}

static int
logs_source_open(struct logs *g, struct logs_source *s)
{
	char id[32];
	int code;

	s->is_begun = true;
	snprintf(id, sizeof(id), "%" JSON_INTEGER_FORMAT, s->id);
	code = record_open(g->cli, id, &s->reader.fd, g->e);
	/* It was pruned since it was listed. */
	if (code == CLI_NOT_FOUND)
		s->is_over = true;
	return code == CLI_NOT_FOUND ? CLI_DONE : code;
}

/* Reads until it has a line, or at its end. */
static int
logs_source_fill(struct logs *g, struct logs_source *s)
{
	while (list_empty(&s->lines) && !s->is_over) {
		const char *p, *nl;
		size_t n;
		int rc;

		s->reader.is_over = false;
		rc = record_reader_next(&s->reader, &p, &n, g->e);
		if (rc < 0)
			return CLI_FAILED;
		for (; rc > 0 && n; n -= (size_t)(nl + 1 - p), p = nl + 1) {
			nl = memchr(p, '\n', n);
			logs_take_event(s, p, (size_t)(nl - p));
		}
		if (rc > 0)
			continue;
		if (s->is_live && g->is_follow && !s->reader.is_bad)
			break;
		log_text_end(&s->text);
		s->is_over = true;
	}
	return CLI_DONE;
}

static struct logs_source *
logs_source_find(const struct logs *g, json_int_t id)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &g->sources) {
		struct logs_source *s =
		    list_entry(pos, struct logs_source, node);

		if (s->id == id)
			return s;
	}
	return NULL;
}

static int64_t
logs_number(const json_t *row, const char *key)
{
	return (int64_t)json_integer_value(json_object_get(row, key));
}

static const char *
logs_text(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s ? s : "";
}

static void
logs_source_add(struct logs *g, const json_t *row)
{
	struct logs_source *s = xcalloc(1, sizeof(*s));
	const char *name = logs_text(row, "name");

	s->id = json_integer_value(json_object_get(row, "id"));
	s->started_ms = logs_number(row, "started_ms");
	s->reader.fd = -1;
	s->text.fn = logs_on_line;
	s->text.arg = s;
	list_init(&s->lines);
	/* A private process has no name, berth's own begin with a dot. */
	if (!*name)
		name = logs_text(row, "session_id");
	name += *name == '.';
	text_escape(name, strlen(name), s->label, sizeof(s->label));
	list_append(&g->sources, &s->node);
	g->n_sources++;
}

/* Asks which recordings there are, and how they are. */
static int
logs_ask(struct logs *g)
{
	json_t *answer = NULL, *row;
	size_t i;
	int code = client_ask_once(g->cli->socket,
	    json_pack("{s:s, s:s}", "verb", "rec_ls", "sandbox", g->sandbox),
	    &answer, NULL, g->e);

	if (code != CLI_DONE)
		return code;
	json_array_foreach(json_object_get(answer, "rows"), i, row)
	{
		json_int_t id = json_integer_value(json_object_get(row, "id"));
		bool is_new = id > g->newest;
		struct logs_source *s = logs_source_find(g, id);

		if (logs_number(row, "started_ms") < g->created_ms ||
		    strcmp(logs_text(row, "state"), "pruned") == 0)
			continue;
		if (is_new) {
			logs_source_add(g, row);
			s = list_entry(
			    g->sources.prev, struct logs_source, node);
			g->newest = id;
		}
		if (s)
			s->is_live =
			    strcmp(logs_text(row, "state"), "open") == 0;
	}
	json_decref(answer);
	g->has_labels = g->n_sources > 1;
	return CLI_DONE;
}

/* What live sessions said just now may not be in their files yet. */
static void
logs_flush(struct logs *g)
{
	json_t *answer = NULL, *row;
	struct err e;
	size_t i;

	if (client_ask_once(g->cli->socket, json_pack("{s:s}", "verb", "ls"),
		&answer, NULL, &e) != CLI_DONE)
		return;
	json_array_foreach(json_object_get(answer, "rows"), i, row)
	{
		json_t *done = NULL;

		if (strcmp(logs_text(row, "sandbox"), g->sandbox) != 0)
			continue;
		client_ask_once(g->cli->socket,
		    json_pack("{s:s, s:s}", "verb", "rec_flush", "session",
			logs_text(row, "id")),
		    &done, NULL, &e);
		json_decref(done);
	}
	json_decref(answer);
}

/* When the sandbox was made; CLI_NOT_FOUND if it is not there. */
static int
logs_find_sandbox(struct logs *g)
{
	json_t *answer = NULL, *row;
	size_t i;
	int code = client_ask_once(g->cli->socket,
	    json_pack("{s:s}", "verb", "sandbox_ls"), &answer, NULL, g->e);

	if (code != CLI_DONE)
		return code;
	code = CLI_NOT_FOUND;
	json_array_foreach(json_object_get(answer, "rows"), i, row)
	{
		int64_t created_ms = logs_number(row, "created_ms");

		if (strcmp(logs_text(row, "name"), g->sandbox) != 0)
			continue;
		/* Another one of that name is not the one that was asked for. */
		if (g->created_ms && g->created_ms != created_ms)
			continue;
		g->created_ms = created_ms;
		code = CLI_DONE;
	}
	json_decref(answer);
	if (code == CLI_NOT_FOUND)
		err_set(g->e, -ENOENT, "there is no sandbox %s", g->sandbox);
	return code;
}

/* ---- merging --------------------------------------------------------------- */

/* The source of the next line in *OUT, NULL when nobody has one now. */
static int
logs_next(struct logs *g, struct logs_source **out)
{
	struct list *pos, *tmp;

	*out = NULL;
	list_for_each (pos, tmp, &g->sources) {
		struct logs_source *s =
		    list_entry(pos, struct logs_source, node);
		const struct logs_line *best =
		    *out ? logs_first(&(*out)->lines) : NULL;
		int code = CLI_DONE;

		/* They are by their start: the rest begins later still. */
		if (!s->is_begun && best && best->ms <= s->started_ms)
			break;
		if (!s->is_begun)
			code = logs_source_open(g, s);
		if (code == CLI_DONE)
			code = logs_source_fill(g, s);
		if (code != CLI_DONE)
			return code;
		if (list_empty(&s->lines)) {
			if (s->is_over)
				logs_source_free(s);
			continue;
		}
		if (!best || logs_first(&s->lines)->ms < best->ms)
			*out = s;
	}
	return CLI_DONE;
}

static int
logs_drain(struct logs *g)
{
	struct logs_source *s;
	int code;

	while ((code = logs_next(g, &s)) == CLI_DONE && s && !logs_is_stopped)
		logs_put(g, s, logs_first(&s->lines));
	while (!list_empty(&g->kept)) {
		struct logs_line *l = logs_first(&g->kept);

		puts(l->text);
		logs_line_free(l);
	}
	g->is_first = false;
	if (code == CLI_DONE && (fflush(stdout) != 0 || ferror(stdout)))
		return CLI_FAILED;
	return code;
}

/* Until it is interrupted or the sandbox is gone, which both are its end. */
static int
logs_follow(struct logs *g)
{
	int64_t asked_ms = clock_mono_ms();
	int code = CLI_DONE;

	while (code == CLI_DONE && !logs_is_stopped) {
		poll(NULL, 0, LOGS_LOOK_MS);
		if (clock_mono_ms() - asked_ms >= LOGS_ASK_MS) {
			asked_ms = clock_mono_ms();
			code = logs_find_sandbox(g);
			if (code == CLI_NOT_FOUND) {
				g->is_follow = false;
				logs_drain(g);
				return CLI_DONE;
			}
			if (code == CLI_DONE)
				code = logs_ask(g);
		}
		if (code == CLI_DONE)
			code = logs_drain(g);
	}
	return code;
}

static void
logs_catch_signals(void)
{
	struct sigaction a = { .sa_handler = logs_on_signal };

	sigaction(SIGINT, &a, NULL);
	sigaction(SIGTERM, &a, NULL);
}

static int
logs_run(struct logs *g)
{
	int code = logs_find_sandbox(g);

	if (code != CLI_DONE)
		return code;
	logs_flush(g);
	code = logs_ask(g);
	if (code == CLI_DONE)
		code = logs_drain(g);
	if (code == CLI_DONE && g->is_follow)
		code = logs_follow(g);
	return code;
}

/* ---- the engine's own ------------------------------------------------------ */

static void
logs_on_engine_line(int64_t ms, const char *line, void *arg)
{
	const struct logs *g = arg;
	autofree char *text =
	    g->is_json ? logs_json(json_pack("{s:s}", "text", line)) : NULL;

	(void)ms;
	puts(text ? text : line);
}

/* What the engine prints, as lines; it adds times itself. */
static int
logs_engine(const struct logs *g)
{
	struct log_text text = { .fn = logs_on_engine_line,
		.arg = (void *)(uintptr_t)g };
	struct copy_link l;
	json_t *answer = NULL,
	       *request = json_pack("{s:s, s:s, s:b, s:b}", "verb",
		   "sandbox_logs", "sandbox", g->sandbox, "follow",
		   g->is_follow, "timestamps", g->has_timestamps);
	char space[16384];
	int fd = -1, code;
	ssize_t n;

	if (g->has_tail)
		json_object_set_new(
		    request, "tail", json_integer((json_int_t)g->tail));
	code = client_ask_once(g->cli->socket, request, &answer, &fd, g->e);
	if (code != CLI_DONE)
		return code;
	json_decref(answer);
	if (copy_link_start(&l, fd, g->e) < 0)
		return CLI_FAILED;
	while (!logs_is_stopped &&
	       (n = read(l.from_fd, space, sizeof(space))) > 0) {
		log_text_feed(&text, space, (size_t)n, 0);
		(void)fflush(stdout);
	}
	log_text_end(&text);
	log_text_release(&text);
	code = copy_link_end(&l, logs_is_stopped != 0);
	if (logs_is_stopped || code == 0)
		return CLI_DONE;
	err_set(g->e, -EIO, "the engine's log: %s",
	    l.why[0] ? l.why : "its command failed");
	return CLI_FAILED;
}

int
verb_sandbox_logs(struct cli *c, int argc, char **argv)
{
	const char *tail = NULL;
	bool is_engine = false;
	struct err e = { 0 };
	struct logs g = { .cli = c, .is_first = true, .e = &e };
	const struct arg_option options[] = {
		{ 'f', ARG_FLAG, "follow", &g.is_follow },
		{ 'n', ARG_TEXT, "tail", &tail },
		{ 't', ARG_FLAG, "timestamps", &g.has_timestamps },
		{ 0, ARG_FLAG, "engine", &is_engine },
		{ 0, ARG_FLAG, "json", &g.is_json },
	};
	int code;

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 1)
		return cli_usage(c, "%s", argc < 0 ? e.msg : "which sandbox?");
	g.has_tail = tail && strcmp(tail, "all") != 0;
	if (g.has_tail && text_parse_u64(tail, 0, LOGS_TAIL_MAX, &g.tail) < 0)
		return cli_usage(c, "%s is not a number of lines", tail);
	g.sandbox = argv[0];
	list_init(&g.sources);
	list_init(&g.kept);
	logs_catch_signals();
	code = is_engine ? logs_engine(&g) : logs_run(&g);
	while (!list_empty(&g.sources))
		logs_source_free(
		    list_entry(g.sources.next, struct logs_source, node));
	if (code == CLI_DONE)
		return CLI_DONE;
	return cli_fail(code, "%s", *e.msg ? e.msg : "cannot write the output");
}
