/* Starting and watching processes; see proc.h. */
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/fd.h"

#define PROC_FDS_MAX   8
#define PROC_FIRST_FD  3
#define PROC_SAFE_FD   16 /* above every target, so no dup2 hits a source */
#define PROC_STAT_MAX  4096
#define PROC_STAT_TIME 20 /* fields from the state to the start time */

static int
proc_add_fds(posix_spawn_file_actions_t *fa, const int *fds, size_t n,
    int high[PROC_FDS_MAX])
{
	for (size_t i = 0; i < n; i++) {
		int rc;

		high[i] = -1;
		if (fds[i] < 0)
			continue;
		high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, PROC_SAFE_FD);
		if (high[i] < 0)
			return -errno;
		rc = posix_spawn_file_actions_adddup2(
		    fa, high[i], PROC_FIRST_FD + (int)i);
		if (rc)
			return -rc;
	}
	return 0;
}

pid_t
proc_spawn(const char *path, char *const *argv, char *const *env,
    const int *fds, size_t n_fds, int *pidfd_out)
{
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	int high[PROC_FDS_MAX] = { 0 };
	sigset_t all, none;
	pid_t pid = -1;
	int rc;

	if (n_fds > PROC_FDS_MAX)
		return -EINVAL;
	posix_spawn_file_actions_init(&fa);
	posix_spawnattr_init(&attr);
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF |
					    POSIX_SPAWN_SETSIGMASK |
					    POSIX_SPAWN_SETSID);
	for (size_t i = 0; i < PROC_FDS_MAX; i++)
		high[i] = -1;
	rc = proc_add_fds(&fa, fds, n_fds, high);
	if (rc == 0)
		rc = -posix_spawn(&pid, path, &fa, &attr, argv, env);
	for (size_t i = 0; i < PROC_FDS_MAX; i++) {
		if (high[i] >= 0)
			close(high[i]);
	}
	posix_spawn_file_actions_destroy(&fa);
	posix_spawnattr_destroy(&attr);
	if (rc < 0)
		return rc;
	/* Nobody else reaps our children, so the pid cannot be another's yet. */
	*pidfd_out = pidfd_open(pid, 0);
	return *pidfd_out < 0 ? -errno : pid;
}

int
proc_reap(int pidfd, int *status_out)
{
	siginfo_t si = { 0 };

	if (waitid(P_PIDFD, (id_t)pidfd, &si, WEXITED | WNOHANG) < 0)
		return -errno;
	if (si.si_pid == 0)
		return 0;
	if (si.si_code == CLD_EXITED)
		*status_out = (si.si_status & 0xff) << 8;
	else
		*status_out =
		    si.si_status | (si.si_code == CLD_DUMPED ? 0x80 : 0);
	return 1;
}

int
proc_signal(int pidfd, int sig)
{
	return pidfd_send_signal(pidfd, sig, NULL, 0) < 0 ? -errno : 0;
}

uint64_t
proc_start_time(pid_t pid)
{
	struct buf b = { 0 };
	char path[64];
	uint64_t ticks = 0;
	char *p;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_read_file(path, PROC_STAT_MAX, &b, NULL) == 0) {
		buf_put_u8(&b, 0);
		/* The name may hold anything; what follows its last ')' not. */
		p = strrchr((char *)b.data, ')');
		for (int i = 0; p && i < PROC_STAT_TIME; i++)
			p = strchr(p + 1, ' ');
		if (p)
			ticks = strtoull(p + 1, NULL, 10);
	}
	buf_release(&b);
	return ticks;
}

const char *
proc_signal_name(int sig)
{
	const char *name = sigabbrev_np(sig);

	return name ? name : "?";
}

int
proc_signal_parse(const char *name)
{
	if (strncasecmp(name, "SIG", 3) == 0)
		name += 3;
	for (int sig = 1; sig < NSIG; sig++) {
		const char *abbrev = sigabbrev_np(sig);

		if (abbrev && strcasecmp(abbrev, name) == 0)
			return sig;
	}
	return -EINVAL;
}
