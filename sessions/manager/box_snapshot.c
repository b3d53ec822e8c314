/*
 * Snapshots of a sandbox, and the way back; see box.h. A job has the box for
 * itself, so whoever comes meanwhile waits, and whatever fails leaves the box as
 * it was: a file without its end is removed with its row, new files take the
 * place of the old ones in one step, and only when nothing runs on these.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "sessions/manager/box.h"
#include "sessions/manager/box_internal.h"
#include "sessions/manager/session.h"

static void
box_wait_copy(struct box *b, struct request *r)
{
	list_remove(&r->node);
	list_append(&b->copying, &r->node);
	request_wait_copy(r);
}

/* Who waited for the box goes on; who asked for the copy hears how it went. */
static void
box_copied(struct box *b, enum manager_code code, const char *why)
{
	box_answer_list(&b->copying, code, why);
	if (!b->job && !b->is_leaving)
		box_answer_all(b, MANAGER_OK, "");
}

/* True while nobody works on B, whose provider can do it. */
static bool
box_may_copy(struct box *b, enum manager_code *code_out, struct err *e)
{
	*code_out = MANAGER_CONFLICT;
	if (!b->provider)
		b->provider = sandbox_find(b->spec.provider, e);
	if (!b->provider)
		return false;
	*code_out = MANAGER_REFUSED;
	if (sandbox_require(b->provider, SANDBOX_CAP_SNAPSHOT, e) < 0)
		return false;
	*code_out = MANAGER_CONFLICT;
	if (b->job || b->is_initialising || b->is_leaving || b->m->is_closing) {
		err_set(
		    e, -EBUSY, "sandbox %s is being worked on", b->spec.name);
		return false;
	}
	*code_out = MANAGER_FAILED;
	return true;
}

/* ---- making one --------------------------------------------------------------- */

static void
box_on_thawed(const struct task_report *r, void *arg)
{
	struct box *b = arg;

	if (r->kind == TASK_PROGRESS)
		return;
	b->job = NULL;
	if (r->code < 0)
		log_err("sandbox_not_thawed", "sandbox", b->spec.name, "why",
		    r->line, NULL);
	box_look(b);
	box_answer_all(b, MANAGER_OK, "");
}

void
box_thaw(struct box *b)
{
	struct err e = { .code = 0 };

	b->is_frozen = false;
	if (box_job(b, TASK_RESUME, box_on_thawed, &e) == 0)
		return;
	log_err(
	    "sandbox_not_thawed", "sandbox", b->spec.name, "why", e.msg, NULL);
	box_look(b);
}

static void
box_snapshot_failed(struct box *b, const char *why)
{
	struct err e = { .code = 0 };
	char text[256];

	snprintf(text, sizeof(text), "cannot make a snapshot of %s: %s",
	    b->spec.name, why);
	if (snapshot_drop(b->m, b->copy.id, &e) < 0)
		log_err("snapshot_not_removed", "id", b->copy.id, "why", e.msg,
		    NULL);
	store_audit(b->m->store, "snapshot_failed", NULL, NULL, b->spec.name,
	    NULL, why);
	log_warn("snapshot_failed", "sandbox", b->spec.name, "id", b->copy.id,
	    "why", why, NULL);
	/* Whoever was killed in the middle left it standing still, perhaps. */
	if (b->provider->resume && b->provider->status &&
	    b->phase == SANDBOX_RUNNING)
		box_thaw(b);
	box_copied(b, MANAGER_FAILED, text);
}

static void
box_on_snapshot(const struct task_report *r, void *arg)
{
	struct box *b = arg;
	int rc;

	if (r->kind == TASK_PROGRESS) {
		box_progress(b, r);
		return;
	}
	b->job = NULL;
	if (r->code < 0) {
		box_snapshot_failed(b, r->line);
		return;
	}
	b->copy.bytes = r->copied.bytes;
	b->copy.files = r->copied.files;
	b->copy.skipped = r->copied.skipped;
	snprintf(b->copy.hash, sizeof(b->copy.hash), "%s", r->copied.hash);
	rc = store_snapshot_complete(b->m->store, &b->copy);
	if (rc < 0) {
		box_snapshot_failed(b, "the store cannot take it");
		return;
	}
	store_audit(b->m->store, "snapshot", NULL, NULL, b->spec.name, NULL,
	    b->copy.id);
	log_info("snapshot", "sandbox", b->spec.name, "id", b->copy.id, NULL);
	box_copied(b, MANAGER_OK, "");
}

/* The row of what is to be made, written before anything of it is there. */
static int
box_snapshot_begin(
    struct box *b, const char *name, const char *description, struct err *e)
{
	struct store_snapshot s = { .created_ms = clock_wall_ms() };
	int rc;

	if (*name &&
	    (!sandbox_name_is_valid(name) || strncmp(name, "snp-", 4) == 0))
		return err_set(e, -EINVAL, "that is no name for a snapshot");
	if (strlen(description) >= sizeof(s.description))
		return err_set(e, -EINVAL,
		    "a description has at most %zu bytes",
		    sizeof(s.description) - 1);
	text_random_id("snp-", 8, s.id, sizeof(s.id));
	snprintf(s.sandbox, sizeof(s.sandbox), "%s", b->spec.name);
	snprintf(s.name, sizeof(s.name), "%s", name);
	snprintf(s.description, sizeof(s.description), "%s", description);
	snprintf(s.provider, sizeof(s.provider), "%s", b->spec.provider);
	snprintf(s.template, sizeof(s.template), "%s", b->template);
	rc = store_snapshot_insert(b->m->store, &s);
	if (rc == -EEXIST)
		return err_set(
		    e, rc, "sandbox %s has a snapshot %s", b->spec.name, name);
	if (rc < 0)
		return err_sys(e, rc, "the store cannot take the snapshot");
	b->copy = s;
	return 0;
}

enum box_answer
box_snapshot(struct request *r, const char *name, const char *description,
    char *id_out, enum manager_code *code_out, struct err *e)
{
	struct box *b = box_find(r->m, r->sandbox);
	int rc;

	*code_out = MANAGER_NOT_FOUND;
	if (!b) {
		err_set(e, -ENOENT, "there is no sandbox %s", r->sandbox);
		return BOX_REFUSED;
	}
	if (!box_may_copy(b, code_out, e))
		return BOX_REFUSED;
	rc = box_snapshot_begin(b, name, description, e);
	if (rc < 0) {
		*code_out = rc == -EEXIST   ? MANAGER_CONFLICT
			    : rc == -EINVAL ? MANAGER_USAGE
					    : MANAGER_FAILED;
		return BOX_REFUSED;
	}
	snprintf(id_out, STORE_ID_MAX, "%s", b->copy.id);
	store_audit(r->m->store, "sandbox_snapshot", r->who.identity,
	    r->who.remote_addr, b->spec.name, NULL, b->copy.id);
	if (box_job(b, TASK_SNAPSHOT, box_on_snapshot, e) < 0) {
		snapshot_drop(b->m, b->copy.id, NULL);
		return BOX_REFUSED;
	}
	box_wait_copy(b, r);
	return BOX_WAITS;
}

/* ---- the way back --------------------------------------------------------------- */

static void
box_on_unstaged(const struct task_report *r, void *arg)
{
	struct box *b = arg;

	if (r->kind == TASK_PROGRESS)
		return;
	b->job = NULL;
	if (r->code < 0)
		log_warn("restore_not_undone", "sandbox", b->spec.name, "why",
		    r->line, NULL);
	if (!b->is_new) {
		box_answer_all(b, MANAGER_OK, "");
		return;
	}
	box_answer_all(b, MANAGER_FAILED, b->detail);
	box_free(b);
}

/* Nothing came of it; what is beside the workspace goes. */
static void
box_restore_failed(struct box *b, const char *why)
{
	struct err e = { .code = 0 };
	struct task_report r = { .kind = TASK_RESULT };
	char text[256];

	snprintf(text, sizeof(text), "cannot restore %s: %s", b->copy.id, why);
	store_audit(b->m->store, "restore_failed", NULL, NULL, b->spec.name,
	    NULL, text);
	log_warn("restore_failed", "sandbox", b->spec.name, "why", text, NULL);
	b->is_leaving = b->is_restoring = false;
	if (b->is_new)
		box_turn(b, SANDBOX_GONE, "sandbox_remove", NULL, text);
	/* An engine has made one, perhaps, and has nothing beside. */
	r.code = box_job(b,
	    b->is_new && b->provider->poll_ms ? TASK_TEARDOWN : TASK_UNSTAGE,
	    box_on_unstaged, &e);
	box_answer_list(&b->copying, MANAGER_FAILED, text);
	if (r.code < 0) {
		snprintf(r.line, sizeof(r.line), "%s", e.msg);
		box_on_unstaged(&r, b);
	}
}

/* The files are in their place: B is made around them. */
static void
box_restored(struct box *b)
{
	struct sandbox_made made = { .missing = "" };
	struct err e = { .code = 0 };
	struct list *pos, *tmp;
	int rc;

	b->is_new = false;
	b->is_initialised = true; /* what it did is among the files */
	store_audit(b->m->store, "restored", NULL, NULL, b->spec.name, NULL,
	    b->copy.id);
	log_info("restored", "sandbox", b->spec.name, "id", b->copy.id, NULL);
	list_for_each (pos, tmp, &b->copying)
		box_wait(b, list_entry(pos, struct request, node));
	if (!b->provider->is_quick) {
		if (box_provision(b, NULL, &e) < 0)
			box_answer_all(b, MANAGER_FAILED, e.msg);
		return;
	}
	rc = b->provider->provision(&b->spec, &made, &e);
	if (rc < 0)
		box_turn(b, SANDBOX_FAILED, "sandbox_failed", NULL, e.msg);
	else
		box_made(b, &made);
	box_answer_all(b, rc < 0 ? MANAGER_FAILED : MANAGER_OK, e.msg);
}

static void
box_on_replaced(const struct task_report *r, void *arg)
{
	struct box *b = arg;

	if (r->kind == TASK_PROGRESS)
		return;
	b->job = NULL;
	box_unwatch(b);
	if (r->code < 0) {
		/* It may have been halted; the next who comes begins it. */
		if (!b->is_new && b->provider->is_contained)
			box_turn(
			    b, SANDBOX_FAILED, "sandbox_failed", NULL, r->line);
		box_restore_failed(b, r->line);
		return;
	}
	b->is_leaving = b->is_restoring = false;
	box_restored(b);
}

void
box_replace(struct box *b)
{
	struct task_report failed = { .kind = TASK_RESULT };
	struct err e = { .code = 0 };

	failed.code = box_job(b, TASK_REPLACE, box_on_replaced, &e);
	if (failed.code == 0)
		return;
	snprintf(failed.line, sizeof(failed.line), "%s", e.msg);
	box_on_replaced(&failed, b);
}

static void
box_on_unpacked(const struct task_report *r, void *arg)
{
	struct box *b = arg;

	if (r->kind == TASK_PROGRESS) {
		box_progress(b, r);
		return;
	}
	b->job = NULL;
	if (r->code < 0) {
		box_restore_failed(b, r->line);
		return;
	}
	b->is_restoring = true;
	/* The end of its first process is not a loss any more. */
	box_unwatch(b);
	box_begin_leaving(b);
}

static bool
box_unpack(
    struct box *b, const struct store_snapshot *s, bool is_new, struct err *e)
{
	b->copy = *s;
	b->is_new = is_new;
	b->job = box_start(b, TASK_UNPACK, s->hash, box_on_unpacked, e);
	return b->job != NULL;
}

enum box_answer
box_restore(struct request *r, const struct store_snapshot *s,
    enum manager_code *code_out, struct err *e)
{
	struct box *b = box_find(r->m, r->sandbox);
	bool is_new = !b;

	*code_out = MANAGER_FAILED;
	if (!b)
		b = box_make(r, s->template, e);
	if (!b)
		return BOX_REFUSED;
	if (!box_may_copy(b, code_out, e) || !box_unpack(b, s, is_new, e)) {
		if (is_new) {
			box_turn(
			    b, SANDBOX_GONE, "sandbox_remove", NULL, e->msg);
			box_free(b);
		}
		return BOX_REFUSED;
	}
	store_audit(r->m->store, "sandbox_restore", r->who.identity,
	    r->who.remote_addr, b->spec.name, NULL, s->id);
	box_wait_copy(b, r);
	return BOX_WAITS;
}
