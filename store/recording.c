/*
 * The rows of recordings and their index; see store.h. A recording outlives
 * the row of its session and keeps its names. Index rows are the first to go
 * when the queue is full: they can be made again from the file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "store/db.h"

int64_t
store_recording_insert(struct store *s, const struct store_recording *r)
{
	int64_t id = s->next_recording++;
	const struct store_value v[] = {
		store_int(":id", id),
		store_text(":session_id", r->session_id),
		store_text(":sandbox", r->sandbox),
		store_opt_text(":name", r->name),
		store_text(":path", r->path),
		store_text(":format", *r->format ? r->format : "asciicast-v2"),
		store_text(":state", *r->state ? r->state : "open"),
		store_int(":started_ms", r->started_ms),
	};

	store_queue(s, RECORDING_INSERT, v, ARRAY_LEN(v));
	return id;
}

void
store_recording_progress(
    struct store *s, int64_t id, uint64_t bytes, int64_t duration_ms)
{
	const struct store_value v[] = {
		store_int(":id", id),
		store_count(":bytes", bytes),
		store_int(":duration_ms", duration_ms),
	};

	store_queue(s, RECORDING_PROGRESS, v, ARRAY_LEN(v));
}

void
store_recording_finished(struct store *s, int64_t id, const char *state,
    uint64_t bytes, int64_t duration_ms, int64_t finished_ms, uint32_t gaps)
{
	const struct store_value v[] = {
		store_int(":id", id),
		store_text(":state", state),
		store_count(":bytes", bytes),
		store_int(":duration_ms", duration_ms),
		store_opt_int(":finished_ms", finished_ms),
		store_int(":gaps", gaps),
	};

	store_queue(s, RECORDING_FINISHED, v, ARRAY_LEN(v));
}

void
store_recording_index(
    struct store *s, int64_t id, int64_t t_ms, uint64_t offset)
{
	const struct store_value v[] = {
		store_int(":id", id),
		store_int(":t_ms", t_ms),
		store_count(":offset", offset),
	};

	store_queue(s, RECORDING_INDEX, v, ARRAY_LEN(v));
}

void
store_recording_index_cut(struct store *s, int64_t id, uint64_t bytes)
{
	const struct store_value v[] = {
		store_int(":id", id),
		store_count(":bytes", bytes),
	};

	store_queue(s, RECORDING_INDEX_CUT, v, ARRAY_LEN(v));
}

/* The row that Q stands on, in the order of RECORDING_COLUMNS. */
static void
recording_read(sqlite3_stmt *q, struct store_recording *out)
{
	*out = (struct store_recording){
		.id = sqlite3_column_int64(q, 0),
		.bytes = store_column_count(q, 7),
		.duration_ms = sqlite3_column_int64(q, 8),
		.started_ms = sqlite3_column_int64(q, 9),
		.finished_ms = sqlite3_column_int64(q, 10),
		.gaps = (uint32_t)sqlite3_column_int64(q, 11),
	};
	store_column_text(q, 1, out->session_id, sizeof(out->session_id));
	store_column_text(q, 2, out->sandbox, sizeof(out->sandbox));
	store_column_text(q, 3, out->name, sizeof(out->name));
	store_column_text(q, 4, out->path, sizeof(out->path));
	store_column_text(q, 5, out->format, sizeof(out->format));
	store_column_text(q, 6, out->state, sizeof(out->state));
}

/*
 * The first row of Q; -ENOTUNIQ if a later one is of another session (then the
 * prefix was ambiguous).
 */
static int
recording_read_first(
    struct store *s, sqlite3_stmt *q, struct store_recording *out)
{
	int rc = store_next(s, q);
	struct store_recording first;

	if (rc <= 0)
		return rc < 0 ? rc : -ENOENT;
	recording_read(q, &first);
	while ((rc = store_next(s, q)) == 1) {
		const char *sid = (const char *)sqlite3_column_text(q, 1);

		if (sid && strcmp(sid, first.session_id) == 0)
			continue;
		store_end(q);
		return -ENOTUNIQ;
	}
	if (rc == 0)
		*out = first;
	return rc;
}

int
store_recording_find(
    struct store *s, const char *ref, struct store_recording *out)
{
	struct store_ref name;
	uint64_t id;
	int rc;

	if (text_parse_u64(ref, 0, INT64_MAX, &id) == 0) {
		const struct store_value v[] = { store_count(":id", id) };

		rc = recording_read_first(
		    s, store_query(s, RECORDING_BY_ID, v, ARRAY_LEN(v)), out);
		if (rc != -ENOENT)
			return rc;
	}
	if (store_ref_is_id(ref)) {
		const struct store_value v[] = { store_text(":ref", ref) };

		rc = recording_read_first(s,
		    store_query(s, RECORDING_BY_SESSION, v, ARRAY_LEN(v)), out);
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

		return recording_read_first(
		    s, store_query(s, RECORDING_BY_NAME, v, ARRAY_LEN(v)), out);
	}
}

void
store_recording_each(struct store *s,
    bool (*fn)(const struct store_recording *r, void *arg), void *arg)
{
	sqlite3_stmt *q = store_query(s, RECORDING_LIST, NULL, 0);
	struct store_recording *rows = NULL;
	size_t n = 0, cap = 0;

	while (store_next(s, q) == 1) {
		if (n == cap) {
			cap = cap ? 2 * cap : 64;
			rows = xrealloc(rows, cap * sizeof(*rows));
		}
		recording_read(q, &rows[n++]);
	}
	for (size_t i = 0; i < n && fn(&rows[i], arg); i++)
		;
	free(rows);
}

size_t
store_recording_expired(struct store *s, int64_t before_ms,
    struct store_recording *out, size_t limit)
{
	const struct store_value v[] = {
		store_int(":before_ms", before_ms),
		store_count(":limit", limit),
	};
	sqlite3_stmt *q = store_query(s, RECORDING_EXPIRED, v, ARRAY_LEN(v));
	size_t n = 0;

	while (n < limit && store_next(s, q) == 1)
		recording_read(q, &out[n++]);
	store_end(q);
	return n;
}
