/*
 * The store: STATE/berth.db, written by berthd alone. One handle a process; no
 * sqlite type leaves this folder. Reads are immediate. Writes that must not
 * stall the loop (all but session_insert) go into a queue that store_pump()
 * commits in one transaction; a locked database is tried again later, nothing
 * waits for it, nothing is lost while the process lives.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct store;

/*
 * Opens or makes STATE_DIR/berth.db (0600), applies the migrations, prepares
 * every statement. Refuses a newer schema. WAL, synchronous=NORMAL,
 * busy_timeout 0. The caller closes with store_close(), which commits the queue
 * (waiting at most 2 s for a lock).
 */
int store_open(const char *state_dir, struct store **out, struct err *e);
void store_close(struct store *s);

/*
 * True to its word without changing anything: 0 when store_open() would take the
 * file, or make one, else as store_open(). For another process.
 */
int store_check(const char *state_dir, struct err *e);

/*
 * Commits what is queued, at most 4000 rows a call. Returns 0 when the queue is
 * empty afterwards, -EAGAIN when more rows wait or the database is locked or
 * full (call again in 50 ms or more), another negative errno for damage. Logs
 * when a queue is stuck and when it moves again.
 */
int store_pump(struct store *s, struct err *e);

/* Called whenever the queue stops being empty, so that a loop arms a timer. */
void store_on_queued(struct store *s, void (*fn)(void *arg), void *arg);

enum store_status {
	SESSION_CREATING,
	SESSION_RUNNING,
	SESSION_EXITED,
	SESSION_KILLED,
	SESSION_FAILED,
	SESSION_LOST
};

/* "creating", "running", ... */
const char *store_status_name(enum store_status s);

#define STORE_ID_MAX   32
#define STORE_NAME_MAX 64

/* ---- sandbox.c -------------------------------------------------------- */

struct store_sandbox {
	int64_t id;
	char name[STORE_NAME_MAX];
	char provider[32];
	char template[STORE_NAME_MAX];
	char state[16];   /* pending, running, suspended, failed, gone */
	char detail[256]; /* why it failed, which limits are missing; or "" */
	char unenforced[128]; /* limits that nobody enforces: "memory, cpu" */
	uid_t uid;            /* its own, or 0: that of sandbox.user */
	int64_t created_ms, last_active_ms, changed_ms;
};

/* -ENOENT when there is none of that name. */
int store_sandbox_get(
    struct store *s, const char *name, struct store_sandbox *out);

/* All, by name; FN returns false to stop. The row is the store's. */
void store_sandbox_each(struct store *s,
    bool (*fn)(const struct store_sandbox *r, void *arg), void *arg);

/*
 * Makes the row at once, over that of one that is gone, and fills in IO->id.
 * -EEXIST if the name is taken, -EBUSY when the database stayed locked for 5 s (the one place that waits).
 */
int store_sandbox_insert(struct store *s, struct store_sandbox *io);

/* Queued; DETAIL may be NULL. */
void store_sandbox_state(struct store *s, int64_t id, const char *state,
    const char *detail, int64_t now_ms);

/* Queued: LIMITS ("" for none) are not enforced where the sandbox runs. */
void store_sandbox_unenforced(struct store *s, int64_t id, const char *limits);

/* Queued. */
void store_sandbox_touch(struct store *s, int64_t id, int64_t now_ms);

/* ---- snapshot.c ------------------------------------------------------- */

struct store_snapshot {
	char id[STORE_ID_MAX]; /* "snp-" + 16 hex; the file is ID.tar.zst */
	char sandbox[STORE_NAME_MAX];
	char name[STORE_NAME_MAX]; /* unique of a sandbox; or "" */
	char description[256];     /* or "" */
	char provider[32], template[STORE_NAME_MAX];
	char state[16]; /* making, complete */
	uint64_t bytes, files, skipped;
	char hash[64]; /* of the file, hexadecimal */
	int64_t created_ms;
};

/*
 * At once: makes the row, `making`; sets its counts and makes it complete;
 * deletes it. -EEXIST for a name that the sandbox has, -EBUSY when the database
 * stayed locked for 5 s.
 */
int store_snapshot_insert(struct store *s, const struct store_snapshot *r);
int store_snapshot_complete(struct store *s, const struct store_snapshot *r);
int store_snapshot_delete(struct store *s, const char *id);

/*
 * By id, unique prefix of one ("snp-12"), "sandbox+name" or a name that no other
 * sandbox has one of. -ENOENT, -ENOTUNIQ.
 */
int store_snapshot_find(
    struct store *s, const char *ref, struct store_snapshot *out);

/* All, or those of SANDBOX, oldest first; FN returns false to stop. */
void store_snapshot_each(struct store *s, const char *sandbox,
    bool (*fn)(const struct store_snapshot *r, void *arg), void *arg);

/* ---- session.c -------------------------------------------------------- */

struct store_session {
	char id[STORE_ID_MAX]; /* "ses-" + 16 hex */
	int64_t sandbox_id;
	char sandbox[STORE_NAME_MAX]; /* joined in by reads */
	char name[STORE_NAME_MAX];    /* "" for a private process */
	bool is_pty;
	char *argv; /* JSON array of strings; owned */
	char *cwd;  /* owned */
	enum store_status status;
	bool has_exit_code;
	int exit_code;
	char exit_signal[16]; /* "TERM", or "" */
	char reason[16];      /* why it ended: "oom", or "" */
	int64_t pid;
	unsigned cols, rows;
	int64_t created_ms, started_ms, exited_ms; /* 0 = NULL */
	uint64_t bytes_out, bytes_in;
};

/* Frees the strings that a read made. */
void store_session_release(struct store_session *r);

/*
 * Inserts the row with status creating, at once: it must be on disk before the
 * process exists. -EEXIST if a session of that sandbox and name is creating or
 * running (the unique index says so), -EBUSY after 5 s of a locked database.
 */
int store_session_insert(struct store *s, const struct store_session *r);

/*
 * Queued updates; fields by name. A status only moves forward: creating,
 * running, then one of the ends.
 */
void store_session_started(
    struct store *s, const char *id, int64_t pid, int64_t started_ms);
void store_session_progress(struct store *s, const char *id, unsigned cols,
    unsigned rows, uint64_t bytes_out, uint64_t bytes_in);

struct store_session_end {
	enum store_status status; /* exited, killed, failed or lost */
	bool has_exit_code;
	int exit_code;
	char exit_signal[16];
	char reason[16]; /* "oom", "idle", "lifetime", or "" */
	int64_t exited_ms;
	uint64_t bytes_out, bytes_in;
};
/* Queued. The first end that is stored stays. */
void store_session_ended(
    struct store *s, const char *id, const struct store_session_end *end);

/*
 * Deletes an ended session with its attachments (recordings keep their rows),
 * at once. -EBUSY while it lives, -ENOENT, -EAGAIN for a locked database.
 */
int store_session_delete(struct store *s, const char *id);

/* By full id; the caller releases OUT. -ENOENT when there is none. */
int store_session_get(
    struct store *s, const char *id, struct store_session *out);

/*
 * By id, unique prefix of one ("ses-12" or more), or "sandbox+name" (a running
 * one first, else the latest; "sandbox" alone means its session `default`).
 * -ENOENT, or -ENOTUNIQ for an ambiguous prefix.
 */
int store_session_find(
    struct store *s, const char *ref, struct store_session *out);

/*
 * Calls FN for each: running and creating first, then by created_ms ascending;
 * ended ones too if ALL. FN returns false to stop. The row is the store's.
 */
void store_session_each(struct store *s, bool all,
    bool (*fn)(const struct store_session *r, void *arg), void *arg);

/* ---- attachment.c ------------------------------------------------------ */

struct store_attachment {
	int64_t id;
	char session_id[STORE_ID_MAX];
	char sandbox[STORE_NAME_MAX], name[STORE_NAME_MAX]; /* joined in */
	char identity[256], key_fingerprint[96], role[16];
	char remote_addr[64], client_version[256];
	int64_t attached_ms, detached_ms;
	uint64_t bytes_out, bytes_in;
	uint32_t resyncs;
};

/*
 * Queued; returns the row id that it will have (ids are handed out from memory,
 * continuing the table's highest at open).
 */
int64_t store_attachment_insert(
    struct store *s, const struct store_attachment *r);
/*
 * Queued: a row that another process gave an id; nothing if there is one, or if
 * no id can be so high.
 */
void store_attachment_restore(
    struct store *s, const struct store_attachment *r);
/* The next N ids are not given out: a crash may have used them. */
void store_attachment_skip_ids(struct store *s, int64_t n);
/* Queued; nothing when the row is of another session. */
void store_attachment_ended(struct store *s, const char *session_id, int64_t id,
    int64_t now_ms, uint64_t bytes_out, uint64_t bytes_in, uint32_t resyncs);
/* Queued: closes every open row of the session, or of all if ID is NULL. */
void store_attachment_end_all(struct store *s, const char *id, int64_t now_ms);
/* Open rows only, by attached_ms; sees queued rows because it pumps first. */
void store_attachment_each_open(struct store *s,
    bool (*fn)(const struct store_attachment *r, void *arg), void *arg);

/* ---- recording.c ------------------------------------------------------- */

struct store_recording {
	int64_t id;
	char session_id[STORE_ID_MAX];
	char sandbox[STORE_NAME_MAX], name[STORE_NAME_MAX]; /* joined in */
	char path[1024];                                    /* absolute */
	char format[32];                                    /* "asciicast-v2" */
	char state[16]; /* open, complete, truncated, pruned */
	uint64_t bytes;
	int64_t duration_ms, started_ms, finished_ms;
	uint32_t gaps;
};

/* Queued; returns the row id that it will have. */
int64_t store_recording_insert(
    struct store *s, const struct store_recording *r);
/* Queued. */
void store_recording_progress(
    struct store *s, int64_t id, uint64_t bytes, int64_t duration_ms);
void store_recording_finished(struct store *s, int64_t id, const char *state,
    uint64_t bytes, int64_t duration_ms, int64_t finished_ms, uint32_t gaps);
void store_recording_index(
    struct store *s, int64_t id, int64_t t_ms, uint64_t offset);

/* Forgets rows of the index of recording ID that point at BYTES or beyond. */
void store_recording_index_cut(struct store *s, int64_t id, uint64_t bytes);
/* By recording id (decimal), session id or unique prefix, or sandbox+name. */
int store_recording_find(
    struct store *s, const char *ref, struct store_recording *out);
/* All, by started_ms. */
void store_recording_each(struct store *s,
    bool (*fn)(const struct store_recording *r, void *arg), void *arg);
/* Finished before BEFORE_MS, not pruned; at most LIMIT; returns the count. */
size_t store_recording_expired(struct store *s, int64_t before_ms,
    struct store_recording *out, size_t limit);

/* ---- audit.c ----------------------------------------------------------- */

/* Queued. Any of the strings may be NULL. EVENT is a word of docs/audit.md. */
void store_audit(struct store *s, const char *event, const char *identity,
    const char *remote_addr, const char *sandbox, const char *session_id,
    const char *detail);

/* Queued: the same with identity and address of who was attached first. */
void store_audit_session(struct store *s, const char *event,
    const char *sandbox, const char *session_id, const char *detail);

/* ---- transfer.c -------------------------------------------------------- */

struct store_transfer {
	const char *session_id, *path;
	bool is_in;
	uint64_t bytes;
	int64_t started_ms, finished_ms; /* 0 = NULL */
	const char *status; /* open, done, failed, cut, unknown or more */
};

/* Queued. The identity is that of who was attached to the session first. */
void store_transfer_insert(struct store *s, const struct store_transfer *r);

/*
 * Queued: the oldest open row of that session and path gets what R says, or
 * else the latest failed one. Without bytes the direction stays as it was.
 */
void store_transfer_finish(struct store *s, const struct store_transfer *r);

/* Queued: the latest row of the session, if it is open, has failed. */
void store_transfer_failed(
    struct store *s, const char *session_id, int64_t now_ms);

/*
 * Queued, at a session's end: its open rows are cut; they and the failed ones
 * get their audit event.
 */
void store_transfer_end(struct store *s, const char *sandbox,
    const char *session_id, int64_t now_ms);

#endif
