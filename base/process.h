/*
 * Processes as /proc shows them: one, or all with their family. A pid is only
 * a name; what is signalled is checked by its start time first.
 */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process {
	pid_t pid, parent, group, session;
	char state; /* as in /proc/PID/stat: R S D T Z ... */
	uint64_t start_ticks;
	bool is_marked; /* of process_walk(): a descendant */
};

/*
 * Up to SIZE - 1 bytes of /proc/PID/NAME, with a NUL behind them; how many, -ESRCH
 * when it is gone, or another negative errno, and then OUT is "".
 */
ssize_t process_file(pid_t pid, const char *name, char *out, size_t size);

/* Reads /proc/PID/stat; 0, -ESRCH or another negative errno. */
int process_read(pid_t pid, struct process *out);

/*
 * All processes of the system that this one can see, in *OUT, which the caller
 * frees; those that descend from ROOT are marked. Returns how many, 0 when
 * /proc cannot be read.
 */
size_t process_walk(pid_t root, struct process **out);

/*
 * True if GID is among the supplementary groups of PID, as /proc tells anybody;
 * false also when PID is gone.
 */
bool process_has_group(pid_t pid, gid_t gid);

/* Signals P if it is still the process that was read; 0 or negative errno. */
int process_signal(const struct process *p, int sig);

#endif
