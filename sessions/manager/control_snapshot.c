/* The verbs about snapshots of sandboxes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "sessions/manager/control_internal.h"

/* The answer is the word that was asked for, under its key. */
static void
control_on_word(const struct manager_answer *a, void *arg)
{
	struct control_client *cl = arg;
	json_t *o;

	if (a->code != MANAGER_OK) {
		control_error(cl, a->code, "%s", a->why);
	} else {
		o = json_object();
		control_put_str(o, cl->word_key, cl->word);
		control_ok(cl, o);
	}
	control_resume(cl);
}

void
control_sandbox_snapshot(struct control_client *cl, const json_t *req)
{
	cl->word_key = "id";
	cl->pending = manager_sandbox_snapshot(cl->c->m, &cl->who,
	    control_str(req, "sandbox", ""), control_str(req, "name", ""),
	    control_str(req, "description", ""), cl->word, control_on_word, cl);
}

static bool
control_snapshot_row(const struct store_snapshot *r, void *arg)
{
	json_t *rows = arg, *o = json_object();

	control_put_str(o, "id", r->id);
	control_put_str(o, "sandbox", r->sandbox);
	control_put_str(o, "name", r->name);
	control_put_str(o, "description", r->description);
	control_put_str(o, "provider", r->provider);
	control_put_str(o, "template", r->template);
	control_put_str(o, "state", r->state);
	control_put_int(o, "bytes", (int64_t)r->bytes);
	control_put_int(o, "files", (int64_t)r->files);
	control_put_int(o, "skipped", (int64_t)r->skipped);
	control_put_opt(o, "created_ms", r->created_ms);
	json_array_append_new(rows, o);
	return true;
}

void
control_sandbox_snapshots(struct control_client *cl, const json_t *req)
{
	json_t *rows = json_array();

	store_snapshot_each(cl->c->m->store, control_str(req, "sandbox", NULL),
	    control_snapshot_row, rows);
	control_rows(cl, rows);
}

void
control_sandbox_restore(struct control_client *cl, const json_t *req)
{
	cl->word_key = "sandbox";
	cl->pending = manager_sandbox_restore(cl->c->m, &cl->who,
	    control_str(req, "snapshot", ""), control_str(req, "to", NULL),
	    cl->word, control_on_word, cl);
}

void
control_sandbox_forget(struct control_client *cl, const json_t *req)
{
	struct err e = { .code = 0 };
	enum manager_code code = manager_snapshot_forget(
	    cl->c->m, &cl->who, control_str(req, "snapshot", ""), &e);

	if (code == MANAGER_OK)
		control_ok(cl, NULL);
	else
		control_error(cl, code, "%s", e.msg);
}
