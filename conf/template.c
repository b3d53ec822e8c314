/* Templates of sandboxes; see template.h and conf.h. */
#include "conf/template.h"

#include <errno.h>
#include <string.h>

#include "base/argv.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "conf/options.h"

#define TEMPLATE_PREFIX   "template "
#define TEMPLATE_PIDS     "4096"
#define TEMPLATE_CPU_MAX  100000
#define TEMPLATE_PIDS_MAX 4194304
#define TEMPLATE_INIT_MAX 3600000
#define TEMPLATE_INIT_MS  60000
#define TEMPLATE_ENV_MAX  64
#define TEMPLATE_TEXT_MAX 4096
#define TEMPLATE_LIFE_MAX (10ULL * 366 * 24 * 3600 * 1000)
#define TEMPLATE_MEM_MIN  (4ULL << 20)
#define TEMPLATE_MEM_MAX  (1ULL << 50)

#define FIELD(f) offsetof(struct conf_template, f)

/* clang-format off */
static const struct option template_table[] = {
{ "template", "provider", OPTION_TEMPLATE, FIELD(provider), 0, 0,
	"native", NULL, "native, local or a provider",
	"Who makes it: native separates by namespaces and control groups, "
	"local only names a directory; more by [provider NAME]. Each of them "
	"is a template too." },
{ "template", "rootfs", OPTION_PATH, FIELD(rootfs), 0, 0,
	"none", NULL, "path or none",
	"A directory with a system, shown read-only; none shows the one of "
	"this host." },
{ "template", "image", OPTION_STRING, FIELD(image), 0, 0,
	"none", NULL, "text or none",
	"What a provider of commands makes it from." },
{ "template", "network", OPTION_WORD, FIELD(network), 0, 0,
	"loopback", NULL, "loopback, host, none",
	"What a sandbox reaches: itself, whatever this host does, or nothing." },
{ "template", "cpu", OPTION_COUNT, FIELD(cpu_percent), 0, TEMPLATE_CPU_MAX,
	"0", NULL, "percent",
	"Time of processors, 100 for a whole one, 0 for no limit." },
{ "template", "memory", OPTION_SIZE, FIELD(memory_bytes), 0,
	TEMPLATE_MEM_MAX, "0", NULL, "size",
	"Memory of all its processes and of what they write to /tmp, 0 for no "
	"limit, else at least 4M." },
{ "template", "pids", OPTION_COUNT, FIELD(pids_max), 0, TEMPLATE_PIDS_MAX,
	TEMPLATE_PIDS, NULL, "count",
	"Processes and threads at one time, 0 for no limit." },
{ "template", "workspace_size", OPTION_SIZE, FIELD(workspace_bytes), 0,
	TEMPLATE_MEM_MAX, "0", NULL, "size",
	"How much the workspace may hold, 0 for no limit, else at least 4M. It "
	"is a file system of that size where one can be made. Larger, it grows when the "
	"sandbox starts; smaller, only a restore of a snapshot makes it so." },
{ "template", "env", OPTION_VARIABLES, FIELD(env), 0, 0,
	"none", NULL, "words NAME=VALUE or none",
	"Variables of all that runs in a sandbox. Words with blanks are put in "
	"quotes; what a client sends for itself comes after them." },
{ "template", "init", OPTION_SCRIPT, FIELD(init), 0, 0,
	"none", NULL, "command or none",
	"What the shell runs once in a new sandbox, as its user, before anybody "
	"is let in; if it fails, so does the sandbox. Its output is recorded. "
	"In the file a blank and a semicolon begin a comment." },
{ "template", "init_timeout", OPTION_TIME, FIELD(init_timeout_ms), 100,
	TEMPLATE_INIT_MAX, "60s", NULL, "time",
	"How long init may take." },
{ "template", "sftp", OPTION_BOOL, FIELD(sftp), 0, 0,
	"yes", NULL, "no, yes",
	"Files may be transferred by sftp and `berth sandbox cp`." },
{ "template", "forward", OPTION_BOOL, FIELD(forward), 0, 0,
	"yes", NULL, "no, yes",
	"Ports may be forwarded into a sandbox and out of it." },
{ "template", "pool_size", OPTION_COUNT, FIELD(pool_size), 0, CONF_POOL_MAX,
	"0", NULL, "count",
	"Sandboxes that are made ahead, without name and workspace, for whoever "
	"comes next: then there is nothing to wait for. Native ones only." },
{ "template", "idle_suspend", OPTION_TIME, FIELD(idle_suspend_ms), 0,
	TEMPLATE_LIFE_MAX, "0", NULL, "time",
	"Suspended when nobody was attached and no command, file transfer or "
	"forwarded connection was open for so long, 0 for never." },
{ "template", "idle_teardown", OPTION_TIME, FIELD(idle_teardown_ms), 0,
	TEMPLATE_LIFE_MAX, "0", NULL, "time",
	"Removed, with its files, when it was idle for so long, suspended or "
	"not, 0 for never. A restart of berthd counts as use." },
{ "template", "lifetime", OPTION_TIME, FIELD(lifetime_ms), 0,
	TEMPLATE_LIFE_MAX, "0", NULL, "time",
	"Removed, with its files, so long after it was made, whoever is "
	"there, 0 for never." },
{ "template", "viewers_wake", OPTION_BOOL, FIELD(viewers_wake), 0, 0,
	"no", NULL, "no, yes",
	"Who only watches wakes a suspended one and keeps it from being idle." },
};
/* clang-format on */

/* What is there without a word; a section of that name replaces it. */
static const struct {
	const char *name, *provider;
} template_built_in[] = {
	{ CONF_TEMPLATE_AUTO, "native" },
	{ "native", "native" },
	{ "local", "local" },
};

/*
 * The functions of a kind know a base and an offset, so the same kinds serve
 * for another struct.
 */
static struct conf *
template_base(struct conf_template *t)
{
	return (struct conf *)(void *)t;
}

static const struct conf *
template_base_const(const struct conf_template *t)
{
	return (const struct conf *)(const void *)t;
}

static bool
template_name_is_valid(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n <= CONF_TEMPLATE_NAME_MAX && s[0] != '-' &&
	       s[0] != '.' &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz"
			 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == n;
}

const char *
template_name(const char *section)
{
	size_t n = strlen(TEMPLATE_PREFIX);

	return strncmp(section, TEMPLATE_PREFIX, n) == 0 ? section + n : NULL;
}

const struct option *
template_options(size_t *n_out)
{
	*n_out = ARRAY_LEN(template_table);
	return template_table;
}

static struct conf_template *
template_lookup(const struct conf *c, const char *name)
{
	for (size_t i = 0; i < c->n_templates; i++) {
		if (strcmp(c->templates[i]->name, name) == 0)
			return c->templates[i];
	}
	return NULL;
}

static int
template_parse(struct conf_template *t, const struct option *o,
    const char *text, const char *dir, struct err *e)
{
	/* A path that is none is the empty string in every conf. */
	if (o->kind == OPTION_PATH && strcmp(text, "none") == 0) {
		free(t->rootfs);
		t->rootfs = xstrdup("");
		return 0;
	}
	return option_set(o, text, dir, template_base(t), e);
}

static bool
template_is_small(uint64_t bytes)
{
	return bytes && bytes < TEMPLATE_MEM_MIN;
}

/* Braces are not special in values of variables: no name is a placeholder. */
static char *
template_escape_braces(const char *text)
{
	struct buf b = { 0 };
	bool is_quoted = false;

	for (; *text; text++) {
		if (*text == '\\' && !is_quoted && text[1]) {
			buf_put_u8(&b, (uint8_t)*text++);
		} else if (*text == '\'') {
			is_quoted = !is_quoted;
		} else if (*text == '{' && !is_quoted) {
			buf_put_u8(&b, '\\');
		}
		buf_put_u8(&b, (uint8_t)*text);
	}
	buf_put_u8(&b, '\0');
	return (char *)b.data;
}

static int
template_no_placeholder(const char *name, void *arg, struct argv_value *out)
{
	(void)name;
	(void)arg;
	(void)out;
	return -ENOENT;
}

static bool
template_is_variable(const char *s)
{
	size_t n = strcspn(s, "=");

	return n > 0 && s[n] == '=' && (*s < '0' || *s > '9') &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz"
			 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n;
}

int
conf_variables(const char *text, char ***out, struct err *e)
{
	autofree char *escaped =
	    template_escape_braces(strcmp(text, "none") == 0 ? "" : text);
	char **v = NULL;
	size_t n = 0;
	int rc = argv_expand(escaped, template_no_placeholder, NULL, &v, e);

	if (rc < 0)
		return rc;
	for (; v[n] && rc == 0; n++) {
		if (!template_is_variable(v[n]))
			rc = err_set(
			    e, -EINVAL, "\"%.64s\" is not NAME=VALUE", v[n]);
		else if (strncmp(v[n], "BERTH_", 6) == 0)
			rc = err_set(e, -EINVAL,
			    "BERTH_ begins names that are berth's own");
	}
	if (rc == 0 && n > TEMPLATE_ENV_MAX)
		rc = err_set(
		    e, -E2BIG, "more than %d variables", TEMPLATE_ENV_MAX);
	if (rc < 0)
		strv_free(v);
	else
		*out = v;
	return rc;
}

static struct conf_template *
template_new(const char *name, const char *provider)
{
	struct conf_template *t = xcalloc(1, sizeof(*t));

	t->name = xstrdup(name);
	for (size_t i = 0; i < ARRAY_LEN(template_table); i++) {
		const struct option *o = &template_table[i];

		/* A default that does not parse is our own mistake. */
		if (template_parse(
			t, o, i == 0 ? provider : o->def, "/", NULL) < 0)
			abort();
	}
	return t;
}

static void
template_free(struct conf_template *t)
{
	free(t->name);
	free(t->provider);
	free(t->rootfs);
	free(t->image);
	free(t->env);
	free(t->init);
	free(t);
}

void
templates_free(struct conf *c)
{
	for (size_t i = 0; i < c->n_templates; i++)
		template_free(c->templates[i]);
	c->n_templates = 0;
}

static const char *
template_default_provider(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(template_built_in); i++) {
		if (strcmp(name, template_built_in[i].name) == 0)
			return template_built_in[i].provider;
	}
	return template_table[0].def;
}

int
template_open(struct conf *c, const char *section, struct err *e)
{
	const char *name = template_name(section);

	if (!template_name_is_valid(name))
		return err_set(
		    e, -EINVAL, "\"%s\" is not a name for a template", name);
	if (template_lookup(c, name))
		return 0;
	if (c->n_templates == ARRAY_LEN(c->templates))
		return err_set(e, -E2BIG, "more than %zu templates",
		    ARRAY_LEN(c->templates));
	c->templates[c->n_templates++] =
	    template_new(name, template_default_provider(name));
	return 0;
}

/* A line that goes on: what was read so far, and it. */
static int
template_continue(struct conf_template *t, const struct option *o,
    const char *text, const char *dir, struct err *e)
{
	char *const *field = (char *const *)((const char *)t + o->field);
	autofree char *longer = NULL;
	int rc;

	if (o->kind != OPTION_VARIABLES && o->kind != OPTION_SCRIPT)
		return err_set(e, -EEXIST, "already given");
	longer = xasprintf("%s%s%s", *field, **field ? "\n" : "", text);
	if (strlen(longer) > TEMPLATE_TEXT_MAX)
		return err_set(
		    e, -E2BIG, "is longer than %d bytes", TEMPLATE_TEXT_MAX);
	rc = option_check_line(text, e);
	return rc < 0 ? rc
		      : option_type(o->kind)->parse(
			    o, longer, dir, template_base(t), e);
}

int
template_set(struct conf *c, const char *section, const char *key,
    const char *text, const struct template_line *at, struct err *e)
{
	struct conf_template *t = template_lookup(c, template_name(section));

	for (size_t i = 0; i < ARRAY_LEN(template_table); i++) {
		const struct option *o = &template_table[i];
		int rc;

		if (strcmp(key, o->name) != 0)
			continue;
		if ((t->given & 1U << i) && at->goes_on)
			return template_continue(t, o, text, at->dir, e);
		if (t->given & 1U << i)
			return err_set(e, -EEXIST, "already given");
		t->given |= 1U << i;
		rc = template_parse(t, o, text, at->dir, e);
		if (rc == 0 && (template_is_small(t->memory_bytes) ||
				   template_is_small(t->workspace_bytes)))
			return err_set(e, -EINVAL, "0, or at least 4M");
		return rc;
	}
	return err_set(e, -ENOENT, "unknown key");
}

bool
template_exists(const struct conf *c, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(template_built_in); i++) {
		if (strcmp(name, template_built_in[i].name) == 0)
			return true;
	}
	return template_lookup(c, name) || conf_provider_find(c, name);
}

/* A template of a provider's name is of that provider, if it says nothing. */
static int
template_settle(const struct conf *c, struct conf_template *t, struct err *e)
{
	if (!(t->given & 1U) && conf_provider_find(c, t->name)) {
		free(t->provider);
		t->provider = xstrdup(t->name);
	}
	if (t->pool_size && strcmp(t->provider, "native") != 0)
		return err_set(e, -EINVAL,
		    "template %s.pool_size: provider %s cannot keep a pool of "
		    "sandboxes",
		    t->name, t->provider);
	if (t->idle_suspend_ms && strcmp(t->provider, "local") == 0)
		return err_set(e, -EINVAL,
		    "template %s.idle_suspend: provider local cannot suspend",
		    t->name);
	if (strcmp(t->provider, "native") == 0 ||
	    strcmp(t->provider, "local") == 0 ||
	    conf_provider_find(c, t->provider))
		return 0;
	return err_set(e, -EINVAL,
	    "template %s.provider: there is no provider %s", t->name,
	    t->provider);
}

int
templates_check(const struct conf *c, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < c->n_templates && rc == 0; i++)
		rc = template_settle(c, c->templates[i], e);
	return rc;
}

/* A template without a section. */
static void
template_plain(const char *provider, struct conf_template *out)
{
	*out = (struct conf_template){
		.provider = (char *)(uintptr_t)provider,
		.rootfs = (char *)(uintptr_t) "",
		.image = (char *)(uintptr_t) "",
		.pids_max = strtoul(TEMPLATE_PIDS, NULL, 10),
		.env = (char *)(uintptr_t) "",
		.init = (char *)(uintptr_t) "",
		.init_timeout_ms = TEMPLATE_INIT_MS,
		.sftp = true,
		.forward = true,
	};
}

int
conf_template_find(const struct conf *c, const char *name,
    struct conf_template *out, struct err *e)
{
	const struct conf_template *t = template_lookup(c, name);
	char list[160] = "";
	size_t n = 0;

	if (t) {
		*out = *t;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(template_built_in); i++) {
		if (strcmp(name, template_built_in[i].name) == 0) {
			template_plain(template_built_in[i].provider, out);
			return 0;
		}
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s",
		    n ? ", " : "", template_built_in[i].name);
	}
	for (size_t i = 0; i < c->n_templates && n < sizeof(list); i++)
		n += (size_t)snprintf(
		    list + n, sizeof(list) - n, ", %s", c->templates[i]->name);
	for (size_t i = 0; i < c->n_providers && n < sizeof(list); i++) {
		if (strcmp(c->providers[i]->name, name) == 0) {
			template_plain(c->providers[i]->name, out);
			return 0;
		}
		n += (size_t)snprintf(
		    list + n, sizeof(list) - n, ", %s", c->providers[i]->name);
	}
	return err_set(
	    e, -ENOENT, "there is no template %.64s; there is: %s", name, list);
}

void
templates_show(const struct conf *c, FILE *out)
{
	for (size_t i = 0; i < c->n_templates; i++) {
		const struct conf_template *t = c->templates[i];

		fprintf(out, "\n[template %s]\n", t->name);
		for (size_t j = 0; j < ARRAY_LEN(template_table); j++) {
			const struct option *o = &template_table[j];
			autofree char *text = option_type(o->kind)->format(
			    o, template_base_const(t));

			fprintf(out, "%s = %s\n", o->name, text);
		}
	}
}
