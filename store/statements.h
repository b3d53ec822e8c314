/*
 * Every statement of the store: an id here, a row {id, sql} in statements.c.
 * All are prepared at open, so a wrong one fails the first test.
 */
#ifndef STORE_STATEMENTS_H
#define STORE_STATEMENTS_H

#include <stdbool.h>

enum statement {
	STATEMENT_BEGIN,
	STATEMENT_COMMIT,
	STATEMENT_ROLLBACK,
	STATEMENT_LAST_IDS,
	SANDBOX_GET,
	SANDBOX_EACH,
	SANDBOX_INSERT,
	SANDBOX_STATE,
	SANDBOX_TOUCH,
	SANDBOX_UNENFORCED,
	SNAPSHOT_INSERT,
	SNAPSHOT_COMPLETE,
	SNAPSHOT_DELETE,
	SNAPSHOT_BY_PREFIX,
	SNAPSHOT_BY_NAME,
	SNAPSHOT_LIST,
	SESSION_INSERT,
	SESSION_STARTED,
	SESSION_PROGRESS,
	SESSION_ENDED,
	SESSION_DELETE,
	SESSION_GET,
	SESSION_BY_PREFIX,
	SESSION_BY_NAME,
	SESSION_LIST,
	ATTACHMENT_INSERT,
	ATTACHMENT_ENDED,
	ATTACHMENT_END_ALL,
	ATTACHMENT_LIST_OPEN,
	RECORDING_INSERT,
	RECORDING_PROGRESS,
	RECORDING_FINISHED,
	RECORDING_INDEX,
	RECORDING_INDEX_CUT,
	RECORDING_BY_ID,
	RECORDING_BY_SESSION,
	RECORDING_BY_NAME,
	RECORDING_LIST,
	RECORDING_EXPIRED,
	AUDIT_INSERT,
	AUDIT_SESSION,
	TRANSFER_INSERT,
	TRANSFER_FINISH,
	TRANSFER_FAILED,
	TRANSFER_END_AUDIT,
	TRANSFER_END,
	STATEMENT_COUNT
};

struct statement_row {
	const char *name; /* for logs */
	const char *sql;
	/*
	 * Under pressure the queue may lose such rows: they are made again
	 * from the recording, or a later row says the same.
	 */
	bool may_drop;
};

/* The row of ID; static. */
const struct statement_row *statement_row(enum statement id);

#endif
