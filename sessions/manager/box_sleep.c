/*
 * Suspending a sandbox and waking it; see box.h. Nothing is started in one that
 * is suspended, or on its way there: whoever wants to goes on once it runs, and
 * who suspends waits until what is being started has begun. The job's outcome is
 * never taken for the state: that is what the provider says afterwards.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "sessions/manager/box.h"
#include "sessions/manager/box_internal.h"
#include "sessions/manager/session.h"

bool
box_is_asleep(const struct box *b)
{
	if (!b->provider || !b->provider->resume)
		return false;
	if (b->phase == SANDBOX_RUNNING && b->provider->status)
		return b->provider->status(&b->spec) == SANDBOX_SUSPENDED;
	return b->phase == SANDBOX_SUSPENDED;
}

/* ---- keepers --------------------------------------------------------------- */

static void
sleep_tell(struct session *s, bool is_asleep)
{
	if (s->is_ready && s->phase != PHASE_ENDED && s->wire.version >= 2)
		wire_send(&s->wire, FRAME_SLEEP, is_asleep, 0, NULL, 0);
}

void
box_adopted(struct session *s)
{
	struct box *b = box_find(s->m, s->sandbox);

	if (!b)
		return;
	if (box_is_asleep(b))
		sleep_tell(s, true);
	box_life_changed(b);
}

/* Their keepers tell of keys from now on, or not any more. */
static void
sleep_tell_all(struct box *b, bool is_asleep)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &b->m->sessions) {
		struct session *s = list_entry(pos, struct session, node);

		if (strcmp(s->sandbox, b->spec.name) == 0)
			sleep_tell(s, is_asleep);
	}
}

/* True while a process of B is on its way in. */
static bool
sleep_is_entered(const struct box *b)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &b->m->sessions) {
		const struct session *s = list_entry(pos, struct session, node);

		if (s->phase == PHASE_STARTING &&
		    strcmp(s->sandbox, b->spec.name) == 0)
			return true;
	}
	return false;
}

void
box_settle(struct box *b)
{
	if (!sleep_is_entered(b))
		box_answer_list(&b->settling, MANAGER_OK, "");
	box_life_changed(b);
}

/* ---- the job --------------------------------------------------------------- */

/* What the provider says at once, where it can; else the next look tells. */
static void
sleep_look(struct box *b)
{
	enum sandbox_phase now =
	    b->provider->status ? b->provider->status(&b->spec) : b->phase;

	box_look_soon(b);
	if (now == b->phase)
		return;
	if (now == SANDBOX_RUNNING)
		box_turn(b, now, "sandbox_running", NULL, NULL);
	else if (now == SANDBOX_SUSPENDED)
		box_turn(b, now, "sandbox_suspended", NULL, NULL);
}

static void
sleep_on_done(const struct task_report *r, void *arg)
{
	struct box *b = arg;
	char why[sizeof(b->wake_why)];

	if (r->kind == TASK_PROGRESS)
		return;
	b->job = NULL;
	b->is_sleep_job = false;
	b->sleep_rc = r->code;
	snprintf(b->sleep_why, sizeof(b->sleep_why), "%s", r->line);
	if (!box_lives(b->phase))
		box_clean(b); /* lost meanwhile */
	else if (r->code == 0 && b->is_suspending)
		box_turn(b, SANDBOX_SUSPENDED, "sandbox_suspended", NULL, NULL);
	else if (r->code == 0)
		box_turn(b, SANDBOX_RUNNING, "sandbox_running", NULL, NULL);
	else
		sleep_look(b);
	if (r->code < 0)
		log_warn("sandbox_not_changed", "sandbox", b->spec.name, "why",
		    r->line, NULL);
	if (b->phase != SANDBOX_SUSPENDED)
		sleep_tell_all(b, false);
	/* Else they go on behind that. */
	if (!b->job)
		box_answer_all(b, MANAGER_OK, "");
	if (b->wake_why[0]) {
		snprintf(why, sizeof(why), "%s", b->wake_why);
		b->wake_why[0] = '\0';
		box_wake(b, NULL, why);
	}
}

/* WHO may be NULL, for berth itself; WHY is for the audit trail. */
static int
sleep_start(struct box *b, bool is_suspend, const struct principal *who,
    const char *why, struct err *e)
{
	int rc = box_job(
	    b, is_suspend ? TASK_SUSPEND : TASK_RESUME, sleep_on_done, e);

	if (rc < 0)
		return rc;
	b->is_sleep_job = true;
	b->is_suspending = is_suspend;
	b->sleep_rc = 0;
	store_audit(b->m->store,
	    is_suspend ? "sandbox_suspend" : "sandbox_resume",
	    who ? who->identity : NULL, who ? who->remote_addr : NULL,
	    b->spec.name, NULL, why);
	/* Before it sleeps, so that no key falls in between. */
	if (is_suspend)
		sleep_tell_all(b, true);
	return 0;
}

void
box_wake(struct box *b, const struct principal *who, const char *why)
{
	struct err e = { .code = 0 };

	if (b->is_leaving || b->m->is_closing)
		return;
	if (b->job) {
		if (b->is_sleep_job && b->is_suspending)
			snprintf(b->wake_why, sizeof(b->wake_why), "%s", why);
		return;
	}
	if (box_is_asleep(b) && sleep_start(b, false, who, why, &e) < 0)
		log_err("sandbox_not_resumed", "sandbox", b->spec.name, "why",
		    e.msg, NULL);
}

int
box_doze(struct box *b, const char *why, struct err *e)
{
	int rc = sandbox_require(b->provider, SANDBOX_CAP_SUSPEND, e);

	if (rc == 0 && (b->job || b->is_leaving || sleep_is_entered(b)))
		rc = err_set(e, -EBUSY, "it is being worked on");
	return rc < 0 ? rc : sleep_start(b, true, NULL, why, e);
}

/* ---- who waits for it ------------------------------------------------------ */

enum box_answer
box_rouse(struct box *b, struct request *r, enum manager_code *code_out,
    struct err *e)
{
	char why[160];

	*code_out = MANAGER_FAILED;
	/* It was tried for R, and did not come to run. */
	if (b->sleep_rc < 0 && !b->is_suspending && r->has_roused) {
		err_set(e, b->sleep_rc, "cannot resume sandbox %s: %s",
		    b->spec.name, b->sleep_why);
		return BOX_REFUSED;
	}
	snprintf(why, sizeof(why), "wanted by %s", r->who.identity);
	if (sleep_start(b, false, &r->who, why, e) < 0)
		return BOX_REFUSED;
	r->has_roused = true;
	box_wait(b, r);
	return BOX_WAITS;
}

static void
sleep_again(struct request *r, bool is_suspend)
{
	struct box *b = box_find(r->m, r->sandbox);
	enum manager_code code = MANAGER_FAILED;
	struct err e = { .code = 0 };
	enum box_answer answer;

	if (b && b->sleep_rc < 0 && b->is_suspending == is_suspend &&
	    r->has_roused) {
		request_fail(r,
		    b->sleep_rc == -EOPNOTSUPP ? MANAGER_REFUSED
					       : MANAGER_FAILED,
		    "%s", b->sleep_why);
		return;
	}
	answer = box_suspend(r, is_suspend, &code, &e);
	if (answer == BOX_REFUSED)
		request_fail(r, code, "%s", e.msg);
	else if (answer == BOX_READY)
		request_fail(r, MANAGER_OK, "%s", "");
}

static void
sleep_suspend_again(struct request *r)
{
	sleep_again(r, true);
}

static void
sleep_resume_again(struct request *r)
{
	sleep_again(r, false);
}

/* R waits in LIST and is looked at again. */
static enum box_answer
sleep_wait(struct box *b, struct request *r, struct list *list)
{
	list_remove(&r->node);
	list_append(list, &r->node);
	request_wait_box(r, 0);
	box_life_changed(b);
	return BOX_WAITS;
}

enum box_answer
box_suspend(struct request *r, bool is_suspend, enum manager_code *code_out,
    struct err *e)
{
	enum sandbox_phase to =
	    is_suspend ? SANDBOX_SUSPENDED : SANDBOX_RUNNING;
	struct box *b = box_find(r->m, r->sandbox);

	*code_out = MANAGER_NOT_FOUND;
	if (!b || !b->provider) {
		err_set(e, -ENOENT, "there is no sandbox %s", r->sandbox);
		return BOX_REFUSED;
	}
	*code_out = MANAGER_REFUSED;
	if (sandbox_require(b->provider, SANDBOX_CAP_SUSPEND, e) < 0)
		return BOX_REFUSED;
	*code_out = MANAGER_CONFLICT;
	if (b->is_leaving || (b->job && !b->is_sleep_job)) {
		err_set(e, -EBUSY, "sandbox %s is being worked on", r->sandbox);
		return BOX_REFUSED;
	}
	r->go_on = is_suspend ? sleep_suspend_again : sleep_resume_again;
	if (b->job) {
		/* The outcome of the same is the outcome for R. */
		r->has_roused = b->is_suspending == is_suspend;
		return sleep_wait(b, r, &b->requests);
	}
	if (box_is_asleep(b) == is_suspend &&
	    (b->phase == to || b->phase == SANDBOX_RUNNING)) {
		sleep_look(b);
		return BOX_READY;
	}
	if (b->phase != SANDBOX_RUNNING && b->phase != SANDBOX_SUSPENDED) {
		err_set(e, -EINVAL, "sandbox %s is %s", r->sandbox,
		    sandbox_phase_name(b->phase));
		return BOX_REFUSED;
	}
	if (is_suspend && sleep_is_entered(b))
		return sleep_wait(b, r, &b->settling);
	*code_out = MANAGER_FAILED;
	if (sleep_start(b, is_suspend, &r->who, NULL, e) < 0)
		return BOX_REFUSED;
	r->has_roused = true;
	return sleep_wait(b, r, &b->requests);
}
