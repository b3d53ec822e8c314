/*
 * Providers that are command lines; see provider.h. The values stay text: what
 * a placeholder stands for is known to sandbox/command.c only when it is run.
 */
#include "conf/provider.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/argv.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "conf/conf.h"

#define PROVIDER_PREFIX    "provider "
#define PROVIDER_VALUE_MAX 4096
#define PROVIDER_TIME_MAX  (3600U * 1000)

/* Berth's own, which no section may take. */
static const char *const provider_reserved[] = { "auto", "local", "native" };

enum provider_kind {
	PROVIDER_ARGV,     /* a command */
	PROVIDER_INPUT,    /* words as well, each a line of what it reads */
	PROVIDER_TEXT,     /* one line, as it is */
	PROVIDER_ABSOLUTE, /* an absolute path in the sandbox */
	PROVIDER_TIME
};

struct provider_key {
	const char *name;
	enum provider_kind kind;
	bool is_required;
	const char *extra; /* placeholders that only it has */
	const char *def, *unit, *help;
};

/* What every command may hold. */
static const char provider_common[] =
    "address,cpu_percent,cpus,dns,gid,image,memory,name,network,pids,program,"
    "uid,workspace,workspace_size";

/* clang-format off */
static const struct provider_key provider_table[] = {
{ "type", PROVIDER_TEXT, false, NULL, "command", "command",
	"How the provider works; there is only this." },
{ "description", PROVIDER_TEXT, false, NULL, "an engine driven by commands",
	"text", "What it is, for people." },
{ "program", PROVIDER_TEXT, false, NULL, "", "program",
	"What {program} stands for: the engine's client." },
{ "env", PROVIDER_ARGV, false, NULL, "", "words NAME=VALUE",
	"Its environment, beside PATH and HOME." },
{ "image", PROVIDER_TEXT, false, NULL, "", "text",
	"What {image} stands for unless the template says it." },
{ "home", PROVIDER_ABSOLUTE, false, NULL, "/workspace", "path",
	"Where sessions begin, as the sandbox sees it." },
{ "user", PROVIDER_TEXT, false, NULL, "root", "name",
	"What USER is in there; who it is the engine decides." },
{ "shell", PROVIDER_ABSOLUTE, false, NULL, "/bin/sh", "path",
	"The shell of sessions, as the sandbox sees it." },
{ "sftp_server", PROVIDER_TEXT, false, NULL, "none", "path or none",
	"OpenSSH's sftp-server, as the sandbox sees it." },
{ "network_loopback", PROVIDER_TEXT, false, NULL, "", "word",
	"What {network} is for a template with network = loopback; without it "
	"such a template is refused." },
{ "network_host", PROVIDER_TEXT, false, NULL, "", "word",
	"The same for network = host." },
{ "network_none", PROVIDER_TEXT, false, NULL, "", "word",
	"The same for network = none." },
{ "create", PROVIDER_ARGV, true, NULL, "", "command",
	"Makes and starts a sandbox that is not there." },
{ "create_input", PROVIDER_INPUT, false, NULL, "", "words",
	"What create reads, each word a line." },
{ "start", PROVIDER_ARGV, false, NULL, "", "command",
	"Starts one that is there and stopped. Without it that is removed and "
	"made anew." },
{ "stop", PROVIDER_ARGV, false, NULL, "", "command",
	"Ends what runs in it and keeps it." },
{ "remove", PROVIDER_ARGV, true, NULL, "", "command",
	"Removes it, whatever state it is in." },
{ "status", PROVIDER_ARGV, true, NULL, "", "command",
	"Prints a word that says what it does, and nothing if it is not there. "
	"A second word is what {address} stands for from then on." },
{ "running", PROVIDER_TEXT, false, NULL, "running", "words",
	"Words of status for a sandbox that runs." },
{ "pending", PROVIDER_TEXT, false, NULL, "", "words",
	"For one that will run soon." },
{ "suspended", PROVIDER_TEXT, false, NULL, "", "words",
	"For one that is suspended. Any other word means stopped." },
{ "exec", PROVIDER_ARGV, true, "leader", "", "command",
	"Runs {leader} in the sandbox on pipes, with their ends and its exit "
	"code passed through." },
{ "exec_tty", PROVIDER_ARGV, true, "leader", "", "command",
	"The same on the terminal that it is started on." },
{ "signal", PROVIDER_ARGV, false, "signal", "", "command",
	"Runs {signal} in the sandbox, its last word. Without it signals end "
	"the engine's client and nothing else." },
{ "forward", PROVIDER_ARGV, false, "host,port", "", "command",
	"Connects its input and output to {host} and {port} as the sandbox "
	"sees them. Without it ports cannot be forwarded." },
{ "suspend", PROVIDER_ARGV, false, NULL, "", "command",
	"Suspends it; needs resume." },
{ "resume", PROVIDER_ARGV, false, NULL, "", "command",
	"Goes on with a suspended one." },
{ "metrics", PROVIDER_ARGV, false, "measure", "", "command",
	"Prints what it uses, as {measure} does when it is run in it." },
{ "logs", PROVIDER_ARGV, false, "follow,tail,timestamps", "", "command",
	"Prints the log that the engine itself keeps. {follow} and {timestamps} "
	"are true or nothing, {tail} is a number of lines or nothing." },
{ "snapshot", PROVIDER_ARGV, false, "pack", "", "command",
	"Prints a tar of home, as {pack} does when it is run in it; the first "
	"entry is ./. Needs restore." },
{ "restore", PROVIDER_ARGV, false, "unpack", "", "command",
	"Reads such a tar and puts it in the place of all that is in home, as "
	"{unpack} does." },
{ "timeout", PROVIDER_TIME, false, NULL, "10s", "time",
	"Limit of each call but create, which is ended then." },
{ "create_timeout", PROVIDER_TIME, false, NULL, "60s", "time",
	"Limit of create and start, and of waiting until it runs." },
{ "poll", PROVIDER_TIME, false, NULL, "5s", "time",
	"How often status is asked." },
};
/* clang-format on */

static_assert(ARRAY_LEN(provider_table) <= CONF_PROVIDER_KEYS_MAX,
    "more keys than struct conf_provider holds");

const char *
provider_name(const char *section)
{
	size_t n = strlen(PROVIDER_PREFIX);

	return strncmp(section, PROVIDER_PREFIX, n) == 0 ? section + n : NULL;
}

static bool
provider_name_is_valid(const char *s)
{
	size_t n = strlen(s);

	for (size_t i = 0; i < ARRAY_LEN(provider_reserved); i++) {
		if (strcmp(s, provider_reserved[i]) == 0)
			return false;
	}
	return n > 0 && n < CONF_PROVIDER_NAME_MAX &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n &&
	       s[0] != '-';
}

const struct conf_provider *
conf_provider_find(const struct conf *c, const char *name)
{
	for (size_t i = 0; i < c->n_providers; i++) {
		if (strcmp(c->providers[i]->name, name) == 0)
			return c->providers[i];
	}
	return NULL;
}

static struct conf_provider *
provider_of(struct conf *c, const char *section)
{
	const char *name = provider_name(section);

	for (size_t i = 0; i < c->n_providers; i++) {
		if (strcmp(c->providers[i]->name, name) == 0)
			return c->providers[i];
	}
	return NULL;
}

int
provider_open(struct conf *c, const char *section, struct err *e)
{
	const char *name = provider_name(section);
	struct conf_provider *p;

	if (!provider_name_is_valid(name))
		return err_set(
		    e, -EINVAL, "\"%s\" is not a name for a provider", name);
	if (conf_provider_find(c, name))
		return 0;
	if (c->n_providers == ARRAY_LEN(c->providers))
		return err_set(e, -E2BIG, "more than %zu providers",
		    ARRAY_LEN(c->providers));
	p = xcalloc(1, sizeof(*p));
	p->name = xstrdup(name);
	c->providers[c->n_providers++] = p;
	return 0;
}

static size_t
provider_index(const char *key)
{
	size_t i = 0;

	while (i < ARRAY_LEN(provider_table) &&
	       strcmp(provider_table[i].name, key) != 0)
		i++;
	return i;
}

int
provider_set(struct conf *c, const char *section, const char *key,
    const char *text, const struct provider_line *at, struct err *e)
{
	struct conf_provider *p = provider_of(c, section);
	size_t i = provider_index(key);
	char *longer;

	if (i == ARRAY_LEN(provider_table))
		return err_set(e, -ENOENT, "unknown key");
	/* An earlier file has the word. */
	if (p->value[i] && p->file[i] != at->file)
		return 0;
	if (p->value[i] && !at->is_more)
		return err_set(e, -EEXIST, "already given");
	longer = p->value[i] ? xasprintf("%s%s%s", p->value[i],
				   *p->value[i] ? "\n" : "", text)
			     : xstrdup(text);
	free(p->value[i]);
	p->value[i] = longer;
	p->file[i] = at->file;
	c->open_provider = p;
	c->open_key = i;
	if (strlen(longer) > PROVIDER_VALUE_MAX)
		return err_set(
		    e, -E2BIG, "longer than %d bytes", PROVIDER_VALUE_MAX);
	for (const char *s = text; *s; s++) {
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			return err_set(
			    e, -EINVAL, "has a control character in it");
	}
	return 0;
}

/* Any value does to see whether the words are right; lists are told apart. */
static int
provider_known(const char *name, void *arg, struct argv_value *out)
{
	static char *const words[] = { NULL };
	static const char lists[] = "leader,measure,pack,signal,unpack";
	const struct provider_key *k = arg;
	const char *sets[] = { provider_common, k->extra };

	for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
		if (!sets[i] || !text_glob_list(sets[i], name))
			continue;
		out->text = "x";
		out->list = text_glob_list(lists, name) ? words : NULL;
		return 0;
	}
	return -ENOENT;
}

static int
provider_check_argv(
    const struct provider_key *k, const char *text, struct err *e)
{
	char **argv = NULL;
	int rc =
	    argv_expand(text, provider_known, (void *)(uintptr_t)k, &argv, e);

	/* The proxy puts its signals behind them. */
	if (rc == 0 && k->extra && strcmp(k->extra, "signal") == 0) {
		const char *last = strrchr(text, '{');

		if (!last || strcmp(last, "{signal}") != 0)
			rc = err_set(e, -EINVAL, "does not end in {signal}");
	}
	strv_free(argv);
	return rc;
}

static int
provider_check_value(
    const struct provider_key *k, const char *text, struct err *e)
{
	uint64_t ms;

	if (k->kind != PROVIDER_ARGV && k->kind != PROVIDER_INPUT &&
	    strchr(text, '\n'))
		return err_set(
		    e, -EINVAL, "only commands go on in an indented line");
	switch (k->kind) {
	case PROVIDER_ARGV:
	case PROVIDER_INPUT:
		return provider_check_argv(k, text, e);
	case PROVIDER_ABSOLUTE:
		return *text == '/'
			   ? 0
			   : err_set(e, -EINVAL, "is not an absolute path");
	case PROVIDER_TIME:
		if (text_parse_duration(text, &ms) < 0 || ms < 100 ||
		    ms > PROVIDER_TIME_MAX)
			return err_set(
			    e, -EINVAL, "is not a time between 100ms and 1h");
		return 0;
	case PROVIDER_TEXT:
		break;
	}
	if (strcmp(k->name, "type") == 0 && strcmp(text, k->def) != 0)
		return err_set(e, -EINVAL, "there is only: %s", k->def);
	return 0;
}

int
provider_end_value(struct conf *c, struct err *e)
{
	struct conf_provider *p = c->open_provider;
	const struct provider_key *k = &provider_table[c->open_key];
	struct err why = { .code = 0 };
	int rc;

	if (!p)
		return 0;
	c->open_provider = NULL;
	rc = provider_check_value(k, p->value[c->open_key], &why);
	return rc < 0 ? err_set(e, rc, "provider %s.%s: %s", p->name, k->name,
			    why.msg)
		      : 0;
}

const char *
conf_provider_get(const struct conf_provider *p, const char *key)
{
	size_t i = provider_index(key);

	return p->value[i] ? p->value[i] : provider_table[i].def;
}

uint64_t
conf_provider_ms(const struct conf_provider *p, const char *key)
{
	uint64_t ms = 0;

	(void)text_parse_duration(conf_provider_get(p, key), &ms);
	return ms;
}

static bool
provider_has(const struct conf_provider *p, const char *key)
{
	return *conf_provider_get(p, key) != '\0';
}

/* Neither is of use without the other. */
static const char *const provider_pairs[][2] = {
	{ "suspend", "resume" },
	{ "snapshot", "restore" },
};

int
providers_check(const struct conf *c, struct err *e)
{
	for (size_t i = 0; i < c->n_providers; i++) {
		const struct conf_provider *p = c->providers[i];

		for (size_t j = 0; j < ARRAY_LEN(provider_table); j++) {
			const struct provider_key *k = &provider_table[j];

			if (k->is_required && !provider_has(p, k->name))
				return err_set(e, -EINVAL,
				    "provider %s.%s: is missing", p->name,
				    k->name);
		}
		for (size_t j = 0; j < ARRAY_LEN(provider_pairs); j++) {
			const char *const *k = provider_pairs[j];

			if (provider_has(p, k[0]) != provider_has(p, k[1]))
				return err_set(e, -EINVAL,
				    "provider %s: %s and %s need each other",
				    p->name, k[0], k[1]);
		}
	}
	return 0;
}

void
providers_free(struct conf *c)
{
	for (size_t i = 0; i < c->n_providers; i++) {
		struct conf_provider *p = c->providers[i];

		for (size_t j = 0; j < ARRAY_LEN(provider_table); j++)
			free(p->value[j]);
		free(p->name);
		free(p);
	}
	c->n_providers = 0;
}

/* ---- as text ------------------------------------------------------------- */

void
providers_show(const struct conf *c, FILE *out)
{
	for (size_t i = 0; i < c->n_providers; i++) {
		const struct conf_provider *p = c->providers[i];

		fprintf(out, "\n[provider %s]\n", p->name);
		for (size_t j = 0; j < ARRAY_LEN(provider_table); j++) {
			if (!p->value[j])
				continue;
			fprintf(out, "%s = ", provider_table[j].name);
			for (const char *s = p->value[j]; *s; s++) {
				fputc(*s, out);
				if (*s == '\n')
					fputc('\t', out);
			}
			fputc('\n', out);
		}
	}
}

void
providers_print_sample(FILE *out)
{
	fputs(
	    "\n# Engines that are driven by commands, any number of sections; "
	    "what they hold\n# is in berth.conf(5) and, for the usual ones, "
	    "in providers/*.conf, which\n# sandbox.providers reads.\n"
	    "# [provider NAME]\n",
	    out);
	for (size_t i = 0; i < ARRAY_LEN(provider_table); i++) {
		const struct provider_key *k = &provider_table[i];

		fprintf(
		    out, "# %s =%s%s\n", k->name, *k->def ? " " : "", k->def);
	}
}

void
providers_print_manual(void (*print)(const char *text, FILE *out), FILE *out)
{
	fputs(".SS \"[provider NAME]\"\n", out);
	print("An engine that makes sandboxes, driven by commands. A command "
	      "is words between blanks, never a line for a shell. 'Single "
	      "quotes' keep everything as it is, \"double quotes\" keep "
	      "blanks, and a backslash takes the next character as it is. {x} "
	      "is a placeholder, and a word with {x?} is left out when x is "
	      "empty; other braces are themselves. Long commands go on in "
	      "indented lines. Everywhere there are: ",
	    out);
	print(provider_common, out);
	fputs(".\n", out);
	for (size_t i = 0; i < ARRAY_LEN(provider_table); i++) {
		const struct provider_key *k = &provider_table[i];

		fprintf(out, ".TP\n.BR %s \" = ", k->name);
		print(k->unit, out);
		fputs("\"\n", out);
		print(k->help, out);
		if (k->extra) {
			fputs(" Also has: ", out);
			print(k->extra, out);
			fputc('.', out);
		}
		if (*k->def) {
			fputs("\nDefault: ", out);
			print(k->def, out);
			fputc('.', out);
		} else if (k->is_required) {
			fputs("\nThere has to be one.", out);
		}
		fputc('\n', out);
	}
}
