/*
 * The rows of transfers; see store.h. Which row is meant is found by SQL when
 * the row is committed, behind everything that was queued before.
 */
#include "base/mem.h"
#include "store/db.h"

static const char *
transfer_direction(const struct store_transfer *r)
{
	return r->is_in ? "in" : "out";
}

void
store_transfer_insert(struct store *s, const struct store_transfer *r)
{
	const struct store_value v[] = {
		store_text(":session_id", r->session_id),
		store_text(":direction", transfer_direction(r)),
		store_text(":path", r->path),
		store_count(":bytes", r->bytes),
		store_int(":started_ms", r->started_ms),
		store_opt_int(":finished_ms", r->finished_ms),
		store_text(":status", r->status),
	};

	store_queue(s, TRANSFER_INSERT, v, ARRAY_LEN(v));
}

void
store_transfer_finish(struct store *s, const struct store_transfer *r)
{
	const struct store_value v[] = {
		store_text(":session_id", r->session_id),
		store_text(":direction", transfer_direction(r)),
		store_text(":path", r->path),
		store_count(":bytes", r->bytes),
		store_int(":finished_ms", r->finished_ms),
		store_text(":status", r->status),
	};

	store_queue(s, TRANSFER_FINISH, v, ARRAY_LEN(v));
}

void
store_transfer_failed(struct store *s, const char *session_id, int64_t now_ms)
{
	const struct store_value v[] = {
		store_text(":session_id", session_id),
		store_int(":now_ms", now_ms),
	};

	store_queue(s, TRANSFER_FAILED, v, ARRAY_LEN(v));
}

void
store_transfer_end(struct store *s, const char *sandbox, const char *session_id,
    int64_t now_ms)
{
	const struct store_value v[] = {
		store_text(":session_id", session_id),
		store_int(":now_ms", now_ms),
	};
	const struct store_value audit[] = {
		store_text(":session_id", session_id),
		store_text(":sandbox", sandbox),
		store_int(":now_ms", now_ms),
	};

	store_queue(s, TRANSFER_END_AUDIT, audit, ARRAY_LEN(audit));
	store_queue(s, TRANSFER_END, v, ARRAY_LEN(v));
}
