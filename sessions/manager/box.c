/* Sandboxes and who waits for them; see box.h. */
#include "sessions/manager/box.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/conf.h"
#include "sandbox/command.h"
#include "sandbox/job.h"
#include "sandbox/template.h"
#include "sessions/manager/box_internal.h"
#include "sessions/manager/pool.h"
#include "sessions/manager/session.h"

#define BOX_JOB_MS 60000

struct box *
box_find(struct manager *m, const char *name)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &m->boxes) {
		struct box *b = list_entry(pos, struct box, node);

		if (strcmp(b->spec.name, name) == 0)
			return b;
	}
	return NULL;
}

static struct box *
box_new(struct manager *m, const char *name)
{
	struct box *b = xcalloc(1, sizeof(*b));

	b->m = m;
	b->spec = m->spec;
	b->watch_fd = -1;
	snprintf(b->spec.name, sizeof(b->spec.name), "%s", name);
	list_init(&b->requests);
	list_init(&b->measuring);
	list_init(&b->settling);
	list_init(&b->copying);
	list_append(&m->boxes, &b->node);
	return b;
}

void
box_free(struct box *b)
{
	list_remove(&b->node);
	box_unwatch(b);
	box_init_forget(b);
	if (b->leave_ev)
		event_free(b->leave_ev);
	if (b->life_ev)
		event_free(b->life_ev);
	if (b->job)
		job_forget(b->job);
	if (b->probe)
		job_forget(b->probe);
	if (b->probe_ev)
		event_free(b->probe_ev);
	if (b->measure_job)
		job_forget(b->measure_job);
	while (!list_empty(&b->requests))
		request_free(
		    list_entry(b->requests.next, struct request, node));
	while (!list_empty(&b->measuring))
		request_free(
		    list_entry(b->measuring.next, struct request, node));
	while (!list_empty(&b->settling))
		request_free(
		    list_entry(b->settling.next, struct request, node));
	while (!list_empty(&b->copying))
		request_free(list_entry(b->copying.next, struct request, node));
	free(b);
}

/* ---- phases ---------------------------------------------------------------- */

void
box_turn(struct box *b, enum sandbox_phase phase, const char *event,
    const char *identity, const char *detail)
{
	const char *text = detail && *detail ? detail : NULL;
	bool has_ended = box_lives(b->phase) && !box_lives(phase);

	b->phase = phase;
	snprintf(b->detail, sizeof(b->detail), "%s", text ? text : "");
	store_sandbox_state(b->m->store, b->id, sandbox_phase_name(phase), text,
	    clock_wall_ms());
	store_audit(
	    b->m->store, event, identity, NULL, b->spec.name, NULL, text);
	if (phase == SANDBOX_FAILED && !b->m->is_closing)
		log_err(event, "sandbox", b->spec.name, "provider",
		    b->spec.provider, "why", text, NULL);
	else
		log_info(event, "sandbox", b->spec.name, "provider",
		    b->spec.provider, "note", text, NULL);
	if (phase == SANDBOX_RUNNING)
		box_life_woken(b);
	else
		box_life_changed(b);
	if (has_ended && b->m->on_sandbox_end)
		b->m->on_sandbox_end(b->spec.name, b->m->on_sandbox_end_arg);
}

static void
box_tell(struct list *requests, const char *line)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, requests) {
		struct request *r = list_entry(pos, struct request, node);

		if (r->on_progress)
			r->on_progress(line, r->arg);
	}
}

void
box_progress(struct box *b, const struct task_report *r)
{
	log_info(
	    "sandbox_progress", "sandbox", b->spec.name, "line", r->line, NULL);
	box_tell(&b->requests, r->line);
	box_tell(&b->copying, r->line);
}

struct job *
box_start(
    struct box *b, enum task_op op, const char *arg, job_fn fn, struct err *e)
{
	struct task t = {
		.op = op,
		.spec = b->spec,
		.command =
		    (struct command *)(uintptr_t)command_find(b->spec.provider),
	};
	const char *program = b->m->sandbox_path;
	uint32_t ms = b->provider && b->provider->job_ms ? b->provider->job_ms
							 : BOX_JOB_MS;

	if (op == TASK_SNAPSHOT || op == TASK_UNPACK || op == TASK_REPLACE ||
	    op == TASK_UNSTAGE)
		ms = MANAGER_COPY_MS;
	if (op == TASK_SNAPSHOT || op == TASK_UNPACK || op == TASK_REPLACE) {
		snapshot_path(b->m, b->copy.id, t.file, sizeof(t.file));
		program = b->m->archive_path;
	}
	snprintf(t.arg, sizeof(t.arg), "%s", arg);
	return job_start(b->m->base, program, &t, (int)ms, fn, b, e);
}

int
box_job(struct box *b, enum task_op op, job_fn fn, struct err *e)
{
	b->job = box_start(b, op, "", fn, e);
	return b->job ? 0 : e->code;
}

void
box_lose(struct box *b, const char *why)
{
	box_turn(b, SANDBOX_FAILED, "sandbox_lost", NULL, why);
	b->is_known = false;
	box_clean(b);
}

void
box_clean(struct box *b)
{
	struct err e = { .code = 0 };

	if (!b->provider->is_contained || b->job)
		return;
	if (box_job(b, TASK_HALT, box_on_cleaned, &e) < 0)
		log_err("sandbox_not_cleaned", "sandbox", b->spec.name, "why",
		    e.msg, NULL);
}

static bool
box_load(const struct store_sandbox *r, void *arg)
{
	struct manager *m = arg;
	struct err e = { .code = 0 };
	struct box *b;

	if (strcmp(r->state, sandbox_phase_name(SANDBOX_GONE)) == 0)
		return true;
	b = box_new(m, r->name);
	b->id = r->id;
	box_uid_set(b, r->uid);
	snprintf(b->template, sizeof(b->template), "%s",
	    r->template[0] ? r->template : r->provider);
	snprintf(b->detail, sizeof(b->detail), "%s", r->detail);
	snprintf(b->unenforced, sizeof(b->unenforced), "%s", r->unenforced);
	(void)sandbox_phase_parse(r->state, &b->phase);
	if (sandbox_template(m->conf, b->template, &b->spec, &e) < 0)
		log_warn(
		    "sandbox_template", "sandbox", r->name, "why", e.msg, NULL);
	/* What it was made by has the word, whatever its template says now. */
	snprintf(b->spec.provider, sizeof(b->spec.provider), "%s", r->provider);
	b->provider = sandbox_find(r->provider, &e);
	if (!b->provider)
		log_err(
		    "sandbox_provider", "sandbox", r->name, "why", e.msg, NULL);
	box_life_begin(b, r->created_ms);
	return true;
}

void
boxes_load(struct manager *m)
{
	struct list *pos, *tmp;

	store_sandbox_each(m->store, box_load, m);
	snapshots_load(m);
	list_for_each (pos, tmp, &m->boxes) {
		struct box *b = list_entry(pos, struct box, node);

		if (b->is_frozen)
			box_thaw(b);
		else
			box_look(b);
	}
}

void
boxes_free(struct manager *m)
{
	while (!list_empty(&m->boxes))
		box_free(list_entry(m->boxes.next, struct box, node));
	job_release_all();
}

/* ---- making ---------------------------------------------------------------- */

void
box_answer_list(struct list *requests, enum manager_code code, const char *why)
{
	struct list waiting, *pos, *tmp;

	/* What goes on may come to wait again. */
	list_init(&waiting);
	list_for_each (pos, tmp, requests) {
		list_remove(pos);
		list_append(&waiting, pos);
	}
	while (!list_empty(&waiting)) {
		struct request *r =
		    list_entry(waiting.next, struct request, node);

		list_remove(&r->node);
		if (code != MANAGER_OK)
			request_fail(r, code, "%s", why);
		else
			request_go_on(r);
	}
}

void
box_answer_all(struct box *b, enum manager_code code, const char *why)
{
	box_answer_list(&b->requests, code, why);
	box_life_changed(b);
}

static void
box_missing_note(const char *missing, char *out, size_t size)
{
	*out = '\0';
	if (*missing)
		snprintf(out, size, "limits not enforced here: %s", missing);
}

void
box_detail(const struct box *b, char *out, size_t size)
{
	if (b->detail[0])
		snprintf(out, size, "%s", b->detail);
	else
		box_missing_note(b->unenforced, out, size);
}

/* Why, and for somebody who chose nothing: what to choose. */
static void
box_failure(const struct box *b, const char *why, char *out, size_t size)
{
	if (strcmp(b->template, CONF_TEMPLATE_AUTO) == 0)
		snprintf(out, size,
		    "no sandbox can be made here: %s; to do without isolation "
		    "set access.default_template = local",
		    why);
	else
		snprintf(
		    out, size, "cannot make sandbox %s: %s", b->spec.name, why);
}

void
box_made(struct box *b, const struct sandbox_made *made)
{
	char note[160];

	b->is_known = true;
	b->is_unclear = false;
	snprintf(b->spec.address, sizeof(b->spec.address), "%s", made->address);
	b->spec.lacks_sftp_server = made->lacks_sftp_server;
	snprintf(b->unenforced, sizeof(b->unenforced), "%s", made->missing);
	store_sandbox_unenforced(b->m->store, b->id, made->missing);
	box_missing_note(made->missing, note, sizeof(note));
	box_turn(b, SANDBOX_RUNNING, "sandbox_running", NULL, note);
	box_watch(b);
}

static void
box_on_provision(const struct task_report *r, void *arg)
{
	struct box *b = arg;
	char why[256];

	if (r->kind == TASK_PROGRESS) {
		box_progress(b, r);
		return;
	}
	b->job = NULL;
	pool_taken(b->m, &b->spec, r->code == 0 && r->made.is_claimed);
	if (r->code == 0 && box_needs_init(b)) {
		b->made = r->made;
		box_init(b);
		return;
	}
	if (r->code == 0) {
		box_made(b, &r->made);
		box_answer_all(b, MANAGER_OK, "");
		return;
	}
	box_failure(b, r->line, why, sizeof(why));
	box_turn(b, SANDBOX_FAILED, "sandbox_failed", NULL, r->line);
	box_answer_all(b, MANAGER_FAILED, why);
}

/* The row says pending before anything is there. */
int
box_provision(struct box *b, const char *identity, struct err *e)
{
	int rc;

	box_turn(b, SANDBOX_PENDING, "sandbox_begin", identity, NULL);
	pool_take(b->m, b->template, &b->spec);
	rc = box_job(b, TASK_PROVISION, box_on_provision, e);
	if (rc < 0)
		pool_taken(b->m, &b->spec, false);
	if (rc < 0)
		box_turn(b, SANDBOX_FAILED, "sandbox_failed", NULL, e->msg);
	return rc;
}

/* Who came meanwhile wants it to run. */
void
box_on_cleaned(const struct task_report *r, void *arg)
{
	struct box *b = arg;
	struct err e = { .code = 0 };

	if (r->kind == TASK_PROGRESS)
		return;
	b->job = NULL;
	if (r->code < 0)
		log_err("sandbox_not_cleaned", "sandbox", b->spec.name, "why",
		    r->line, NULL);
	if (!list_empty(&b->requests) && box_provision(b, NULL, &e) < 0)
		box_answer_all(b, MANAGER_FAILED, e.msg);
}

void
box_wait(struct box *b, struct request *r)
{
	list_remove(&r->node);
	list_append(&b->requests, &r->node);
	request_wait_box(r, b->is_initialising ? (int)b->init_ms : 0);
	box_life_changed(b);
}

/* Has the provider make B, which is not there. */
static enum box_answer
box_begin(struct box *b, struct request *r, enum manager_code *code_out,
    struct err *e)
{
	struct sandbox_made made = { .missing = "" };
	int rc;

	*code_out = MANAGER_FAILED;
	if (b->provider->is_quick) {
		rc = b->provider->provision(&b->spec, &made, e);
		if (rc < 0) {
			box_turn(
			    b, SANDBOX_FAILED, "sandbox_failed", NULL, e->msg);
			return BOX_REFUSED;
		}
		if (b->phase != SANDBOX_RUNNING && box_needs_init(b)) {
			box_turn(b, SANDBOX_PENDING, "sandbox_begin",
			    r->who.identity, NULL);
			b->made = made;
			box_wait(b, r);
			box_init(b);
			return BOX_WAITS;
		}
		if (b->phase != SANDBOX_RUNNING)
			box_made(b, &made);
		return BOX_READY;
	}
	if (box_provision(b, r->who.identity, e) < 0)
		return BOX_REFUSED;
	box_wait(b, r);
	return BOX_WAITS;
}

/* A row and a box for a name that has none. */
struct box *
box_make(struct request *r, const char *template, struct err *e)
{
	struct manager *m = r->m;
	struct box *b = box_new(m, r->sandbox);
	struct store_sandbox row = { .created_ms = clock_wall_ms() };
	int rc;

	if (!template)
		template = m->conf->access.default_template;
	rc = sandbox_template(m->conf, template, &b->spec, e);
	b->provider = rc < 0 ? NULL : sandbox_find(b->spec.provider, e);
	snprintf(b->template, sizeof(b->template), "%s", template);
	if (!b->provider || box_uid_take(b, &row.uid, e) < 0) {
		box_free(b);
		return NULL;
	}
	row.last_active_ms = row.created_ms;
	snprintf(row.name, sizeof(row.name), "%s", b->spec.name);
	snprintf(row.provider, sizeof(row.provider), "%s", b->spec.provider);
	snprintf(row.template, sizeof(row.template), "%s", template);
	snprintf(row.state, sizeof(row.state), "%s",
	    sandbox_phase_name(SANDBOX_PENDING));
	rc = store_sandbox_insert(m->store, &row);
	if (rc < 0) {
		err_sys(e, rc, "the store cannot take the sandbox");
		box_free(b);
		return NULL;
	}
	b->id = row.id;
	box_life_begin(b, row.created_ms);
	store_audit(m->store, "sandbox_create", r->who.identity,
	    r->who.remote_addr, b->spec.name, NULL, template);
	return b;
}

/* True if it runs as far as anybody knows, so that nothing is to be done. */
static bool
box_is_ready(const struct box *b)
{
	if (b->provider->is_quick || b->phase != SANDBOX_RUNNING)
		return false;
	if (b->provider->poll_ms)
		return b->is_known && !b->is_unclear;
	return b->provider->status(&b->spec) == SANDBOX_RUNNING;
}

/* One that is in the store: what it is made of may have changed meanwhile. */
static enum box_answer
box_again(struct box *b, struct request *r, enum manager_code *code_out,
    struct err *e)
{
	*code_out = MANAGER_FAILED;
	if (b->is_leaving) {
		*code_out = MANAGER_CONFLICT;
		err_set(e, -EBUSY, "sandbox %s is being %s", b->spec.name,
		    b->is_restoring ? "restored" : "removed");
		return BOX_REFUSED;
	}
	if (b->job || b->is_initialising) {
		/* The outcome of a resume is the outcome for R too. */
		r->has_roused = b->is_sleep_job && !b->is_suspending;
		box_wait(b, r);
		return BOX_WAITS;
	}
	/* An error of the past may be over; the hard ones come again. */
	b->provider = sandbox_find(b->spec.provider, e);
	if (!b->provider)
		return BOX_REFUSED;
	if (box_is_ready(b))
		return BOX_READY;
	if (box_is_asleep(b))
		return box_rouse(b, r, code_out, e);
	if (sandbox_template(b->m->conf, b->template, &b->spec, e) < 0)
		return BOX_REFUSED;
	return box_begin(b, r, code_out, e);
}

enum box_answer
box_want(struct request *r, const char *template, enum manager_code *code_out,
    struct err *e)
{
	struct box *b = box_find(r->m, r->sandbox);

	if (b)
		return box_again(b, r, code_out, e);
	if (!r->m->conf->access.autocreate) {
		*code_out = MANAGER_NOT_FOUND;
		err_set(e, -ENOENT, "there is no sandbox %s", r->sandbox);
		return BOX_REFUSED;
	}
	*code_out = MANAGER_FAILED;
	b = box_make(r, template, e);
	return b ? box_begin(b, r, code_out, e) : BOX_REFUSED;
}

enum box_answer
box_create(struct request *r, const char *template, enum manager_code *code_out,
    struct err *e)
{
	struct box *b = box_find(r->m, r->sandbox);

	if (b && b->phase == SANDBOX_FAILED)
		return box_again(b, r, code_out, e);
	if (b) {
		*code_out = MANAGER_CONFLICT;
		err_set(e, -EEXIST, "there is a sandbox %s", r->sandbox);
		return BOX_REFUSED;
	}
	*code_out = MANAGER_FAILED;
	b = box_make(r, template, e);
	return b ? box_begin(b, r, code_out, e) : BOX_REFUSED;
}

int
box_place(struct box *b, struct sandbox_place *out, struct err *e)
{
	int rc = sandbox_require(b->provider, SANDBOX_CAP_EXEC, e);

	return rc < 0 ? rc : b->provider->exec(&b->spec, out, e);
}
