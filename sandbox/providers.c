/*
 * From a section of the configuration to a provider; see providers.h. What its
 * clients have in their environment is decided here, of which nothing is
 * berthd's own but the home directory of its user.
 */
#include "sandbox/providers.h"

#include <errno.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "base/argv.h"
#include "base/err.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "sandbox/command.h"
#include "sandbox/engine.h"

static char *
providers_home(void)
{
	char space[4096];
	struct passwd pw, *found = NULL;

	getpwuid_r(geteuid(), &pw, space, sizeof(space), &found);
	return xasprintf("HOME=%s", found ? found->pw_dir : "/");
}

/* The loader has seen that there is nothing in it but {program}, perhaps. */
static int
providers_lookup(const char *name, void *arg, struct argv_value *out)
{
	const struct command *c = arg;

	out->text =
	    strcmp(name, "program") == 0 ? c->text[COMMAND_PROGRAM] : "";
	return 0;
}

/* PATH and HOME first, which the section may say differently. */
static int
providers_env(struct command *c, const char *text, struct err *e)
{
	char **words = NULL;
	size_t n = 0, n_env = 0;
	int rc = argv_expand(text, providers_lookup, c, &words, e);

	if (rc < 0)
		return rc;
	while (words[n])
		n++;
	c->env = xcalloc(n + 3, sizeof(*c->env));
	c->env[n_env++] = xstrdup("PATH=" ENGINE_PATH);
	c->env[n_env++] = providers_home();
	for (size_t i = 0; i < n && rc == 0; i++) {
		size_t len = strcspn(words[i], "=");
		size_t at = 0;

		if (!words[i][len] || len == 0) {
			rc = err_set(e, -EINVAL,
			    "provider %s.env: %s is not NAME=VALUE", c->name,
			    words[i]);
			break;
		}
		while (
		    at < n_env && strncmp(c->env[at], words[i], len + 1) != 0)
			at++;
		if (at < n_env)
			free(c->env[at]);
		else
			n_env++;
		c->env[at] = xstrdup(words[i]);
	}
	strv_free(words);
	return rc;
}

static int
providers_register(const struct conf_provider *p, struct err *e)
{
	struct command *c = xcalloc(1, sizeof(*c));
	int rc;

	c->name = xstrdup(p->name);
	for (int i = 0; i < COMMAND_TEXTS; i++)
		c->text[i] = xstrdup(
		    conf_provider_get(p, command_key((enum command_text)i)));
	c->timeout_ms = (uint32_t)conf_provider_ms(p, "timeout");
	c->create_ms = (uint32_t)conf_provider_ms(p, "create_timeout");
	c->poll_ms = (uint32_t)conf_provider_ms(p, "poll");
	rc = providers_env(c, conf_provider_get(p, "env"), e);
	if (rc < 0) {
		command_free(c);
		return rc;
	}
	return command_register(c, e);
}

int
sandbox_register_commands(const struct conf *c, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < c->n_providers && rc == 0; i++) {
		if (!command_find(c->providers[i]->name))
			rc = providers_register(c->providers[i], e);
	}
	return rc;
}
