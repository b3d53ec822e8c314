/*
 * Reads the configuration (berthd): file, then -o overrides, then defaults,
 * then what must hold between values. Texts are collected first and parsed
 * when all are known, so that each error names its own line.
 */
#include <errno.h>
#include <ini.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "conf/options.h"
#include "conf/provider.h"
#include "conf/template.h"

#define LOAD_FILE_MAX (1U << 20)

struct load_value {
	char *text; /* NULL while not given */
	int line;   /* 0 for an override */
};

struct load {
	const char *file;     /* as the user named it, for messages */
	char *file_dir, *cwd; /* where relative paths start */
	struct buf text;
	struct load_value *values; /* one per row of the table */
	size_t n_values;
	int line;
	bool is_indented;  /* the present line */
	unsigned number;   /* 0: the file that was asked for, else included */
	struct conf *conf; /* templates and providers go there at once */
	struct err *e;
	int rc; /* of the first error */
};

/* Records the first error, with the present line before it. */
static int
load_fail(struct load *l, int rc, const char *what, const char *why)
{
	if (l->rc == 0)
		l->rc = err_set(l->e, rc, "%s:%d: %s%s%s", l->file, l->line,
		    what, *what ? ": " : "", why);
	return 0;
}

/* The value of a provider that went on over several lines is whole. */
static void
load_end_value(struct load *l)
{
	struct err e = { 0 };

	if (l->rc == 0 && provider_end_value(l->conf, &e) < 0)
		load_fail(l, -EINVAL, "", e.msg);
}

static void
load_open_section(struct load *l, const char *name)
{
	struct err e = { 0 };
	int rc = 0;

	if (template_name(name))
		rc = template_open(l->conf, name, &e);
	else if (provider_name(name))
		rc = provider_open(l->conf, name, &e);
	else if (l->number)
		rc = err_set(&e, -EINVAL,
		    "%s: only providers and templates are read from here",
		    name);
	else if (!option_section_exists(name))
		rc = err_set(&e, -EINVAL, "%s: unknown section", name);
	if (rc < 0)
		load_fail(l, rc, "", e.msg);
}

/* inih tells nobody of a section without keys, so this is checked here. */
static void
load_check_section(struct load *l, const char *line)
{
	const char *end = strchr(line, ']');
	autofree char *name = NULL;

	if (line[0] != '[' || !end)
		return;
	name = xstrndup(line + 1, (size_t)(end - line - 1));
	load_open_section(l, name);
}

/*
 * Hands inih the next line. It would cut one that does not fit into its buffer
 * and read the rest as a line of its own.
 */
static char *
load_read_line(char *out, int size, void *arg)
{
	struct load *l = arg;
	const char *p, *nl;
	size_t n;

	if (buf_len(&l->text) == 0 || l->rc < 0)
		return NULL;
	p = (const char *)buf_head(&l->text);
	nl = memchr(p, '\n', buf_len(&l->text));
	n = nl ? (size_t)(nl - p) + 1 : buf_len(&l->text);
	if (*p != ' ' && *p != '\t')
		load_end_value(l);
	l->line++;
	if (n + 1 > (size_t)size) {
		load_fail(l, -E2BIG, "", "the line is too long");
		return NULL;
	}
	if (memchr(p, '\0', n)) {
		load_fail(l, -EINVAL, "", "the line has a NUL in it");
		return NULL;
	}
	memcpy(out, p, n);
	out[n] = '\0';
	buf_consume(&l->text, n);
	l->is_indented = *out == ' ' || *out == '\t';
	load_check_section(l, out);
	return out;
}

/* An indented line: one more piece of the list above. */
static int
load_continue(struct load *l, const struct option *o, struct load_value *v,
    const char *key, const char *text)
{
	size_t n = strlen(v->text);
	char *longer;

	if (!option_type(o->kind)->is_list)
		return load_fail(
		    l, -EINVAL, key, "only lists go on in an indented line");
	while (n > 0 && (v->text[n - 1] == ',' || v->text[n - 1] == ' '))
		n--;
	longer = n == 0 ? xstrdup(text)
			: xasprintf("%.*s,%s", (int)n, v->text, text);
	free(v->text);
	v->text = longer;
	return 1;
}

/* A key of a template: parsed at once, for nothing depends on its order. */
static int
load_template(
    struct load *l, const char *section, const char *name, const char *text)
{
	autofree char *key = xasprintf("%s.%s", section, name);
	struct template_line at = { l->file_dir, l->is_indented };
	struct err e = { 0 };

	if (template_set(l->conf, section, name, text, &at, &e) < 0)
		return load_fail(l, -EINVAL, key, e.msg);
	return 1;
}

/* The same; a command may go on in indented lines. */
static int
load_provider(
    struct load *l, const char *section, const char *name, const char *text)
{
	autofree char *key = xasprintf("%s.%s", section, name);
	struct provider_line at = { l->number, l->is_indented };
	struct err e = { 0 };

	if (provider_set(l->conf, section, name, text, &at, &e) < 0)
		return load_fail(l, -EINVAL, key, e.msg);
	return 1;
}

static int
load_handle(void *arg, const char *section, const char *name, const char *text)
{
	struct load *l = arg;
	const struct option *o = option_find(section, name);
	autofree char *key = xasprintf("%s.%s", section, name);
	struct load_value *v;
	size_t n;

	if (l->rc < 0)
		return 0;
	if (!*section)
		return load_fail(
		    l, -EINVAL, name, "stands before the first [section]");
	if (template_name(section))
		return load_template(l, section, name, text);
	if (provider_name(section))
		return load_provider(l, section, name, text);
	if (!o)
		return load_fail(l, -EINVAL, key, "unknown key");
	v = &l->values[o - options_all(&n)];
	if (v->text && l->is_indented)
		return load_continue(l, o, v, key, text);
	if (v->text) {
		autofree char *why =
		    xasprintf("already given in line %d", v->line);

		return load_fail(l, -EEXIST, key, why);
	}
	v->text = xstrdup(text);
	v->line = l->line;
	return 1;
}

/* The directory of the file, resolved. Reads nothing if it may be absent. */
static int
load_file(struct load *l, bool may_be_absent)
{
	autofree char *path = xstrdup(l->file);
	char *slash = strrchr(path, '/');
	int rc = fd_read_file(l->file, LOAD_FILE_MAX, &l->text, l->e);

	if (rc == -ENOENT && may_be_absent) {
		l->file_dir = xstrdup("/");
		return 0;
	}
	if (rc < 0)
		return rc;
	if (slash)
		*slash = '\0';
	l->file_dir = realpath(!slash ? "." : *path ? path : "/", NULL);
	if (!l->file_dir)
		return err_sys(
		    l->e, -errno, "cannot find the directory of %s", l->file);
	rc = ini_parse_stream(load_read_line, l, load_handle, l);
	load_end_value(l);
	if (rc > 0 && l->rc == 0) {
		l->line = rc;
		load_fail(l, -EINVAL, "",
		    "neither a [section], a comment nor key = value");
	}
	return l->rc < 0 ? l->rc : rc < 0 ? -ENOMEM : 0;
}

/* One "section.key=value" of the command line; the last one wins. */
static int
load_override(struct load *l, const char *text)
{
	const char *eq = strchr(text, '=');
	const char *dot = eq ? memchr(text, '.', (size_t)(eq - text)) : NULL;
	autofree char *section = NULL, *name = NULL;
	const struct option *o;
	struct load_value *v;
	size_t n;

	if (!dot)
		return err_set(
		    l->e, -EINVAL, "-o %s: not section.key=value", text);
	section = xstrndup(text, (size_t)(dot - text));
	name = xstrndup(dot + 1, (size_t)(eq - dot - 1));
	o = option_find(section, name);
	if (!o)
		return err_set(
		    l->e, -EINVAL, "-o %s.%s: unknown key", section, name);
	v = &l->values[o - options_all(&n)];
	free(v->text);
	v->text = xstrdup(eq + 1);
	v->line = 0;
	return 0;
}

static int
load_parse(struct load *l, struct conf *c)
{
	size_t n;
	const struct option *table = options_all(&n);
	autofree bool *is_set = xcalloc(n, sizeof(*is_set));

	for (size_t i = 0; i < n; i++) {
		const struct option *o = &table[i];
		const struct load_value *v = &l->values[i];
		int rc;

		if (!v->text)
			continue;
		is_set[i] = true;
		rc = option_set(
		    o, v->text, v->line ? l->file_dir : l->cwd, c, l->e);
		if (rc < 0 && v->line == 0)
			return err_wrap(
			    l->e, rc, "-o %s.%s", o->section, o->name);
		if (rc < 0)
			return err_wrap(l->e, rc, "%s:%d: %s.%s", l->file,
			    v->line, o->section, o->name);
	}
	return options_set_computed(c, is_set, l->e);
}

/* Where SECTION.NAME was given, for errors between values. */
static int
load_blame(const struct load *l, const char *section, const char *name,
    const char *why)
{
	size_t n;
	const struct load_value *v =
	    &l->values[option_find(section, name) - options_all(&n)];

	if (v->text && v->line)
		return err_set(l->e, -EINVAL, "%s:%d: %s.%s: %s", l->file,
		    v->line, section, name, why);
	return err_set(l->e, -EINVAL, "%s%s.%s: %s", v->text ? "-o " : "",
	    section, name, why);
}

static bool
load_is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

/* What runs in a sandbox must not reach what berth keeps. */
static int
load_check(const struct load *l, const struct conf *c)
{
	const struct {
		const char *section, *name, *paths;
	} kept[] = {
		{ "server", "state_dir", c->server.state_dir },
		{ "server", "runtime_dir", c->server.runtime_dir },
		{ "server", "host_key", c->server.host_key },
		{ "access", "authorized_keys", c->access.authorized_keys },
		{ "recording", "dir", c->recording.dir },
		{ "sandbox", "snapshots", c->sandbox.snapshots },
	};

	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		for (const char *p = kept[i].paths; *p; p += *p == ',') {
			size_t n = strcspn(p, ",");
			autofree char *path = xstrndup(p, n);

			if (load_is_below(path, c->sandbox.dir))
				return load_blame(l, kept[i].section,
				    kept[i].name, "lies inside sandbox.dir");
			p += n;
		}
	}
	if (!template_exists(c, c->access.default_template))
		return load_blame(l, "access", "default_template",
		    "there is no such template");
	if (access(c->session.shell, X_OK) < 0)
		return load_blame(
		    l, "session", "shell", "there is no such program");
	return 0;
}

static void
load_release(struct load *l)
{
	for (size_t i = 0; i < l->n_values; i++)
		free(l->values[i].text);
	free(l->values);
	free(l->file_dir);
	free(l->cwd);
	buf_release(&l->text);
}

/* The files of sandbox.providers, one after the other. */
static int
load_includes(const struct load *first, struct conf *c)
{
	const char *p = c->sandbox.providers;
	unsigned number = 1;
	int rc = 0;

	for (; *p && rc == 0; p += *p == ',') {
		size_t n = strcspn(p, ",");
		autofree char *path = xstrndup(p, n);
		struct load l = {
			.file = path, .e = first->e, .conf = c, .number = number
		};

		number++;
		rc = load_file(&l, false);
		load_release(&l);
		p += n;
	}
	if (rc == 0)
		rc = providers_check(c, first->e);
	return rc == 0 ? templates_check(c, first->e) : rc;
}

int
conf_load(const char *file, const char *const *overrides, unsigned n_overrides,
    struct conf **out, struct err *e)
{
	autofree char *default_path = file ? NULL : conf_default_path();
	struct load l = { .file = file ? file : default_path, .e = e };
	struct conf *c = xcalloc(1, sizeof(*c));
	int rc;

	l.conf = c;
	options_all(&l.n_values);
	l.values = xcalloc(l.n_values, sizeof(*l.values));
	l.cwd = realpath(".", NULL);
	if (!l.cwd)
		l.cwd = xstrdup("/");
	options_set_fixed(c);
	rc = load_file(&l, !file);
	for (unsigned i = 0; i < n_overrides && rc == 0; i++)
		rc = load_override(&l, overrides[i]);
	if (rc == 0)
		rc = load_parse(&l, c);
	if (rc == 0)
		rc = load_includes(&l, c);
	if (rc == 0)
		rc = load_check(&l, c);
	if (rc == 0)
		*out = take_ptr(c);
	load_release(&l);
	conf_free(c);
	return rc;
}

void
conf_free(struct conf *c)
{
	size_t n;
	const struct option *table = options_all(&n);

	if (c) {
		templates_free(c);
		providers_free(c);
	}
	for (size_t i = 0; c && i < n; i++) {
		if (option_type(table[i].kind)->is_string)
			free(*(char **)(void *)((char *)c + table[i].field));
	}
	free(c);
}
