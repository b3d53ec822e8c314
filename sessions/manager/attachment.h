/*
 * The row of an attachment and its label: what the keeper keeps for us, so that
 * a manager whose predecessor crashed before the row was on the disk can write
 * it again. Private to sessions/manager.
 */
#ifndef SESSIONS_MANAGER_ATTACHMENT_H
#define SESSIONS_MANAGER_ATTACHMENT_H

#include <stdint.h>

struct request;
struct session;

/*
 * Makes the row for the viewer of R. Fills in R->viewer.attachment and its
 * label, which the caller frees.
 */
void attachment_begin(struct request *r);

/* The keeper of S has a viewer ID with LABEL: its row exists afterwards. */
void attachment_restore(struct session *s, uint64_t id, const char *label);

#endif
