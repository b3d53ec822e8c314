/*
 * Where berth keeps its things by default: fixed places for root, the XDG base
 * directories for everybody else (never a directory that all users share).
 */
#ifndef CONF_DEFAULTS_H
#define CONF_DEFAULTS_H

#include <stdbool.h>

/* Who asks; the strings are borrowed, NULL when unset. */
struct defaults_user {
	bool is_root;
	const char *home;
	const char *xdg_config, *xdg_state, *xdg_runtime;
};

/* The caller's own, from the effective uid, the environment and passwd. */
struct defaults_user defaults_user(void);

/*
 * The configuration file and the state directory of U; the caller frees. XDG
 * variables that are not absolute are ignored, as the specification wants.
 */
char *defaults_config_path(const struct defaults_user *u);
char *defaults_state_dir(const struct defaults_user *u);

/*
 * The runtime directory of U, whose state directory is STATE_DIR; the caller
 * frees. Without XDG_RUNTIME_DIR it is STATE_DIR/run.
 */
char *defaults_runtime_dir(
    const struct defaults_user *u, const char *state_dir);

/* The sandboxes' directory; the caller frees. */
char *defaults_sandbox_dir(
    const struct defaults_user *u, const char *state_dir);

#endif
