/* Roles and what a key's globs allow; see manager.h. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "sessions/manager/manager.h"

static const char *const role_names[] = {
	[ROLE_VIEWER] = "viewer",
	[ROLE_WRITER] = "writer",
	[ROLE_OWNER] = "owner",
};

const char *
role_name(enum role r)
{
	return role_names[r];
}

int
role_parse(const char *s, enum role *out)
{
	for (size_t i = 0; i < ARRAY_LEN(role_names); i++) {
		if (strcmp(s, role_names[i]) == 0) {
			*out = (enum role)i;
			return 0;
		}
	}
	return -EINVAL;
}

void
principal_release(struct principal *p)
{
	free(p->forced_command);
	free(p->sandbox_globs);
	free(p->session_globs);
	*p = (struct principal){ 0 };
}

bool
principal_may_use(
    const struct principal *p, const char *sandbox, const char *session)
{
	if (p->sandbox_globs && !text_glob_list(p->sandbox_globs, sandbox))
		return false;
	if (!session || !p->session_globs)
		return true;
	return text_glob_list(p->session_globs, session);
}
