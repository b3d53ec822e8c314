/* How people name a session: an id, a prefix of one, or sandbox+name. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store/db.h"

#define STORE_REF_DIGITS_MIN 2
#define STORE_REF_DIGITS_MAX 16

bool
store_ref_is_id(const char *ref)
{
	size_t n;

	if (strncmp(ref, "ses-", 4) != 0)
		return false;
	n = strspn(ref + 4, "0123456789abcdef");
	return ref[4 + n] == '\0' && n >= STORE_REF_DIGITS_MIN &&
	       n <= STORE_REF_DIGITS_MAX;
}

int
store_ref_split(const char *ref, struct store_ref *out)
{
	size_t n = strcspn(ref, "+");
	const char *name = ref[n] ? ref + n + 1 : "";

	if (!*name)
		name = "default";
	if (n == 0 || n >= sizeof(out->sandbox) ||
	    strlen(name) >= sizeof(out->name))
		return -ENOENT;
	snprintf(out->sandbox, sizeof(out->sandbox), "%.*s", (int)n, ref);
	snprintf(out->name, sizeof(out->name), "%s", name);
	return 0;
}
