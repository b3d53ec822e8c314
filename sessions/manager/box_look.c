/*
 * How berthd finds out what sandboxes do: by a descriptor that becomes readable,
 * or by asking an engine from time to time; see box.h. One that is asked and
 * does not answer has lost nothing.
 */
#include <event2/event.h>
#include <stdio.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "sessions/manager/box.h"
#include "sessions/manager/box_internal.h"
#include "sessions/manager/session.h"

#define BOX_POLL_EACH_MS 100
#define BOX_POLL_MAX_MS  12000

void
box_unwatch(struct box *b)
{
	if (b->watch_ev)
		event_free(take_ptr(b->watch_ev));
	if (b->watch_fd >= 0)
		close(take_fd(&b->watch_fd));
}

static void
box_on_lost(evutil_socket_t fd, short what, void *arg)
{
	struct box *b = arg;

	(void)fd;
	(void)what;
	box_unwatch(b);
	if (!b->is_leaving)
		box_lose(b, "its first process ended");
}

/*
 * So often that an end is noticed in time, and that many sandboxes do not keep
 * this machine busy with the question.
 */
static uint32_t
box_poll_ms(const struct box *b)
{
	uint32_t ms = b->provider->poll_ms, n = 0;
	struct list *pos, *tmp;

	if (b->phase != SANDBOX_RUNNING)
		return ms > BOX_POLL_MAX_MS ? ms : BOX_POLL_MAX_MS;
	list_for_each (pos, tmp, &b->m->boxes)
		n++;
	if (ms < n * BOX_POLL_EACH_MS)
		ms = n * BOX_POLL_EACH_MS < BOX_POLL_MAX_MS
			 ? n * BOX_POLL_EACH_MS
			 : BOX_POLL_MAX_MS;
	return ms;
}

static void
box_probe_in(struct box *b, uint32_t ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	evtimer_add(b->probe_ev, &tv);
}

/* What an engine says that nobody works on: lost, back, suspended. */
static void
box_found(struct box *b, const struct sandbox_made *made)
{
	b->is_known = true;
	snprintf(b->spec.address, sizeof(b->spec.address), "%s", made->address);
	if (made->phase == b->phase)
		return;
	if (made->phase == SANDBOX_RUNNING)
		box_turn(b, SANDBOX_RUNNING, "sandbox_running", NULL, NULL);
	else if (made->phase == SANDBOX_SUSPENDED)
		box_turn(b, SANDBOX_SUSPENDED, "sandbox_suspended", NULL, NULL);
	else if (b->phase == SANDBOX_RUNNING || b->phase == SANDBOX_SUSPENDED)
		box_lose(b, made->phase == SANDBOX_GONE
				? "its engine does not know it any more"
				: "it does not run any more");
}

static void
box_on_probe(const struct task_report *r, void *arg)
{
	struct box *b = arg;

	if (r->kind == TASK_PROGRESS)
		return;
	b->probe = NULL;
	box_probe_in(b, box_poll_ms(b));
	/* Whoever works on it knows better. */
	if (b->job || b->is_leaving || b->is_initialising)
		return;
	if (r->code < 0 && !b->is_unclear)
		log_warn("sandbox_unclear", "sandbox", b->spec.name, "why",
		    r->line, NULL);
	b->is_unclear = r->code < 0;
	if (r->code == 0)
		box_found(b, &r->made);
}

static void
box_on_probe_timer(evutil_socket_t fd, short what, void *arg)
{
	struct box *b = arg;
	struct err e = { .code = 0 };

	(void)fd;
	(void)what;
	if (b->probe)
		return;
	if (!b->job && !b->is_leaving)
		b->probe = box_start(b, TASK_PROBE, "", box_on_probe, &e);
	if (!b->probe)
		box_probe_in(b, box_poll_ms(b));
}

/* Asks B's engine from time to time, for the first time at once or later. */
static void
box_poll(struct box *b, bool at_once)
{
	if (!b->probe_ev)
		b->probe_ev = evtimer_new(b->m->base, box_on_probe_timer, b);
	if (!b->probe_ev)
		abort();
	box_probe_in(b, at_once ? 0 : box_poll_ms(b));
}

void
box_watch(struct box *b)
{
	box_unwatch(b);
	if (b->provider->poll_ms) {
		box_poll(b, !b->is_known);
		return;
	}
	b->watch_fd = b->provider->watch(&b->spec);
	if (b->watch_fd < 0)
		return;
	b->watch_ev =
	    event_new(b->m->base, b->watch_fd, EV_READ, box_on_lost, b);
	if (!b->watch_ev)
		abort();
	event_add(b->watch_ev, NULL);
}

bool
box_lives(enum sandbox_phase p)
{
	return p == SANDBOX_RUNNING || p == SANDBOX_SUSPENDED;
}

void
box_look(struct box *b)
{
	enum sandbox_phase now;

	if (!b->provider)
		return;
	if (b->provider->poll_ms) {
		if (b->phase == SANDBOX_PENDING)
			box_lose(b, "berthd ended while it was made");
		box_poll(b, true);
		return;
	}
	now = b->provider->status(&b->spec);
	/* It is there, but its init command may have done half of its work. */
	if (b->phase == SANDBOX_PENDING && box_needs_init(b)) {
		box_lose(b, "berthd ended while it was made");
		return;
	}
	if (now == SANDBOX_RUNNING && b->phase != now)
		box_turn(b, now, "sandbox_running", NULL, NULL);
	else if (now == SANDBOX_SUSPENDED && b->phase != now)
		box_turn(b, now, "sandbox_suspended", NULL, NULL);
	else if (!box_lives(now) && box_lives(b->phase))
		box_lose(b, "it does not run any more");
	/* Whoever still works on it for a former berthd is waited for. */
	else if (!box_lives(now) && b->phase == SANDBOX_PENDING)
		box_lose(b, "berthd ended while it was made");
	if (box_lives(b->phase))
		box_watch(b);
}

void
box_look_soon(struct box *b)
{
	if (b->provider->poll_ms)
		box_poll(b, true);
}
