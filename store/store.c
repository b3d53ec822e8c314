/*
 * Opening the store: the file with the right owner and mode, the pragmas, the
 * migrations in one transaction, every statement prepared. A file that is not
 * ours, is damaged or newer is refused with a sentence and never changed.
 */
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/db.h"
#include "store/migrations.h"

#define STORE_FILE           "berth.db"
#define STORE_APPLICATION_ID 1651668072 /* "brth" */
#define STORE_OPEN_WAIT_MS   5000
#define STORE_CLOSE_WAIT_MS  2000
#define STORE_RETRY_US       (20 * 1000)

static const char *const store_status_names[] = {
	[SESSION_CREATING] = "creating",
	[SESSION_RUNNING] = "running",
	[SESSION_EXITED] = "exited",
	[SESSION_KILLED] = "killed",
	[SESSION_FAILED] = "failed",
	[SESSION_LOST] = "lost",
};

const char *
store_status_name(enum store_status s)
{
	return store_status_names[s];
}

int
store_errno(int sqlite_code)
{
	switch (sqlite_code & 0xff) {
	case SQLITE_OK:
	case SQLITE_DONE:
	case SQLITE_ROW:
		return 0;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EAGAIN;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EBADMSG;
	case SQLITE_CONSTRAINT:
		if (sqlite_code == SQLITE_CONSTRAINT_UNIQUE ||
		    sqlite_code == SQLITE_CONSTRAINT_PRIMARYKEY)
			return -EEXIST;
		return -EINVAL;
	case SQLITE_ERROR:
	case SQLITE_MISMATCH:
	case SQLITE_TOOBIG:
	case SQLITE_RANGE:
	case SQLITE_MISUSE:
		return -EINVAL;
	default:
		return -EIO;
	}
}

/*
 * Makes the file 0600 before SQLite sees it: -wal and -shm copy its mode. An
 * existing one must be a plain file of ours.
 */
static int
store_prepare_file(const char *path, struct err *e)
{
	autoclose int fd = -1;
	struct stat st;

	if (lstat(path, &st) == 0) {
		if (!S_ISREG(st.st_mode))
			return err_set(
			    e, -EINVAL, "%s is not a plain file", path);
		if (st.st_uid != geteuid())
			return err_set(e, -EPERM,
			    "%s belongs to uid %u, not to uid %u", path,
			    st.st_uid, geteuid());
		/* By path: closing a descriptor would drop SQLite's locks. */
		if ((st.st_mode & 0077) && chmod(path, 0600) < 0)
			return err_sys(e, -errno, "cannot chmod %s", path);
		return 0;
	}
	if (errno != ENOENT)
		return err_sys(e, -errno, "cannot look at %s", path);
	fd = open(
	    path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, -errno, "cannot make %s", path);
	return fchmod(fd, 0600) < 0
		   ? err_sys(e, -errno, "cannot chmod %s", path)
		   : 0;
}

static int
store_fail(struct store *s, const char *path, int rc, struct err *e)
{
	int code = store_errno(rc);

	if (code == -EBADMSG)
		return err_set(e, code,
		    "%s is damaged or not a database (%s); it was left as "
		    "it is: move it away or put a copy in its place",
		    path, sqlite3_errmsg(s->db));
	if (code == -EAGAIN)
		return err_set(
		    e, code, "%s is locked by another program", path);
	return err_set(e, code, "%s: %s", path, sqlite3_errmsg(s->db));
}

/* The first column of the first row of a pragma or count. */
static int
store_scalar(struct store *s, const char *sql, int64_t *out)
{
	sqlite3_stmt *q = NULL;
	int rc = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(q);
	if (rc == SQLITE_ROW)
		*out = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Refuses what is not ours or is newer; *VERSION_OUT is the schema it has. */
static int
store_check_identity(
    struct store *s, const char *path, int64_t *version_out, struct err *e)
{
	int64_t app = 0, version = 0, tables = 0;
	int rc = store_scalar(s, "PRAGMA application_id", &app);

	if (rc == SQLITE_OK)
		rc = store_scalar(s, "PRAGMA user_version", &version);
	if (rc == SQLITE_OK)
		rc = store_scalar(
		    s, "SELECT count(*) FROM sqlite_schema", &tables);
	if (rc != SQLITE_OK)
		return store_fail(s, path, rc, e);
	if (app != STORE_APPLICATION_ID && (app || version || tables))
		return err_set(
		    e, -EINVAL, "%s is the database of another program", path);
	if (version < 0 || version > (int64_t)store_migrations_count)
		return err_set(e, -EPROTONOSUPPORT,
		    "%s has schema %lld, this berthd knows schemas up to "
		    "%u; start the newer berthd again",
		    path, (long long)version, store_migrations_count);
	*version_out = version;
	return 0;
}

static int
store_apply(struct store *s, int64_t from)
{
	int rc = SQLITE_OK;

	for (unsigned i = (unsigned)from; i < store_migrations_count; i++) {
		char sql[64];

		rc = sqlite3_exec(s->db, store_migrations[i], NULL, NULL, NULL);
		if (rc != SQLITE_OK)
			return rc;
		snprintf(sql, sizeof(sql), "PRAGMA user_version = %u", i + 1);
		rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
		if (rc != SQLITE_OK)
			return rc;
	}
	return rc;
}

static int
store_migrate(struct store *s, const char *path, struct err *e)
{
	int64_t version = 0;
	int rc = sqlite3_exec(s->db, "BEGIN IMMEDIATE", NULL, NULL, NULL);

	if (rc != SQLITE_OK)
		return store_fail(s, path, rc, e);
	/* Again, now that nobody else can change it. */
	rc = store_check_identity(s, path, &version, e);
	if (rc < 0)
		goto undo;
	rc = store_apply(s, version);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(s->db, "COMMIT", NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		return 0;
	rc = store_fail(s, path, rc, e);
undo:
	sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	return rc;
}

static int
store_prepare_statements(struct store *s, struct err *e)
{
	for (int i = 0; i < STATEMENT_COUNT; i++) {
		const struct statement_row *row = statement_row(i);

		assert(row->sql);
		if (sqlite3_prepare_v3(s->db, row->sql, -1,
			SQLITE_PREPARE_PERSISTENT, &s->statements[i],
			NULL) != SQLITE_OK)
			return err_set(e, -EINVAL, "statement %s: %s",
			    row->name, sqlite3_errmsg(s->db));
	}
	return 0;
}

static int
store_read_last_ids(struct store *s)
{
	sqlite3_stmt *q = store_query(s, STATEMENT_LAST_IDS, NULL, 0);
	int rc = store_next(s, q);

	if (rc == 1) {
		s->next_attachment = sqlite3_column_int64(q, 0) + 1;
		s->next_recording = sqlite3_column_int64(q, 1) + 1;
	}
	store_end(q);
	return rc < 0 ? rc : 0;
}

static int
store_set_up(struct store *s, const char *path, struct err *e)
{
	static const char pragmas[] = "PRAGMA journal_mode = WAL;"
				      "PRAGMA synchronous = NORMAL;"
				      "PRAGMA foreign_keys = ON;"
				      "PRAGMA trusted_schema = OFF;"
				      "PRAGMA journal_size_limit = 67108864;";
	int64_t version;
	int rc = sqlite3_open_v2(
	    path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

	if (rc != SQLITE_OK)
		return store_fail(s, path, rc, e);
	sqlite3_extended_result_codes(s->db, 1);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
	sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_busy_timeout(s->db, STORE_OPEN_WAIT_MS);
	rc = store_check_identity(s, path, &version, e);
	if (rc < 0)
		return rc;
	rc = sqlite3_exec(s->db, pragmas, NULL, NULL, NULL);
	if (rc != SQLITE_OK)
		return store_fail(s, path, rc, e);
	rc = store_migrate(s, path, e);
	if (rc == 0)
		rc = store_prepare_statements(s, e);
	if (rc < 0)
		return rc;
	sqlite3_busy_timeout(s->db, 0);
	rc = store_read_last_ids(s);
	return rc < 0 ? err_sys(e, rc, "cannot read %s", path) : 0;
}

static void
store_free(struct store *s)
{
	store_queue_release(s);
	for (int i = 0; i < STATEMENT_COUNT; i++)
		sqlite3_finalize(s->statements[i]);
	sqlite3_close(s->db);
	free(s);
}

int
store_open(const char *state_dir, struct store **out, struct err *e)
{
	autofree char *path = xasprintf("%s/" STORE_FILE, state_dir);
	struct store *s;
	mode_t old;
	int rc = store_prepare_file(path, e);

	if (rc < 0)
		return rc;
	s = xcalloc(1, sizeof(*s));
	list_init(&s->queue);
	old = umask(0177);
	rc = store_set_up(s, path, e);
	umask(old);
	if (rc < 0) {
		store_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void
store_close(struct store *s)
{
	int64_t deadline = clock_mono_ms() + STORE_CLOSE_WAIT_MS;
	char lost[32];
	int rc;

	if (!s)
		return;
	while ((rc = store_commit_queue(s)) == -EAGAIN &&
	       clock_mono_ms() < deadline)
		usleep(STORE_RETRY_US);
	if (rc < 0) {
		snprintf(lost, sizeof(lost), "%zu", store_queue_release(s));
		log_err("store_rows_lost", "rows", lost, "why",
		    strerrordesc_np(-rc), NULL);
	}
	store_free(s);
}

void
store_on_queued(struct store *s, void (*fn)(void *arg), void *arg)
{
	s->on_queued = fn;
	s->on_queued_arg = arg;
}

int
store_check(const char *state_dir, struct err *e)
{
	autofree char *path = xasprintf("%s/" STORE_FILE, state_dir);
	struct store s = { 0 };
	int64_t version;
	int rc;

	if (access(path, F_OK) < 0 && errno == ENOENT)
		return 0;
	rc = sqlite3_open_v2(path, &s.db, SQLITE_OPEN_READONLY, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_busy_timeout(s.db, STORE_OPEN_WAIT_MS);
	rc = rc == SQLITE_OK ? store_check_identity(&s, path, &version, e)
			     : store_fail(&s, path, rc, e);
	sqlite3_close(s.db);
	return rc;
}
