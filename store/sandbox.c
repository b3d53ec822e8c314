/* The rows of sandboxes; see store.h. Made at once, touched through the queue. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "store/db.h"

int
store_sandbox_get(struct store *s, const char *name, struct store_sandbox *out)
{
	const struct store_value v[] = { store_text(":name", name) };
	sqlite3_stmt *q = store_query(s, SANDBOX_GET, v, ARRAY_LEN(v));
	int rc = store_next(s, q);

	if (rc <= 0)
		return rc < 0 ? rc : -ENOENT;
	*out = (struct store_sandbox){
		.id = sqlite3_column_int64(q, 0),
		.created_ms = sqlite3_column_int64(q, 4),
		.last_active_ms = sqlite3_column_int64(q, 5),
	};
	store_column_text(q, 1, out->name, sizeof(out->name));
	store_column_text(q, 2, out->provider, sizeof(out->provider));
	store_column_text(q, 3, out->state, sizeof(out->state));
	store_end(q);
	return 0;
}

int
store_sandbox_insert(struct store *s, struct store_sandbox *io)
{
	const struct store_value v[] = {
		store_text(":name", io->name),
		store_text(":provider", io->provider),
		store_text(":state", io->state),
		store_int(":created_ms", io->created_ms),
		store_int(":last_active_ms", io->last_active_ms),
	};
	int rc = store_run_waiting(s, SANDBOX_INSERT, v, ARRAY_LEN(v));

	if (rc == 0)
		io->id = sqlite3_last_insert_rowid(s->db);
	return rc;
}

void
store_sandbox_touch(struct store *s, int64_t id, int64_t now_ms)
{
	const struct store_value v[] = {
		store_int(":id", id),
		store_int(":now_ms", now_ms),
	};

	store_queue(s, SANDBOX_TOUCH, v, ARRAY_LEN(v));
}
