/*
 * What a provider of commands does to a sandbox; see command.h. In
 * berth-sandbox. Each operation asks first what there is, so that it may be
 * repeated after it was cut short anywhere.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "sandbox/command.h"
#include "sandbox/engine.h"
#include "sandbox/leader.h"
#include "sandbox/task.h"
#include "sandbox/workspace.h"

#define COMMAND_LOOK_NS 200000000 /* between two looks at what is pending */

/* True if T may put the host's directory of a workspace into the sandbox. */
static bool
command_has_workspace(const struct command *c)
{
	return strstr(c->text[COMMAND_CREATE], "{workspace") != NULL;
}

/* The words of T as lines of input, or NULL when there are none. */
static char *
command_input(const struct command_fill *f, enum command_text t)
{
	struct buf b = { 0 };
	char **words = NULL;
	char *text = NULL;

	if (*f->command->text[t] && command_words(f, t, &words, NULL) == 0) {
		for (char **w = words; *w; w++) {
			buf_put(&b, *w, strlen(*w));
			buf_put_u8(&b, '\n');
		}
		text = xstrndup((const char *)buf_head(&b), buf_len(&b));
	}
	strv_free(words);
	buf_release(&b);
	return text;
}

/* Runs V, whose words are expanded; its exit code or a negative errno. */
static int
command_run(const struct command *c, char *const *v, struct err *e)
{
	struct engine_call call = {
		.argv = v,
		.env = c->env,
		.timeout_ms = c->timeout_ms,
	};

	return engine_run(&call, NULL, e);
}

/* An engine that loads an image, say, tells of it. */
static void
command_tell(const char *line)
{
	task_progress("%s", line);
}

/* Runs the command T; 0, or -EIO and what the engine said. */
static int
command_do(const struct command_fill *f, enum command_text t, struct buf *out,
    struct err *e)
{
	const struct command *c = f->command;
	bool is_long = t == COMMAND_CREATE || t == COMMAND_START;
	autofree char *input =
	    t == COMMAND_CREATE ? command_input(f, COMMAND_CREATE_INPUT) : NULL;
	struct engine_call call = {
		.env = c->env,
		.input = input,
		.timeout_ms = is_long ? c->create_ms : c->timeout_ms,
		.tell = is_long ? command_tell : NULL,
	};
	struct err why = { .code = 0 };
	char **v = NULL;
	int rc = command_words(f, t, &v, e);

	if (rc < 0)
		return rc;
	call.argv = v;
	rc = engine_run(&call, out, &why);
	strv_free(v);
	if (rc == 0)
		return 0;
	return err_set(e, rc < 0 ? rc : -EIO, "%s %s: %s", c->name,
	    command_key(t), why.msg);
}

static int
command_begin(
    const struct sandbox_spec *s, struct command_fill *out, struct err *e)
{
	*out = (struct command_fill){
		.command = command_find(s->provider),
		.spec = s,
	};
	return out->command ? sandbox_check_name(s->name, e)
			    : err_set(e, -ENOENT, "provider %s has no commands",
				  s->provider);
}

int
command_probe(
    const struct sandbox_spec *s, struct sandbox_made *out, struct err *e)
{
	struct command_fill f;
	struct buf b = { 0 };
	int rc = command_begin(s, &f, e);

	if (rc == 0)
		rc = command_do(&f, COMMAND_STATUS, &b, e);
	if (rc == 0)
		command_parse_status(
		    f.command, (const char *)buf_head(&b), buf_len(&b), out);
	out->lacks_sftp_server = s->lacks_sftp_server;
	buf_release(&b);
	return rc;
}

/* ---- making -------------------------------------------------------------------- */

/* Whether the image has what file transfer needs; yes if nobody can say. */
static void
command_look_for_sftp(const struct sandbox_spec *s, struct command_fill *f,
    struct sandbox_made *out)
{
	const char *path = f->command->text[COMMAND_SFTP_SERVER];
	struct sandbox_spec there = *s;
	char **leader, **v = NULL;

	out->lacks_sftp_server = false;
	if (*path != '/')
		return;
	snprintf(there.address, sizeof(there.address), "%s", out->address);
	leader = leader_probe(path);
	f->leader = leader;
	f->spec = &there;
	if (command_words(f, COMMAND_EXEC, &v, NULL) == 0)
		out->lacks_sftp_server = command_run(f->command, v, NULL) == 1;
	f->leader = NULL;
	f->spec = s;
	strv_free(v);
	strv_free(leader);
}

/* What was done already, so that nothing is done for ever. */
struct command_steps {
	bool has_created, has_started, has_removed, has_resumed;
};

/* One step from what was FOUND towards a running sandbox; an error ends it. */
static int
command_step(const struct command_fill *f, const struct sandbox_made *found,
    struct command_steps *done, struct err *e)
{
	enum sandbox_phase phase = found->phase;
	const struct command *c = f->command;
	struct timespec pause = { 0, COMMAND_LOOK_NS };

	if (phase == SANDBOX_PENDING) {
		nanosleep(&pause, NULL);
		return 0;
	}
	if (phase == SANDBOX_SUSPENDED && *c->text[COMMAND_RESUME] &&
	    !done->has_resumed) {
		done->has_resumed = true;
		return command_do(f, COMMAND_RESUME, NULL, e);
	}
	if (phase == SANDBOX_FAILED && *c->text[COMMAND_START] &&
	    !done->has_started) {
		done->has_started = true;
		task_progress("%s: starts", c->name);
		/* One that cannot be started is made anew. */
		if (command_do(f, COMMAND_START, NULL, e) < 0)
			task_progress("%s", e ? e->msg : "");
		return 0;
	}
	if (phase != SANDBOX_GONE && !done->has_removed && !done->has_created) {
		done->has_removed = true;
		return command_do(f, COMMAND_REMOVE, NULL, e);
	}
	if (phase == SANDBOX_GONE && !done->has_created) {
		done->has_created = true;
		task_progress("%s: makes it", c->name);
		return command_do(f, COMMAND_CREATE, NULL, e);
	}
	return err_set(e, -EIO, "%s: it does not stay running (status: %s)",
	    c->name, *found->word ? found->word : "not there");
}

/* A creation failed: it may be there nevertheless, and else nothing stays. */
static int
command_give_up(const struct command_fill *f, int rc, struct sandbox_made *out)
{
	if (command_probe(f->spec, out, NULL) == 0) {
		if (out->phase == SANDBOX_RUNNING)
			return 0;
		if (out->phase != SANDBOX_GONE)
			command_do(f, COMMAND_REMOVE, NULL, NULL);
	}
	return rc;
}

static int
command_make(
    const struct command_fill *f, struct sandbox_made *out, struct err *e)
{
	const struct command *c = f->command;
	int64_t deadline = clock_mono_ms() + c->create_ms;
	struct command_steps done = { .has_created = false };
	int rc = 0;

	while (rc == 0) {
		rc = command_probe(f->spec, out, e);
		if (rc < 0 || out->phase == SANDBOX_RUNNING)
			return rc;
		if (clock_mono_ms() > deadline)
			return err_set(e, -ETIMEDOUT,
			    "%s: it does not run within %u s", c->name,
			    c->create_ms / 1000);
		rc = command_step(f, out, &done, e);
	}
	return done.has_created ? command_give_up(f, rc, out) : rc;
}

/* Which limits of S the command `create` has no word of. */
static void
command_missing(const struct sandbox_spec *s, const struct command *c,
    char *out, size_t size)
{
	const struct {
		bool is_set;
		const char *placeholder, *name;
	} limits[] = {
		{ s->memory_bytes > 0, "{memory", "memory" },
		{ s->cpu_percent > 0, "{cpu", "cpu" },
		{ s->pids_max > 0, "{pids", "pids" },
		{ s->workspace_bytes > 0, "{workspace_size", "workspace_size" },
	};
	size_t n = 0;

	*out = '\0';
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		if (limits[i].is_set &&
		    !strstr(c->text[COMMAND_CREATE], limits[i].placeholder))
			n += (size_t)snprintf(out + n, size - n, "%s%s",
			    n ? ", " : "", limits[i].name);
	}
}

int
command_provision(
    const struct sandbox_spec *s, struct sandbox_made *out, struct err *e)
{
	static const char *const networks[] = { "loopback", "host", "none" };
	static const enum command_text words[] = { COMMAND_NETWORK_LOOPBACK,
		COMMAND_NETWORK_HOST, COMMAND_NETWORK_NONE };
	struct command_fill f;
	int rc = command_begin(s, &f, e);

	if (rc < 0)
		return rc;
	if (strstr(f.command->text[COMMAND_CREATE], "{network") &&
	    !*f.command->text[words[s->network]])
		return err_set(e, -EOPNOTSUPP,
		    "provider %s has no network = %s (key network_%s)",
		    s->provider, networks[s->network], networks[s->network]);
	if (command_has_workspace(f.command)) {
		autoclose int fd = workspace_make(s, e);

		if (fd < 0)
			return fd;
	}
	rc = command_make(&f, out, e);
	if (rc < 0)
		return rc;
	command_look_for_sftp(s, &f, out);
	/* The engine enforces what it was told, and berth what it does not. */
	command_missing(s, f.command, out->missing, sizeof(out->missing));
	return 0;
}

/* ---- the rest ------------------------------------------------------------------ */

/* Does T; its failure does not matter if it is in one of the phases OK. */
static int
command_reach(const struct sandbox_spec *s, enum command_text t, unsigned ok,
    struct err *e)
{
	struct sandbox_made made = { .missing = "" };
	struct command_fill f;
	int rc = command_begin(s, &f, e);

	if (rc == 0)
		rc = command_do(&f, t, NULL, e);
	if (rc < 0 && f.command && command_probe(s, &made, NULL) == 0 &&
	    (ok & 1U << made.phase))
		return 0;
	return rc;
}

int
command_teardown(const struct sandbox_spec *s, struct err *e)
{
	int rc = command_reach(s, COMMAND_REMOVE, 1U << SANDBOX_GONE, e);

	if (rc < 0 || !command_has_workspace(command_find(s->provider)))
		return rc;
	return workspace_remove(s, e);
}

int
command_halt(const struct sandbox_spec *s, struct err *e)
{
	const struct command *c = command_find(s->provider);

	if (c && !*c->text[COMMAND_STOP])
		return 0;
	return command_reach(
	    s, COMMAND_STOP, 1U << SANDBOX_FAILED | 1U << SANDBOX_GONE, e);
}

int
command_reap(const struct sandbox_spec *s, const char *sid, struct err *e)
{
	struct command_fill f;
	char **signal, **v = NULL;
	size_t n = 0;
	int rc = command_begin(s, &f, e);

	if (rc < 0 || !*f.command->text[COMMAND_SIGNAL])
		return rc;
	signal = leader_signal(sid);
	while (signal[n])
		n++;
	signal = xrealloc(signal, (n + 2) * sizeof(*signal));
	signal[n] = xstrdup("KILL");
	signal[n + 1] = NULL;
	f.signal = signal;
	rc = command_words(&f, COMMAND_SIGNAL, &v, e);
	if (rc == 0 && command_run(f.command, v, e) != 0)
		rc = -EIO;
	strv_free(v);
	strv_free(signal);
	return rc;
}

int
command_suspend(const struct sandbox_spec *s, struct err *e)
{
	return command_reach(s, COMMAND_SUSPEND, 1U << SANDBOX_SUSPENDED, e);
}

int
command_resume(const struct sandbox_spec *s, struct err *e)
{
	return command_reach(s, COMMAND_RESUME, 1U << SANDBOX_RUNNING, e);
}

int
command_measure(const struct sandbox_spec *s, const char *sids,
    struct sandbox_metrics *out, struct err *e)
{
	char **measure = leader_measure();
	struct command_fill f;
	struct buf b = { 0 };
	int rc = command_begin(s, &f, e);

	(void)sids;
	f.measure = measure;
	if (rc == 0)
		rc = command_do(&f, COMMAND_METRICS, &b, e);
	if (rc == 0)
		command_parse_metrics(
		    (const char *)buf_head(&b), buf_len(&b), out);
	strv_free(measure);
	buf_release(&b);
	return rc;
}
