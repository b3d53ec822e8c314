/*
 * The manager of sessions: finds or makes them, hands out connected
 * descriptors, keeps the store true. Lives in berthd, single-threaded on its
 * loop; get-or-create is atomic because nothing else runs in between, and the
 * unique index of the store says so once more.
 *
 * The names follow the field: Create is manager_create(), GetOrCreate is
 * manager_attach(), Get and GetByName are manager_find(), List is the verb
 * `ls`, Delete is manager_delete(), Close is manager_close(), FlushRecording is
 * manager_flush_recording(). docs/design.md has the whole table.
 */
#ifndef SESSIONS_MANAGER_MANAGER_H
#define SESSIONS_MANAGER_MANAGER_H

#include <stdbool.h>
#include <stdint.h>

#include "sandbox/provider.h"
#include "sessions/wire/messages.h"

struct conf;
struct err;
struct event_base;
struct handoff;
struct manager;
struct reader;
struct request;
struct session;
struct store;

enum role {
	ROLE_VIEWER,
	ROLE_WRITER,
	ROLE_OWNER
};

/* "viewer", "writer", "owner". */
const char *role_name(enum role r);
int role_parse(const char *s, enum role *out);

/* Exit codes of the command line; also FRAME_ERROR's arg. */
enum manager_code {
	MANAGER_OK = 0,
	MANAGER_FAILED = 1,
	MANAGER_USAGE = 2,
	MANAGER_NOT_FOUND = 3,
	MANAGER_CONFLICT = 4,
	MANAGER_REFUSED = 5,
	/* of manager_command() alone: there is no such program, or it is none */
	MANAGER_NOT_RUNNABLE = 126,
	MANAGER_NO_PROGRAM = 127
};

#define PRINCIPAL_TEMPLATE_MAX 64

/* Who asks. The strings are copied by whoever keeps them. */
struct principal {
	char identity
	    [WIRE_IDENTITY_MAX]; /* comment of the key, else fingerprint */
	char fingerprint[96];    /* "SHA256:..." or "" on the control socket */
	enum role role;
	bool is_admin;
	bool may_pty;
	char *forced_command; /* NULL, or the command= of the key */
	char *sandbox_globs, *session_globs; /* NULL = everything */
	/* Of the sandboxes that are made for it; "": the default one. */
	char template[PRINCIPAL_TEMPLATE_MAX];
	char remote_addr[64];
	/* Client's host and port, then ours, as SSH_CONNECTION; "" = none. */
	char ssh_connection[WIRE_ENDS_MAX];
	char client_version[256];
	uint32_t frame_version; /* of its ends of viewer links */
};

/* Frees the strings that P owns and clears it. */
void principal_release(struct principal *p);

/*
 * For a handoff: appends P to B; takes it back, released when R failed. Not
 * what its connection knows: ssh_connection and frame_version.
 */
void principal_save(const struct principal *p, struct buf *b);
void principal_load(struct reader *r, struct principal *out);

/* True if the globs of P allow sandbox and (unless NULL) session. */
bool principal_may_use(
    const struct principal *p, const char *sandbox, const char *session);

/* A session's name: a sandbox's alphabet plus `+`, and not `admin` or `exec`. */
bool manager_name_is_valid(const char *name);

/*
 * The descriptors are borrowed: STATE, RUNTIME, recordings. LIBEXEC is where
 * berth-session is. Registers as nothing yet; reconciles the store with the
 * keepers that still run. The caller frees with manager_free().
 */
struct manager_paths {
	int runtime_fd;
	const char *recordings_dir;
	const char *keeper_path;         /* absolute path of berth-session */
	const char *sandbox_path;        /* absolute path of berth-sandbox */
	const struct sandbox_spec *spec; /* of sandbox_spec_init(); copied */
	const struct handoff *handoff;   /* of manager_save(), or NULL */
};
int manager_new(struct event_base *base, const struct conf *conf,
    struct store *store, const struct manager_paths *paths,
    struct manager **out, struct err *e);
void manager_free(struct manager *m);

/* Called after the configuration was read again; CONF replaces the old one. */
void manager_reconfigure(struct manager *m, const struct conf *conf);

/*
 * Runs at SIGTERM: with KILL_ALL every session is stopped in order, else the
 * recordings are flushed and fdatasync'ed; DONE is called when that is done or
 * its time is over.
 */
void manager_close(
    struct manager *m, bool kill_all, void (*done)(void *arg), void *arg);

/* True when no request waits for its answer. */
bool manager_is_quiet(const struct manager *m);

/* Answers whatever still waits with a failure, and WHY. */
void manager_fail_all(struct manager *m, const char *why);

/* Appends every session and its link to H, for a berthd in our place. */
void manager_save(struct manager *m, struct handoff *h);

/*
 * The answer to attach, run and create: CODE is MANAGER_OK and then FD (owned
 * by the callee, -1 for create) is the viewer's end of a link to the keeper;
 * else WHY says what is wrong in one sentence. Called exactly once, from the
 * loop, unless the request was cancelled before.
 */
struct manager_answer {
	enum manager_code code;
	const char *why;
	int fd;
	bool is_pty;
	uint32_t frame_version; /* of the keeper's end */
	const char *sid;
	uint32_t cols, rows; /* of manager_screen_text() */
};
typedef void (*manager_answer_fn)(const struct manager_answer *a, void *arg);

/*
 * Attaches to the running session SANDBOX+NAME or makes it (GetOrCreate); RUN
 * gives terminal, size and environment. A viewer only attaches to what runs.
 */
struct request *manager_attach(struct manager *m, const struct principal *who,
    const char *sandbox, const char *name, const struct wire_run *run,
    manager_answer_fn fn, void *arg);

/* Starts a private process bound to the link that is handed back. */
struct request *manager_run(struct manager *m, const struct principal *who,
    const char *sandbox, const struct wire_run *run, manager_answer_fn fn,
    void *arg);

/* A lingering session without a viewer; the answer has no descriptor. */
struct manager_new_session {
	const char *sandbox, *name; /* name NULL: "default" */
	bool is_pty;
	const char *cwd; /* NULL: the workspace; else below it or absolute */
	char **env;      /* NAME=VALUE; may be NULL */
	char **argv;     /* NULL: the login shell */
};
struct request *manager_create(struct manager *m, const struct principal *who,
    const struct manager_new_session *spec, manager_answer_fn fn, void *arg);

/*
 * Starts a private process as a command line gives it: as manager_run(), but
 * ARGV is executed as it is. Copied. The process is bound to the link that is
 * handed back.
 */
struct manager_command {
	const char *sandbox;
	bool must_exist; /* the sandbox; else it may be made for this */
	bool has_pty;
	const char *cwd;   /* NULL: the workspace; else below it or absolute */
	char **env;        /* NAME=VALUE, taken as it is; may be NULL */
	char **client_env; /* filtered by session.env_accept; may be NULL */
	char **argv;       /* NULL: the login shell */
	const char *term;  /* with has_pty; may be NULL */
	struct wire_size size;
};
struct request *manager_command(struct manager *m, const struct principal *who,
    const struct manager_command *c, manager_answer_fn fn, void *arg);

/*
 * The log that the provider of SANDBOX keeps itself, as the output of a private
 * process; MANAGER_REFUSED where it keeps none.
 */
struct request *manager_logs(struct manager *m, const struct principal *who,
    const char *sandbox, const struct sandbox_log_query *q,
    manager_answer_fn fn, void *arg);

/*
 * Copies files: a tar in the sandbox, which has to be there, that the link feeds
 * or that feeds it. Its first line of output says what is at PATH: "d" a
 * directory, "f" anything else, "n" nothing; out of it with a blank and bytes,
 * -1 if they are not known. Into a directory, or into the one above PATH.
 */
struct manager_copy {
	const char *sandbox;
	const char *path; /* in it; absolute, or below the workspace */
	bool is_in;
	bool wants_total; /* bytes, where they take time to count */
};
struct request *manager_copy(struct manager *m, const struct principal *who,
    const struct manager_copy *c, manager_answer_fn fn, void *arg);

/*
 * Makes the sandbox NAME from TEMPLATE (NULL: the default); the answer has
 * neither session nor descriptor.
 */
struct request *manager_sandbox_create(struct manager *m,
    const struct principal *who, const char *name, const char *template,
    manager_answer_fn fn, void *arg);

/* The same answer, when it is done. */
enum manager_sandbox_act {
	MANAGER_SANDBOX_REMOVE, /* its sessions end before */
	MANAGER_SANDBOX_SUSPEND,
	MANAGER_SANDBOX_RESUME,
	MANAGER_SANDBOX_MEASURE /* by its provider, for what is listed */
};
struct request *manager_sandbox_act(struct manager *m,
    const struct principal *who, const char *name, enum manager_sandbox_act act,
    manager_answer_fn fn, void *arg);

/*
 * A snapshot of the sandbox NAME, with a label and a description or ""; its id is
 * in ID_OUT (STORE_ID_MAX) unless the answer is a failure. And the files of the
 * snapshot REF back, in its own sandbox or in TO; the name of that one is in
 * NAME_OUT (SANDBOX_NAME_SIZE).
 */
struct request *manager_sandbox_snapshot(struct manager *m,
    const struct principal *who, const char *name, const char *label,
    const char *description, char *id_out, manager_answer_fn fn, void *arg);
struct request *manager_sandbox_restore(struct manager *m,
    const struct principal *who, const char *ref, const char *to,
    char *name_out, manager_answer_fn fn, void *arg);

/* Removes the snapshot REF. Else the code says why not, and E in a sentence. */
enum manager_code manager_snapshot_forget(struct manager *m,
    const struct principal *who, const char *ref, struct err *e);

/* Attach to a session by id: for the command line. FLAGS: VIEWER_*. */
struct request *manager_attach_session(struct manager *m,
    const struct principal *who, struct session *s,
    const struct wire_viewer *viewer, manager_answer_fn fn, void *arg);

/*
 * Finds or makes the sandbox NAME, which the request's answer then says is
 * ready. As a first attach would: no autocreate, no new sandbox.
 */
struct request *manager_sandbox_want(struct manager *m,
    const struct principal *who, const char *name, manager_answer_fn fn,
    void *arg);

/*
 * A socket inside the network of the sandbox NAME, connected or listening; the
 * sandbox is found or made before. As the provider's dial and listen; for what
 * a provider lacks or a key may not, FN gets -EOPNOTSUPP.
 */
struct sandbox_call *manager_dial(struct manager *m,
    const struct principal *who, const char *name,
    const struct sandbox_socket *s, sandbox_socket_fn fn, void *arg);
struct sandbox_call *manager_listen(struct manager *m,
    const struct principal *who, const char *name,
    const struct sandbox_socket *s, sandbox_socket_fn fn, void *arg);

/*
 * A connection into the sandbox NAME is open, and is not any more: until then it
 * is not idle. One that is new wakes it.
 */
void manager_sandbox_hold(struct manager *m, const char *name, bool is_new);
void manager_sandbox_release(struct manager *m, const char *name);

/*
 * FN is told of each sandbox that ends, with its processes and its network;
 * NAME is valid during the call. NULL: nobody is.
 */
void manager_on_sandbox_end(
    struct manager *m, void (*fn)(const char *name, void *arg), void *arg);

/*
 * FN is told what R waits for, in lines, with the argument of its answer; never
 * after that. NULL for R is fine.
 */
void manager_on_progress(
    struct request *r, void (*fn)(const char *line, void *arg));

/* Forgets the request: its function is not called any more. NULL is fine. */
void manager_cancel(struct request *r);

/* The live session of that id, unique prefix or sandbox+name, or NULL. */
struct session *manager_find(struct manager *m, const char *ref);

/* FlushRecording: asks the keeper to write and fdatasync; FN hears when. */
struct request *manager_flush_recording(
    struct manager *m, struct session *s, manager_answer_fn fn, void *arg);

/*
 * The terminal of S as text: the answer's descriptor is a file that holds it,
 * to be read from its beginning. FLAGS: enum wire_screen.
 */
struct request *manager_screen_text(struct manager *m, struct session *s,
    unsigned flags, manager_answer_fn fn, void *arg);

/*
 * Ends the attachment ID; its client is told that an administrator did it. Else
 * the code says why not, and E in a sentence.
 */
enum manager_code manager_kick(
    struct manager *m, const struct principal *who, int64_t id, struct err *e);

#endif
