/*
 * berthd from start to end: what is opened in which order, the signals, and
 * the orderly way out. Everything else is in the parts that it puts together.
 */
#ifndef SSHD_LISTENER_DAEMON_H
#define SSHD_LISTENER_DAEMON_H

struct conf;
struct err;
struct upgrade_call;

/*
 * How this program was started and the configuration asked for, so that SIGHUP
 * can ask again and an upgrade can do the same.
 */
struct daemon_args {
	char *self;                /* absolute path of the program */
	char **argv;               /* NULL-terminated */
	struct upgrade_call *call; /* what a former berthd left, if any */
	const char *conf_file;     /* NULL: the default path */
	const char *const *overrides;
	unsigned n_overrides;
};

/*
 * Runs with CONF, which it takes over, until SIGTERM or SIGINT. Returns 0 after
 * an orderly end, or a negative errno with a sentence when it cannot start.
 */
int daemon_run(
    const struct daemon_args *args, struct conf *conf, struct err *e);

/*
 * Looks whether daemon_run() would start in place of a running berthd, without
 * touching anything of it. 0, or a negative errno with a sentence.
 */
int daemon_rehearse(
    const struct daemon_args *args, struct conf *conf, struct err *e);

#endif
