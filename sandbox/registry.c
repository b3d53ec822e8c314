/*
 * The registry of providers and the rule for sandbox names; see provider.h. A
 * provider is checked when it registers, so that nobody later meets a missing
 * function behind a promised capability. Lives in berthd and berth-sandbox.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "sandbox/archive.h"
#include "sandbox/dial.h"
#include "sandbox/local.h"
#include "sandbox/native.h"
#include "sandbox/provider.h"

#define SANDBOX_PROVIDERS_MAX 24

const struct dial_calls *sandbox_dial;
const struct archive_calls *sandbox_archive;

static const struct sandbox_provider *registry[SANDBOX_PROVIDERS_MAX];
static size_t registry_len;

static const char *const registry_phases[] = {
	[SANDBOX_PENDING] = "pending",
	[SANDBOX_RUNNING] = "running",
	[SANDBOX_SUSPENDED] = "suspended",
	[SANDBOX_FAILED] = "failed",
	[SANDBOX_GONE] = "gone",
};

static const struct {
	unsigned bit;
	const char *name, *sentence;
} registry_capabilities[] = {
	{ SANDBOX_CAP_EXEC, "exec", "run processes in a sandbox" },
	{ SANDBOX_CAP_PORT_FORWARD, "port-forward",
	    "forward ports of a sandbox" },
	{ SANDBOX_CAP_METRICS, "metrics", "measure a sandbox" },
	{ SANDBOX_CAP_SNAPSHOT, "snapshot", "make a snapshot of a sandbox" },
	{ SANDBOX_CAP_SUSPEND, "suspend", "suspend a sandbox" },
	{ SANDBOX_CAP_POOLS, "pools", "keep a pool of sandboxes" },
};

static const struct sandbox_provider *(*const registry_built_in[])(void) = {
	sandbox_local,
	sandbox_native,
};

const char *
sandbox_phase_name(enum sandbox_phase p)
{
	return registry_phases[p];
}

int
sandbox_phase_parse(const char *s, enum sandbox_phase *out)
{
	for (size_t i = 0; i < ARRAY_LEN(registry_phases); i++) {
		if (strcmp(s, registry_phases[i]) == 0) {
			*out = (enum sandbox_phase)i;
			return 0;
		}
	}
	return -EINVAL;
}

bool
sandbox_name_is_valid(const char *name)
{
	static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "abcdefghijklmnopqrstuvwxyz0123456789";
	static const char rest[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "abcdefghijklmnopqrstuvwxyz0123456789._-";
	static const char *const reserved[] = { "admin", "exec" };
	size_t n = strnlen(name, SANDBOX_NAME_SIZE);

	if (n == 0 || n >= SANDBOX_NAME_SIZE || !strchr(first, name[0]) ||
	    strspn(name, rest) != n)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(reserved); i++) {
		if (strcmp(name, reserved[i]) == 0)
			return false;
	}
	return true;
}

int
sandbox_check_name(const char *name, struct err *e)
{
	char shown[160];

	if (sandbox_name_is_valid(name))
		return 0;
	text_escape(name, strlen(name), shown, sizeof(shown));
	return err_set(e, -EINVAL, "\"%s\" is not a name for a sandbox", shown);
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
	unsigned have = (p->exec ? SANDBOX_CAP_EXEC : 0U) |
			(p->dial ? SANDBOX_CAP_PORT_FORWARD : 0U) |
			(p->measure ? SANDBOX_CAP_METRICS : 0U) |
			(p->snapshot ? SANDBOX_CAP_SNAPSHOT : 0U) |
			(p->suspend ? SANDBOX_CAP_SUSPEND : 0U) |
			(p->fill ? SANDBOX_CAP_POOLS : 0U);
	bool is_seen = p->poll_ms ? p->probe != NULL : p->status && p->watch;

	return p->name && *p->name && p->description && p->provision &&
	       p->teardown && p->halt && is_seen && !p->dial == !p->listen &&
	       !p->suspend == !p->resume && !p->snapshot == !p->unpack &&
	       !p->snapshot == !p->restore && !p->wrap == !p->reap &&
	       !p->fill == !p->drain && !p->fill == !p->members &&
	       !p->fill == !p->watch_member && !p->fill == !p->was_member &&
	       p->capabilities == have;
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
	char list[256] = "none", shown[64];
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

const struct sandbox_provider *const *
sandbox_all(size_t *n_out)
{
	*n_out = registry_len;
	return registry;
}

int
sandbox_require(
    const struct sandbox_provider *p, unsigned capability, struct err *e)
{
	const char *what = "do that";

	if (p->capabilities & capability)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(registry_capabilities); i++) {
		if (registry_capabilities[i].bit == capability)
			what = registry_capabilities[i].sentence;
	}
	return err_set(e, -EOPNOTSUPP, "unsupported: provider %s cannot %s",
	    p->name, what);
}

void
sandbox_capability_names(unsigned mask, char *out, size_t size)
{
	size_t n = 0;

	*out = '\0';
	for (size_t i = 0; i < ARRAY_LEN(registry_capabilities); i++) {
		if (n < size && (mask & registry_capabilities[i].bit))
			n += (size_t)snprintf(out + n, size - n, "%s%s",
			    n ? ", " : "", registry_capabilities[i].name);
	}
}

void
sandbox_way_release(struct sandbox_way *w)
{
	strv_free(take_ptr(w->argv));
	strv_free(take_ptr(w->env));
}

int
sandbox_init(struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(registry_built_in); i++) {
		const struct sandbox_provider *p = registry_built_in[i]();
		int rc = registry_lookup(p->name) ? 0 : sandbox_register(p, e);

		if (rc < 0)
			return rc;
	}
	return 0;
}
