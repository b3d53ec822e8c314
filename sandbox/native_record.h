/*
 * How a native sandbox is known again: a file beside its workspace, which only
 * berthd's user can write, says who its first process is. A pid is believed
 * only with boot, start time and the inode of its pid namespace. Both programs.
 */
#ifndef SANDBOX_NATIVE_RECORD_H
#define SANDBOX_NATIVE_RECORD_H

#include <stdint.h>
#include <sys/types.h>

#include "sandbox/cgroup.h"
#include "sandbox/provider.h"

struct err;
struct sandbox_spec;

struct native_record {
	pid_t pid;
	uint64_t start_ticks;
	uint64_t pid_ns;   /* inode of its pid namespace */
	uint32_t ns_flags; /* CLONE_NEW* that are its own */
	char boot[40];
	uint64_t pids_max;
	struct cgroup cgroup;
	char member[SANDBOX_NAME_SIZE];    /* of a pool, which it is or was */
	char missing[SANDBOX_MISSING_MAX]; /* limits, as when it was made */
};

/* Fills in everything about the process PID but flags and limits. */
int native_record_of(pid_t pid, struct native_record *out);

/* The names of the files beside a workspace; no sandbox's begins with a dot. */
#define NATIVE_RECORD      ".%s.box"
#define NATIVE_LOCK        ".%s.lock"
#define NATIVE_RECORD_SIZE (SANDBOX_NAME_SIZE + 12)

/* Writes, reads (-ENOENT, -EPROTO), removes the file. */
int native_record_write(
    const struct sandbox_spec *s, const struct native_record *r, struct err *e);
int native_record_read(const struct sandbox_spec *s, struct native_record *out);
int native_record_remove(const struct sandbox_spec *s);

/*
 * A pidfd of the process that R names if it is alive and the one, else -ESRCH.
 * The caller closes it.
 */
int native_record_open(const struct native_record *r);

/*
 * One at a time works on a sandbox: waits for the lock beside its workspace and
 * returns a descriptor that holds it, or a negative errno with a sentence.
 */
int native_record_lock(const struct sandbox_spec *s, struct err *e);
void native_record_unlock(const struct sandbox_spec *s, int fd);

#endif
