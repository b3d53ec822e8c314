/*
 * How the keeper gives up root: it prepares while it still owns everything,
 * starts the leader, and drops to the account `berth` before it reads a byte of
 * output. Whoever takes it over through that output finds no uid, no file to
 * change, no program to run and no process to look into.
 */
#ifndef SESSIONS_KEEPER_DROP_H
#define SESSIONS_KEEPER_DROP_H

#include <stdbool.h>

#include "base/privilege.h"
#include "sessions/keeper/signaller.h"

struct err;

struct drop {
	struct signaller signaller; /* forked when has_account, else none */
	struct privilege_account account;
	bool has_account; /* drop_now() becomes it */
};

/*
 * As root, finds the account and forks the signaller; stays root, and logs why,
 * when there is no account or it could not see the processes in /proc. Early:
 * see signaller_start(). Release the signaller with signaller_release().
 */
void drop_prepare(struct drop *d);

/* As root, finds the account: for a process that will signal nobody. */
void drop_alone(struct drop *d);

/*
 * Gives up everything, in all threads, for good. 0 or a negative errno with a
 * sentence: then the session must not go on.
 */
int drop_now(const struct drop *d, struct err *e);

#endif
