/*
 * What the files of store/ share and nobody else includes: the handle, values
 * that are bound by name, running a statement at once or later. Single-threaded
 * like the manager; all of SQLite's codes end here as a negative errno.
 */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "store/statements.h"
#include "store/store.h"

/* Rows that wait at most; beyond it those that can be made again go first. */
#define STORE_QUEUE_MAX 100000

struct store {
	sqlite3 *db;
	sqlite3_stmt *statements[STATEMENT_COUNT];
	struct list queue; /* of struct store_write, oldest first */
	size_t n_queued, n_droppable, n_dropped;
	int64_t stuck_since_ms; /* monotonic; 0 while the queue moves */
	bool is_stuck_logged;
	void (*on_queued)(void *arg);
	void *on_queued_arg;
	int64_t next_attachment, next_recording;
};

struct store_value {
	const char *param; /* ":name", a literal */
	bool is_null, is_text;
	int64_t number;
	const char *text;
};

static inline struct store_value
store_int(const char *param, int64_t v)
{
	return (struct store_value){ .param = param, .number = v };
}

/* 0 becomes NULL. */
static inline struct store_value
store_opt_int(const char *param, int64_t v)
{
	return (struct store_value){
		.param = param, .number = v, .is_null = v == 0
	};
}

/* Counters are unsigned outside and never reach 2^63. */
static inline struct store_value
store_count(const char *param, uint64_t v)
{
	return store_int(param, v > INT64_MAX ? INT64_MAX : (int64_t)v);
}

/* The string is borrowed until the call is over; NULL becomes NULL. */
static inline struct store_value
store_text(const char *param, const char *s)
{
	return (struct store_value){
		.param = param, .text = s, .is_text = true, .is_null = !s
	};
}

/* "" becomes NULL too. */
static inline struct store_value
store_opt_text(const char *param, const char *s)
{
	return store_text(param, s && *s ? s : NULL);
}

/*
 * Runs a statement without rows now. Returns 0, -EAGAIN (locked), -ENOSPC,
 * -EIO, -EEXIST (unique), -EINVAL (another constraint) or -EBADMSG (damage).
 */
int store_run(
    struct store *s, enum statement id, const struct store_value *v, size_t n);

/*
 * Pumps, then runs the statement, trying again every 20 ms while the database
 * is locked, for 5 s: the one place that waits. -EBUSY when the time is over,
 * else as store_run().
 */
int store_run_waiting(
    struct store *s, enum statement id, const struct store_value *v, size_t n);

/* Puts the statement with copies of its values at the end of the queue. */
void store_queue(
    struct store *s, enum statement id, const struct store_value *v, size_t n);

/* Frees what is queued and returns how many rows that were. */
size_t store_queue_release(struct store *s);

/*
 * Commits the queue like store_pump(), but tells a lock (-EAGAIN) from a full
 * (-ENOSPC) or failing disk (-EIO).
 */
int store_commit_queue(struct store *s);

/*
 * A query: commits the queue first (as far as it goes), binds, and is stepped
 * with store_next() until it returns 0 or less, or ended early with
 * store_end(). One of each statement at a time.
 */
sqlite3_stmt *store_query(
    struct store *s, enum statement id, const struct store_value *v, size_t n);
/* 1 for a row, 0 at the end, a negative errno (logged). */
int store_next(struct store *s, sqlite3_stmt *q);
void store_end(sqlite3_stmt *q);

/* Column I as a string ("" for NULL), cut to SIZE; as a copy; as a count. */
void store_column_text(sqlite3_stmt *q, int i, char *out, size_t size);
char *store_column_dup(sqlite3_stmt *q, int i);
uint64_t store_column_count(sqlite3_stmt *q, int i);

/* A code of SQLite as a negative errno, 0 for success. */
int store_errno(int sqlite_code);

/*
 * Splits "sandbox+name" at the first plus into OUT, without a plus or with an
 * empty name it is `default`; -ENOENT for anything that is no such reference.
 */
struct store_ref {
	char sandbox[STORE_NAME_MAX], name[STORE_NAME_MAX];
};
int store_ref_split(const char *ref, struct store_ref *out);

/* True for "ses-" and 2 to 16 digits of lower-case hex: an id or its prefix. */
bool store_ref_is_id(const char *ref);

#endif
