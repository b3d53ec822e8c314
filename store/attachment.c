/*
 * The rows of attachments; see store.h. Ids come from memory, so that a viewer
 * has one before its row is on disk.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "store/db.h"

static void
attachment_queue(struct store *s, int64_t id, const struct store_attachment *r)
{
	const struct store_value v[] = {
		store_int(":id", id),
		store_text(":session_id", r->session_id),
		store_text(":identity", r->identity),
		store_opt_text(":key_fingerprint", r->key_fingerprint),
		store_text(":role", r->role),
		store_opt_text(":remote_addr", r->remote_addr),
		store_opt_text(":client_version", r->client_version),
		store_int(":attached_ms", r->attached_ms),
	};

	store_queue(s, ATTACHMENT_INSERT, v, ARRAY_LEN(v));
}

int64_t
store_attachment_insert(struct store *s, const struct store_attachment *r)
{
	int64_t id = s->next_attachment++;

	attachment_queue(s, id, r);
	return id;
}

void
store_attachment_restore(struct store *s, const struct store_attachment *r)
{
	/* No more ids than that can have been given out and got lost. */
	if (r->id < 1 || r->id > s->next_attachment + STORE_QUEUE_MAX)
		return;
	if (r->id >= s->next_attachment)
		s->next_attachment = r->id + 1;
	attachment_queue(s, r->id, r);
}

void
store_attachment_skip_ids(struct store *s, int64_t n)
{
	s->next_attachment += n;
}

void
store_attachment_ended(struct store *s, const char *session_id, int64_t id,
    int64_t now_ms, uint64_t bytes_out, uint64_t bytes_in, uint32_t resyncs)
{
	const struct store_value v[] = {
		store_text(":session_id", session_id),
		store_int(":id", id),
		store_int(":now_ms", now_ms),
		store_count(":bytes_out", bytes_out),
		store_count(":bytes_in", bytes_in),
		store_int(":resyncs", resyncs),
	};

	store_queue(s, ATTACHMENT_ENDED, v, ARRAY_LEN(v));
}

void
store_attachment_end_all(struct store *s, const char *id, int64_t now_ms)
{
	const struct store_value v[] = {
		store_text(":session_id", id),
		store_int(":now_ms", now_ms),
	};

	store_queue(s, ATTACHMENT_END_ALL, v, ARRAY_LEN(v));
}

static void
attachment_read(sqlite3_stmt *q, struct store_attachment *out)
{
	*out = (struct store_attachment){
		.id = sqlite3_column_int64(q, 0),
		.attached_ms = sqlite3_column_int64(q, 9),
		.detached_ms = sqlite3_column_int64(q, 10),
		.bytes_out = store_column_count(q, 11),
		.bytes_in = store_column_count(q, 12),
		.resyncs = (uint32_t)sqlite3_column_int64(q, 13),
	};
	store_column_text(q, 1, out->session_id, sizeof(out->session_id));
	store_column_text(q, 2, out->sandbox, sizeof(out->sandbox));
	store_column_text(q, 3, out->name, sizeof(out->name));
	store_column_text(q, 4, out->identity, sizeof(out->identity));
	store_column_text(
	    q, 5, out->key_fingerprint, sizeof(out->key_fingerprint));
	store_column_text(q, 6, out->role, sizeof(out->role));
	store_column_text(q, 7, out->remote_addr, sizeof(out->remote_addr));
	store_column_text(
	    q, 8, out->client_version, sizeof(out->client_version));
}

void
store_attachment_each_open(struct store *s,
    bool (*fn)(const struct store_attachment *r, void *arg), void *arg)
{
	sqlite3_stmt *q = store_query(s, ATTACHMENT_LIST_OPEN, NULL, 0);
	struct store_attachment *rows = NULL;
	size_t n = 0, cap = 0;

	while (store_next(s, q) == 1) {
		if (n == cap) {
			cap = cap ? 2 * cap : 64;
			rows = xrealloc(rows, cap * sizeof(*rows));
		}
		attachment_read(q, &rows[n++]);
	}
	for (size_t i = 0; i < n && fn(&rows[i], arg); i++)
		;
	free(rows);
}
