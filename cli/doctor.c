/*
 * The verb doctor: looks at the installation from outside and asks berthd about
 * itself. One line a check; `fail` is what keeps berth from its job, `warn`
 * what one should know.
 */
#include <jansson.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/table.h"

enum doctor_level {
	DOCTOR_OK,
	DOCTOR_WARN,
	DOCTOR_FAIL
};

struct doctor {
	const struct cli *cli;
	json_t *results; /* of { status, check, detail } */
	json_t *status;  /* berthd's answer, NULL when it did not answer */
	bool has_failed;
	char exe_dir[4096]; /* where this program is, "" if unknown */
};

static void doctor_say(struct doctor *d, enum doctor_level level,
    const char *check, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void
doctor_say(struct doctor *d, enum doctor_level level, const char *check,
    const char *fmt, ...)
{
	static const char *const names[] = { "ok", "warn", "fail" };
	char detail[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);
	d->has_failed = d->has_failed || level == DOCTOR_FAIL;
	json_array_append_new(
	    d->results, json_pack("{s:s, s:s, s:s}", "status", names[level],
			    "check", check, "detail", detail));
}

static void
doctor_find_self(struct doctor *d)
{
	ssize_t n =
	    readlink("/proc/self/exe", d->exe_dir, sizeof(d->exe_dir) - 1);
	char *slash;

	d->exe_dir[n > 0 ? n : 0] = '\0';
	slash = strrchr(d->exe_dir, '/');
	if (slash)
		*slash = '\0';
}

/* Beside this program, as built, or in the places of an installation. */
static void
doctor_check_program(struct doctor *d, const char *name)
{
	const struct {
		const char *dir, *rest;
	} places[] = {
		{ d->exe_dir, "" },
		{ d->exe_dir, "/../sbin" },
		{ d->exe_dir, "/../libexec/berth" },
		{ BERTH_LIBEXECDIR, "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		autofree char *path =
		    xasprintf("%s%s/%s", places[i].dir, places[i].rest, name);

		if (access(path, X_OK) == 0) {
			doctor_say(d, DOCTOR_OK, name, "%s", path);
			return;
		}
	}
	doctor_say(d, DOCTOR_FAIL, name,
	    "not found beside %s; build or install it", d->exe_dir);
}

static void
doctor_check_programs(struct doctor *d)
{
	static const char *const programs[] = { "berthd", "berth-sshd",
		"berth-session" };

	for (size_t i = 0; i < ARRAY_LEN(programs); i++)
		doctor_check_program(d, programs[i]);
}

static void
doctor_check_shell(struct doctor *d)
{
	if (access("/bin/bash", X_OK) == 0)
		doctor_say(d, DOCTOR_OK, "shell", "/bin/bash");
	else if (access("/bin/sh", X_OK) == 0)
		doctor_say(d, DOCTOR_WARN, "shell",
		    "no bash (package bash): sessions get /bin/sh");
	else
		doctor_say(
		    d, DOCTOR_FAIL, "shell", "neither /bin/bash nor /bin/sh");
}

static void
doctor_check_socket(struct doctor *d)
{
	struct err e = { 0 };
	char listen[256];

	if (client_ask_once(d->cli->socket,
		json_pack("{s:s}", "verb", "status"), &d->status, NULL,
		&e) != CLI_DONE) {
		doctor_say(d, DOCTOR_FAIL, "socket", "%s", e.msg);
		return;
	}
	table_format(json_object_get(d->status, "listen"), COLUMN_TEXT, listen,
	    sizeof(listen));
	doctor_say(d, DOCTOR_OK, "socket", "%s: berthd %d listens on %s",
	    d->cli->socket,
	    (int)json_integer_value(json_object_get(d->status, "pid")), listen);
}

static void
doctor_check_version(struct doctor *d)
{
	char version[64];

	table_format(json_object_get(d->status, "version"), COLUMN_TEXT,
	    version, sizeof(version));
	if (strcmp(version, BERTH_VERSION) == 0)
		doctor_say(d, DOCTOR_OK, "version", "%s", version);
	else
		doctor_say(d, DOCTOR_WARN, "version",
		    "berthd runs %s, this is %s: restart berthd", version,
		    BERTH_VERSION);
}

static void
doctor_check_user(struct doctor *d, const char *name, const char *what)
{
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread */
	if (getpwnam(name))
		doctor_say(d, DOCTOR_OK, name, "the user that %s", what);
	else
		doctor_say(d, DOCTOR_FAIL, name,
		    "no such user: useradd --system --no-create-home "
		    "--shell /usr/sbin/nologin %s",
		    name);
}

/* Who runs sandboxes depends on who runs berthd, or would. */
static void
doctor_check_separation(struct doctor *d)
{
	const json_t *v = json_object_get(d->status, "uid");
	json_int_t uid = json_is_integer(v) ? json_integer_value(v) : geteuid();

	if (uid == 0) {
		doctor_check_user(d, "berth-box", "runs what is in sandboxes");
		doctor_check_user(d, "berth-net", "runs connections");
		doctor_check_user(d, "berth", "keeps sessions");
		return;
	}
	/* It knows what its sandboxes are made from. */
	if (d->status &&
	    json_array_size(json_object_get(d->status, "warnings")) == 0)
		return;
	doctor_say(d, DOCTOR_WARN, "separation",
	    "berthd is not root: local sandboxes run as its own user and "
	    "separate nothing");
}

/* What the build leaves out because a sanitizer could not live with it. */
static void
doctor_check_confinement(struct doctor *d)
{
	const json_t *v = json_object_get(d->status, "confined");
	bool is_on = json_is_boolean(v) ? json_is_true(v) : BERTH_CONFINED;

	if (is_on)
		doctor_say(d, DOCTOR_OK, "confinement", "on");
	else
		doctor_say(d, DOCTOR_WARN, "confinement",
		    "off in this build (sanitizers): system calls, memory and "
		    "tracing are not limited");
}

static void
doctor_check_warnings(struct doctor *d)
{
	json_t *warnings = json_object_get(d->status, "warnings"), *w;
	char text[512];
	size_t i;

	if (!json_is_array(warnings))
		return;
	json_array_foreach(warnings, i, w)
	{
		table_format(w, COLUMN_TEXT, text, sizeof(text));
		doctor_say(d, DOCTOR_WARN, "berthd", "%s", text);
	}
}

static void
doctor_print(const struct doctor *d)
{
	size_t i;
	json_t *r;

	json_array_foreach(d->results, i, r)
	{
		printf("%-4s  %-13s  %s\n",
		    json_string_value(json_object_get(r, "status")),
		    json_string_value(json_object_get(r, "check")),
		    json_string_value(json_object_get(r, "detail")));
	}
}

int
verb_doctor(struct cli *c, int argc, char **argv)
{
	bool is_json = false;
	const struct arg_option options[] = {
		{ 0, ARG_FLAG, "json", &is_json },
	};
	struct doctor d = { .cli = c };
	struct err e = { 0 };

	argc = args_parse(argc, argv, options, ARRAY_LEN(options), false, &e);
	if (argc != 0)
		return cli_usage(
		    c, "%s", argc < 0 ? e.msg : "there are no arguments");
	d.results = json_array();
	doctor_find_self(&d);
	doctor_check_programs(&d);
	doctor_check_shell(&d);
	doctor_check_socket(&d);
	if (d.status)
		doctor_check_version(&d);
	doctor_check_separation(&d);
	doctor_check_confinement(&d);
	doctor_check_warnings(&d);
	if (is_json)
		table_print_json(d.results, stdout);
	else
		doctor_print(&d);
	json_decref(d.results);
	json_decref(d.status);
	return d.has_failed ? CLI_FAILED : CLI_DONE;
}
