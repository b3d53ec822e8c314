/*
 * The write queue and running statements; see db.h. Rows are committed in the
 * order in which they were queued, all in one transaction; what a lock or a
 * full disk holds back stays. A row that the schema refuses is logged and
 * skipped, so that it cannot hold up the others.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/db.h"

#define STORE_WAIT_MS      5000
#define STORE_RETRY_US     (20 * 1000)
#define STORE_STUCK_LOG_MS 1000
#define STORE_BATCH        4000 /* rows a pump, so that no loop stalls long */
#define STORE_PARAMS_MAX   16

struct store_write {
	struct list node;
	enum statement id;
	bool is_refused; /* by the schema: skipped from then on */
	size_t n;
	struct store_value v[]; /* the strings stand behind the values */
};

/* ---- statements --------------------------------------------------------- */

static void
store_bind(sqlite3_stmt *q, const struct store_value *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int at = sqlite3_bind_parameter_index(q, v[i].param);

		assert(at > 0);
		if (v[i].is_null)
			sqlite3_bind_null(q, at);
		else if (v[i].is_text)
			sqlite3_bind_text(q, at, v[i].text, -1, SQLITE_STATIC);
		else
			sqlite3_bind_int64(q, at, v[i].number);
	}
}

int
store_run(
    struct store *s, enum statement id, const struct store_value *v, size_t n)
{
	sqlite3_stmt *q = s->statements[id];
	int rc;

	store_bind(q, v, n);
	rc = sqlite3_step(q);
	store_end(q);
	assert(rc != SQLITE_ROW);
	return store_errno(rc);
}

int
store_run_waiting(
    struct store *s, enum statement id, const struct store_value *v, size_t n)
{
	int64_t deadline = clock_mono_ms() + STORE_WAIT_MS;

	for (;;) {
		/* First what was queued: it may free the name we insert. */
		int rc = store_commit_queue(s);

		if (rc == 0)
			rc = store_run(s, id, v, n);
		if (rc != -EAGAIN)
			return rc;
		if (clock_mono_ms() >= deadline)
			return -EBUSY;
		usleep(STORE_RETRY_US);
	}
}

sqlite3_stmt *
store_query(
    struct store *s, enum statement id, const struct store_value *v, size_t n)
{
	sqlite3_stmt *q = s->statements[id];

	store_commit_queue(s);
	store_bind(q, v, n);
	return q;
}

int
store_next(struct store *s, sqlite3_stmt *q)
{
	int rc = sqlite3_step(q);

	if (rc == SQLITE_ROW)
		return 1;
	if (rc != SQLITE_DONE)
		log_err(
		    "store_read_failed", "why", sqlite3_errmsg(s->db), NULL);
	store_end(q);
	return store_errno(rc);
}

void
store_end(sqlite3_stmt *q)
{
	sqlite3_reset(q);
	sqlite3_clear_bindings(q);
}

void
store_column_text(sqlite3_stmt *q, int i, char *out, size_t size)
{
	const char *s = (const char *)sqlite3_column_text(q, i);

	snprintf(out, size, "%s", s ? s : "");
}

char *
store_column_dup(sqlite3_stmt *q, int i)
{
	const char *s = (const char *)sqlite3_column_text(q, i);

	return xstrdup(s ? s : "");
}

uint64_t
store_column_count(sqlite3_stmt *q, int i)
{
	int64_t v = sqlite3_column_int64(q, i);

	return v < 0 ? 0 : (uint64_t)v;
}

/* ---- the queue ---------------------------------------------------------- */

static struct store_write *
queue_copy(enum statement id, const struct store_value *v, size_t n)
{
	size_t size = sizeof(struct store_write) + n * sizeof(*v);
	struct store_write *w;
	char *text;

	assert(n <= STORE_PARAMS_MAX);
	for (size_t i = 0; i < n; i++)
		size += v[i].text ? strlen(v[i].text) + 1 : 0;
	w = xmalloc(size);
	w->id = id;
	w->is_refused = false;
	w->n = n;
	text = (char *)(w->v + n);
	for (size_t i = 0; i < n; i++) {
		size_t len;

		w->v[i] = v[i];
		if (!v[i].text)
			continue;
		len = strlen(v[i].text) + 1;
		memcpy(text, v[i].text, len);
		w->v[i].text = text;
		text += len;
	}
	return w;
}

static void
queue_forget(struct store *s, struct store_write *w)
{
	list_remove(&w->node);
	s->n_queued--;
	if (statement_row(w->id)->may_drop)
		s->n_droppable--;
	free(w);
}

size_t
store_queue_release(struct store *s)
{
	size_t n = s->n_queued;
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &s->queue)
		queue_forget(s, list_entry(pos, struct store_write, node));
	return n;
}

/*
 * Makes room in a full queue by dropping what may be dropped. False if the new
 * row itself must go.
 */
static bool
queue_make_room(struct store *s, enum statement id)
{
	struct list *pos, *tmp;
	char dropped[32];

	if (statement_row(id)->may_drop) {
		s->n_dropped++;
		return false;
	}
	if (s->n_droppable == 0) {
		if (s->n_dropped++ == 0)
			log_err("store_queue_full", "statement",
			    statement_row(id)->name, NULL);
		return false;
	}
	snprintf(dropped, sizeof(dropped), "%zu", s->n_droppable);
	log_warn("store_queue_full", "dropped_index_and_progress_rows", dropped,
	    NULL);
	list_for_each (pos, tmp, &s->queue) {
		struct store_write *w =
		    list_entry(pos, struct store_write, node);

		if (!statement_row(w->id)->may_drop)
			continue;
		queue_forget(s, w);
		s->n_dropped++;
	}
	return true;
}

void
store_queue(
    struct store *s, enum statement id, const struct store_value *v, size_t n)
{
	bool was_empty = list_empty(&s->queue);
	struct store_write *w;

	if (s->n_queued >= STORE_QUEUE_MAX && !queue_make_room(s, id))
		return;
	w = queue_copy(id, v, n);
	list_append(&s->queue, &w->node);
	s->n_queued++;
	if (statement_row(id)->may_drop)
		s->n_droppable++;
	if (was_empty && s->on_queued)
		s->on_queued(s->on_queued_arg);
}

static void
queue_note_stuck(struct store *s, int rc)
{
	int64_t now = clock_mono_ms();
	char rows[32];

	if (s->stuck_since_ms == 0)
		s->stuck_since_ms = now;
	if (s->is_stuck_logged || now - s->stuck_since_ms < STORE_STUCK_LOG_MS)
		return;
	s->is_stuck_logged = true;
	snprintf(rows, sizeof(rows), "%zu", s->n_queued);
	log_warn("store_stuck", "why", strerrordesc_np(-rc), "rows_waiting",
	    rows, NULL);
}

static void
queue_note_moving(struct store *s)
{
	char after[32], dropped[32];

	if (s->is_stuck_logged || s->n_dropped) {
		snprintf(after, sizeof(after), "%lld",
		    (long long)(s->stuck_since_ms
				    ? clock_mono_ms() - s->stuck_since_ms
				    : 0));
		snprintf(dropped, sizeof(dropped), "%zu", s->n_dropped);
		log_info("store_moving", "after_ms", after, "rows_dropped",
		    dropped, NULL);
	}
	s->stuck_since_ms = 0;
	s->is_stuck_logged = false;
	s->n_dropped = 0;
}

/* Runs the first N queued rows inside the open transaction and commits. */
static int
queue_run(struct store *s, size_t n)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &s->queue) {
		struct store_write *w =
		    list_entry(pos, struct store_write, node);
		int rc = 0;

		if (n-- == 0)
			break;
		if (!w->is_refused)
			rc = store_run(s, w->id, w->v, w->n);
		if (rc == -EEXIST || rc == -EINVAL) {
			log_err("store_row_refused", "statement",
			    statement_row(w->id)->name, "why",
			    sqlite3_errmsg(s->db), NULL);
			w->is_refused = true;
		} else if (rc < 0) {
			return rc;
		}
	}
	return store_run(s, STATEMENT_COMMIT, NULL, 0);
}

/* Commits the first N rows (or all, if fewer wait) in one transaction. */
static int
queue_commit(struct store *s, size_t n)
{
	struct list *pos, *tmp;
	int rc;

	if (list_empty(&s->queue))
		return 0;
	rc = store_run(s, STATEMENT_BEGIN, NULL, 0);
	if (rc == 0)
		rc = queue_run(s, n);
	if (rc < 0) {
		/* SQLite may have rolled back by itself (FULL, IOERR). */
		if (!sqlite3_get_autocommit(s->db))
			store_run(s, STATEMENT_ROLLBACK, NULL, 0);
		queue_note_stuck(s, rc);
		return rc;
	}
	list_for_each (pos, tmp, &s->queue) {
		if (n-- == 0)
			break;
		queue_forget(s, list_entry(pos, struct store_write, node));
	}
	queue_note_moving(s);
	return 0;
}

int
store_commit_queue(struct store *s)
{
	return queue_commit(s, s->n_queued);
}

int
store_pump(struct store *s, struct err *e)
{
	int rc = queue_commit(s, STORE_BATCH);

	if (rc == 0 && list_empty(&s->queue))
		return 0;
	if (rc == 0)
		return err_set(e, -EAGAIN, "%zu more rows wait", s->n_queued);
	err_set(e, rc, "cannot write to the store, %zu rows wait: %s",
	    s->n_queued, sqlite3_errmsg(s->db));
	if (rc == -EAGAIN || rc == -ENOSPC || rc == -EIO) {
		if (e)
			e->code = -EAGAIN;
		return -EAGAIN;
	}
	return rc;
}
