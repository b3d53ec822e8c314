/*
 * The row of an attachment and its label: what the keeper keeps for us, so that
 * a manager whose predecessor crashed before the row was on the disk can write
 * it again. And what a viewer is like while it is there. Private to
 * sessions/manager.
 */
#ifndef SESSIONS_MANAGER_ATTACHMENT_H
#define SESSIONS_MANAGER_ATTACHMENT_H

#include <stdbool.h>
#include <stdint.h>

struct frame;
struct request;
struct session;
struct session_viewer;
struct wire_size;

/*
 * Makes the row for the viewer of R. Fills in R->viewer.attachment and its
 * label, which the caller frees.
 */
void attachment_begin(struct request *r);

/* The keeper of S has a viewer ID with LABEL: its row exists afterwards. */
void attachment_restore(struct session *s, uint64_t id, const char *label);

/* What is known of the attachment ID of S, or NULL. */
const struct session_viewer *attachment_known(
    const struct session *s, int64_t id);

/* ID was attached just now with a terminal of SIZE; a watcher may not type. */
void attachment_began(struct session *s, int64_t id,
    const struct wire_size *size, bool is_watcher);

/* The client of ID hears WHY and is let go, by the keeper of S. */
void attachment_drop(struct session *s, int64_t id, const char *why);

/* ID left. */
void attachment_gone(struct session *s, int64_t id);

/* FRAME_VIEWER_STATS: what all of them are like now; -EPROTO. */
int attachment_on_stats(struct session *s, const struct frame *f);

#endif
