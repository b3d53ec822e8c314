/*
 * Rows of transfers: the one that a line of the log means is found, also when
 * several are open under one path, and a session's end leaves none open.
 */
#include "tests/unit/store_fixture.h"

static void
open_file(struct fixture *f, const char *sid, const char *path, bool is_in)
{
	const struct store_transfer r = {
		.session_id = sid,
		.path = path,
		.is_in = is_in,
		.started_ms = 10,
		.status = "open",
	};

	store_transfer_insert(f->store, &r);
}

static void
close_file(struct fixture *f, const char *path, uint64_t bytes, bool is_in,
    const char *status)
{
	const struct store_transfer r = {
		.session_id = SID_1,
		.path = path,
		.is_in = is_in,
		.bytes = bytes,
		.finished_ms = 20,
		.status = status,
	};

	store_transfer_finish(f->store, &r);
}

/* "STATUS DIRECTION BYTES" of the row ID, or NULL when there is none. */
static const char *
row_of(struct fixture *f, int id)
{
	static char text[64];
	autofree char *sql = xasprintf("SELECT status || ' ' || direction ||"
				       " ' ' || bytes FROM transfer"
				       " WHERE id = %d",
	    id);
	sqlite3 *db;
	sqlite3_stmt *q;
	const char *found = NULL;

	assert_int_equal(store_pump(f->store, NULL), 0);
	db = second(f);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
	if (sqlite3_step(q) == SQLITE_ROW) {
		snprintf(text, sizeof(text), "%s", sqlite3_column_text(q, 0));
		found = text;
	}
	sqlite3_finalize(q);
	sqlite3_close(db);
	return found;
}

static void
a_close_settles_the_row_of_its_path(void **state)
{
	struct fixture *f = *state;

	open_file(f, SID_1, "a", true);
	open_file(f, SID_2, "b", false);
	open_file(f, SID_1, "b", false);
	open_file(f, SID_1, "b", true);
	close_file(f, "b", 7, false, "done");
	assert_string_equal(row_of(f, 1), "open in 0");
	assert_string_equal(row_of(f, 2), "open out 0");
	assert_string_equal(row_of(f, 3), "done out 7");
	/* The first is settled: now the second. Opened to write, and read. */
	close_file(f, "b", 9, false, "cut");
	assert_string_equal(row_of(f, 4), "cut out 9");
	close_file(f, "a", 0, false, "done");
	assert_string_equal(row_of(f, 1), "done in 0");
	close_file(f, "nobody", 5, true, "done");
	close_file(f, "a", 5, true, "done");
	assert_string_equal(row_of(f, 1), "done in 0");
	assert_null(row_of(f, 5));
}

static void
a_failure_that_was_none_is_corrected(void **state)
{
	struct fixture *f = *state;

	open_file(f, SID_1, "a", true);
	store_transfer_failed(f->store, SID_1, 15);
	assert_string_equal(row_of(f, 1), "failed in 0");
	open_file(f, SID_1, "a", true);
	store_transfer_failed(f->store, SID_1, 15);
	close_file(f, "a", 5, true, "done");
	assert_string_equal(row_of(f, 1), "failed in 0");
	assert_string_equal(row_of(f, 2), "done in 5");
	/* The latest row is settled: nothing else fails in its place. */
	store_transfer_failed(f->store, SID_1, 16);
	assert_string_equal(row_of(f, 2), "done in 5");
}

static void
an_end_leaves_nothing_open_and_says_so(void **state)
{
	struct fixture *f = *state;

	open_file(f, SID_1, "done", true);
	close_file(f, "done", 3, true, "done");
	open_file(f, SID_1, "failed", true);
	store_transfer_failed(f->store, SID_1, 15);
	open_file(f, SID_1, "cut", false);
	open_file(f, SID_2, "other", false);
	store_transfer_end(f->store, "box", SID_1, 30);
	assert_string_equal(row_of(f, 1), "done in 3");
	assert_string_equal(row_of(f, 2), "failed in 0");
	assert_string_equal(row_of(f, 3), "cut out 0");
	assert_string_equal(row_of(f, 4), "open out 0");
	assert_int_equal(
	    query_int(f, "SELECT count(*) FROM audit WHERE event = 'transfer'"
			 " AND sandbox = 'box' AND detail IN"
			 " ('failed in 0 bytes: failed',"
			 " 'cut out 0 bytes: cut')"),
	    2);
	assert_int_equal(query_int(f, "SELECT count(*) FROM audit"), 2);
}

static void
rows_know_who_was_attached(void **state)
{
	struct fixture *f = *state;
	struct store_attachment a = { .session_id = SID_1,
		.identity = "alice",
		.role = "writer",
		.remote_addr = "192.0.2.1:5",
		.attached_ms = 1 };

	assert_int_equal(insert(f, SID_1, "", 1), 0);
	store_attachment_insert(f->store, &a);
	open_file(f, SID_1, "a", true);
	open_file(f, SID_2, "a", true);
	store_audit_session(f->store, "file_change", "box", SID_1, "x");
	store_audit_session(f->store, "file_change", "box", SID_2, NULL);
	assert_int_equal(store_pump(f->store, NULL), 0);
	assert_int_equal(query_int(f, "SELECT count(*) FROM v_transfers"
				      " WHERE id = 1 AND identity = 'alice'"
				      " AND sandbox = 'box'"),
	    1);
	assert_int_equal(query_int(f, "SELECT count(*) FROM v_transfers"
				      " WHERE id = 2 AND identity = ''"),
	    1);
	assert_int_equal(query_int(f, "SELECT count(*) FROM audit"
				      " WHERE identity = 'alice'"
				      " AND remote_addr = '192.0.2.1:5'"),
	    1);
	assert_int_equal(query_int(f, "SELECT count(*) FROM audit"
				      " WHERE identity IS NULL"),
	    1);
}

/* A scan of all rows of a session for each close would take minutes. */
static void
the_row_of_a_path_is_found_by_its_index(void **state)
{
	struct fixture *f = *state;
	sqlite3 *db = second(f);
	sqlite3_stmt *q;
	autofree char *sql = xasprintf(
	    "EXPLAIN QUERY PLAN %s", statement_row(TRANSFER_FINISH)->sql);
	bool is_indexed = false;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
	while (sqlite3_step(q) == SQLITE_ROW) {
		const char *step = (const char *)sqlite3_column_text(q, 3);

		if (strstr(step, "transfer_unsettled (session_id=? AND path"))
			is_indexed = true;
	}
	sqlite3_finalize(q);
	sqlite3_close(db);
	assert_true(is_indexed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_close_settles_the_row_of_its_path),
		CASE(a_failure_that_was_none_is_corrected),
		CASE(an_end_leaves_nothing_open_and_says_so),
		CASE(rows_know_who_was_attached),
		CASE(the_row_of_a_path_is_found_by_its_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
