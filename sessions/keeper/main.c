/*
 * berth-session, the keeper of one session. Started by the manager with
 * descriptor 3 = its link, 4 = the session's lock, held for as long as this
 * process lives, 5 = a listening socket for a later manager (may be missing).
 * What to run comes as FRAME_LAUNCH. It outlives its manager, and is root only
 * until that runs; see drop.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "sessions/keeper/keeper.h"
#include "sessions/keeper/reindex.h"

#define MAIN_MANAGER_FD 3
#define MAIN_LOCK_FD    4
#define MAIN_LISTEN_FD  5

static int
main_is_socket(int fd)
{
	int type;
	socklen_t len = sizeof(type);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0;
}

/* Nothing of a terminal or a shell that may have started the manager. */
static int
main_leave_terminal(void)
{
	autoclose int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(null_fd, 1) < 0)
		return -errno;
	if (setsid() < 0 && errno != EPERM)
		return -errno;
	return prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? -errno : 0;
}

/*
 * Whoever shuts the manager down does not mean the sessions: only the manager
 * ends them, by frames. SIGCHLD is read from a signalfd.
 */
static void
main_set_signals(void)
{
	static const int ignored[] = { SIGPIPE, SIGTERM, SIGHUP, SIGINT,
		SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU };
	sigset_t set;

	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_SETMASK, &set, NULL);
}

/* berth-session LEVEL text|json SESSION: how the manager logs; SESSION is for ps. */
static void
main_open_log(int argc, char **argv)
{
	enum log_level level = LOG_INFO;

	if (argc > 1)
		(void)log_level_parse(argv[1], &level);
	log_open(
	    "berth-session", level, argc > 2 && strcmp(argv[2], "json") == 0);
}

/* Reads a recording instead of keeping a session; see reindex.h. */
static int
main_reindex(void)
{
	struct err e = { 0 };
	struct drop drop;
	int rc;

	drop_alone(&drop);
	if (drop_now(&drop, &e) < 0) {
		log_err("start_failed", "error", e.msg, NULL);
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	rc = reindex_run(MAIN_MANAGER_FD, MAIN_LOCK_FD);
	return rc < 0;
}

int
main(int argc, char **argv)
{
	bool has_listener = main_is_socket(MAIN_LISTEN_FD);
	struct drop drop;
	struct keeper *k;

	/* The leak check of a sanitizer traces its own process. */
	prctl(PR_SET_DUMPABLE, !BERTH_CONFINED);
	main_open_log(argc, argv);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("berth-session " BERTH_VERSION);
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "--index") == 0 &&
	    main_is_socket(MAIN_MANAGER_FD))
		return main_reindex();
	if (!main_is_socket(MAIN_MANAGER_FD)) {
		fputs("berth-session is started by berthd, not by hand\n",
		    stderr);
		return 2;
	}
	fd_set_cloexec(MAIN_MANAGER_FD, true);
	fd_set_cloexec(MAIN_LOCK_FD, true);
	if (has_listener) {
		fd_set_cloexec(MAIN_LISTEN_FD, true);
		fd_set_nonblock(MAIN_LISTEN_FD, true);
	}
	if (fd_set_nonblock(MAIN_MANAGER_FD, true) < 0 ||
	    main_leave_terminal() < 0) {
		log_err("start_failed", "error", strerrordesc_np(errno), NULL);
		return 1;
	}
	main_set_signals();
	drop_prepare(&drop);
	k = keeper_new(MAIN_MANAGER_FD, MAIN_LOCK_FD,
	    has_listener ? MAIN_LISTEN_FD : -1, &drop);
	keeper_run(k);
	keeper_free(k);
	return 0;
}
