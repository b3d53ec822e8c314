/* The rows of snapshots; see store.h. A row is there before its file is. */
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "store/db.h"

static void
snapshot_row(sqlite3_stmt *q, struct store_snapshot *out)
{
	*out = (struct store_snapshot){
		.bytes = store_column_count(q, 7),
		.files = store_column_count(q, 8),
		.skipped = store_column_count(q, 9),
		.created_ms = sqlite3_column_int64(q, 10),
	};
	store_column_text(q, 0, out->id, sizeof(out->id));
	store_column_text(q, 1, out->sandbox, sizeof(out->sandbox));
	store_column_text(q, 2, out->name, sizeof(out->name));
	store_column_text(q, 3, out->description, sizeof(out->description));
	store_column_text(q, 4, out->provider, sizeof(out->provider));
	store_column_text(q, 5, out->template, sizeof(out->template));
	store_column_text(q, 6, out->state, sizeof(out->state));
	store_column_text(q, 11, out->hash, sizeof(out->hash));
}

int
store_snapshot_insert(struct store *s, const struct store_snapshot *r)
{
	const struct store_value v[] = {
		store_text(":id", r->id),
		store_text(":sandbox", r->sandbox),
		store_opt_text(":name", r->name),
		store_opt_text(":description", r->description),
		store_text(":provider", r->provider),
		store_text(":template", r->template),
		store_int(":created_ms", r->created_ms),
	};

	return store_run_waiting(s, SNAPSHOT_INSERT, v, ARRAY_LEN(v));
}

int
store_snapshot_complete(struct store *s, const struct store_snapshot *r)
{
	const struct store_value v[] = {
		store_text(":id", r->id),
		store_count(":bytes", r->bytes),
		store_count(":files", r->files),
		store_count(":skipped", r->skipped),
		store_text(":hash", r->hash),
	};

	return store_run_waiting(s, SNAPSHOT_COMPLETE, v, ARRAY_LEN(v));
}

int
store_snapshot_delete(struct store *s, const char *id)
{
	const struct store_value v[] = { store_text(":id", id) };

	return store_run_waiting(s, SNAPSHOT_DELETE, v, ARRAY_LEN(v));
}

int
store_snapshot_find(
    struct store *s, const char *ref, struct store_snapshot *out)
{
	const struct store_value v[] = { store_text(":ref", ref) };
	bool is_id = strncmp(ref, "snp-", 4) == 0;
	sqlite3_stmt *q = store_query(
	    s, is_id ? SNAPSHOT_BY_PREFIX : SNAPSHOT_BY_NAME, v, ARRAY_LEN(v));
	struct store_snapshot row;
	int rc = store_next(s, q);

	if (rc <= 0)
		return rc < 0 ? rc : -ENOENT;
	snapshot_row(q, &row);
	rc = store_next(s, q);
	if (rc > 0)
		store_end(q);
	if (rc != 0)
		return rc < 0 ? rc : -ENOTUNIQ;
	*out = row;
	return 0;
}

void
store_snapshot_each(struct store *s, const char *sandbox,
    bool (*fn)(const struct store_snapshot *r, void *arg), void *arg)
{
	const struct store_value v[] = { store_text(":sandbox", sandbox) };
	sqlite3_stmt *q = store_query(s, SNAPSHOT_LIST, v, ARRAY_LEN(v));
	struct store_snapshot row;

	while (store_next(s, q) > 0) {
		snapshot_row(q, &row);
		if (!fn(&row, arg)) {
			store_end(q);
			return;
		}
	}
}
