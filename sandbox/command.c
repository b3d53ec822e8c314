/*
 * Providers that are command lines; see command.h. Here: what they are, what
 * their placeholders stand for, what is asked of them in berthd. What may take
 * time is in command_ops.c, for berth-sandbox.
 */
#include "sandbox/command.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/argv.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "sandbox/client.h"
#include "sandbox/dial.h"
#include "sandbox/leader.h"

#define COMMAND_MAX       16
#define COMMAND_ENV_MAX   64
#define COMMAND_VALUE_MAX 4096
#define COMMAND_DNS_MAX   40
#define COMMAND_WORD_MAX  64
#define COMMAND_MARGIN_MS 10000

static struct command *command_all[COMMAND_MAX];
static size_t command_len;

static const char *const command_keys[COMMAND_TEXTS] = {
	[COMMAND_DESCRIPTION] = "description",
	[COMMAND_PROGRAM] = "program",
	[COMMAND_IMAGE] = "image",
	[COMMAND_HOME] = "home",
	[COMMAND_USER] = "user",
	[COMMAND_SHELL] = "shell",
	[COMMAND_SFTP_SERVER] = "sftp_server",
	[COMMAND_NETWORK_LOOPBACK] = "network_loopback",
	[COMMAND_NETWORK_HOST] = "network_host",
	[COMMAND_NETWORK_NONE] = "network_none",
	[COMMAND_CREATE] = "create",
	[COMMAND_CREATE_INPUT] = "create_input",
	[COMMAND_START] = "start",
	[COMMAND_STOP] = "stop",
	[COMMAND_REMOVE] = "remove",
	[COMMAND_STATUS] = "status",
	[COMMAND_RUNNING] = "running",
	[COMMAND_PENDING] = "pending",
	[COMMAND_SUSPENDED] = "suspended",
	[COMMAND_EXEC] = "exec",
	[COMMAND_EXEC_TTY] = "exec_tty",
	[COMMAND_SIGNAL] = "signal",
	[COMMAND_FORWARD] = "forward",
	[COMMAND_SUSPEND] = "suspend",
	[COMMAND_RESUME] = "resume",
	[COMMAND_METRICS] = "metrics",
	[COMMAND_LOGS] = "logs",
	[COMMAND_SNAPSHOT] = "snapshot",
	[COMMAND_RESTORE] = "restore",
};

const char *
command_key(enum command_text t)
{
	return command_keys[t];
}

const struct command *
command_find(const char *name)
{
	for (size_t i = 0; i < command_len; i++) {
		if (strcmp(command_all[i]->name, name) == 0)
			return command_all[i];
	}
	return NULL;
}

void
command_free(struct command *c)
{
	if (!c)
		return;
	for (int i = 0; i < COMMAND_TEXTS; i++)
		free(c->text[i]);
	strv_free(c->env);
	free(c->name);
	free(c);
}

/* ---- for a task ---------------------------------------------------------------- */

void
command_encode(struct buf *b, const struct command *c)
{
	buf_put_u8(b, c != NULL);
	if (!c)
		return;
	buf_put_str(b, c->name);
	for (int i = 0; i < COMMAND_TEXTS; i++)
		buf_put_str(b, c->text[i]);
	buf_put_strv(b, c->env);
	buf_put_u32(b, c->timeout_ms);
	buf_put_u32(b, c->create_ms);
	buf_put_u32(b, c->poll_ms);
}

void
command_decode(struct reader *r, struct command **out)
{
	struct command *c;

	*out = NULL;
	if (reader_u8(r) == 0)
		return;
	c = xcalloc(1, sizeof(*c));
	c->name = reader_str(r, COMMAND_WORD_MAX);
	for (int i = 0; i < COMMAND_TEXTS; i++)
		c->text[i] = reader_str(r, COMMAND_VALUE_MAX);
	c->env = reader_strv(r, COMMAND_ENV_MAX, COMMAND_VALUE_MAX);
	c->timeout_ms = reader_u32(r);
	c->create_ms = reader_u32(r);
	c->poll_ms = reader_u32(r);
	if (r->failed)
		command_free(c);
	else
		*out = c;
}

/* ---- placeholders ------------------------------------------------------------- */

void
command_dns_name(const char *name, char *out, size_t size)
{
	char plain[COMMAND_DNS_MAX + 1];
	uint32_t hash = 2166136261U;
	bool is_changed = false;
	size_t n = 0;

	for (const char *p = name; *p; p++) {
		char ch = *p;

		hash = (hash ^ (unsigned char)ch) * 16777619U;
		if (ch >= 'A' && ch <= 'Z')
			ch = (char)(ch - 'A' + 'a');
		else if (!(ch >= 'a' && ch <= 'z') && !(ch >= '0' && ch <= '9'))
			ch = '-';
		is_changed = is_changed || ch != *p || n == COMMAND_DNS_MAX;
		if (n < COMMAND_DNS_MAX)
			plain[n++] = ch;
	}
	plain[n] = '\0';
	/* A dash before hexadecimal digits is only ever ours. */
	if (n >= 9 && plain[n - 9] == '-' &&
	    strspn(plain + n - 8, "0123456789abcdef") == 8)
		is_changed = true;
	if (is_changed || (n > 0 && plain[n - 1] == '-'))
		snprintf(out, size, "%s-%08x", plain, hash);
	else
		snprintf(out, size, "%s", plain);
}

struct command_values {
	const struct command_fill *fill;
	char space[SANDBOX_PATH_MAX]; /* of the value that was made last */
};

static const char *
command_number(struct command_values *v, uint64_t n)
{
	v->space[0] = '\0';
	if (n)
		snprintf(
		    v->space, sizeof(v->space), "%llu", (unsigned long long)n);
	return v->space;
}

static const char *
command_network(const struct command_values *v)
{
	static const enum command_text keys[] = {
		[SANDBOX_NET_LOOPBACK] = COMMAND_NETWORK_LOOPBACK,
		[SANDBOX_NET_HOST] = COMMAND_NETWORK_HOST,
		[SANDBOX_NET_NONE] = COMMAND_NETWORK_NONE,
	};

	return v->fill->command->text[keys[v->fill->spec->network]];
}

/* What has to be put together first; NULL if NAME is no such thing. */
static const char *
command_made_value(const char *name, struct command_values *v)
{
	const struct sandbox_spec *s = v->fill->spec;

	if (strcmp(name, "dns") == 0)
		command_dns_name(s->name, v->space, sizeof(v->space));
	else if (strcmp(name, "uid") == 0)
		snprintf(v->space, sizeof(v->space), "%u", s->uid);
	else if (strcmp(name, "gid") == 0)
		snprintf(v->space, sizeof(v->space), "%u", s->gid);
	else if (strcmp(name, "workspace") == 0)
		snprintf(v->space, sizeof(v->space), "%s/%s", s->dir, s->name);
	else if (strcmp(name, "cpu_percent") == 0)
		return command_number(v, s->cpu_percent);
	else if (strcmp(name, "memory") == 0)
		return command_number(v, s->memory_bytes);
	else if (strcmp(name, "pids") == 0)
		return command_number(v, s->pids_max);
	else if (strcmp(name, "workspace_size") == 0)
		return command_number(v, s->workspace_bytes);
	else if (strcmp(name, "cpus") == 0 && s->cpu_percent)
		snprintf(v->space, sizeof(v->space), "%u.%02u",
		    s->cpu_percent / 100, s->cpu_percent % 100);
	else if (strcmp(name, "cpus") == 0)
		v->space[0] = '\0';
	else
		return NULL;
	return v->space;
}

static int
command_lookup(const char *name, void *arg, struct argv_value *out)
{
	struct command_values *v = arg;
	const struct command_fill *f = v->fill;
	const struct {
		const char *name, *text;
		char *const *list;
	} table[] = {
		{ "name", f->spec->name, NULL },
		{ "address", f->spec->address, NULL },
		{ "program", f->command->text[COMMAND_PROGRAM], NULL },
		{ "image",
		    f->spec->image[0] ? f->spec->image
				      : f->command->text[COMMAND_IMAGE],
		    NULL },
		{ "network", command_network(v), NULL },
		{ "host", f->host, NULL },
		{ "port", f->port, NULL },
		{ "leader", NULL, f->leader },
		{ "signal", NULL, f->signal },
		{ "measure", NULL, f->measure },
		{ "pack", NULL, f->pack },
		{ "unpack", NULL, f->unpack },
		{ "follow", f->follow, NULL },
		{ "timestamps", f->timestamps, NULL },
		{ "tail", f->tail, NULL },
	};

	out->list = NULL;
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (strcmp(name, table[i].name) != 0)
			continue;
		out->text = table[i].text;
		out->list = table[i].list;
		return out->text || out->list ? 0 : -ENOENT;
	}
	out->text = command_made_value(name, v);
	return out->text ? 0 : -ENOENT;
}

int
command_words(const struct command_fill *f, enum command_text t, char ***out,
    struct err *e)
{
	struct command_values v = { .fill = f };
	int rc;

	assert(f->command);
	rc = argv_expand(f->command->text[t], command_lookup, &v, out, e);
	return rc < 0 ? err_wrap(e, rc, "provider %s.%s", f->command->name,
			    command_keys[t])
		      : 0;
}

/* ---- answers ------------------------------------------------------------------ */

/* True if WORD is one of the words of LIST. */
static bool
command_has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = list; *p; p += strspn(p, " ")) {
		size_t len = strcspn(p, " ");

		if (len == n && strncmp(p, word, n) == 0)
			return true;
		p += len;
	}
	return false;
}

/* The next word of text from *P up to END, "" for none or one too long. */
static void
command_next_word(const char **p, const char *end, char *out, size_t size)
{
	size_t n = 0;

	while (*p < end && strchr(" \t\r\n", **p))
		(*p)++;
	for (; *p < end && !strchr(" \t\r\n", **p); (*p)++, n++) {
		if (n + 1 < size)
			out[n] = **p;
	}
	out[n + 1 < size ? n : 0] = '\0';
}

void
command_parse_status(
    const struct command *c, const char *p, size_t n, struct sandbox_made *out)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ._:/-";
	const struct {
		enum command_text list;
		enum sandbox_phase phase;
	} table[] = {
		{ COMMAND_RUNNING, SANDBOX_RUNNING },
		{ COMMAND_PENDING, SANDBOX_PENDING },
		{ COMMAND_SUSPENDED, SANDBOX_SUSPENDED },
	};
	const char *end = p + n;
	char word[COMMAND_WORD_MAX], address[SANDBOX_ADDRESS_MAX];

	command_next_word(&p, end, word, sizeof(word));
	command_next_word(&p, end, address, sizeof(address));
	out->phase = *word ? SANDBOX_FAILED : SANDBOX_GONE;
	text_escape(word, strlen(word), out->word, sizeof(out->word));
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (*word && command_has_word(c->text[table[i].list], word))
			out->phase = table[i].phase;
	}
	/* It becomes a word of commands: nothing that looks like an option. */
	if (address[0] == '-' || address[strspn(address, allowed)])
		address[0] = '\0';
	snprintf(out->address, sizeof(out->address), "%s", address);
}

void
command_parse_metrics(const char *p, size_t n, struct sandbox_metrics *out)
{
	struct sandbox_metrics m = { -1, -1, -1, -1, -1, -1, -1, -1 };
	int64_t cpu_ns = -1;
	const struct {
		const char *name;
		int64_t *field;
	} table[] = {
		{ "cpu_us", &m.cpu_us },
		{ "cpu_ns", &cpu_ns },
		{ "memory", &m.memory_bytes },
		{ "peak", &m.memory_peak_bytes },
		{ "pids", &m.processes },
		{ "rx", &m.net_rx_bytes },
		{ "tx", &m.net_tx_bytes },
		{ "oom", &m.oom_kills },
	};
	const char *end = p + n;

	while (p < end) {
		char name[COMMAND_WORD_MAX], value[COMMAND_WORD_MAX];
		uint64_t v;

		command_next_word(&p, end, name, sizeof(name));
		command_next_word(&p, end, value, sizeof(value));
		for (size_t i = 0; i < ARRAY_LEN(table); i++) {
			if (strcmp(name, table[i].name) == 0 &&
			    text_parse_u64(value, 0, INT64_MAX, &v) == 0)
				*table[i].field = (int64_t)v;
		}
	}
	if (m.cpu_us < 0 && cpu_ns >= 0)
		m.cpu_us = cpu_ns / 1000;
	*out = m;
}

/* ---- in berthd ----------------------------------------------------------------- */

static int
command_exec(
    const struct sandbox_spec *s, struct sandbox_place *out, struct err *e)
{
	const struct command *c = command_find(s->provider);
	struct sandbox_place place = {
		.uid = s->uid,
		.gid = s->gid,
		.has_way = true,
		.entry = { .pidfd = -1 },
	};
	const char *sftp;

	if (!c)
		return err_set(
		    e, -ENOENT, "provider %s is not configured", s->provider);
	sftp = c->text[COMMAND_SFTP_SERVER];
	place.has_sftp_server = *sftp == '/' && !s->lacks_sftp_server;
	snprintf(place.workspace, sizeof(place.workspace), "%s",
	    c->text[COMMAND_HOME]);
	snprintf(place.user, sizeof(place.user), "%s", c->text[COMMAND_USER]);
	snprintf(
	    place.shell, sizeof(place.shell), "%s", c->text[COMMAND_SHELL]);
	snprintf(place.sftp_server, sizeof(place.sftp_server), "%s", sftp);
	*out = place;
	return 0;
}

static int
command_wrap(const struct sandbox_spec *s, const struct sandbox_run *r,
    struct sandbox_way *out, struct err *e)
{
	const struct command *c = command_find(s->provider);
	char **leader = leader_start(r), **signal = leader_signal(r->sid);
	char **client = NULL, **passing = NULL;
	struct command_fill f = {
		.command = c,
		.spec = s,
		.leader = leader,
		.signal = signal,
	};
	int rc = command_words(&f, COMMAND_SIGNAL, &passing, e);

	if (rc == 0)
		rc = command_words(&f,
		    r->has_pty ? COMMAND_EXEC_TTY : COMMAND_EXEC, &client, e);
	if (rc == 0) {
		out->argv = client_argv(client, passing, c->timeout_ms);
		out->env = strv_copy(c->env);
	}
	strv_free(leader);
	strv_free(signal);
	strv_free(client);
	strv_free(passing);
	return rc;
}

/* The engine's client again, that nobody inside could signal. */
static int
command_logs(const struct sandbox_spec *s, const struct sandbox_log_query *q,
    struct sandbox_way *out, struct err *e)
{
	const struct command *c = command_find(s->provider);
	char tail[24] = "";
	struct command_fill f = {
		.command = c,
		.spec = s,
		.follow = q->follow ? "true" : "",
		.timestamps = q->timestamps ? "true" : "",
		.tail = tail,
	};
	char **client = NULL;
	int rc;

	if (q->has_tail)
		snprintf(
		    tail, sizeof(tail), "%llu", (unsigned long long)q->tail);
	rc = command_words(&f, COMMAND_LOGS, &client, e);
	if (rc == 0) {
		out->argv = client_argv(client, NULL, c->timeout_ms);
		out->env = strv_copy(c->env);
	}
	strv_free(client);
	return rc;
}

/* Whoever relays is in the sandbox, so berthd sees nothing of its network. */
static struct sandbox_call *
command_dial(const struct sandbox_spec *spec, const struct sandbox_socket *s,
    sandbox_socket_fn fn, void *arg)
{
	const struct command *c = command_find(spec->provider);
	char port[8];
	struct command_fill f = {
		.command = c,
		.spec = spec,
		.host = s->host,
		.port = port,
	};
	struct err e = { .code = 0 };
	struct sandbox_call *call;
	char **v = NULL;

	snprintf(port, sizeof(port), "%u", s->port);
	if (s->host[0] == '-')
		return sandbox_dial->fail(
		    s, -EINVAL, "that is no name of a host", fn, arg);
	if (command_words(&f, COMMAND_FORWARD, &v, &e) < 0)
		return sandbox_dial->fail(s, e.code, e.msg, fn, arg);
	call = sandbox_dial->relay(s, v, c->env, fn, arg);
	strv_free(v);
	return call;
}

static struct sandbox_call *
command_listen(const struct sandbox_spec *spec, const struct sandbox_socket *s,
    sandbox_socket_fn fn, void *arg)
{
	(void)spec;
	return sandbox_dial->fail(s, -EOPNOTSUPP,
	    "unsupported: a provider of commands cannot listen in a sandbox",
	    fn, arg);
}

int
command_register(struct command *c, struct err *e)
{
	bool has_copies =
	    *c->text[COMMAND_SNAPSHOT] && *c->text[COMMAND_RESTORE];
	struct sandbox_provider p = {
		.name = c->name,
		.description = c->text[COMMAND_DESCRIPTION],
		.is_contained = true,
		.poll_ms = c->poll_ms,
		.job_ms = c->create_ms + 4 * c->timeout_ms + COMMAND_MARGIN_MS,
		.provision = command_provision,
		.teardown = command_teardown,
		.halt = command_halt,
		.probe = command_probe,
		.exec = command_exec,
		.wrap = command_wrap,
		.reap = command_reap,
		.suspend = *c->text[COMMAND_SUSPEND] ? command_suspend : NULL,
		.resume = *c->text[COMMAND_RESUME] ? command_resume : NULL,
		.measure = *c->text[COMMAND_METRICS] ? command_measure : NULL,
		.dial = *c->text[COMMAND_FORWARD] ? command_dial : NULL,
		.listen = *c->text[COMMAND_FORWARD] ? command_listen : NULL,
		.logs = *c->text[COMMAND_LOGS] ? command_logs : NULL,
		.snapshot = has_copies ? command_snapshot : NULL,
		.unpack = has_copies ? command_unpack : NULL,
		.restore = has_copies ? command_restore : NULL,
	};
	int rc;

	p.capabilities = SANDBOX_CAP_EXEC |
			 (p.suspend ? SANDBOX_CAP_SUSPEND : 0U) |
			 (p.snapshot ? SANDBOX_CAP_SNAPSHOT : 0U) |
			 (p.measure ? SANDBOX_CAP_METRICS : 0U) |
			 (p.dial ? SANDBOX_CAP_PORT_FORWARD : 0U);
	c->provider = p;
	rc = sandbox_register(&c->provider, e);
	if (rc < 0) {
		command_free(c);
		return rc;
	}
	assert(command_len < COMMAND_MAX);
	command_all[command_len++] = c;
	return 0;
}
