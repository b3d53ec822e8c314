/*
 * User names: accepted exactly when the grammar allows them, spelled out here a
 * second time, and never changed on the way. The input is the name.
 */
#include <errno.h>
#include <stdbool.h>

#include "sandbox/provider.h"
#include "sessions/manager/manager.h"
#include "sshd/listener/user_name.h"
#include "tests/fuzz/fuzz.h"

static bool
user_name_is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9');
}

/* [A-Za-z0-9][A-Za-z0-9._-]{0,62}, with `+` behind the first if asked. */
static bool
user_name_is_part(const char *s, size_t n, bool with_plus)
{
	if (n < 1 || n > 63 || !user_name_is_alnum(s[0]))
		return false;
	for (size_t i = 1; i < n; i++) {
		if (!user_name_is_alnum(s[i]) && s[i] != '.' && s[i] != '_' &&
		    s[i] != '-' && !(with_plus && s[i] == '+'))
			return false;
	}
	return !(n == 5 && memcmp(s, "admin", 5) == 0);
}

static bool
user_name_is_exec(const char *s, size_t n)
{
	return n == 4 && memcmp(s, "exec", 4) == 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct fuzz_input in = { p, n };
	struct user_name u, before;
	char *s = fuzz_str(&in), again[2 * USER_NAME_PART + 2];
	const char *plus = strchr(s, '+');
	size_t box = plus ? (size_t)(plus - s) : strlen(s);
	const char *name = plus && plus[1] ? plus + 1 : "default";
	bool is_ok = user_name_is_part(s, box, false) &&
		     !user_name_is_exec(s, box) &&
		     user_name_is_part(name, strlen(name), true);
	int rc;

	memset(&u, 0x5a, sizeof(u));
	before = u;
	rc = user_name_parse(s, &u);
	FUZZ_CHECK(rc == (is_ok ? 0 : -EINVAL));
	if (rc < 0) {
		FUZZ_CHECK(memcmp(&u, &before, sizeof(u)) == 0);
	} else {
		FUZZ_CHECK(strlen(u.sandbox) == box);
		FUZZ_CHECK(memcmp(u.sandbox, s, box) == 0);
		FUZZ_CHECK(strcmp(u.session, name) == 0);
		FUZZ_CHECK(u.is_exec == user_name_is_exec(name, strlen(name)));
		FUZZ_CHECK(sandbox_name_is_valid(u.sandbox));
		FUZZ_CHECK(u.is_exec != manager_name_is_valid(u.session));
		snprintf(again, sizeof(again), "%s+%s", u.sandbox, u.session);
		FUZZ_CHECK(user_name_parse(again, &before) == 0);
		FUZZ_CHECK(strcmp(u.sandbox, before.sandbox) == 0);
		FUZZ_CHECK(strcmp(u.session, before.session) == 0);
	}
	free(s);
	return 0;
}
