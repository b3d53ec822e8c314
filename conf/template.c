/* Templates of sandboxes; see template.h and conf.h. */
#include "conf/template.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "conf/options.h"

#define TEMPLATE_PREFIX   "template "
#define TEMPLATE_PIDS     "4096"
#define TEMPLATE_CPU_MAX  100000
#define TEMPLATE_PIDS_MAX 4194304
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

int
template_set(struct conf *c, const char *section, const char *key,
    const char *text, const char *dir, struct err *e)
{
	struct conf_template *t = template_lookup(c, template_name(section));

	for (size_t i = 0; i < ARRAY_LEN(template_table); i++) {
		const struct option *o = &template_table[i];
		int rc;

		if (strcmp(key, o->name) != 0)
			continue;
		if (t->given & 1U << i)
			return err_set(e, -EEXIST, "already given");
		t->given |= 1U << i;
		rc = template_parse(t, o, text, dir, e);
		if (rc == 0 && t->memory_bytes &&
		    t->memory_bytes < TEMPLATE_MEM_MIN)
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
