/*
 * berthd from start to end: what is opened in which order, the signals, and
 * the orderly way out. Everything else is in the parts that it puts together.
 */
#ifndef SSHD_LISTENER_DAEMON_H
#define SSHD_LISTENER_DAEMON_H

struct conf;
struct err;

/* How the configuration was asked for, so that SIGHUP can ask again. */
struct daemon_args {
	const char *conf_file; /* NULL: the default path */
	const char *const *overrides;
	unsigned n_overrides;
};

/*
 * Runs with CONF, which it takes over, until SIGTERM or SIGINT. Returns 0 after
 * an orderly end, or a negative errno with a sentence when it cannot start.
 */
int daemon_run(
    const struct daemon_args *args, struct conf *conf, struct err *e);

#endif
