/*
 * Processes: start one with exactly the descriptors it may have, watch it by
 * pidfd, tell it apart from a later one of the same pid. No shell anywhere.
 */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Starts PATH with ARGV and ENV; the N_FDS (at most 8) descriptors FDS become
 * 3, 4, ... there, -1 leaves a gap; 0-2 are inherited, everything else is
 * expected to be close-on-exec. Signal mask and dispositions are the default
 * ones, and it leads a session of its own, so that a terminal's Ctrl-C is not
 * for it. Returns the pid and a pidfd (caller closes), or a negative errno.
 */
pid_t proc_spawn(const char *path, char *const *argv, char *const *env,
    const int *fds, size_t n_fds, int *pidfd_out);

/*
 * Reaps the child behind PIDFD. Returns 1 and fills *STATUS_OUT as of wait(2),
 * 0 while it runs, or a negative errno.
 */
int proc_reap(int pidfd, int *status_out);

/* Sends SIG through PIDFD; 0 or a negative errno (-ESRCH when it is gone). */
int proc_signal(int pidfd, int sig);

/* Start time of PID in clock ticks since boot (proc(5), stat 22); 0 if gone. */
uint64_t proc_start_time(pid_t pid);

/*
 * Name of a signal without "SIG" ("TERM"), or "?" ; and the number of such a
 * name, with or without "SIG", any case; -EINVAL for others.
 */
const char *proc_signal_name(int sig);
int proc_signal_parse(const char *name);

#endif
