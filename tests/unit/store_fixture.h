/*
 * What the tests of the store share: a store in a directory of its own, a
 * second connection to the same file, short ways to make and look at rows.
 */
#ifndef TESTS_UNIT_STORE_FIXTURE_H
#define TESTS_UNIT_STORE_FIXTURE_H

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/db.h"
#include "store/migrations.h"
#include "tests/unit/unit.h"

struct fixture {
	char dir[64], path[80];
	struct store *store;
	int64_t box;
};

static inline int
setup_dir(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "/tmp/berth-store-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/berth.db", f->dir);
	*state = f;
	return 0;
}

static inline void
open_store(struct fixture *f)
{
	struct err e = { 0 };
	int rc = store_open(f->dir, &f->store, &e);

	if (rc < 0)
		print_error("store_open: %s\n", e.msg);
	assert_int_equal(rc, 0);
}

static inline int
setup(void **state)
{
	struct store_sandbox b = { .name = "box",
		.provider = "local",
		.state = "running",
		.created_ms = 1,
		.last_active_ms = 1 };
	struct fixture *f;

	setup_dir(state);
	f = *state;
	open_store(f);
	assert_int_equal(store_sandbox_insert(f->store, &b), 0);
	f->box = b.id;
	return 0;
}

static inline int
teardown(void **state)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	struct fixture *f = *state;

	store_close(f->store);
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		char path[96];

		snprintf(path, sizeof(path), "%s%s", f->path, suffixes[i]);
		unlink(path);
	}
	rmdir(f->dir);
	free(f);
	return 0;
}

static inline sqlite3 *
second(struct fixture *f)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	return db;
}

static inline void
run_sql(sqlite3 *db, const char *sql)
{
	char *msg = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &msg) != SQLITE_OK)
		fail_msg("%s: %s", sql, msg);
}

static inline int64_t
query_int(struct fixture *f, const char *sql)
{
	sqlite3 *db = second(f);
	sqlite3_stmt *q;
	int64_t v;

	if (sqlite3_prepare_v2(db, sql, -1, &q, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_step(q), SQLITE_ROW);
	v = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	sqlite3_close(db);
	return v;
}

static inline int
insert(struct fixture *f, const char *id, const char *name, int64_t t_ms)
{
	struct store_session r = { .sandbox_id = f->box,
		.is_pty = true,
		.cols = 80,
		.rows = 24,
		.created_ms = t_ms };

	snprintf(r.id, sizeof(r.id), "%s", id);
	snprintf(r.name, sizeof(r.name), "%s", name);
	return store_session_insert(f->store, &r);
}

static inline void
end_session(struct fixture *f, const char *id, enum store_status status)
{
	struct store_session_end end = { .status = status,
		.has_exit_code = true,
		.exit_code = 7,
		.exited_ms = 99,
		.bytes_out = 5,
		.bytes_in = 6 };

	store_session_ended(f->store, id, &end);
}

static inline enum store_status
status_of(struct fixture *f, const char *id)
{
	struct store_session r;
	enum store_status status;

	assert_int_equal(store_session_get(f->store, id, &r), 0);
	status = r.status;
	store_session_release(&r);
	return status;
}

#define SID_1 "ses-1200000000000001"
#define SID_2 "ses-1200000000000002"
#define SID_3 "ses-3400000000000003"

#define CASE(t)     cmocka_unit_test_setup_teardown(t, setup, teardown)
#define DIR_CASE(t) cmocka_unit_test_setup_teardown(t, setup_dir, teardown)

#endif
