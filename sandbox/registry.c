/*
 * The registry of providers and the rule for sandbox names; see provider.h. A
 * provider is checked when it registers, so that nobody later meets a missing
 * function behind a promised capability. Lives in berthd.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "sandbox/local.h"
#include "sandbox/provider.h"

#define SANDBOX_PROVIDERS_MAX 16
#define SANDBOX_NAME_MAX      63

static const struct sandbox_provider *registry[SANDBOX_PROVIDERS_MAX];
static size_t registry_len;

static const char *const registry_phases[] = {
	[SANDBOX_PENDING] = "pending",
	[SANDBOX_RUNNING] = "running",
	[SANDBOX_SUSPENDED] = "suspended",
	[SANDBOX_FAILED] = "failed",
	[SANDBOX_GONE] = "gone",
};

static const struct sandbox_provider *(*const registry_built_in[])(void) = {
	sandbox_local,
};

const char *
sandbox_phase_name(enum sandbox_phase p)
{
	return registry_phases[p];
}

bool
sandbox_name_is_valid(const char *name)
{
	static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "abcdefghijklmnopqrstuvwxyz0123456789";
	static const char rest[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "abcdefghijklmnopqrstuvwxyz0123456789._-";
	static const char *const reserved[] = { "admin", "exec" };
	size_t n = strnlen(name, SANDBOX_NAME_MAX + 1);

	if (n == 0 || n > SANDBOX_NAME_MAX || !strchr(first, name[0]) ||
	    strspn(name, rest) != n)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
		if (strcmp(name, reserved[i]) == 0)
			return false;
	}
	return true;
}

static const struct sandbox_provider *
registry_lookup(const char *name)
{
	for (size_t i = 0; i < registry_len; i++) {
		if (strcmp(registry[i]->name, name) == 0)
			return registry[i];
	}
	return NULL;
}

/* True if the mask promises what the functions give, no more and no less. */
static bool
registry_is_consistent(const struct sandbox_provider *p)
{
	unsigned have = (p->exec ? SANDBOX_CAP_EXEC : 0) |
			(p->dial ? SANDBOX_CAP_PORT_FORWARD : 0);

	return p->name && *p->name && p->description && p->init &&
	       p->provision && p->teardown && p->status &&
	       !p->dial == !p->listen && p->capabilities == have;
}

int
sandbox_register(const struct sandbox_provider *p, struct err *e)
{
	const char *name = p->name ? p->name : "(unnamed)";

	if (!registry_is_consistent(p))
		return err_set(e, -EINVAL,
		    "provider %s: its capabilities do not match its "
		    "functions",
		    name);
	if (registry_lookup(name))
		return err_set(
		    e, -EEXIST, "provider %s is registered already", name);
	assert(registry_len < SANDBOX_PROVIDERS_MAX);
	registry[registry_len++] = p;
	return 0;
}

const struct sandbox_provider *
sandbox_find(const char *name, struct err *e)
{
	const struct sandbox_provider *p = registry_lookup(name);
	char list[128] = "none", shown[64];
	size_t n = 0;

	if (p)
		return p;
	for (size_t i = 0; i < registry_len && n < sizeof(list); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s",
		    i ? ", " : "", registry[i]->name);
	text_escape(name, strlen(name), shown, sizeof(shown));
	err_set(e, -ENOENT, "there is no provider \"%s\"; there is: %s", shown,
	    list);
	return NULL;
}

int
sandbox_init(const struct conf *c, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(registry_built_in); i++) {
		const struct sandbox_provider *p = registry_built_in[i]();
		int rc = registry_lookup(p->name) ? 0 : sandbox_register(p, e);

		if (rc < 0)
			return rc;
	}
	for (size_t i = 0; i < registry_len; i++) {
		int rc = registry[i]->init(c, e);

		if (rc < 0)
			return err_wrap(
			    e, rc, "provider %s", registry[i]->name);
	}
	return 0;
}
