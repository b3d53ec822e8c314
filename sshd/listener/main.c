/*
 * berthd: the manager. This file reads the command line and hands over to
 * daemon.c; exit status 0 is an orderly end, 1 a refusal with one sentence on
 * stderr, 2 a wrong command line.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "sshd/listener/daemon.h"
#include "sshd/listener/upgrade.h"

#define MAIN_OVERRIDES_MAX 64

enum main_mode {
	MAIN_RUN,
	MAIN_TEST,
	MAIN_REHEARSE,
	MAIN_SHOW,
	MAIN_VERSION,
	MAIN_HELP,
	MAIN_SAMPLE,
	MAIN_MANUAL
};

struct main_args {
	enum main_mode mode;
	struct daemon_args daemon;
	struct upgrade_call call;
	const char *where; /* of the berthd that asks, for MAIN_REHEARSE */
	const char *overrides[MAIN_OVERRIDES_MAX];
};

/*
 * The last three are not for people: the sample file and the manual's table for
 * the build, and what a running berthd asks its successor.
 */
static const struct option main_options[] = {
	{ "show-config", no_argument, NULL, MAIN_SHOW },
	{ "version", no_argument, NULL, MAIN_VERSION },
	{ "help", no_argument, NULL, MAIN_HELP },
	{ "sample-config", no_argument, NULL, MAIN_SAMPLE },
	{ "manual", no_argument, NULL, MAIN_MANUAL },
	{ "rehearse", required_argument, NULL, MAIN_REHEARSE },
	{ NULL, 0, NULL, 0 },
};

static void
main_usage(FILE *out)
{
	fputs("usage: berthd [-c FILE] [-o section.key=value]... [-t]\n"
	      "              [--show-config] [--version]\n"
	      "  -c FILE   read this configuration\n"
	      "  -o K=V    set one option, over the file\n"
	      "  -t        check the configuration and exit\n",
	    out);
}

static int
main_parse(int argc, char **argv, struct main_args *a)
{
	unsigned n = 0;
	int c;

	while (
	    (c = getopt_long(argc, argv, "c:o:th", main_options, NULL)) != -1) {
		if (c == 'c')
			a->daemon.conf_file = optarg;
		else if (c == 'o' && n < MAIN_OVERRIDES_MAX)
			a->overrides[n++] = optarg;
		else if (c == 't')
			a->mode = MAIN_TEST;
		else if (c == 'h')
			a->mode = MAIN_HELP;
		else if (c >= MAIN_REHEARSE && c <= MAIN_MANUAL) {
			a->where = optarg;
			a->mode = (enum main_mode)c;
		} else
			return -EINVAL;
	}
	a->daemon.overrides = a->overrides;
	a->daemon.n_overrides = n;
	return optind == argc ? 0 : -EINVAL;
}

/* 0-2 are always something, so that no socket is ever taken for stderr. */
static void
main_standard_fds(void)
{
	/* Children inherit them. NOLINTNEXTLINE(android-cloexec-open) */
	int fd = open("/dev/null", O_RDWR);

	while (fd >= 0 && fd <= STDERR_FILENO)
		/* NOLINTNEXTLINE(android-cloexec-open) */
		fd = open("/dev/null", O_RDWR);
	if (fd < 0)
		return;
	dup2(fd, STDIN_FILENO);
	close(fd);
}

/* What needs no configuration; true when that was all. */
static bool
main_print(enum main_mode mode)
{
	switch (mode) {
	case MAIN_VERSION:
		puts("berthd " BERTH_VERSION);
		return true;
	case MAIN_HELP:
		main_usage(stdout);
		return true;
	case MAIN_SAMPLE:
		conf_print_sample(stdout);
		return true;
	case MAIN_MANUAL:
		conf_print_manual(stdout);
		return true;
	default:
		return false;
	}
}

/* From the file; after an upgrade that failed, as it was before. */
static int
main_load(const struct main_args *a, struct conf **out, struct err *e)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", a->call.conf_fd);
	return conf_load(a->call.conf_fd < 0 ? a->daemon.conf_file : path,
	    a->overrides, a->daemon.n_overrides, out, e);
}

/* The path of this program, also when another file has taken its place. */
static char *
main_self(void)
{
	static const char gone[] = " (deleted)";
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	size_t len = n > 0 ? (size_t)n : 0;

	path[len] = '\0';
	if (len > strlen(gone) && strcmp(path + len - strlen(gone), gone) == 0)
		path[len - strlen(gone)] = '\0';
	return xstrdup(path);
}

static int
main_rehearse(const struct main_args *a, struct conf *conf, struct err *e)
{
	int rc;

	log_open("berthd", LOG_ERR, false);
	rc = conf ? upgrade_check_where(conf, a->where, e) : -EINVAL;
	if (rc == 0)
		rc = daemon_rehearse(&a->daemon, conf, e);

	upgrade_rehearsed(rc < 0 ? e->msg : NULL);
	conf_free(conf);
	return rc < 0;
}

/* The configuration was broken between the rehearsal and the execution. */
static void
main_give_back(const struct main_args *a, const struct err *e)
{
	log_open("berthd", LOG_ERR, false);
	upgrade_give_back(&a->daemon, e->msg);
}

static int
main_serve(const struct main_args *a, struct conf *conf)
{
	struct err e = { 0 };

	log_open("berthd", conf->server.log_level, conf->server.log_json);
	/* The leak check of a sanitizer traces its own process. */
	prctl(PR_SET_DUMPABLE, !BERTH_CONFINED);
	main_standard_fds();
	/* Executed through a descriptor, it would be called by its number. */
	prctl(PR_SET_NAME, "berthd");
	if (daemon_run(&a->daemon, conf, &e) < 0) {
		fprintf(stderr, "berthd: %s\n", e.msg);
		return 1;
	}
	return 0;
}

int
main(int argc, char **argv)
{
	struct main_args a = { .mode = MAIN_RUN };
	struct conf *conf = NULL;
	struct err e = { 0 };
	int rc = 0;

	/* Every file names its mode; what a child makes is not our secret. */
	umask(022);
	if (main_parse(argc, argv, &a) < 0) {
		main_usage(stderr);
		return 2;
	}
	if (main_print(a.mode))
		return 0;
	a.daemon.argv = argv;
	upgrade_find(&a.call);
	a.daemon.self = a.call.self ? a.call.self : main_self();
	a.daemon.call = &a.call;
	if (main_load(&a, &conf, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		if (a.mode == MAIN_REHEARSE)
			main_rehearse(&a, NULL, &e);
		else if (a.mode == MAIN_RUN)
			main_give_back(&a, &e);
		rc = 1;
	} else if (a.mode == MAIN_RUN) {
		rc = main_serve(&a, conf);
	} else if (a.mode == MAIN_REHEARSE) {
		rc = main_rehearse(&a, conf, &e);
	} else {
		if (a.mode == MAIN_SHOW)
			conf_show(conf, stdout);
		conf_free(conf);
	}
	free(a.daemon.self);
	return rc;
}
