/*
 * What the manager knows of a live session and of the requests that wait for
 * it. Private to sessions/manager. A session is in the list from before its row
 * exists until its end is stored; requests hang on it and never outlive it.
 */
#ifndef SESSIONS_MANAGER_SESSION_H
#define SESSIONS_MANAGER_SESSION_H

#include <sys/types.h>

#include "base/list.h"
#include "sandbox/provider.h"
#include "sessions/manager/box.h"
#include "sessions/manager/manager.h"
#include "sessions/manager/transfer.h"
#include "sessions/wire/wire.h"
#include "store/store.h"

#define MANAGER_ACK_MS   2000 /* no answer to an attach within this: it failed */
#define MANAGER_START_MS 15000  /* no STARTED within this: it failed */
#define MANAGER_READY_MS 5000   /* so long a request waits for a takeover */
#define MANAGER_COPY_MS  900000 /* so long a copy of a sandbox may take */

struct manager {
	struct event_base *base;
	const struct conf *conf;
	struct store *store;
	int runtime_fd; /* borrowed */
	int locks_fd;   /* RUNTIME/sessions: locks and sockets of keepers */
	char *recordings_dir;
	char *keeper_path, *sandbox_path;
	char *archive_path;       /* berth-archive, beside that */
	struct sandbox_spec spec; /* what all sandboxes have in common */
	uint64_t generation;
	struct list boxes; /* struct box */
	struct pools *pools;
	struct list sessions;
	struct list leftovers; /* struct leftover */
	struct list spent;     /* struct spent: files to be removed */
	struct list handovers; /* struct handover, at the start only */
	struct list reindexes; /* struct reindex */
	unsigned n_requests;   /* that were not answered yet */
	struct event *pump_ev, *sweep_ev, *close_ev;
	uint16_t next_tag;
	uid_t last_uid; /* of sandbox.uid_range, given last; or 0 */
	void (*on_sandbox_end)(const char *name, void *arg);
	void *on_sandbox_end_arg;
	bool is_closing, closes_all;
	int64_t close_deadline_ms; /* monotonic */
	void (*close_done)(void *arg);
	void *close_arg;
};

/* The files of an ended session, kept until its end is on the disk. */
struct spent {
	struct list node; /* of manager->spent */
	char id[STORE_ID_MAX];
};

/* What the keeper tells of a viewer while it is there. */
struct session_viewer {
	int64_t attachment;
	uint32_t cols, rows; /* of its terminal, 0 = none */
	uint32_t resyncs;
	bool is_watcher; /* may not type */
};

enum session_phase {
	PHASE_STARTING, /* keeper exec'd, STARTED not here yet */
	PHASE_RUNNING,
	PHASE_ENDED /* its end is stored; freed once nothing refers to it */
};

struct session {
	struct list node;
	struct manager *m;
	char id[STORE_ID_MAX];
	char sandbox[STORE_NAME_MAX];
	int64_t sandbox_id;
	char name[STORE_NAME_MAX]; /* "" for a private process */
	bool is_pty;
	enum session_phase phase;
	struct wire wire;
	int keeper_pidfd; /* -1 for one that is not our child */
	struct event *reap_ev, *start_ev;
	/*
	 * Frames may be sent. False while the keeper's lock is held and nobody
	 * has answered: after a start, or when the link to it ended.
	 */
	bool is_ready;
	bool was_adopted; /* rows of its index may have been lost */
	bool has_taken;   /* TAKE is sent, the next HELLO is its answer */
	bool wants_stop;  /* as soon as it is ready */
	bool is_silence_noted;
	unsigned n_looks; /* at the lock, since the link ended */
	int64_t alone_ms; /* monotonic: when it ended */
	struct event *adopt_ev;
	pid_t pid;
	int64_t created_ms, started_ms;
	struct wire_stats stats;
	int64_t recording_id; /* 0 = not recorded */
	int64_t recording_ms; /* wall clock of its start */
	unsigned n_attached;
	struct session_viewer *viewers; /* as far as they are known */
	size_t n_viewers;
	struct list requests;
	char *argv_json, *cwd;
	char reason[16]; /* why it is to end, for its row; or "" */
	struct transfer transfer;
	uint8_t exec_code; /* 126 or 127 if its program could not be run */
};

enum request_state {
	REQUEST_BOX,    /* waits for its sandbox */
	REQUEST_READY,  /* waits for the keeper to be taken over */
	REQUEST_START,  /* waits for STARTED, has no viewer */
	REQUEST_ACK,    /* waits for VIEWER_ACK, and for STARTED before it */
	REQUEST_END,    /* met a dying session: waits for its end, then anew */
	REQUEST_FLUSH,  /* waits for OK */
	REQUEST_SCREEN, /* waits for TEXT; client_fd is the file */
	REQUEST_ANSWER  /* the answer is ready and goes out from the loop */
};

struct request {
	struct list node; /* of a session's or a box's, or unlinked */
	struct manager *m;
	struct session *s;
	enum request_state state;
	uint16_t tag;
	manager_answer_fn fn;
	void (*on_progress)(const char *line, void *arg); /* or NULL */
	void *arg;
	struct event *timer;
	bool is_acked;   /* the keeper attached it before the process started */
	bool is_shell;   /* may get a fresh session when it meets a dying one */
	bool wants_link; /* the answer carries a descriptor */
	bool must_exist; /* the sandbox: it is not made for this */
	bool tells_exec; /* 126 and 127 are codes of its answer */
	bool copies_in, wants_total;  /* of manager_copy() */
	char *copy_path;              /* the same; owned */
	struct sandbox_log_query log; /* of manager_logs() */
	bool has_roused;              /* its sandbox was changed for it */
	int client_fd;        /* the viewer's end while the keeper is asked */
	struct principal who; /* strings owned */
	char sandbox[STORE_NAME_MAX], name[STORE_NAME_MAX];
	void (*go_on)(struct request *r); /* its sandbox is ready */
	struct wire_run run;              /* owned; for a fresh session */
	struct manager_new_session spec;  /* owned; of manager_create() */
	struct wire_viewer viewer;        /* its strings are not its own */
	char notice[WIRE_NOTICE_MAX]; /* for the one who began it; "" = none */
	unsigned n_tries;
	enum manager_code code; /* of REQUEST_ANSWER */
	char why[256];
};

/* How a session is started; strings are borrowed for the call. */
struct launch_spec {
	const char *sandbox, *name; /* name "" for a private process */
	uint32_t flags;             /* enum wire_launch_flags, as asked for */
	char *const *argv;          /* NULL: the login shell */
	const char *command;        /* or this, through SHELL -c */
	char *const *sftp_args;     /* or sftp-server with these */
	char *const *client_env;    /* filtered by session.env_accept */
	char *const *extra_env;     /* taken as it is */
	const char *term, *cwd;
	struct wire_size size;
	bool is_recorded;
	const struct sandbox_log_query *log; /* or its provider's own log */
	const char *copy_path; /* it copies that; a row of transfer */
	bool copies_in;
};

/* ---- launch.c ---------------------------------------------------------- */

/*
 * Inserts the row, opens the recording and starts the keeper, in a sandbox that
 * is ready. On success the session is in the list, PHASE_STARTING. On failure
 * *WHY (256 bytes) says why and the code is returned; no row stays running.
 */
enum manager_code launch_session(struct manager *m, const struct principal *who,
    const struct launch_spec *spec, struct session **out, char *why);

/* ---- recordings.c ------------------------------------------------------ */

/* Makes RECORDINGS/SANDBOX/SID.cast (0600, never an existing one). */
int recordings_create(struct manager *m, const char *sandbox, const char *sid,
    char *path_out, size_t path_size, struct err *e);
/* Opens it again for reading, never through a link. */
int recordings_open(
    struct manager *m, const struct store_recording *r, struct err *e);
/* Starts the periodic sweep of expired recordings. */
void recordings_start_sweep(struct manager *m);

/* The open recording of a session that a former manager started. */
void recordings_revive(struct session *s);
/*
 * The keeper of S was killed: cuts the file behind its last whole line and
 * learns bytes and duration from it, into S->stats.
 */
void recordings_repair(struct session *s);
/* The same for every open row that no live session writes. */
void recordings_close_open(struct manager *m);

/* ---- session.c --------------------------------------------------------- */

/* An empty session in the list; session_free() takes it out again. */
struct session *session_new(struct manager *m);
void session_free(struct session *s);

/* Starts listening to the keeper on the connected socket FD. */
void session_connect(struct session *s, int fd);

/* The same with a link that another program of this process began. */
bool session_continue(struct session *s, struct reader *r);

/* Watches the keeper, our child, by PIDFD (owned from now on). */
void session_watch(struct session *s, int pidfd);

/* The keeper of ID, whose end is stored, is still to be reaped. */
void session_watch_ended(struct manager *m, const char *id, int pidfd);

/*
 * The session is over: stores END, fails or restarts what waits for it, frees
 * it from the loop.
 */
void session_end(
    struct session *s, const struct store_session_end *end, const char *note);

/* Asks the keeper to end every process of S: TERM, after the grace KILL. */
void session_stop(struct session *s);

/* The process of S runs since STARTED_MS (wall clock). Once. */
void session_runs(struct session *s, pid_t pid, int64_t started_ms);

/* The keeper told, or left in writing, how S ended. */
void session_exited(struct session *s, const struct wire_exited *x);

/* Frees an ended session once nothing of its keeper is left. */
void session_maybe_free(struct session *s);

/* Removes the files of ended sessions, now that their ends are on the disk. */
void session_remove_spent(struct manager *m);

/* Like session_end() for a keeper that vanished: status lost. */
void session_lost(struct session *s, const char *why);

/* Finds a running or starting session by exact name. */
struct session *session_by_name(
    struct manager *m, const char *sandbox, const char *name);
struct session *session_by_id(struct manager *m, const char *id);

/* ---- request.c --------------------------------------------------------- */

/* A request of WHO (copied) that hangs on nothing yet; FN hears its answer. */
struct request *request_new(struct manager *m, const struct principal *who,
    manager_answer_fn fn, void *arg);
/* Without an answer; closes what it holds. */
void request_free(struct request *r);

/* Answers from the loop, never from inside the call that made the request. */
void request_fail(struct request *r, enum manager_code code, const char *fmt,
    ...) __attribute__((format(printf, 3, 4)));

/* Answers now and frees R; FD is given away. */
void request_answer(
    struct request *r, enum manager_code code, const char *why, int fd);

/*
 * Hangs R on S and asks the keeper at once, even before the process runs: who
 * is there from the first byte misses nothing and is replayed nothing.
 */
void request_join(struct request *r, struct session *s);

/*
 * It hangs on a box: waits for it with a limit and EXTRA_MS. When the box is ready, goes on
 * where it waited, or is answered if that was all.
 */
void request_wait_box(struct request *r, int extra_ms);

/* The same for a copy of all its files, of which there may be many. */
void request_wait_copy(struct request *r);
void request_go_on(struct request *r);

/* Asks the keeper of S to flush its recording; R is answered with its OK. */
void request_flush(struct request *r, struct session *s);

/* The keeper was taken over: what waited for that goes on. */
void request_on_ready(struct session *s);

/* Asks the keeper of S for its screen; FLAGS of enum wire_screen. */
void request_screen(struct request *r, struct session *s, unsigned flags);

/* The process runs: answers every request that waited for that alone. */
void request_on_started(struct session *s);
/* VIEWER_ACK and OK. */
void request_on_ack(struct session *s, uint16_t tag, bool attached);
void request_on_ok(struct session *s, uint16_t tag);
/* TEXT: the screen of SIZE is in the file that the keeper was given. */
void request_on_text(
    struct session *s, uint16_t tag, const struct wire_size *size);
/* ERROR with its code and sentence; false if no request waits for TAG. */
bool request_on_error(
    struct session *s, uint16_t tag, uint8_t code, const char *why);
/*
 * The session ended: shells begin anew, others hear NOTE (may be NULL). A
 * session that never started takes everything that waited with it.
 */
void request_on_end(struct session *s, bool has_started, const char *note);

/* ---- copy.c ------------------------------------------------------------ */

/* S was launched by SPEC, or ended so: its row of transfer, if it copies. */
void copy_started(struct session *s, const struct launch_spec *spec);
void copy_ended(struct session *s, const struct store_session_end *end);

/* ---- snapshot.c -------------------------------------------------------- */

/* Where berth-archive is, given where berth-sandbox is; the caller frees it. */
char *snapshot_program(const char *sandbox_path);

/* The file of the snapshot ID. */
void snapshot_path(
    const struct manager *m, const char *id, char *out, size_t size);

/* Forgets the snapshot ID: its file, or what there is of it, then its row. */
int snapshot_drop(struct manager *m, const char *id, struct err *e);

/*
 * At the start, before boxes are looked at: snapshots that a former berthd did
 * not finish are forgotten, and their boxes marked as perhaps frozen.
 */
void snapshots_load(struct manager *m);

/*
 * Removes workspaces that were to take the place of others and did not. Behind
 * boxes_load().
 */
void snapshots_sweep(struct manager *m);

/* ---- attach.c ---------------------------------------------------------- */

/*
 * True if R may make and remove the sandbox NAME, which is then R's; else it is
 * answered.
 */
bool attach_may_own(struct request *r, const char *name);

/* What ANSWER of a box means for R, which has nothing else to do. */
void attach_box_answer(struct request *r, enum box_answer answer,
    enum manager_code code, const struct err *e);

/* Finds or makes the session that the shell request R names and joins it. */
void attach_begin(struct request *r);

/*
 * Checks that R's principal may use the names (NAME NULL: no session), which R
 * has from now on; else answers R and returns false.
 */
bool attach_may(struct request *r, const char *sandbox, const char *name);

/* False for those who only watch. */
bool attach_may_type(const struct request *r);

/*
 * True if the sandbox of R is ready; else R waits for it, to go on with GO_ON,
 * or is answered.
 */
bool attach_box(struct request *r, void (*go_on)(struct request *r));

/* False after R was answered: its sandbox's template allows no files. */
bool attach_may_transfer(struct request *r);

/* Launches what SPEC says and joins it, or answers R. */
void attach_launch(struct request *r, const struct launch_spec *spec);

#endif
