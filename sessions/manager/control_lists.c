/* The verbs that tell: lists and details, straight from the store. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "conf/conf.h"
#include "sessions/manager/attachment.h"
#include "sessions/manager/control_internal.h"

void
control_put_str(json_t *o, const char *key, const char *s)
{
	json_t *v = s && s[0] ? json_string(s) : json_null();

	json_object_set_new(o, key, v ? v : json_null());
}

void
control_put_int(json_t *o, const char *key, int64_t v)
{
	json_object_set_new(o, key, json_integer(v));
}

/* Times and pids: 0 says that there is none. */
void
control_put_opt(json_t *o, const char *key, int64_t v)
{
	json_object_set_new(o, key, v ? json_integer(v) : json_null());
}

/* "a, b" as an array. */
static void
control_put_words(json_t *o, const char *key, const char *words)
{
	json_t *a = json_array();

	while (*words) {
		size_t n = strcspn(words, ",");

		json_array_append_new(a, json_stringn(words, n));
		words += n;
		words += strspn(words, ", ");
	}
	json_object_set_new(o, key, a);
}

static json_t *
control_session_row(struct manager *m, const struct store_session *r)
{
	const struct session *live = session_by_id(m, r->id);
	json_t *o = json_object();

	control_put_str(o, "id", r->id);
	control_put_str(o, "sandbox", r->sandbox);
	control_put_str(o, "name", r->name);
	control_put_str(o, "kind", r->is_pty ? "pty" : "pipe");
	control_put_str(o, "status", store_status_name(r->status));
	json_object_set_new(o, "exit_code",
	    r->has_exit_code ? json_integer(r->exit_code) : json_null());
	control_put_str(o, "exit_signal", r->exit_signal);
	control_put_str(o, "reason", r->reason);
	control_put_opt(o, "pid", live ? live->pid : r->pid);
	control_put_opt(o, "cols", live ? live->stats.cols : r->cols);
	control_put_opt(o, "rows", live ? live->stats.rows : r->rows);
	control_put_opt(o, "created_ms", r->created_ms);
	control_put_opt(o, "started_ms", r->started_ms);
	control_put_opt(o, "exited_ms", r->exited_ms);
	control_put_int(o, "bytes_out",
	    (int64_t)(live ? live->stats.bytes_out : r->bytes_out));
	control_put_int(o, "bytes_in",
	    (int64_t)(live ? live->stats.bytes_in : r->bytes_in));
	control_put_int(o, "attached", live ? live->n_attached : 0);
	return o;
}

struct control_rows_arg {
	struct manager *m;
	json_t *rows;
	const char *sid;     /* attachments of this session only, or NULL */
	const char *sandbox; /* recordings of this sandbox only, or NULL */
};

static bool
control_ls_row(const struct store_session *r, void *arg)
{
	struct control_rows_arg *a = arg;

	json_array_append_new(a->rows, control_session_row(a->m, r));
	return true;
}

void
control_ls(struct control_client *cl, const json_t *req)
{
	struct control_rows_arg a = { cl->c->m, json_array(), NULL, NULL };

	store_session_each(cl->c->m->store,
	    json_is_true(json_object_get(req, "all")), control_ls_row, &a);
	control_rows(cl, a.rows);
}

/* What the keeper says of one who is attached; null while it has not. */
static void
control_viewer(struct manager *m, const struct store_attachment *r, json_t *o)
{
	const struct session *s = session_by_id(m, r->session_id);
	const struct session_viewer *v = s ? attachment_known(s, r->id) : NULL;

	control_put_opt(o, "cols", v ? v->cols : 0);
	control_put_opt(o, "rows", v ? v->rows : 0);
	json_object_set_new(
	    o, "resyncs", v ? json_integer(v->resyncs) : json_null());
}

static bool
control_who_row(const struct store_attachment *r, void *arg)
{
	struct control_rows_arg *a = arg;
	json_t *o;

	if (a->sid && strcmp(a->sid, r->session_id) != 0)
		return true;
	o = json_object();
	control_put_int(o, "id", r->id);
	control_put_str(o, "session_id", r->session_id);
	control_put_str(o, "sandbox", r->sandbox);
	control_put_str(o, "name", r->name);
	control_put_str(o, "identity", r->identity);
	control_put_str(o, "key_fingerprint", r->key_fingerprint);
	control_put_str(o, "role", r->role);
	control_put_str(o, "remote_addr", r->remote_addr);
	control_put_str(o, "client_version", r->client_version);
	control_put_int(o, "attached_ms", r->attached_ms);
	control_viewer(a->m, r, o);
	json_array_append_new(a->rows, o);
	return true;
}

void
control_who(struct control_client *cl, const json_t *req)
{
	struct control_rows_arg a = { cl->c->m, json_array(), NULL, NULL };

	(void)req;
	store_attachment_each_open(cl->c->m->store, control_who_row, &a);
	control_rows(cl, a.rows);
}

static json_t *
control_recording_row(struct manager *m, const struct store_recording *r)
{
	const struct session *live = session_by_id(m, r->session_id);
	bool is_live = live && live->recording_id == r->id;
	json_t *o = json_object();

	control_put_int(o, "id", r->id);
	control_put_str(o, "session_id", r->session_id);
	control_put_str(o, "sandbox", r->sandbox);
	control_put_str(o, "name", r->name);
	control_put_str(o, "path", r->path);
	control_put_str(o, "format", r->format);
	control_put_str(o, "state", r->state);
	control_put_int(
	    o, "bytes", (int64_t)(is_live ? live->stats.rec_bytes : r->bytes));
	control_put_int(o, "duration_ms",
	    is_live ? (int64_t)live->stats.rec_duration_ms : r->duration_ms);
	control_put_opt(o, "started_ms", r->started_ms);
	control_put_opt(o, "finished_ms", r->finished_ms);
	control_put_int(o, "gaps", is_live ? live->stats.rec_gaps : r->gaps);
	return o;
}

static bool
control_rec_row(const struct store_recording *r, void *arg)
{
	struct control_rows_arg *a = arg;

	if (!a->sandbox || strcmp(a->sandbox, r->sandbox) == 0)
		json_array_append_new(a->rows, control_recording_row(a->m, r));
	return true;
}

void
control_rec_ls(struct control_client *cl, const json_t *req)
{
	struct control_rows_arg a = { cl->c->m, json_array(), NULL,
		control_str(req, "sandbox", NULL) };

	store_recording_each(cl->c->m->store, control_rec_row, &a);
	control_rows(cl, a.rows);
}

void
control_info(struct control_client *cl, const json_t *req)
{
	const char *ref = control_str(req, "session", "");
	struct manager *m = cl->c->m;
	struct session *live = manager_find(m, ref);
	struct control_rows_arg a = { m, NULL, NULL, NULL };
	struct store_recording rec;
	struct store_session row;
	json_t *o, *s, *argv;

	if (store_session_find(m->store, live ? live->id : ref, &row) < 0) {
		control_error(cl, MANAGER_NOT_FOUND,
		    "there is no session %s, or more than one", ref);
		return;
	}
	s = control_session_row(m, &row);
	control_put_str(s, "cwd", row.cwd);
	argv = json_loads(row.argv ? row.argv : "[]", 0, NULL);
	json_object_set_new(s, "argv", argv ? argv : json_array());
	if (store_recording_find(m->store, row.id, &rec) == 0) {
		control_put_int(s, "recording_id", rec.id);
		control_put_str(s, "path", rec.path);
	} else {
		control_put_opt(s, "recording_id", 0);
		control_put_str(s, "path", NULL);
	}
	a.rows = json_array();
	a.sid = row.id;
	store_attachment_each_open(m->store, control_who_row, &a);
	o = json_object();
	json_object_set_new(o, "session", s);
	json_object_set_new(o, "attachments", a.rows);
	control_ok(cl, o);
	store_session_release(&row);
}

static unsigned
control_count_sessions(struct manager *m, const char *sandbox)
{
	struct list *pos, *tmp;
	unsigned n = 0;

	list_for_each (pos, tmp, &m->sessions) {
		const struct session *s = list_entry(pos, struct session, node);

		if (s->phase != PHASE_ENDED && strcmp(s->sandbox, sandbox) == 0)
			n++;
	}
	return n;
}

static bool
control_sandbox_row(const struct store_sandbox *r, void *arg)
{
	struct control_rows_arg *a = arg;
	const struct box *b = box_find(a->m, r->name);
	char detail[sizeof(b->detail)];
	json_t *o;

	if (strcmp(r->state, sandbox_phase_name(SANDBOX_GONE)) == 0)
		return true;
	if (b)
		box_detail(b, detail, sizeof(detail));
	o = json_object();
	control_put_str(o, "name", r->name);
	control_put_str(o, "provider", r->provider);
	control_put_str(o, "template", r->template);
	control_put_opt(o, "uid", r->uid);
	control_put_str(o, "state",
	    b && b->is_restoring ? "restoring"
	    : b && b->is_leaving ? "removing"
	    : b                  ? sandbox_phase_name(b->phase)
				 : r->state);
	control_put_str(o, "detail", b ? detail : r->detail);
	control_put_words(o, "unenforced", b ? b->unenforced : r->unenforced);
	control_put_int(o, "sessions", control_count_sessions(a->m, r->name));
	control_put_opt(o, "created_ms", r->created_ms);
	control_put_opt(o, "last_active_ms", r->last_active_ms);
	json_array_append_new(a->rows, o);
	return true;
}

void
control_sandbox_ls(struct control_client *cl, const json_t *req)
{
	struct control_rows_arg a = { cl->c->m, json_array(), NULL, NULL };

	(void)req;
	store_sandbox_each(cl->c->m->store, control_sandbox_row, &a);
	control_rows(cl, a.rows);
}

/* What nobody counts is null. */
static void
control_put_count(json_t *o, const char *key, int64_t v)
{
	json_object_set_new(o, key, v < 0 ? json_null() : json_integer(v));
}

/* A row of what B uses beside what it may; NULL and E if that is unknown. */
static json_t *
control_stats_row(const struct box *b, struct err *e)
{
	struct sandbox_metrics m = b->metrics;
	char detail[sizeof(b->detail)];
	json_t *o;

	if (!b->provider) {
		err_set(
		    e, -ENOENT, "provider %s is not there", b->spec.provider);
		return NULL;
	}
	if (sandbox_require(b->provider, SANDBOX_CAP_METRICS, e) < 0)
		return NULL;
	if (!b->has_metrics) {
		err_set(
		    e, -EIO, "sandbox %s could not be measured", b->spec.name);
		return NULL;
	}
	o = json_object();
	control_put_str(o, "name", b->spec.name);
	control_put_str(o, "provider", b->spec.provider);
	control_put_count(o, "cpu_ms", m.cpu_us < 0 ? -1 : m.cpu_us / 1000);
	control_put_opt(o, "cpu_limit_percent", b->spec.cpu_percent);
	control_put_count(o, "memory_bytes", m.memory_bytes);
	control_put_count(o, "memory_peak_bytes", m.memory_peak_bytes);
	control_put_opt(o, "memory_limit_bytes", (int64_t)b->spec.memory_bytes);
	control_put_count(o, "processes", m.processes);
	control_put_opt(o, "processes_limit", (int64_t)b->spec.pids_max);
	control_put_count(o, "net_rx_bytes", m.net_rx_bytes);
	control_put_count(o, "net_tx_bytes", m.net_tx_bytes);
	control_put_count(o, "oom_kills", m.oom_kills);
	box_detail(b, detail, sizeof(detail));
	control_put_str(o, "detail", detail);
	control_put_words(o, "unenforced", b->unenforced);
	return o;
}

/* Of all that run and can be measured; of one by name, or why not. */
static void
control_stats_rows(struct control_client *cl)
{
	const char *name = cl->stats_name[0] ? cl->stats_name : NULL;
	json_t *rows = json_array(), *row;
	struct list *pos, *tmp;
	struct err e = { .code = 0 };

	list_for_each (pos, tmp, &cl->c->m->boxes) {
		const struct box *b = list_entry(pos, struct box, node);

		if (name && strcmp(b->spec.name, name) != 0)
			continue;
		row = control_stats_row(b, &e);
		if (row)
			json_array_append_new(rows, row);
	}
	if (!name || json_array_size(rows) > 0) {
		control_rows(cl, rows);
		return;
	}
	json_decref(rows);
	control_error(cl,
	    e.code == -EOPNOTSUPP ? MANAGER_REFUSED : MANAGER_FAILED, "%s",
	    e.msg);
}

static bool control_stats_ask(struct control_client *cl);

/* One was asked, perhaps in vain; there may be more. */
static void
control_on_measured(const struct manager_answer *a, void *arg)
{
	struct control_client *cl = arg;

	if (a->code != MANAGER_OK && cl->stats_name[0])
		control_error(cl, a->code, "%s", a->why);
	else if (control_stats_ask(cl))
		return;
	else
		control_stats_rows(cl);
	control_resume(cl);
}

/* Has the next one measured that takes time for it; false if there is none. */
static bool
control_stats_ask(struct control_client *cl)
{
	const char *name = cl->stats_name[0] ? cl->stats_name : NULL;
	struct box *b = box_unmeasured(cl->c->m, name, cl->stats_ms);

	if (b)
		cl->pending =
		    manager_sandbox_act(cl->c->m, &cl->who, b->spec.name,
			MANAGER_SANDBOX_MEASURE, control_on_measured, cl);
	return b != NULL;
}

void
control_sandbox_stats(struct control_client *cl, const json_t *req)
{
	const char *name = control_str(req, "sandbox", NULL);

	if (name && !box_find(cl->c->m, name)) {
		control_error(
		    cl, MANAGER_NOT_FOUND, "there is no sandbox %s", name);
		return;
	}
	snprintf(
	    cl->stats_name, sizeof(cl->stats_name), "%s", name ? name : "");
	cl->stats_ms = clock_mono_ms();
	if (!control_stats_ask(cl))
		control_stats_rows(cl);
}

void
control_sandbox_providers(struct control_client *cl, const json_t *req)
{
	json_t *rows = json_array();
	size_t n;
	const struct sandbox_provider *const *all = sandbox_all(&n);

	(void)req;
	for (size_t i = 0; i < n; i++) {
		json_t *o = json_object();
		char names[128];

		sandbox_capability_names(
		    all[i]->capabilities, names, sizeof(names));
		control_put_str(o, "name", all[i]->name);
		control_put_str(o, "capabilities", names);
		control_put_str(o, "description", all[i]->description);
		json_array_append_new(rows, o);
	}
	control_rows(cl, rows);
}

void
control_status_verb(struct control_client *cl, const json_t *req)
{
	json_t *o = json_object(), *warnings = json_array();

	(void)req;
	if (cl->c->warning)
		json_array_append_new(warnings, json_string(cl->c->warning));
	control_put_str(o, "version", BERTH_VERSION);
	control_put_int(o, "pid", getpid());
	control_put_int(o, "started_ms", cl->c->started_ms);
	control_put_str(o, "listen", cl->c->listen);
	control_put_str(o, "state_dir", cl->c->state_dir);
	control_put_int(o, "uid", geteuid());
	json_object_set_new(o, "confined", json_boolean(BERTH_CONFINED));
	json_object_set_new(o, "warnings", warnings);
	control_ok(cl, o);
}
