/*
 * Where control groups are on this host, and which of them are ours to nest
 * below. Reads /proc only; both programs.
 */
#ifndef SANDBOX_CGROUP_FIND_H
#define SANDBOX_CGROUP_FIND_H

#include "sandbox/cgroup.h"

/* The group below ours into which we move when v2 wants ours empty. */
#define CGROUP_FIND_MAIN "berth-main"

/*
 * The directory of each hierarchy in which groups of sandboxes are made: that
 * of this process's own group; "" where there is none. CGROUP_UNIFIED is v2,
 * the others only when v1 has that controller.
 */
struct cgroup_bases {
	char path[CGROUP_KINDS][CGROUP_PATH_MAX];
};

/* Looks them up; never fails. */
void cgroup_find(struct cgroup_bases *out);

/* The same out of the texts of /proc/self/mountinfo and /proc/self/cgroup. */
void cgroup_find_in(
    const char *mountinfo, const char *cgroup, struct cgroup_bases *out);

#endif
