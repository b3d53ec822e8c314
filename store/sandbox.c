/* The rows of sandboxes; see store.h. Made at once, the rest is queued. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "store/db.h"

static void
sandbox_row(sqlite3_stmt *q, struct store_sandbox *out)
{
	*out = (struct store_sandbox){
		.id = sqlite3_column_int64(q, 0),
		.created_ms = sqlite3_column_int64(q, 4),
		.last_active_ms = sqlite3_column_int64(q, 5),
		.changed_ms = sqlite3_column_int64(q, 8),
		.uid = (uid_t)sqlite3_column_int64(q, 10),
	};
	store_column_text(q, 1, out->name, sizeof(out->name));
	store_column_text(q, 2, out->provider, sizeof(out->provider));
	store_column_text(q, 3, out->state, sizeof(out->state));
	store_column_text(q, 6, out->template, sizeof(out->template));
	store_column_text(q, 7, out->detail, sizeof(out->detail));
	store_column_text(q, 9, out->unenforced, sizeof(out->unenforced));
}

int
store_sandbox_get(struct store *s, const char *name, struct store_sandbox *out)
{
	const struct store_value v[] = { store_text(":name", name) };
	sqlite3_stmt *q = store_query(s, SANDBOX_GET, v, ARRAY_LEN(v));
	int rc = store_next(s, q);

	if (rc <= 0)
		return rc < 0 ? rc : -ENOENT;
	sandbox_row(q, out);
	store_end(q);
	return 0;
}

void
store_sandbox_each(struct store *s,
    bool (*fn)(const struct store_sandbox *r, void *arg), void *arg)
{
	sqlite3_stmt *q = store_query(s, SANDBOX_EACH, NULL, 0);
	struct store_sandbox row;

	while (store_next(s, q) > 0) {
		sandbox_row(q, &row);
		if (!fn(&row, arg)) {
			store_end(q);
			return;
		}
	}
}

int
store_sandbox_insert(struct store *s, struct store_sandbox *io)
{
	const struct store_value v[] = {
		store_text(":name", io->name),
		store_text(":provider", io->provider),
		store_text(":template", io->template),
		store_text(":state", io->state),
		store_int(":uid", io->uid),
		store_int(":created_ms", io->created_ms),
		store_int(":last_active_ms", io->last_active_ms),
	};
	struct store_sandbox row;
	int rc = store_run_waiting(s, SANDBOX_INSERT, v, ARRAY_LEN(v));

	/* Nothing changed is no error of the statement. */
	if (rc == 0 && sqlite3_changes(s->db) == 0)
		rc = -EEXIST;
	if (rc == 0)
		rc = store_sandbox_get(s, io->name, &row);
	if (rc == 0)
		io->id = row.id;
	return rc;
}

void
store_sandbox_state(struct store *s, int64_t id, const char *state,
    const char *detail, int64_t now_ms)
{
	const struct store_value v[] = {
		store_int(":id", id),
		store_text(":state", state),
		store_opt_text(":detail", detail),
		store_int(":now_ms", now_ms),
	};

	store_queue(s, SANDBOX_STATE, v, ARRAY_LEN(v));
}

void
store_sandbox_unenforced(struct store *s, int64_t id, const char *limits)
{
	const struct store_value v[] = {
		store_int(":id", id),
		store_text(":limits", limits),
	};

	store_queue(s, SANDBOX_UNENFORCED, v, ARRAY_LEN(v));
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
