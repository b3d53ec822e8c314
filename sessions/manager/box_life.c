/*
 * Sandboxes that sleep and end by themselves; see box.h and life.h. One timer a
 * box, set whenever something changes. A restart of berthd counts as use, since
 * who was there until then is not known; the lifetime goes on.
 */
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "sessions/manager/attachment.h"
#include "sessions/manager/box.h"
#include "sessions/manager/box_internal.h"
#include "sessions/manager/session.h"

/* A removal that failed is not tried again at once. */
#define BOX_LIFE_PAUSE_MS 60000

/* What cannot be done while somebody works on the box is tried again. */
#define BOX_LIFE_AGAIN_MS 1000

static void box_life_on_timer(evutil_socket_t fd, short what, void *arg);

/* ---- use ------------------------------------------------------------------- */

/* True if somebody who counts is attached to S, or is just being so. */
static bool
box_life_has_viewer(const struct box *b, struct session *s)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &s->requests) {
		const struct request *r = list_entry(pos, struct request, node);

		if (r->wants_link && (b->life.rules.viewers_wake ||
					 (r->viewer.flags & VIEWER_MAY_TYPE)))
			return true;
	}
	if (b->life.rules.viewers_wake)
		return s->n_attached > 0;
	for (size_t i = 0; i < s->n_viewers; i++) {
		if (!s->viewers[i].is_watcher)
			return true;
	}
	/* A keeper of version 1 does not say who they are. */
	return s->n_attached > s->n_viewers;
}

/*
 * Private processes are somebody's own, and end with whoever started them. Who
 * is attached where a keeper does not answer is not known.
 */
static bool
box_life_is_used(const struct box *b)
{
	struct list *pos, *tmp;

	if (b->n_held || !list_empty(&b->requests) || !list_empty(&b->settling))
		return true;
	list_for_each (pos, tmp, &b->m->sessions) {
		struct session *s = list_entry(pos, struct session, node);

		if (s->phase == PHASE_ENDED ||
		    strcmp(s->sandbox, b->spec.name) != 0)
			continue;
		if (!s->name[0] || s->phase == PHASE_STARTING || !s->is_ready ||
		    box_life_has_viewer(b, s))
			return true;
	}
	return false;
}

/* ---- the timer ------------------------------------------------------------- */

static void
box_life_set_timer(struct box *b)
{
	int64_t now_ms = clock_mono_ms(), in_ms;
	struct timeval tv;

	/* What is due already is done from the loop. */
	if (life_next(&b->life, now_ms, clock_wall_ms(), &in_ms) != LIFE_NONE)
		in_ms = 0;
	if (in_ms < 0) {
		event_del(b->life_ev);
		return;
	}
	if (in_ms < b->life_pause_ms - now_ms)
		in_ms = b->life_pause_ms - now_ms;
	tv = (struct timeval){ in_ms / 1000, in_ms % 1000 * 1000 };
	evtimer_add(b->life_ev, &tv);
}

void
box_life_changed(struct box *b)
{
	bool is_change =
	    life_set_busy(&b->life, box_life_is_used(b), clock_mono_ms());

	if (!b->life_ev || b->is_leaving)
		return;
	if (is_change && !b->life.is_busy)
		store_sandbox_touch(b->m->store, b->id, clock_wall_ms());
	box_life_set_timer(b);
}

void
box_life_woken(struct box *b)
{
	life_restart(&b->life, clock_mono_ms());
	box_life_changed(b);
}

void
box_life_load(struct box *b)
{
	struct conf_template t;
	struct err e = { .code = 0 };

	if (!b->life_ev)
		b->life_ev = evtimer_new(b->m->base, box_life_on_timer, b);
	if (!b->life_ev)
		abort();
	/* Whoever takes the template away does not mean that all of it goes. */
	if (conf_template_find(b->m->conf, b->template, &t, &e) < 0)
		return;
	b->life.rules = (struct life_rules){
		.idle_suspend_ms = t.idle_suspend_ms,
		.idle_teardown_ms = t.idle_teardown_ms,
		.lifetime_ms = t.lifetime_ms,
		.viewers_wake = t.viewers_wake,
	};
	box_life_changed(b);
}

void
box_life_begin(struct box *b, int64_t created_ms)
{
	b->life.created_ms = created_ms;
	life_restart(&b->life, clock_mono_ms());
	box_life_load(b);
}

/* ---- what is due ----------------------------------------------------------- */

/* Everybody who is attached to S, or just being so, hears WHY and is let go. */
static void
box_life_drop_all(struct session *s, const char *why)
{
	struct list *pos, *tmp;

	for (size_t i = 0; i < s->n_viewers; i++)
		attachment_drop(s, s->viewers[i].attachment, why);
	list_for_each (pos, tmp, &s->requests) {
		const struct request *r = list_entry(pos, struct request, node);

		if (r->state == REQUEST_ACK)
			attachment_drop(s, (int64_t)r->viewer.attachment, why);
	}
}

static void
box_life_tell(struct box *b, const char *why)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &b->m->sessions) {
		struct session *s = list_entry(pos, struct session, node);

		if (s->phase == PHASE_ENDED ||
		    strcmp(s->sandbox, b->spec.name) != 0)
			continue;
		/* Its end may come when its sandbox is gone already. */
		snprintf(s->reason, sizeof(s->reason), "%s", b->reason);
		if (s->is_ready)
			box_life_drop_all(s, why);
	}
}

static void
box_life_doze(struct box *b)
{
	struct err e = { .code = 0 };
	char why[256];

	if (b->phase != SANDBOX_RUNNING || box_is_asleep(b)) {
		b->life.has_dozed = true;
		return;
	}
	life_sentence(
	    &b->life.rules, LIFE_SUSPEND, b->spec.name, why, sizeof(why));
	/* Once; who cannot be suspended now cannot be a second later. */
	b->life.has_dozed = true;
	if (box_doze(b, why, &e) < 0)
		log_warn("sandbox_not_suspended", "sandbox", b->spec.name,
		    "why", e.msg, NULL);
}

static void
box_life_end(struct box *b, enum life_due due)
{
	char why[256];

	life_sentence(&b->life.rules, due, b->spec.name, why, sizeof(why));
	snprintf(b->reason, sizeof(b->reason), "%s", life_reason(due));
	log_info("sandbox_expired", "sandbox", b->spec.name, "why", why, NULL);
	store_audit(b->m->store, "sandbox_expired", NULL, NULL, b->spec.name,
	    NULL, why);
	box_life_tell(b, why);
	b->life_pause_ms = clock_mono_ms() + BOX_LIFE_PAUSE_MS;
	b->is_removed = true;
	box_begin_leaving(b);
}

static void
box_life_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct box *b = arg;
	struct timeval again = { BOX_LIFE_AGAIN_MS / 1000, 0 };
	enum life_due due;
	int64_t in_ms;

	(void)fd;
	(void)what;
	if (b->is_leaving || b->m->is_closing || !b->provider)
		return;
	if (b->job) {
		evtimer_add(b->life_ev, &again);
		return;
	}
	/* Who has just begun to come has not told. */
	life_set_busy(&b->life, box_life_is_used(b), clock_mono_ms());
	due = life_next(&b->life, clock_mono_ms(), clock_wall_ms(), &in_ms);
	if (due == LIFE_OVER || due == LIFE_IDLE) {
		box_life_end(b, due);
		return;
	}
	if (due == LIFE_SUSPEND)
		box_life_doze(b);
	box_life_set_timer(b);
}

/* ---- others ---------------------------------------------------------------- */

void
manager_sandbox_hold(struct manager *m, const char *name, bool is_new)
{
	struct box *b = box_find(m, name);

	if (!b)
		return;
	b->n_held++;
	if (is_new)
		box_wake(b, NULL, "a forwarded connection");
	box_life_changed(b);
}

void
manager_sandbox_release(struct manager *m, const char *name)
{
	struct box *b = box_find(m, name);

	/* It may be another one of that name by now. */
	if (!b || !b->n_held)
		return;
	b->n_held--;
	box_life_changed(b);
}

void
boxes_reconfigure(struct manager *m)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &m->boxes)
		box_life_load(list_entry(pos, struct box, node));
}
