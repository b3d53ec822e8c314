/*
 * The environment of a session's process; see launch_env.h. What comes later
 * takes the place of what came before.
 */
#include "sessions/manager/launch_env.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "conf/conf.h"
#include "sessions/manager/session.h"

/* Never taken from a client, whatever session.env_accept says. */
#define LAUNCH_ENV_NEVER                                                  \
	"LD_*,PATH,SHELL,IFS,HOME,USER,LOGNAME,ENV,BASH_ENV,BASH_FUNC_*," \
	"PS4,SHELLOPTS,BASHOPTS,PYTHON*,PERL*,BERTH_*,SSH_*,DISPLAY,"     \
	"XAUTHORITY,WAYLAND_DISPLAY"

static void
launch_env_add(struct launch_env *env, char *pair)
{
	size_t name_len = strcspn(pair, "=");

	for (size_t i = 0; i < env->n; i++) {
		if (strncmp(env->v[i], pair, name_len + 1) == 0) {
			free(env->v[i]);
			env->v[i] = pair;
			return;
		}
	}
	if (env->n < ARRAY_LEN(env->v) - 1)
		env->v[env->n++] = pair;
	else
		free(pair);
}

static bool
launch_env_is_name(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char c = s[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			c == '_' || (i > 0 && c >= '0' && c <= '9')))
			return false;
	}
	return n > 0;
}

/* What a client sent goes through the allow list; the rest is ours. */
static void
launch_env_client(
    struct launch_env *env, char *const *pairs, const char *accept)
{
	for (; pairs && *pairs; pairs++) {
		size_t n = strcspn(*pairs, "=");
		autofree char *name = xstrndup(*pairs, n);

		if ((*pairs)[n] == '=' && launch_env_is_name(name, n) &&
		    text_glob_list(accept, name) &&
		    !text_glob_list(LAUNCH_ENV_NEVER, name))
			launch_env_add(env, xstrdup(*pairs));
	}
}

const char *
launch_term(const struct launch_spec *spec)
{
	if (!(spec->flags & LAUNCH_PTY))
		return "";
	return spec->term && spec->term[0] ? spec->term : "xterm-256color";
}

/* What the template of its sandbox says. */
static void
launch_env_template(struct launch_env *env, const struct session *s)
{
	const struct box *b = box_find(s->m, s->sandbox);
	struct conf_template t;
	char **v = NULL;

	if (!b || !box_template(b, &t) || conf_variables(t.env, &v, NULL) < 0)
		return;
	for (char **p = v; *p; p++)
		launch_env_add(env, xstrdup(*p));
	strv_free(v);
}

/* These are so, whoever says what. */
static void
launch_env_own(struct launch_env *env, const struct session *s,
    const struct launch_spec *spec)
{
	launch_env_add(env, xasprintf("BERTH_SANDBOX=%s", s->sandbox));
	launch_env_add(env, xasprintf("BERTH_SESSION=%s", s->id));
	if (spec->flags & LAUNCH_PTY)
		launch_env_add(env, xasprintf("TERM=%s", launch_term(spec)));
}

void
launch_env_build(struct launch_env *env, const struct session *s,
    const struct launch_spec *spec, const struct sandbox_place *place)
{
	/* First as well, for there may be too many of the others. */
	launch_env_own(env, s, spec);
	launch_env_add(env, xasprintf("HOME=%s", place->workspace));
	launch_env_add(env, xasprintf("USER=%s", place->user));
	launch_env_add(env, xasprintf("LOGNAME=%s", place->user));
	launch_env_add(env, xasprintf("SHELL=%s", place->shell));
	/* An image has a PATH of its own, which knows better. */
	if (!place->has_way)
		launch_env_add(env, xasprintf("PATH=%s", LAUNCH_PATH));
	launch_env_template(env, s);
	launch_env_client(
	    env, spec->client_env, s->m->conf->session.env_accept);
	for (char *const *p = spec->extra_env; p && *p; p++)
		launch_env_add(env, xstrdup(*p));
	launch_env_own(env, s, spec);
}

void
launch_env_release(struct launch_env *env)
{
	while (env->n)
		free(env->v[--env->n]);
}
