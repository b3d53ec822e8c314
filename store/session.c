/*
 * The rows of sessions; see store.h. Inserted at once, since the unique index
 * guards get-or-create; everything later goes through the queue.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/db.h"

void
store_session_release(struct store_session *r)
{
	free(r->argv);
	free(r->cwd);
	*r = (struct store_session){ 0 };
}

int
store_session_insert(struct store *s, const struct store_session *r)
{
	const struct store_value v[] = {
		store_text(":id", r->id),
		store_int(":sandbox_id", r->sandbox_id),
		store_opt_text(":name", r->name),
		store_text(":kind", r->is_pty ? "pty" : "pipe"),
		store_text(":argv", r->argv ? r->argv : "[]"),
		store_text(":cwd", r->cwd ? r->cwd : ""),
		store_int(":cols", r->cols),
		store_int(":rows", r->rows),
		store_int(":created_ms", r->created_ms),
	};

	return store_run_waiting(s, SESSION_INSERT, v, ARRAY_LEN(v));
}

void
store_session_started(
    struct store *s, const char *id, int64_t pid, int64_t started_ms)
{
	const struct store_value v[] = {
		store_text(":id", id),
		store_int(":pid", pid),
		store_int(":started_ms", started_ms),
	};

	store_queue(s, SESSION_STARTED, v, ARRAY_LEN(v));
}

void
store_session_progress(struct store *s, const char *id, unsigned cols,
    unsigned rows, uint64_t bytes_out, uint64_t bytes_in)
{
	const struct store_value v[] = {
		store_text(":id", id),
		store_int(":cols", cols),
		store_int(":rows", rows),
		store_count(":bytes_out", bytes_out),
		store_count(":bytes_in", bytes_in),
	};

	store_queue(s, SESSION_PROGRESS, v, ARRAY_LEN(v));
}

void
store_session_ended(
    struct store *s, const char *id, const struct store_session_end *end)
{
	struct store_value v[] = {
		store_text(":id", id),
		store_text(":status", store_status_name(end->status)),
		store_int(":exit_code", end->exit_code),
		store_opt_text(":exit_signal", end->exit_signal),
		store_int(":exited_ms", end->exited_ms),
		store_opt_text(":reason", end->reason),
		store_count(":bytes_out", end->bytes_out),
		store_count(":bytes_in", end->bytes_in),
	};

	v[2].is_null = !end->has_exit_code;
	store_queue(s, SESSION_ENDED, v, ARRAY_LEN(v));
}

static enum store_status
session_status(const char *name)
{
	for (int i = SESSION_CREATING; i < SESSION_LOST; i++) {
		if (strcmp(store_status_name(i), name) == 0)
			return i;
	}
	return SESSION_LOST;
}

/* The row that Q stands on, in the order of SESSION_COLUMNS. */
static void
session_read(sqlite3_stmt *q, struct store_session *out)
{
	char kind[8], status[16];

	*out = (struct store_session){
		.sandbox_id = sqlite3_column_int64(q, 1),
		.argv = store_column_dup(q, 5),
		.cwd = store_column_dup(q, 6),
		.has_exit_code = sqlite3_column_type(q, 8) != SQLITE_NULL,
		.exit_code = sqlite3_column_int(q, 8),
		.pid = sqlite3_column_int64(q, 10),
		.cols = (unsigned)sqlite3_column_int(q, 11),
		.rows = (unsigned)sqlite3_column_int(q, 12),
		.created_ms = sqlite3_column_int64(q, 13),
		.started_ms = sqlite3_column_int64(q, 14),
		.exited_ms = sqlite3_column_int64(q, 15),
		.bytes_out = store_column_count(q, 16),
		.bytes_in = store_column_count(q, 17),
	};
	store_column_text(q, 0, out->id, sizeof(out->id));
	store_column_text(q, 2, out->sandbox, sizeof(out->sandbox));
	store_column_text(q, 3, out->name, sizeof(out->name));
	store_column_text(q, 4, kind, sizeof(kind));
	store_column_text(q, 7, status, sizeof(status));
	store_column_text(q, 9, out->exit_signal, sizeof(out->exit_signal));
	store_column_text(q, 18, out->reason, sizeof(out->reason));
	out->is_pty = strcmp(kind, "pty") == 0;
	out->status = session_status(status);
}

/* Reads the one row of Q; -ENOENT without one, -ENOTUNIQ with a second. */
static int
session_read_one(struct store *s, sqlite3_stmt *q, struct store_session *out)
{
	struct store_session row;
	int rc = store_next(s, q);

	if (rc <= 0)
		return rc < 0 ? rc : -ENOENT;
	session_read(q, &row);
	rc = store_next(s, q);
	if (rc == 0) {
		*out = row;
		return 0;
	}
	if (rc > 0)
		store_end(q);
	store_session_release(&row);
	return rc > 0 ? -ENOTUNIQ : rc;
}

int
store_session_get(struct store *s, const char *id, struct store_session *out)
{
	const struct store_value v[] = { store_text(":id", id) };

	return session_read_one(
	    s, store_query(s, SESSION_GET, v, ARRAY_LEN(v)), out);
}

int
store_session_find(struct store *s, const char *ref, struct store_session *out)
{
	struct store_ref name;
	int rc;

	if (store_ref_is_id(ref)) {
		const struct store_value v[] = { store_text(":ref", ref) };

		rc = session_read_one(
		    s, store_query(s, SESSION_BY_PREFIX, v, ARRAY_LEN(v)), out);
		if (rc != -ENOENT)
			return rc;
	}
	rc = store_ref_split(ref, &name);
	if (rc < 0)
		return rc;
	{
		const struct store_value v[] = {
			store_text(":sandbox", name.sandbox),
			store_text(":name", name.name),
		};

		return session_read_one(
		    s, store_query(s, SESSION_BY_NAME, v, ARRAY_LEN(v)), out);
	}
}

int
store_session_delete(struct store *s, const char *id)
{
	const struct store_value v[] = { store_text(":id", id) };
	struct store_session r;
	int rc = store_commit_queue(s);

	if (rc < 0)
		return rc;
	rc = store_session_get(s, id, &r);
	if (rc < 0)
		return rc;
	if (r.status == SESSION_CREATING || r.status == SESSION_RUNNING)
		rc = -EBUSY;
	store_session_release(&r);
	return rc < 0 ? rc : store_run(s, SESSION_DELETE, v, ARRAY_LEN(v));
}

void
store_session_each(struct store *s, bool all,
    bool (*fn)(const struct store_session *r, void *arg), void *arg)
{
	const struct store_value v[] = { store_int(":all", all) };
	sqlite3_stmt *q = store_query(s, SESSION_LIST, v, ARRAY_LEN(v));
	struct store_session *rows = NULL;
	size_t n = 0, cap = 0;
	bool is_wanted = true;

	/* All first, so that FN may use the store. */
	while (store_next(s, q) == 1) {
		if (n == cap) {
			cap = cap ? 2 * cap : 64;
			rows = xrealloc(rows, cap * sizeof(*rows));
		}
		session_read(q, &rows[n++]);
	}
	for (size_t i = 0; i < n; i++) {
		is_wanted = is_wanted && fn(&rows[i], arg);
		store_session_release(&rows[i]);
	}
	free(rows);
}
