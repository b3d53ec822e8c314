/*
 * Has members of pools made and removed; see pool.h. One job at a time, removals
 * first; whatever fails is tried again, later each time. What berthd leaves
 * behind when it is killed is found by the next one.
 */
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "sandbox/job.h"
#include "sessions/manager/box_internal.h"
#include "sessions/manager/pool_internal.h"
#include "sessions/manager/session.h"

#define POOL_JOB_MS       60000
#define POOL_RETRY_MS     1000
#define POOL_RETRY_MAX_MS 60000

static int64_t
pool_pause_ms(unsigned n_failures)
{
	int64_t ms = POOL_RETRY_MS;

	while (--n_failures > 0 && ms < POOL_RETRY_MAX_MS)
		ms *= 2;
	return ms < POOL_RETRY_MAX_MS ? ms : POOL_RETRY_MAX_MS;
}

void
pools_arm(struct pools *ps, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };
	int64_t due_ms = clock_mono_ms() + ms;

	if (evtimer_pending(ps->ev, NULL) && ps->due_ms <= due_ms)
		return;
	ps->due_ms = due_ms;
	evtimer_add(ps->ev, &tv);
}

/* Behind AT_MS, which is later than now. */
static void
pools_arm_at(struct pools *ps, int64_t at_ms)
{
	int64_t in_ms = at_ms - clock_mono_ms();

	pools_arm(ps, in_ms > 0 ? (int)in_ms : 0);
}

void
pool_failed(struct pool *p, const char *why)
{
	p->retry_ms = clock_mono_ms() + pool_pause_ms(++p->n_failures);
	snprintf(p->why, sizeof(p->why), "%s", why);
	log_warn("pool_not_filled", "template", p->template, "why", why, NULL);
	pools_arm(p->ps, 0);
}

/* ---- removing -------------------------------------------------------------- */

void
pools_discard(
    struct pools *ps, const struct sandbox_provider *provider, const char *id)
{
	struct pool_waste *w = xcalloc(1, sizeof(*w));

	w->provider = provider;
	snprintf(w->id, sizeof(w->id), "%s", id);
	list_append(&ps->waste, &w->node);
	pools_arm(ps, 0);
}

static void
pools_on_drained(const struct task_report *r, void *arg)
{
	struct pools *ps = arg;
	struct list *pos, *tmp;

	if (r->kind == TASK_PROGRESS)
		return;
	ps->job = NULL;
	list_for_each (pos, tmp, &ps->waste) {
		struct pool_waste *w = list_entry(pos, struct pool_waste, node);

		if (r->code == 0 && w->is_in_job) {
			list_remove(&w->node);
			free(w);
		} else {
			w->is_in_job = false;
		}
	}
	if (r->code < 0) {
		ps->retry_ms =
		    clock_mono_ms() + pool_pause_ms(++ps->n_failures);
		snprintf(ps->why, sizeof(ps->why), "%s", r->line);
		log_warn("pool_not_drained", "why", r->line, NULL);
	} else {
		ps->n_failures = 0;
	}
	pools_arm(ps, 0);
}

/* As many as fit, of one provider. */
static void
pools_gather(struct pools *ps, struct task *t)
{
	const struct pool_waste *first =
	    list_entry(ps->waste.next, struct pool_waste, node);
	struct list *pos, *tmp;
	size_t n = 0;

	snprintf(t->spec.name, sizeof(t->spec.name), "%s", first->id);
	snprintf(t->spec.provider, sizeof(t->spec.provider), "%s",
	    first->provider->name);
	list_for_each (pos, tmp, &ps->waste) {
		struct pool_waste *w = list_entry(pos, struct pool_waste, node);

		if (w->provider != first->provider ||
		    n + strlen(w->id) + 2 > sizeof(t->arg))
			continue;
		w->is_in_job = true;
		n += (size_t)snprintf(t->arg + n, sizeof(t->arg) - n, "%s%s",
		    n ? " " : "", w->id);
	}
}

/* True if a job has begun. */
static bool
pools_drain(struct pools *ps)
{
	struct task_report failed = { .kind = TASK_RESULT };
	struct task t = { .op = TASK_DRAIN, .spec = ps->m->spec };
	struct err e = { .code = 0 };

	if (list_empty(&ps->waste))
		return false;
	if (clock_mono_ms() < ps->retry_ms && ps->n_failures) {
		pools_arm_at(ps, ps->retry_ms);
		return false;
	}
	pools_gather(ps, &t);
	ps->job = job_start(ps->m->base, ps->m->sandbox_path, &t, POOL_JOB_MS,
	    pools_on_drained, ps, &e);
	if (ps->job)
		return true;
	failed.code = e.code;
	snprintf(failed.line, sizeof(failed.line), "%s", e.msg);
	pools_on_drained(&failed, ps);
	return false;
}

/* ---- making ---------------------------------------------------------------- */

static void
pools_on_filled(const struct task_report *r, void *arg)
{
	struct pools *ps = arg;
	struct pool *p = pool_by_key(ps, ps->fill.name);
	const struct sandbox_provider *provider;

	if (r->kind == TASK_PROGRESS)
		return;
	ps->job = NULL;
	pools_arm(ps, 0);
	if (r->code == 0 && p && pool_add(p, ps->fill.name)) {
		p->n_failures = 0;
		if (p->n_ready == p->target)
			log_info("pool_full", "template", p->template, NULL);
		return;
	}
	/* Its pool has gone, or something of it may be left. */
	provider = sandbox_find(ps->fill.provider, NULL);
	if (provider)
		pools_discard(ps, provider, ps->fill.name);
	if (p)
		pool_failed(p, r->code < 0 ? r->line : "it ended at once");
}

/* The one that lacks members, may be filled and has least. */
static struct pool *
pools_neediest(struct pools *ps)
{
	int64_t now_ms = clock_mono_ms();
	struct pool *found = NULL;
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &ps->all) {
		struct pool *p = list_entry(pos, struct pool, node);

		if (p->n_ready >= p->target)
			continue;
		if (now_ms < p->retry_ms)
			pools_arm_at(ps, p->retry_ms);
		else if (!found || p->n_ready < found->n_ready)
			found = p;
	}
	return found;
}

static void
pools_fill(struct pools *ps)
{
	struct task t = { .op = TASK_FILL };
	struct pool *p = pools_neediest(ps);
	char prefix[POOL_KEY_SIZE + 10];
	struct err e = { .code = 0 };

	if (!p)
		return;
	t.spec = p->spec;
	if (box_uid_range(ps->m)) {
		if (box_uid_next(ps->m, &t.spec.uid, &e) < 0) {
			pool_failed(p, e.msg);
			return;
		}
		t.spec.gid = t.spec.uid;
	}
	snprintf(prefix, sizeof(prefix), "%s-%08x-", p->key, t.spec.uid);
	text_random_id(prefix, 8, t.spec.name, sizeof(t.spec.name));
	ps->fill = t.spec;
	ps->job = job_start(ps->m->base, ps->m->sandbox_path, &t, POOL_JOB_MS,
	    pools_on_filled, ps, &e);
	if (!ps->job)
		pool_failed(p, e.msg);
}

static void
pools_work(struct pools *ps)
{
	struct list *pos, *tmp;
	char id[SANDBOX_NAME_SIZE];

	list_for_each (pos, tmp, &ps->all) {
		struct pool *p = list_entry(pos, struct pool, node);

		while (p->n_ready > p->target) {
			pool_pop(p, id);
			pools_discard(ps, p->provider, id);
		}
	}
	if (ps->job || (ps->m->is_closing && !ps->is_halting))
		return;
	if (!pools_drain(ps) && !ps->is_halting)
		pools_fill(ps);
}

static void
pools_on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	pools_work(arg);
}

/* ---- life ------------------------------------------------------------------ */

struct pools_found {
	struct pools *ps;
	const struct sandbox_provider *provider;
};

/* A member of a pool goes on to wait in it; all else is removed. */
static void
pools_on_found(const char *id, void *arg)
{
	const struct pools_found *f = arg;
	struct pool *p = pool_by_key(f->ps, id);
	bool is_ours = p && p->provider == f->provider;

	if (is_ours && pool_has(p, id))
		return;
	if (!is_ours || !pool_add(p, id))
		pools_discard(f->ps, f->provider, id);
}

void
pools_load(struct manager *m)
{
	struct pools *ps = xcalloc(1, sizeof(*ps));
	size_t n;
	const struct sandbox_provider *const *all = sandbox_all(&n);

	m->pools = ps;
	ps->m = m;
	list_init(&ps->all);
	list_init(&ps->waste);
	ps->ev = evtimer_new(m->base, pools_on_timer, ps);
	if (!ps->ev)
		abort();
	pools_reconfigure(m);
	for (size_t i = 0; i < n; i++) {
		struct pools_found f = { ps, all[i] };

		if (all[i]->members)
			all[i]->members(&m->spec, pools_on_found, &f);
	}
}

bool
pools_halt(struct manager *m)
{
	struct pools *ps = m->pools;
	struct list *pos, *tmp;

	ps->is_halting = true;
	list_for_each (pos, tmp, &ps->all)
		list_entry(pos, struct pool, node)->target = 0;
	pools_work(ps);
	return !ps->job && list_empty(&ps->waste);
}
