/* The grammar of user names; see user_name.h. Runs in berthd. */
#include "sshd/listener/user_name.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "sandbox/provider.h"
#include "sessions/manager/manager.h"

/* Copies the N bytes of S if they may be a name at all. */
static int
user_name_part(const char *s, size_t n, char out[USER_NAME_PART])
{
	if (n == 0 || n >= USER_NAME_PART)
		return -EINVAL;
	memcpy(out, s, n);
	out[n] = '\0';
	return 0;
}

int
user_name_parse(const char *user, struct user_name *out)
{
	struct user_name u = { 0 };
	size_t n = strcspn(user, "+");
	const char *session = user[n] ? user + n + 1 : "";

	if (user_name_part(user, n, u.sandbox) < 0 ||
	    !sandbox_name_is_valid(u.sandbox))
		return -EINVAL;
	if (!*session)
		session = "default";
	if (user_name_part(session, strlen(session), u.session) < 0 ||
	    strcmp(u.session, "admin") == 0)
		return -EINVAL;
	u.is_exec = strcmp(u.session, "exec") == 0;
	if (!u.is_exec && !manager_name_is_valid(u.session))
		return -EINVAL;
	*out = u;
	return 0;
}
