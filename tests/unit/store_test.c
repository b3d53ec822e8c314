/*
 * The store: schema and guards, what it refuses to open, statuses, references,
 * the rows of every table.
 */
#include "tests/unit/store_fixture.h"

/* ---- schema -------------------------------------------------------------- */

static void
schema_has_the_promised_columns(void **state)
{
	static const char *const queries[] = {
		"SELECT id, name, provider, state, created_ms, last_active_ms, "
		"unenforced FROM sandbox",
		"SELECT id, sandbox_id, name, kind, argv, cwd, status, "
		"exit_code, exit_signal, reason, pid, cols, rows, created_ms, "
		"started_ms, exited_ms, bytes_out, bytes_in FROM session",
		"SELECT id, session_id, identity, key_fingerprint, role, "
		"remote_addr, client_version, attached_ms, detached_ms, "
		"bytes_out, bytes_in, resyncs FROM attachment",
		"SELECT id, session_id, path, format, state, bytes, "
		"duration_ms, started_ms, finished_ms, gaps FROM recording",
		"SELECT recording_id, t_ms, offset FROM recording_index",
		"SELECT id, session_id, identity, direction, path, bytes, "
		"started_ms, finished_ms, status FROM transfer",
		"SELECT id, t_ms, event, identity, remote_addr, sandbox, "
		"session_id, detail FROM audit",
		"SELECT id, sandbox, name, description, provider, template, "
		"state, bytes, files, skipped, created_ms FROM snapshot",
		"SELECT * FROM v_snapshots",
		"SELECT * FROM v_sessions",
		"SELECT * FROM v_recordings",
		"SELECT * FROM v_attachments",
		"SELECT * FROM v_activity ORDER BY time",
	};
	struct fixture *f = *state;
	sqlite3 *db = second(f);

	for (size_t i = 0; i < ARRAY_LEN(queries); i++)
		run_sql(db, queries[i]);
	sqlite3_close(db);
	assert_int_equal(
	    query_int(f, "PRAGMA user_version"), store_migrations_count);
	assert_int_equal(query_int(f, "PRAGMA application_id"), 1651668072);
	/* Every table is STRICT. */
	assert_int_equal(
	    query_int(f, "SELECT count(*) FROM pragma_table_list WHERE "
			 "type = 'table' AND NOT strict AND name NOT LIKE "
			 "'sqlite_%'"),
	    0);
}

static void
every_statement_has_text_and_name(void **state)
{
	(void)state;
	for (int i = 0; i < STATEMENT_COUNT; i++) {
		assert_non_null(statement_row(i)->sql);
		assert_non_null(statement_row(i)->name);
	}
}

static void
views_show_iso_times_and_names(void **state)
{
	struct fixture *f = *state;
	struct store_attachment a = { .session_id = SID_1,
		.identity = "ada",
		.role = "writer",
		.attached_ms = 1700000000123 };
	struct store_recording r = {
		.session_id = SID_1, .path = "/x", .started_ms = 1700000000123
	};

	assert_int_equal(insert(f, SID_1, "default", 1700000000123), 0);
	store_attachment_insert(f->store, &a);
	store_recording_insert(f->store, &r);
	store_audit(f->store, "login", "ada", "::1", "box", NULL, NULL);
	assert_int_equal(store_pump(f->store, NULL), 0);
	assert_int_equal(
	    query_int(f, "SELECT count(*) FROM v_sessions WHERE "
			 "created = '2023-11-14T22:13:20.123Z' AND "
			 "sandbox = 'box' AND attached = 1"),
	    1);
	assert_int_equal(
	    query_int(f, "SELECT count(*) FROM v_attachments WHERE "
			 "attached = '2023-11-14T22:13:20.123Z' AND "
			 "name = 'default' AND detached IS NULL"),
	    1);
	assert_int_equal(
	    query_int(f, "SELECT count(*) FROM v_recordings WHERE "
			 "started = '2023-11-14T22:13:20.123Z' AND "
			 "sandbox = 'box' AND name = 'default'"),
	    1);
	assert_int_equal(query_int(f, "SELECT count(*) FROM v_activity"), 3);
}

static void
files_are_0600_whatever_the_umask(void **state)
{
	static const char *const suffixes[] = { "", "-wal", "-shm" };
	struct fixture *f = *state;
	mode_t old = umask(0);

	open_store(f);
	store_audit(f->store, "x", NULL, NULL, NULL, NULL, NULL);
	assert_int_equal(store_pump(f->store, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		char path[96];
		struct stat st;

		snprintf(path, sizeof(path), "%s%s", f->path, suffixes[i]);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
	}
	assert_int_equal(umask(old), 0);
}

/* ---- refusals ------------------------------------------------------------ */

static void
newer_schema_is_refused_with_a_sentence(void **state)
{
	struct fixture *f = *state;
	struct err e = { 0 };
	sqlite3 *db;

	open_store(f);
	store_close(f->store);
	f->store = NULL;
	db = second(f);
	run_sql(db, "PRAGMA user_version = 99");
	sqlite3_close(db);
	assert_int_equal(store_open(f->dir, &f->store, &e), -EPROTONOSUPPORT);
	assert_non_null(strstr(e.msg, "schema 99"));
	assert_null(f->store);
	assert_int_equal(query_int(f, "PRAGMA user_version"), 99);
}

static void
another_programs_database_is_refused(void **state)
{
	struct fixture *f = *state;
	struct err e = { 0 };
	sqlite3 *db = second(f);

	run_sql(db, "CREATE TABLE mine (x)");
	sqlite3_close(db);
	assert_int_equal(store_open(f->dir, &f->store, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "another program"));
}

static void
damaged_file_is_refused_and_left_as_it_is(void **state)
{
	static const char junk[] =
	    "This is no database at all, and long enough to be seen.......";
	struct fixture *f = *state;
	struct err e = { 0 };
	char got[sizeof(junk)];
	int fd = open(f->path, O_RDWR | O_CREAT, 0600);

	for (int i = 0; i < 100; i++)
		assert_int_equal(write(fd, junk, sizeof(junk)), sizeof(junk));
	assert_int_equal(store_open(f->dir, &f->store, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "damaged"));
	assert_int_equal(lseek(fd, 0, SEEK_END), 100 * sizeof(junk));
	assert_int_equal(pread(fd, got, sizeof(got), 0), sizeof(got));
	assert_memory_equal(got, junk, sizeof(junk));
	close(fd);
}

static void
symlink_in_place_of_the_file_is_refused(void **state)
{
	struct fixture *f = *state;
	struct err e = { 0 };

	assert_int_equal(symlink("/tmp/berth-store-nowhere", f->path), 0);
	assert_int_equal(store_open(f->dir, &f->store, &e), -EINVAL);
	assert_int_equal(access("/tmp/berth-store-nowhere", F_OK), -1);
}

static void
absent_directory_is_an_error(void **state)
{
	struct store *s = NULL;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(store_open("/nonexistent/berth", &s, &e), -ENOENT);
	assert_null(s);
}

/* ---- rows ---------------------------------------------------------------- */

static void
sandbox_name_is_unique_and_found(void **state)
{
	struct fixture *f = *state;
	struct store_sandbox b = {
		.name = "box", .provider = "local", .state = "running"
	};
	struct store_sandbox got;

	assert_int_equal(store_sandbox_insert(f->store, &b), -EEXIST);
	store_sandbox_touch(f->store, f->box, 500);
	store_sandbox_touch(f->store, f->box, 400);
	store_sandbox_unenforced(f->store, f->box, "memory, cpu");
	assert_int_equal(store_sandbox_get(f->store, "box", &got), 0);
	assert_int_equal(got.id, f->box);
	assert_int_equal(got.last_active_ms, 500);
	assert_string_equal(got.unenforced, "memory, cpu");
	assert_string_equal(got.provider, "local");
	assert_int_equal(store_sandbox_get(f->store, "Box", &got), -ENOENT);
}

static void
second_live_session_of_a_name_is_eexist(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(insert(f, SID_1, "a", 1), 0);
	assert_int_equal(insert(f, SID_2, "a", 2), -EEXIST);
	store_session_started(f->store, SID_1, 10, 2);
	assert_int_equal(insert(f, SID_2, "a", 2), -EEXIST);
	/* The end is still queued; the insert must see it all the same. */
	end_session(f, SID_1, SESSION_EXITED);
	assert_int_equal(insert(f, SID_2, "a", 2), 0);
	assert_int_equal(insert(f, SID_2, "b", 2), -EEXIST);
}

static void
private_processes_have_no_name_and_coexist(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(insert(f, SID_1, "", 1), 0);
	assert_int_equal(insert(f, SID_2, "", 2), 0);
	assert_int_equal(
	    query_int(f, "SELECT count(*) FROM session WHERE name IS NULL"), 2);
}

static void
session_of_an_unknown_sandbox_is_refused(void **state)
{
	struct fixture *f = *state;

	f->box = 4711;
	assert_int_equal(insert(f, SID_1, "a", 1), -EINVAL);
}

static void
status_only_moves_forward(void **state)
{
	struct fixture *f = *state;
	struct store_session r;

	insert(f, SID_1, "a", 1);
	assert_int_equal(status_of(f, SID_1), SESSION_CREATING);
	store_session_started(f->store, SID_1, 42, 5);
	assert_int_equal(status_of(f, SID_1), SESSION_RUNNING);
	store_session_progress(f->store, SID_1, 120, 40, 4, 1);
	store_session_progress(f->store, SID_1, 0, 0, 3, 2);
	end_session(f, SID_1, SESSION_EXITED);
	end_session(f, SID_1, SESSION_LOST);
	store_session_started(f->store, SID_1, 43, 6);
	store_session_progress(f->store, SID_1, 1, 1, 1000, 1000);
	assert_int_equal(store_session_get(f->store, SID_1, &r), 0);
	assert_int_equal(r.status, SESSION_EXITED);
	assert_true(r.has_exit_code);
	assert_int_equal(r.exit_code, 7);
	assert_string_equal(r.exit_signal, "");
	assert_int_equal(r.pid, 42);
	assert_int_equal(r.cols, 120);
	assert_int_equal(r.rows, 40);
	assert_int_equal(r.bytes_out, 5);
	assert_int_equal(r.bytes_in, 6);
	assert_int_equal(r.exited_ms, 99);
	assert_string_equal(r.argv, "[]");
	assert_string_equal(r.sandbox, "box");
	store_session_release(&r);
}

static void
every_end_is_stored_and_read_back(void **state)
{
	static const enum store_status ends[] = { SESSION_EXITED,
		SESSION_KILLED, SESSION_FAILED, SESSION_LOST };
	struct fixture *f = *state;

	for (unsigned i = 0; i < ARRAY_LEN(ends); i++) {
		struct store_session_end end = { .status = ends[i],
			.exit_signal = "TERM",
			.reason = "idle",
			.exited_ms = 3 };
		struct store_session r;
		char id[STORE_ID_MAX];

		snprintf(id, sizeof(id), "ses-%016x", i);
		insert(f, id, "a", 1);
		store_session_ended(f->store, id, &end);
		assert_int_equal(store_session_get(f->store, id, &r), 0);
		assert_int_equal(r.status, ends[i]);
		assert_false(r.has_exit_code);
		assert_string_equal(r.exit_signal, "TERM");
		assert_string_equal(r.reason, "idle");
		store_session_release(&r);
	}
}

static void
find_takes_id_prefix_and_name(void **state)
{
	static const struct {
		const char *ref;
		int rc;
		const char *id;
	} rows[] = {
		{ SID_1, 0, SID_1 },
		{ "ses-34", 0, SID_3 },
		{ "ses-12", -ENOTUNIQ, NULL },
		{ "ses-3", -ENOENT, NULL },
		{ "ses-56", -ENOENT, NULL },
		{ "ses-34zz", -ENOENT, NULL },
		{ "ses-%", -ENOENT, NULL },
		{ "box+a", 0, SID_2 },
		{ "box+a+b", 0, SID_3 },
		{ "box+A", -ENOENT, NULL },
		{ "box", -ENOENT, NULL },
		{ "+a", -ENOENT, NULL },
		{ "", -ENOENT, NULL },
	};
	struct fixture *f = *state;

	insert(f, SID_1, "a", 5);
	end_session(f, SID_1, SESSION_EXITED);
	insert(f, SID_2, "a", 2); /* older, but it runs */
	insert(f, SID_3, "a+b", 3);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct store_session r = { 0 };
		int rc = store_session_find(f->store, rows[i].ref, &r);

		if (rc != rows[i].rc)
			print_error("ref %s\n", rows[i].ref);
		assert_int_equal(rc, rows[i].rc);
		if (rc == 0)
			assert_string_equal(r.id, rows[i].id);
		store_session_release(&r);
	}
	end_session(f, SID_2, SESSION_EXITED);
	{
		struct store_session r;

		/* None runs: the latest. */
		assert_int_equal(store_session_find(f->store, "box+a", &r), 0);
		assert_string_equal(r.id, SID_1);
		store_session_release(&r);
	}
}

struct seen {
	struct store *store;
	size_t n, limit;
	char ids[8][STORE_ID_MAX];
};

static bool
see_session(const struct store_session *r, void *arg)
{
	struct seen *seen = arg;

	snprintf(seen->ids[seen->n++], STORE_ID_MAX, "%s", r->id);
	/* The store may be used from within. */
	assert_int_equal(store_pump(seen->store, NULL), 0);
	return seen->n < seen->limit;
}

static void
each_lists_the_living_first(void **state)
{
	struct fixture *f = *state;
	struct seen all = { .store = f->store, .limit = 8 };
	struct seen live = { .store = f->store, .limit = 8 };
	struct seen one = { .store = f->store, .limit = 1 };

	insert(f, SID_1, "a", 1);
	end_session(f, SID_1, SESSION_EXITED);
	insert(f, SID_2, "b", 3);
	insert(f, SID_3, "c", 2);
	store_session_each(f->store, true, see_session, &all);
	assert_int_equal(all.n, 3);
	assert_string_equal(all.ids[0], SID_3);
	assert_string_equal(all.ids[1], SID_2);
	assert_string_equal(all.ids[2], SID_1);
	store_session_each(f->store, false, see_session, &live);
	assert_int_equal(live.n, 2);
	store_session_each(f->store, true, see_session, &one);
	assert_int_equal(one.n, 1);
}

static bool
see_attachment(const struct store_attachment *r, void *arg)
{
	struct seen *seen = arg;

	snprintf(seen->ids[seen->n++], STORE_ID_MAX, "%s/%s/%s", r->identity,
	    r->sandbox, r->name);
	return true;
}

static void
attachments_open_close_and_go_with_their_session(void **state)
{
	struct fixture *f = *state;
	struct store_attachment a = { .session_id = SID_1,
		.identity = "ada",
		.role = "owner",
		.attached_ms = 10 };
	struct seen open = { 0 }, later = { 0 };
	int64_t first, next;

	insert(f, SID_1, "a", 1);
	first = store_attachment_insert(f->store, &a);
	a.attached_ms = 5;
	snprintf(a.identity, sizeof(a.identity), "bob");
	next = store_attachment_insert(f->store, &a);
	assert_int_equal(next, first + 1);
	store_attachment_each_open(f->store, see_attachment, &open);
	assert_int_equal(open.n, 2);
	assert_string_equal(open.ids[0], "bob/box/a");
	store_attachment_ended(f->store, SID_2, first, 15, 1, 1, 1);
	store_attachment_ended(f->store, SID_1, first, 20, 7, 8, 2);
	store_attachment_end_all(f->store, SID_1, 30);
	/* What a viewer reports after the sweep keeps the first end. */
	store_attachment_ended(f->store, SID_1, next, 40, 1, 1, 0);
	store_attachment_each_open(f->store, see_attachment, &later);
	assert_int_equal(later.n, 0);
	assert_int_equal(
	    query_int(f, "SELECT count(*) FROM attachment WHERE "
			 "(identity = 'ada' AND detached_ms = 20 AND "
			 "bytes_out = 7 AND resyncs = 2) OR "
			 "(identity = 'bob' AND detached_ms = 30)"),
	    2);
	assert_int_equal(store_session_delete(f->store, SID_1), -EBUSY);
	end_session(f, SID_1, SESSION_EXITED);
	assert_int_equal(store_session_delete(f->store, SID_1), 0);
	assert_int_equal(store_session_delete(f->store, SID_1), -ENOENT);
	assert_int_equal(query_int(f, "SELECT count(*) FROM attachment"), 0);
	/* Ids go on after the rows went, also in a new process. */
	store_close(f->store);
	open_store(f);
	insert(f, SID_2, "a", 1);
	snprintf(a.session_id, sizeof(a.session_id), SID_2);
	assert_int_equal(store_attachment_insert(f->store, &a), next + 1);
}

static void
attachments_restored_have_ids_that_can_be(void **state)
{
	static const int64_t ids[] = { INT64_MAX, INT64_MAX - 1, INT64_MIN, -1,
		0, 1 };
	struct fixture *f = *state;
	struct store_attachment a = { .session_id = SID_1,
		.identity = "ada",
		.role = "owner",
		.attached_ms = 10 };

	insert(f, SID_1, "a", 1);
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		a.id = ids[i];
		store_attachment_restore(f->store, &a);
	}
	assert_int_equal(store_attachment_insert(f->store, &a), 2);
	assert_int_equal(store_pump(f->store, NULL), 0);
	assert_int_equal(query_int(f, "SELECT sum(id) FROM attachment"), 1 + 2);
}

static void
end_all_without_a_session_closes_every_row(void **state)
{
	struct fixture *f = *state;
	struct store_attachment a = { .identity = "ada", .role = "owner" };
	struct seen seen = { 0 };

	insert(f, SID_1, "a", 1);
	insert(f, SID_2, "b", 1);
	snprintf(a.session_id, sizeof(a.session_id), SID_1);
	store_attachment_insert(f->store, &a);
	snprintf(a.session_id, sizeof(a.session_id), SID_2);
	store_attachment_insert(f->store, &a);
	store_attachment_end_all(f->store, NULL, 30);
	store_attachment_each_open(f->store, see_attachment, &seen);
	assert_int_equal(seen.n, 0);
}

static bool
see_recording(const struct store_recording *r, void *arg)
{
	struct seen *seen = arg;

	snprintf(seen->ids[seen->n++], STORE_ID_MAX, "%s", r->session_id);
	return true;
}

static void
recording_index_is_cut_with_its_file(void **state)
{
	struct fixture *f = *state;
	struct store_recording r = { .format = "asciicast-v2",
		.state = "open",
		.path = "/rec/1.cast",
		.session_id = SID_1 };
	int64_t cut, other;

	insert(f, SID_1, "a", 0);
	cut = store_recording_insert(f->store, &r);
	other = store_recording_insert(f->store, &r);
	for (int i = 1; i <= 3; i++) {
		store_recording_index(f->store, cut, i, (uint64_t)i * 100);
		store_recording_index(f->store, other, i, (uint64_t)i * 100);
	}
	store_recording_index_cut(f->store, cut, 200);
	assert_int_equal(store_pump(f->store, NULL), 0);
	assert_int_equal(
	    query_int(f, "SELECT sum(\"offset\") FROM recording_index"
			 " WHERE recording_id = 1"),
	    100);
	assert_int_equal(query_int(f, "SELECT count(*) FROM recording_index"
				      " WHERE recording_id = 2"),
	    3);
}

static void
recordings_are_found_listed_and_expire(void **state)
{
	static const struct {
		const char *ref;
		int rc;
		int64_t nth;
	} rows[] = {
		{ "1", 0, 0 },
		{ "9", -ENOENT, 0 },
		{ SID_2, 0, 1 },
		{ "ses-34", 0, 2 },
		{ "ses-12", -ENOTUNIQ, 0 },
		{ "box+a", 0, 1 },
		{ "box+nobody", -ENOENT, 0 },
	};
	struct fixture *f = *state;
	struct store_recording r = { .format = "asciicast-v2",
		.state = "open" };
	struct store_recording got, expired[4];
	static const char *const ids[] = { SID_1, SID_2, SID_3 };
	int64_t rec[3];
	struct seen seen = { 0 };

	for (int i = 0; i < 3; i++) {
		insert(f, ids[i], i < 2 ? "a" : "", i);
		end_session(f, ids[i], SESSION_EXITED);
		snprintf(r.session_id, sizeof(r.session_id), "%s", ids[i]);
		snprintf(r.path, sizeof(r.path), "/rec/%s.cast", ids[i]);
		r.started_ms = 100 - (i == 2) + i;
		rec[i] = store_recording_insert(f->store, &r);
		store_recording_index(f->store, rec[i], 10, 1000);
		store_recording_index(f->store, rec[i], 10, 1000);
	}
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int rc = store_recording_find(f->store, rows[i].ref, &got);

		if (rc != rows[i].rc)
			print_error("ref %s\n", rows[i].ref);
		assert_int_equal(rc, rows[i].rc);
		if (rc == 0)
			assert_int_equal(got.id, rec[rows[i].nth]);
	}
	store_recording_each(f->store, see_recording, &seen);
	assert_int_equal(seen.n, 3);
	store_recording_finished(f->store, rec[0], "complete", 77, 8, 1000, 1);
	store_recording_progress(f->store, rec[0], 1, 1);
	store_recording_finished(f->store, rec[1], "truncated", 77, 8, 900, 0);
	assert_int_equal(
	    store_recording_expired(f->store, 1000, expired, 4), 1);
	assert_int_equal(expired[0].id, rec[1]);
	assert_int_equal(
	    store_recording_expired(f->store, 2000, expired, 1), 1);
	assert_int_equal(
	    store_recording_expired(f->store, 2000, expired, 4), 2);
	assert_int_equal(expired[1].bytes, 77);
	assert_int_equal(expired[1].gaps, 1);
	store_recording_finished(f->store, rec[1], "pruned", 0, 8, 900, 0);
	assert_int_equal(
	    store_recording_expired(f->store, 2000, expired, 4), 1);
	assert_int_equal(
	    query_int(f, "SELECT count(*) FROM recording_index"), 3);
	/* The row outlives its session and keeps the names. */
	assert_int_equal(store_session_delete(f->store, SID_1), 0);
	assert_int_equal(store_recording_find(f->store, SID_1, &got), 0);
	assert_string_equal(got.sandbox, "box");
	assert_string_equal(got.name, "a");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(schema_has_the_promised_columns),
		cmocka_unit_test(every_statement_has_text_and_name),
		CASE(views_show_iso_times_and_names),
		DIR_CASE(files_are_0600_whatever_the_umask),
		DIR_CASE(newer_schema_is_refused_with_a_sentence),
		DIR_CASE(another_programs_database_is_refused),
		DIR_CASE(damaged_file_is_refused_and_left_as_it_is),
		DIR_CASE(symlink_in_place_of_the_file_is_refused),
		cmocka_unit_test(absent_directory_is_an_error),
		CASE(sandbox_name_is_unique_and_found),
		CASE(second_live_session_of_a_name_is_eexist),
		CASE(private_processes_have_no_name_and_coexist),
		CASE(session_of_an_unknown_sandbox_is_refused),
		CASE(status_only_moves_forward),
		CASE(every_end_is_stored_and_read_back),
		CASE(find_takes_id_prefix_and_name),
		CASE(each_lists_the_living_first),
		CASE(attachments_open_close_and_go_with_their_session),
		CASE(attachments_restored_have_ids_that_can_be),
		CASE(end_all_without_a_session_closes_every_row),
		CASE(recording_index_is_cut_with_its_file),
		CASE(recordings_are_found_listed_and_expire),
	};

	log_open("store_test", LOG_ERR, false);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
