/*
 * The environment of a session's process: what berth says, what its template
 * says, what its client may say.
 */
#ifndef SESSIONS_MANAGER_LAUNCH_ENV_H
#define SESSIONS_MANAGER_LAUNCH_ENV_H

#include <stddef.h>

#include "sessions/wire/messages.h"

struct launch_spec;
struct sandbox_place;
struct session;

/* PATH of berthd's own programs, and in places that have none of their own. */
#define LAUNCH_PATH \
	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* What FRAME_LAUNCH takes. */
#define LAUNCH_ENV_MAX (2 * WIRE_ENV_MAX)

/* Ends with NULL; zero-initialised it is empty. */
struct launch_env {
	char *v[LAUNCH_ENV_MAX + 1];
	size_t n;
};

/* Fills ENV for S, which runs in PLACE; launch_env_release() frees it. */
void launch_env_build(struct launch_env *env, const struct session *s,
    const struct launch_spec *spec, const struct sandbox_place *place);
void launch_env_release(struct launch_env *env);

/* TERM of a session with a terminal, "" without. */
const char *launch_term(const struct launch_spec *spec);

#endif
