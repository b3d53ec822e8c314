/*
 * Files that go in and out by sftp: rows of `transfer` and audit events from
 * what the sandbox's sftp-server logs (FRAME_LOG). Reported by the sandbox, not
 * proven. Which row a line means is looked up in the store, so that nothing of
 * it has to outlive berthd. Rows of one session are capped.
 */
#ifndef SESSIONS_MANAGER_TRANSFER_H
#define SESSIONS_MANAGER_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "sessions/manager/sftp_log.h"

#define TRANSFER_ROWS_MAX   10000 /* a session; then a last one says so */
#define TRANSFER_EVENTS_MAX 10000 /* the same of audit */

/* Then closes are not looked at either; some are of files not listed. */
#define TRANSFER_CLOSES_MAX (10 * TRANSFER_ROWS_MAX)

struct frame;
struct session;

/* Of a session, counted since this berthd knows it. */
struct transfer {
	bool is_possible; /* it may have rows that are open */
	bool after_open;  /* the last message was that of an open */
	bool has_lost;    /* lines, and that was logged */
	unsigned n_rows, n_events, n_closes;
	char *copy_path; /* of a session that copies files, else NULL */
	bool copies_in;
	struct sftp_log log;
};

/* FRAME_LOG of the keeper of S; -EPROTO if it is none. */
int transfer_on_log(struct session *s, const struct frame *f);

/* The audit event of a session that copied files; STATUS as in the row. */
void transfer_audit_copy(
    struct session *s, const char *status, bool is_in, uint64_t bytes);

/* S ended: what is open is cut. NOW_MS is wall clock. */
void transfer_end(struct session *s, int64_t now_ms);

/* Frees what T holds. */
void transfer_release(struct transfer *t);

#endif
