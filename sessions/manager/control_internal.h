/*
 * A client of the control socket and the verbs' view of it. Private to
 * control*.c: control.c moves lines, control_verbs.c acts, control_lists.c
 * tells.
 */
#ifndef SESSIONS_MANAGER_CONTROL_INTERNAL_H
#define SESSIONS_MANAGER_CONTROL_INTERNAL_H

#include <jansson.h>

#include "sessions/manager/control.h"
#include "sessions/manager/session.h"

#define CONTROL_LINE_MAX (64U << 10)
#define CONTROL_OUT_MAX  (64U << 20)

struct control {
	struct event_base *base;
	struct manager *m;
	char *listen, *state_dir, *warning;
	int64_t started_ms;
	int (*upgrade)(void *arg, const char *who, struct err *e);
	void *upgrade_arg;
	int fd;
	bool is_paused;
	struct event *accept_ev, *again_ev;
	struct list clients;
	unsigned n_clients;
};

struct control_client {
	struct list node;
	struct control *c;
	int fd;
	struct buf in, out;
	/* A descriptor rides with the byte of `out` at this place. */
	int out_fd;
	size_t out_fd_at;
	struct event *read_ev, *write_ev;
	struct principal who;
	struct request *pending; /* answers of one client keep their order */
	char stats_name[STORE_NAME_MAX]; /* of sandbox_stats, "" for all */
	int64_t stats_ms;                /* when it was asked for */
	const char *word_key; /* of a snapshot's or a restore's answer */
	char word[STORE_NAME_MAX];
	bool is_upgrading; /* waits for the end of an upgrade */
	bool is_eof, is_closing;
};

/* Handles one request; sends exactly one answer, now or later. */
typedef void (*control_verb_fn)(struct control_client *cl, const json_t *req);

/* A client on the socket FD, which it owns; it is read from now on. */
struct control_client *control_new_client(struct control *c, int fd);

/* Goes on with what control_save() left; -EPROTO. */
int control_load(struct control *c, const struct handoff *h);

/* NULL for an unknown verb. */
control_verb_fn control_verb(const char *name);

/* Sends {"ok": true} with the members of O (stolen; NULL for none). */
void control_ok(struct control_client *cl, json_t *o);
/* The same with a descriptor (owned from now on): "fd": WHAT. */
void control_ok_fd(
    struct control_client *cl, json_t *o, const char *what, int fd);
/* Sends the rows of the array (stolen) in as many lines as they need. */
void control_rows(struct control_client *cl, json_t *rows);
void control_error(struct control_client *cl, enum manager_code code,
    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* The answer of cl->pending was sent: what waits behind it goes on. */
void control_resume(struct control_client *cl);

/* A string member, or FALLBACK; the request owns it. */
const char *control_str(
    const json_t *req, const char *key, const char *fallback);

/* An array of strings as a vector that the caller frees; NULL when absent. */
char **control_strv(const json_t *req, const char *key, size_t max);

/* The members of a terminal's size, 0 where they are absent. */
struct wire_size control_size(const json_t *req);

/* Answers ARG, a client, with id and viewer link, or the sentence. */
void control_on_answer(const struct manager_answer *a, void *arg);

/* The verbs of control_command.c. */
void control_run(struct control_client *cl, const json_t *req);
void control_sandbox_logs(struct control_client *cl, const json_t *req);
void control_sandbox_cp(struct control_client *cl, const json_t *req);
/* Sets a member, null for "" and NULL; the second null for 0. */
void control_put_str(json_t *o, const char *key, const char *s);
void control_put_int(json_t *o, const char *key, int64_t v);
void control_put_opt(json_t *o, const char *key, int64_t v);

/* The verbs of control_snapshot.c. */
void control_sandbox_snapshot(struct control_client *cl, const json_t *req);
void control_sandbox_snapshots(struct control_client *cl, const json_t *req);
void control_sandbox_restore(struct control_client *cl, const json_t *req);
void control_sandbox_forget(struct control_client *cl, const json_t *req);

/* The verbs of control_pool.c. */
void control_sandbox_pools(struct control_client *cl, const json_t *req);
void control_sandbox_pool_scale(struct control_client *cl, const json_t *req);

/* The verbs of control_lists.c. */
void control_ls(struct control_client *cl, const json_t *req);
void control_info(struct control_client *cl, const json_t *req);
void control_who(struct control_client *cl, const json_t *req);
void control_rec_ls(struct control_client *cl, const json_t *req);
void control_sandbox_ls(struct control_client *cl, const json_t *req);
void control_sandbox_stats(struct control_client *cl, const json_t *req);
void control_sandbox_providers(struct control_client *cl, const json_t *req);
void control_status_verb(struct control_client *cl, const json_t *req);

#endif
