/*
 * What is done to a sandbox that is there; see box.h. Operations that change
 * nothing run beside the others.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "sessions/manager/box.h"
#include "sessions/manager/box_internal.h"
#include "sessions/manager/session.h"

int
box_wrap(struct box *b, const struct sandbox_run *r, struct sandbox_way *out,
    struct err *e)
{
	return b->provider->wrap(&b->spec, r, out, e);
}

static void
box_on_reaped(const struct task_report *r, void *arg)
{
	(void)arg;
	if (r->kind == TASK_RESULT && r->code < 0)
		log_warn("session_not_reaped", "why", r->line, NULL);
}

void
box_reap(struct manager *m, const char *name, const char *sid)
{
	struct box *b = box_find(m, name);
	struct err e = { .code = 0 };

	if (!b || !b->provider || !b->provider->reap || b->is_leaving ||
	    b->phase != SANDBOX_RUNNING)
		return;
	if (!box_start(b, TASK_REAP, sid, box_on_reaped, &e))
		log_warn("session_not_reaped", "sid", sid, "why", e.msg, NULL);
}

/* ---- measuring ------------------------------------------------------------- */

static void
box_on_measured(const struct task_report *r, void *arg)
{
	struct box *b = arg;

	if (r->kind == TASK_PROGRESS)
		return;
	b->measure_job = NULL;
	b->measured_ms = clock_mono_ms();
	b->has_metrics = r->code == 0;
	b->metrics = r->metrics;
	box_answer_list(
	    &b->measuring, r->code == 0 ? MANAGER_OK : MANAGER_FAILED, r->line);
}

struct box *
box_unmeasured(struct manager *m, const char *name, int64_t since_ms)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &m->boxes) {
		struct box *b = list_entry(pos, struct box, node);

		if (name && strcmp(name, b->spec.name) != 0)
			continue;
		if (b->provider && b->provider->measure &&
		    box_lives(b->phase) && b->measured_ms < since_ms)
			return b;
	}
	return NULL;
}

/* Which sessions run in B, as far as there is room. */
static void
box_sessions(const struct box *b, char *out, size_t size)
{
	struct list *pos, *tmp;
	size_t n = 0;

	*out = '\0';
	list_for_each (pos, tmp, &b->m->sessions) {
		const struct session *s = list_entry(pos, struct session, node);

		if (s->phase != PHASE_ENDED &&
		    strcmp(s->sandbox, b->spec.name) == 0 &&
		    n + strlen(s->id) + 2 <= size)
			n += (size_t)snprintf(
			    out + n, size - n, "%s%s", n ? " " : "", s->id);
	}
}

enum box_answer
box_measure(struct request *r, enum manager_code *code_out, struct err *e)
{
	struct box *b = box_find(r->m, r->sandbox);
	char sids[TASK_ARG_MAX];

	*code_out = MANAGER_FAILED;
	if (b && !b->measure_job) {
		box_sessions(b, sids, sizeof(sids));
		b->measure_job =
		    box_start(b, TASK_MEASURE, sids, box_on_measured, e);
	}
	if (!b || !b->measure_job)
		return BOX_REFUSED;
	list_remove(&r->node);
	list_append(&b->measuring, &r->node);
	request_wait_box(r, 0);
	return BOX_WAITS;
}
