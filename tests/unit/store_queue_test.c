/*
 * The store's write queue: a locked or full database neither stalls its caller
 * nor loses what is queued.
 */
#include <pthread.h>

#include "tests/unit/store_fixture.h"

static void
count_call(void *arg)
{
	++*(int *)arg;
}

static void
locked_database_makes_pump_eagain_and_loses_nothing(void **state)
{
	struct fixture *f = *state;
	struct err e = { 0 };
	int n_called = 0;
	sqlite3 *db = second(f);
	int64_t start;

	store_on_queued(f->store, count_call, &n_called);
	run_sql(db, "BEGIN EXCLUSIVE");
	for (int i = 0; i < 500; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%d", i);
		store_audit(f->store, "e", NULL, NULL, NULL, NULL, text);
	}
	start = clock_mono_ms();
	assert_int_equal(store_pump(f->store, &e), -EAGAIN);
	assert_int_equal(e.code, -EAGAIN);
	assert_true(clock_mono_ms() - start < 1000);
	assert_int_equal(store_pump(f->store, &e), -EAGAIN);
	run_sql(db, "ROLLBACK");
	sqlite3_close(db);
	assert_int_equal(store_pump(f->store, &e), 0);
	assert_int_equal(n_called, 1);
	assert_int_equal(
	    query_int(f, "SELECT count(*) FROM audit WHERE CAST(detail AS "
			 "INTEGER) = id - 1"),
	    500);
	store_audit(f->store, "e", NULL, NULL, NULL, NULL, NULL);
	assert_int_equal(n_called, 2);
}

static void
full_disk_keeps_the_queue(void **state)
{
	struct fixture *f = *state;
	char big[8192];

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	/* As many pages as it has now: the next page is "disk full". */
	assert_int_equal(sqlite3_exec(f->store->db, "PRAGMA max_page_count = 1",
			     NULL, NULL, NULL),
	    SQLITE_OK);
	for (int i = 0; i < 4; i++)
		store_audit(f->store, "e", NULL, NULL, NULL, NULL, big);
	assert_int_equal(store_pump(f->store, NULL), -EAGAIN);
	assert_int_equal(f->store->n_queued, 4);
	assert_int_equal(query_int(f, "SELECT count(*) FROM audit"), 0);
	sqlite3_exec(
	    f->store->db, "PRAGMA max_page_count = 100000", NULL, NULL, NULL);
	assert_int_equal(store_pump(f->store, NULL), 0);
	assert_int_equal(query_int(f, "SELECT count(*) FROM audit"), 4);
}

static void
refused_row_does_not_hold_up_the_queue(void **state)
{
	struct fixture *f = *state;
	struct store_attachment a = {
		.session_id = "ses-none", .identity = "ada", .role = "owner"
	};

	store_audit(f->store, "before", NULL, NULL, NULL, NULL, NULL);
	store_attachment_insert(f->store, &a);
	store_audit(f->store, "after", NULL, NULL, NULL, NULL, NULL);
	assert_int_equal(store_pump(f->store, NULL), 0);
	assert_int_equal(query_int(f, "SELECT count(*) FROM audit"), 2);
	assert_int_equal(query_int(f, "SELECT count(*) FROM attachment"), 0);
}

static void
full_queue_drops_index_rows_first(void **state)
{
	struct fixture *f = *state;
	struct store_recording r = { .session_id = SID_1, .path = "/x" };
	sqlite3 *db = second(f);
	int64_t id;

	insert(f, SID_1, "a", 1);
	run_sql(db, "BEGIN EXCLUSIVE");
	id = store_recording_insert(f->store, &r);
	while (f->store->n_queued < STORE_QUEUE_MAX)
		store_recording_index(f->store, id, 1, f->store->n_queued);
	store_recording_index(f->store, id, 1, 1);
	assert_int_equal(f->store->n_queued, STORE_QUEUE_MAX);
	store_audit(f->store, "kept", NULL, NULL, NULL, NULL, NULL);
	assert_int_equal(f->store->n_queued, 2);
	run_sql(db, "ROLLBACK");
	sqlite3_close(db);
	assert_int_equal(store_pump(f->store, NULL), 0);
	assert_int_equal(query_int(f, "SELECT count(*) FROM recording"), 1);
	assert_int_equal(query_int(f, "SELECT count(*) FROM audit"), 1);
}

static void
long_queue_is_pumped_in_batches(void **state)
{
	struct fixture *f = *state;
	int n_pumps = 1;

	for (int i = 0; i < 10000; i++)
		store_audit(f->store, "e", NULL, NULL, NULL, NULL, NULL);
	while (store_pump(f->store, NULL) == -EAGAIN)
		n_pumps++;
	assert_int_equal(n_pumps, 3);
	assert_int_equal(query_int(f, "SELECT count(*) FROM audit"), 10000);
}

static void
close_commits_what_is_queued(void **state)
{
	struct fixture *f = *state;

	store_audit(f->store, "last", NULL, NULL, NULL, NULL, NULL);
	store_close(f->store);
	f->store = NULL;
	assert_int_equal(query_int(f, "SELECT count(*) FROM audit"), 1);
}

static void *
release_later(void *arg)
{
	usleep(300 * 1000);
	sqlite3_exec(arg, "ROLLBACK", NULL, NULL, NULL);
	return NULL;
}

static void
session_insert_waits_for_a_lock(void **state)
{
	struct fixture *f = *state;
	sqlite3 *db = second(f);
	int64_t start = clock_mono_ms();
	pthread_t thread;

	run_sql(db, "BEGIN EXCLUSIVE");
	store_audit(f->store, "x", NULL, NULL, NULL, NULL, NULL);
	assert_int_equal(pthread_create(&thread, NULL, release_later, db), 0);
	assert_int_equal(insert(f, SID_1, "a", 1), 0);
	assert_true(clock_mono_ms() - start >= 250);
	assert_true(clock_mono_ms() - start < 5000);
	pthread_join(thread, NULL);
	sqlite3_close(db);
	assert_int_equal(query_int(f, "SELECT count(*) FROM audit"), 1);
}

static void
reads_go_on_while_somebody_writes(void **state)
{
	struct fixture *f = *state;
	sqlite3 *db = second(f);

	insert(f, SID_1, "a", 1);
	run_sql(db, "BEGIN EXCLUSIVE");
	store_session_started(f->store, SID_1, 1, 1);
	assert_int_equal(status_of(f, SID_1), SESSION_CREATING);
	run_sql(db, "ROLLBACK");
	assert_int_equal(status_of(f, SID_1), SESSION_RUNNING);
	sqlite3_close(db);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(locked_database_makes_pump_eagain_and_loses_nothing),
		CASE(full_disk_keeps_the_queue),
		CASE(refused_row_does_not_hold_up_the_queue),
		CASE(full_queue_drops_index_rows_first),
		CASE(long_queue_is_pumped_in_batches),
		CASE(close_commits_what_is_queued),
		CASE(session_insert_waits_for_a_lock),
		CASE(reads_go_on_while_somebody_writes),
	};

	log_open("store_queue_test", LOG_ERR, false);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
