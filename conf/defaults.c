/*
 * Default paths; see defaults.h. Used by berthd through the option table and
 * by the command line to find the control socket.
 */
#include "conf/defaults.h"

#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "conf/conf.h"

/* NOLINTBEGIN(concurrency-mt-unsafe): called before any thread starts */
struct defaults_user
defaults_user(void)
{
	struct defaults_user u = {
		.is_root = geteuid() == 0,
		.home = getenv("HOME"),
		.xdg_config = getenv("XDG_CONFIG_HOME"),
		.xdg_state = getenv("XDG_STATE_HOME"),
		.xdg_runtime = getenv("XDG_RUNTIME_DIR"),
	};

	if (!u.is_root && (!u.home || u.home[0] != '/')) {
		const struct passwd *pw = getpwuid(geteuid());

		u.home = pw ? pw->pw_dir : "/";
	}
	return u;
}
/* NOLINTEND(concurrency-mt-unsafe) */

/* DIR/berth, or HOME/REST/berth when DIR is unset or relative. */
static char *
defaults_xdg(const char *dir, const char *home, const char *rest)
{
	if (dir && dir[0] == '/')
		return xasprintf("%s/berth", dir);
	return xasprintf("%s/%s/berth", home, rest);
}

char *
defaults_config_path(const struct defaults_user *u)
{
	autofree char *dir = NULL;

	if (u->is_root)
		return xstrdup("/etc/berth/berth.conf");
	dir = defaults_xdg(u->xdg_config, u->home, ".config");
	return xasprintf("%s/berth.conf", dir);
}

char *
defaults_state_dir(const struct defaults_user *u)
{
	if (u->is_root)
		return xstrdup("/var/lib/berth");
	return defaults_xdg(u->xdg_state, u->home, ".local/state");
}

char *
defaults_runtime_dir(const struct defaults_user *u, const char *state_dir)
{
	if (u->is_root)
		return xstrdup("/run/berth");
	if (u->xdg_runtime && u->xdg_runtime[0] == '/')
		return xasprintf("%s/berth", u->xdg_runtime);
	return xasprintf("%s/run", state_dir);
}

char *
defaults_sandbox_dir(const struct defaults_user *u, const char *state_dir)
{
	if (u->is_root)
		return xstrdup("/var/lib/berth-sandboxes");
	return xasprintf("%s/sandboxes", state_dir);
}

char *
conf_default_path(void)
{
	struct defaults_user u = defaults_user();

	return defaults_config_path(&u);
}

char *
conf_default_runtime_dir(void)
{
	struct defaults_user u = defaults_user();
	autofree char *state = defaults_state_dir(&u);

	return defaults_runtime_dir(&u, state);
}
