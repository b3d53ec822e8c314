/*
 * What an SSH user name means: `sandbox+session`. Pure and strict, used before
 * anything else looks at the name: what is not in the grammar has no meaning,
 * nothing is cut, folded or normalised into another's name.
 */
#ifndef SSHD_LISTENER_USER_NAME_H
#define SSHD_LISTENER_USER_NAME_H

#include <stdbool.h>

#define USER_NAME_PART 64 /* 63 characters and a NUL */

struct user_name {
	char sandbox[USER_NAME_PART];
	char session[USER_NAME_PART]; /* "exec" if is_exec */
	bool is_exec;                 /* a private one-shot shell */
};

/*
 * Splits USER at its first `+`. `box` and `box+` mean session `default`,
 * `box+exec` a private shell. Sandbox: [A-Za-z0-9][A-Za-z0-9._-]{0,62};
 * session: the same plus `+`; `admin` and `exec` are reserved in both. Returns
 * 0, or -EINVAL for anything else; OUT is untouched then.
 */
int user_name_parse(const char *user, struct user_name *out);

#endif
