/*
 * Limits of the process that talks to the network; see confine.h. Runs in
 * berth-sshd, before the first byte of the peer is read.
 */
#include "sshd/connection/confine.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"

#define CONFINE_USER        "berth-net"
#define CONFINE_CPU_S       10
#define CONFINE_MEMORY_BASE (256UL << 20)
#define CONFINE_MEMORY_EACH (6UL << 20) /* a channel with full buffers */
#define CONFINE_FDS_BASE    64

/* Sanitizers reserve terabytes of addresses and start a helper thread. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONFINE_IS_SANITIZED 1
#else
#define CONFINE_IS_SANITIZED 0
#endif

static int
confine_drop_uid(struct err *e)
{
	struct passwd entry, *pw;
	char text[4096];

	if (geteuid() != 0)
		return 0;
	if (getpwnam_r(CONFINE_USER, &entry, text, sizeof(text), &pw) != 0)
		pw = NULL;
	if (!pw || pw->pw_uid == 0) {
		log_warn("no_account", "user", CONFINE_USER, "effect",
		    "the connection process stays root", NULL);
		return 0;
	}
	if (setgroups(0, NULL) < 0 ||
	    setresgid(pw->pw_gid, pw->pw_gid, pw->pw_gid) < 0 ||
	    setresuid(pw->pw_uid, pw->pw_uid, pw->pw_uid) < 0)
		return err_sys(e, -errno, "become %s", CONFINE_USER);
	return 0;
}

static void
confine_limit(__rlimit_resource_t what, rlim_t max)
{
	struct rlimit now, r = { .rlim_cur = max, .rlim_max = max };

	if (getrlimit(what, &now) == 0 && now.rlim_max < max)
		r.rlim_cur = r.rlim_max = now.rlim_max;
	setrlimit(what, &r);
}

int
confine_self(unsigned max_channels, struct err *e)
{
	int rc = confine_drop_uid(e);

	if (rc < 0)
		return rc;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(e, -errno, "no_new_privs");
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	signal(SIGPIPE, SIG_IGN);
	confine_limit(RLIMIT_CORE, 0);
	confine_limit(RLIMIT_NOFILE, CONFINE_FDS_BASE + max_channels);
	if (CONFINE_IS_SANITIZED)
		return 0;
	confine_limit(RLIMIT_NPROC, 0);
	confine_limit(RLIMIT_AS,
	    CONFINE_MEMORY_BASE + max_channels * CONFINE_MEMORY_EACH);
	return 0;
}

void
confine_feed_watchdog(void)
{
	struct itimerval t = { .it_value = { .tv_sec = CONFINE_CPU_S } };

	setitimer(ITIMER_PROF, &t, NULL);
}
