/*
 * The end of a sandbox: of its sessions first, then of what runs in it, and when it
 * is removed of its files. See box.h.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "conf/conf.h"
#include "sandbox/job.h"
#include "sessions/manager/box.h"
#include "sessions/manager/box_internal.h"
#include "sessions/manager/session.h"

#define BOX_LOOK_MS   20
#define BOX_MARGIN_MS 5000 /* beyond stop_grace, until a session has ended */

static bool
box_has_sessions(const struct box *b, bool stop)
{
	struct list *pos, *tmp;
	bool has = false;

	list_for_each (pos, tmp, &b->m->sessions) {
		struct session *s = list_entry(pos, struct session, node);

		if (s->phase == PHASE_ENDED ||
		    strcmp(s->sandbox, b->spec.name) != 0)
			continue;
		has = true;
		if (stop)
			session_stop(s);
	}
	return has;
}

static void
box_on_gone(const struct task_report *r, void *arg)
{
	struct box *b = arg;
	char why[256];

	if (r->kind == TASK_PROGRESS)
		return;
	b->job = NULL;
	b->is_leaving = false;
	box_unwatch(b);
	if (r->code < 0) {
		/* What comes next, its halt at berthd's end, keeps its files. */
		b->is_removed = false;
		b->reason[0] = '\0';
		snprintf(why, sizeof(why), "cannot remove sandbox %s: %s",
		    b->spec.name, r->line);
		box_turn(b, SANDBOX_FAILED, "sandbox_failed", NULL, r->line);
		box_answer_all(b, MANAGER_FAILED, why);
		return;
	}
	if (!b->is_removed) {
		box_turn(b, SANDBOX_FAILED, "sandbox_halted", NULL,
		    "berthd was stopped");
		return;
	}
	box_turn(b, SANDBOX_GONE, "sandbox_remove", NULL, NULL);
	box_answer_all(b, MANAGER_OK, "");
	box_free(b);
}

static void
box_leave(struct box *b)
{
	struct task_report failed = { .kind = TASK_RESULT };
	struct err e = { .code = 0 };

	if (b->is_restoring) {
		box_replace(b);
		return;
	}
	if (box_job(b, b->is_removed ? TASK_TEARDOWN : TASK_HALT, box_on_gone,
		&e) == 0)
		return;
	failed.code = e.code;
	snprintf(failed.line, sizeof(failed.line), "%s", e.msg);
	box_on_gone(&failed, b);
}

/* Until its sessions have ended; what survives a KILL is not waited for. */
static void
box_on_leave(evutil_socket_t fd, short what, void *arg)
{
	struct box *b = arg;
	struct timeval tv = { 0, BOX_LOOK_MS * 1000 };

	(void)fd;
	(void)what;
	if (box_has_sessions(b, false) &&
	    clock_mono_ms() < b->leave_deadline_ms)
		evtimer_add(b->leave_ev, &tv);
	else
		box_leave(b);
}

/*
 * Sessions first where nobody else ends their processes; and where nobody asked
 * for it, so that they hear a signal and may write down what they have.
 */
void
box_begin_leaving(struct box *b)
{
	int64_t grace_ms = (int64_t)b->m->conf->session.stop_grace_ms;

	b->is_leaving = true;
	b->leave_deadline_ms = clock_mono_ms() + grace_ms + BOX_MARGIN_MS;
	if ((b->provider->is_contained &&
		(b->phase == SANDBOX_SUSPENDED ||
		    (!b->reason[0] && !b->is_restoring))) ||
	    !box_has_sessions(b, true)) {
		box_leave(b);
		return;
	}
	if (!b->leave_ev)
		b->leave_ev = evtimer_new(b->m->base, box_on_leave, b);
	if (!b->leave_ev)
		abort();
	box_on_leave(-1, 0, b);
}

/* R waited for what was done to its sandbox. */
static void
box_remove_again(struct request *r)
{
	enum manager_code code = MANAGER_FAILED;
	struct err e = { .code = 0 };
	enum box_answer answer = box_remove(r, &code, &e);

	if (answer == BOX_REFUSED)
		request_fail(r, code, "%s", e.msg);
	else if (answer == BOX_READY)
		request_fail(r, MANAGER_OK, "%s", "");
}

enum box_answer
box_remove(struct request *r, enum manager_code *code_out, struct err *e)
{
	struct box *b = box_find(r->m, r->sandbox);

	*code_out = MANAGER_NOT_FOUND;
	if (!b) {
		err_set(e, -ENOENT, "there is no sandbox %s", r->sandbox);
		return BOX_REFUSED;
	}
	*code_out = MANAGER_CONFLICT;
	if (!b->provider)
		b->provider = sandbox_find(b->spec.provider, e);
	if (!b->provider)
		return BOX_REFUSED;
	if (b->job && b->is_sleep_job) {
		r->go_on = box_remove_again;
		box_wait(b, r);
		return BOX_WAITS;
	}
	if ((b->job && !b->is_leaving) || b->is_restoring) {
		err_set(e, -EBUSY, "sandbox %s is being %s", r->sandbox,
		    list_empty(&b->copying) ? "made" : "copied");
		return BOX_REFUSED;
	}
	r->go_on = NULL;
	store_audit(r->m->store, "sandbox_rm", r->who.identity,
	    r->who.remote_addr, b->spec.name, NULL, NULL);
	b->is_removed = true;
	if (b->is_initialising) {
		box_init_forget(b);
		box_answer_all(
		    b, MANAGER_CONFLICT, "the sandbox is being removed");
	}
	box_wait(b, r);
	if (!b->is_leaving)
		box_begin_leaving(b);
	return BOX_WAITS;
}

bool
boxes_halt(struct manager *m)
{
	struct list *pos, *tmp;
	bool is_done = true;

	list_for_each (pos, tmp, &m->boxes) {
		struct box *b = list_entry(pos, struct box, node);

		if (b->provider && b->provider->is_contained && !b->job &&
		    (b->phase == SANDBOX_RUNNING ||
			b->phase == SANDBOX_SUSPENDED)) {
			b->is_leaving = true;
			box_leave(b);
		}
		is_done = is_done && !b->job;
	}
	return is_done;
}
