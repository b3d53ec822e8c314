/* The audit trail: rows that are only ever appended; see store.h. */
#include "base/clock.h"
#include "base/mem.h"
#include "store/db.h"

void
store_audit(struct store *s, const char *event, const char *identity,
    const char *remote_addr, const char *sandbox, const char *session_id,
    const char *detail)
{
	const struct store_value v[] = {
		store_int(":t_ms", clock_wall_ms()),
		store_text(":event", event),
		store_opt_text(":identity", identity),
		store_opt_text(":remote_addr", remote_addr),
		store_opt_text(":sandbox", sandbox),
		store_opt_text(":session_id", session_id),
		store_opt_text(":detail", detail),
	};

	store_queue(s, AUDIT_INSERT, v, ARRAY_LEN(v));
}

void
store_audit_session(struct store *s, const char *event, const char *sandbox,
    const char *session_id, const char *detail)
{
	const struct store_value v[] = {
		store_int(":t_ms", clock_wall_ms()),
		store_text(":event", event),
		store_text(":sandbox", sandbox),
		store_text(":session_id", session_id),
		store_opt_text(":detail", detail),
	};

	store_queue(s, AUDIT_SESSION, v, ARRAY_LEN(v));
}
