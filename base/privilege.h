/*
 * Giving up power for good: becoming a system account, no new privileges, no
 * core, nobody of the same uid who looks in. Sanitizers need some of what is
 * given up; BERTH_CONFINED (1 in a release, 0 with SAN=) says which build it is.
 */
#ifndef BASE_PRIVILEGE_H
#define BASE_PRIVILEGE_H

#include <stdbool.h>
#include <sys/types.h>

struct err;

struct privilege_account {
	uid_t uid;
	gid_t gid;
};

/* The account NAME; 0, or -ENOENT when there is none or it is root's. */
int privilege_find(const char *name, struct privilege_account *out);

/* Becomes A with no other groups, for good; 0 or a negative errno. */
int privilege_become(const struct privilege_account *a);

/*
 * The same, and keeps CAP_KILL: may signal anybody. With MAY_LOOK also
 * CAP_SYS_PTRACE, to look at the namespaces of anybody, until
 * privilege_drop_look(). 0 or a negative errno.
 */
int privilege_become_signaller(
    const struct privilege_account *a, bool may_look);
int privilege_drop_look(void);

/*
 * True if every number is a gid in this user namespace, so that a process may
 * be marked by one that means nothing: not in most containers.
 */
bool privilege_has_all_gids(void);

/*
 * No new privileges by exec, and nobody of this uid may trace this process or
 * look into its memory. After privilege_become(). 0 or a negative errno.
 */
int privilege_lock(void);

/*
 * The root directory becomes one that is empty and stays so: it is removed
 * already. As root only. 0 or a negative errno with a sentence.
 */
int privilege_leave_files(struct err *e);

#endif
