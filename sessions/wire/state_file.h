/*
 * What a keeper writes into its session's lock file, for managers that were not
 * there: who the processes are, how it ended, who left meanwhile. The lock says
 * whether the keeper lives; the content is true either way. Written whole, with
 * a checksum, read whole.
 */
#ifndef SESSIONS_WIRE_STATE_FILE_H
#define SESSIONS_WIRE_STATE_FILE_H

#include "sessions/wire/messages.h"

/* More viewers than this that leave while no manager is there: oldest go. */
#define STATE_FILE_LEFT_MAX 64

struct state_file {
	char sid[WIRE_SID_MAX];
	char boot[40]; /* of the kernel: pids and ticks mean nothing later */
	uint32_t keeper_pid, pid; /* the second is the leader's, 0 = none yet */
	uint64_t keeper_start, pid_start; /* ticks, proc(5) stat 22 */
	uint64_t started_ms;              /* wall clock, 0 = not yet */
	uint8_t has_exited;
	struct wire_exited exited; /* if so */
	uint32_t n_left;
	struct wire_left left[STATE_FILE_LEFT_MAX];
};

/* Replaces what the file FD holds; 0 or a negative errno. */
int state_file_write(int fd, const struct state_file *s);

/*
 * Reads FD from its beginning. -ENODATA for an empty file, -EPROTO for one that
 * is damaged or of an unknown version.
 */
int state_file_read(int fd, struct state_file *out);

/* Fills in who this kernel's boot is (/proc/sys/kernel/random/boot_id). */
void state_file_boot(char out[40]);

#endif
