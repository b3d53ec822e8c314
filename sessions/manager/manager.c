/*
 * The manager's life: start with what a former one left, keep the store's queue
 * moving, close in order. See manager.h for the rest of the map.
 */
#include "sessions/manager/manager.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "conf/conf.h"
#include "sessions/manager/adopt.h"
#include "sessions/manager/handover.h"
#include "sessions/manager/leftover.h"
#include "sessions/manager/pool.h"
#include "sessions/manager/reindex.h"
#include "sessions/manager/session.h"

#define MANAGER_PUMP_MS  50
#define MANAGER_CLOSE_MS 3000 /* beyond stop_grace at a closing with kill */
#define MANAGER_FLUSH_MS 2000 /* for the recordings of those that go on */

/* ---- the store's queue --------------------------------------------------- */

static void
manager_arm_pump(struct manager *m, int ms)
{
	struct timeval tv = { ms / 1000, (ms % 1000) * 1000 };

	if (!evtimer_pending(m->pump_ev, NULL))
		evtimer_add(m->pump_ev, &tv);
}

static void
manager_on_pump(evutil_socket_t fd, short what, void *arg)
{
	struct manager *m = arg;
	struct err e = { 0 };
	int rc = store_pump(m->store, &e);

	(void)fd;
	(void)what;
	if (rc == 0)
		session_remove_spent(m);
	if (rc == -EAGAIN)
		manager_arm_pump(m, MANAGER_PUMP_MS);
	else if (rc < 0)
		log_err("store_failed", "why", e.msg, NULL);
}

/* Several writes of one turn of the loop share a transaction. */
static void
manager_on_queued(void *arg)
{
	manager_arm_pump(arg, 2);
}

/* ---- life ------------------------------------------------------------------ */

int
manager_new(struct event_base *base, const struct conf *conf,
    struct store *store, const struct manager_paths *paths,
    struct manager **out, struct err *e)
{
	struct manager *m = xcalloc(1, sizeof(*m));

	m->base = base;
	m->conf = conf;
	m->store = store;
	m->runtime_fd = paths->runtime_fd;
	m->recordings_dir = xstrdup(paths->recordings_dir);
	m->keeper_path = xstrdup(paths->keeper_path);
	m->sandbox_path = xstrdup(paths->sandbox_path);
	m->archive_path = snapshot_program(paths->sandbox_path);
	m->spec = *paths->spec;
	m->generation = (uint64_t)clock_wall_ms();
	list_init(&m->boxes);
	list_init(&m->sessions);
	list_init(&m->leftovers);
	list_init(&m->spent);
	list_init(&m->handovers);
	list_init(&m->reindexes);
	m->locks_fd = fd_open_dir_at(m->runtime_fd, "sessions", 0700, e);
	m->pump_ev = evtimer_new(base, manager_on_pump, m);
	if (!m->pump_ev)
		abort();
	if (m->locks_fd < 0) {
		int rc = m->locks_fd;

		manager_free(m);
		return rc;
	}
	if (paths->handoff && handover_load(m, paths->handoff) < 0) {
		manager_free(m);
		return err_set(e, -EPROTO,
		    "what the former berthd left of its sessions cannot be"
		    " read");
	}
	store_on_queued(store, manager_on_queued, m);
	boxes_load(m);
	pools_load(m);
	snapshots_sweep(m);
	adopt_all(m);
	recordings_start_sweep(m);
	manager_arm_pump(m, 0);
	*out = m;
	return 0;
}

void
manager_free(struct manager *m)
{
	struct list *pos, *tmp;

	if (!m)
		return;
	list_for_each (pos, tmp, &m->sessions) {
		struct session *s = list_entry(pos, struct session, node);

		while (!list_empty(&s->requests))
			request_free(
			    list_entry(s->requests.next, struct request, node));
		session_free(s);
	}
	pools_free(m);
	boxes_free(m);
	reindex_release(m);
	leftover_release_all(m);
	/* What is not on the disk is told again to the next manager. */
	if (store_pump(m->store, NULL) == 0)
		session_remove_spent(m);
	while (!list_empty(&m->spent)) {
		struct list *node = m->spent.next;

		list_remove(node);
		free(list_entry(node, struct spent, node));
	}
	store_on_queued(m->store, NULL, NULL);
	if (m->pump_ev)
		event_free(m->pump_ev);
	if (m->sweep_ev)
		event_free(m->sweep_ev);
	if (m->close_ev)
		event_free(m->close_ev);
	if (m->locks_fd >= 0)
		close(m->locks_fd);
	free(m->recordings_dir);
	free(m->keeper_path);
	free(m->sandbox_path);
	free(m->archive_path);
	free(m);
}

bool
manager_is_quiet(const struct manager *m)
{
	return m->n_requests == 0;
}

void
manager_fail_all(struct manager *m, const char *why)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &m->sessions) {
		struct session *s = list_entry(pos, struct session, node);

		while (!list_empty(&s->requests))
			request_answer(
			    list_entry(s->requests.next, struct request, node),
			    MANAGER_FAILED, why, -1);
	}
	list_for_each (pos, tmp, &m->boxes) {
		struct box *b = list_entry(pos, struct box, node);

		while (!list_empty(&b->requests))
			request_answer(
			    list_entry(b->requests.next, struct request, node),
			    MANAGER_FAILED, why, -1);
		while (!list_empty(&b->settling))
			request_answer(
			    list_entry(b->settling.next, struct request, node),
			    MANAGER_FAILED, why, -1);
		while (!list_empty(&b->copying))
			request_answer(
			    list_entry(b->copying.next, struct request, node),
			    MANAGER_FAILED, why, -1);
	}
}

void
manager_reconfigure(struct manager *m, const struct conf *conf)
{
	m->conf = conf;
	boxes_reconfigure(m);
	pools_reconfigure(m);
}

void
manager_on_sandbox_end(
    struct manager *m, void (*fn)(const char *name, void *arg), void *arg)
{
	m->on_sandbox_end = fn;
	m->on_sandbox_end_arg = arg;
}

struct session *
manager_find(struct manager *m, const char *ref)
{
	struct list *pos, *tmp;
	struct session *found = NULL;
	size_t n = strlen(ref);

	list_for_each (pos, tmp, &m->sessions) {
		struct session *s = list_entry(pos, struct session, node);
		char full[2 * STORE_NAME_MAX + 2];

		if (s->phase == PHASE_ENDED)
			continue;
		snprintf(full, sizeof(full), "%s+%s", s->sandbox, s->name);
		if (strcmp(s->id, ref) == 0 ||
		    (s->name[0] && strcmp(full, ref) == 0))
			return s;
		if (n > 4 && strncmp(s->id, ref, n) == 0) {
			if (found)
				return NULL;
			found = s;
		}
	}
	return found;
}

static bool
manager_is_empty(const struct manager *m)
{
	const struct list *pos;

	for (pos = m->sessions.next; pos != &m->sessions; pos = pos->next) {
		const struct session *s = list_entry(
		    (struct list *)(uintptr_t)pos, struct session, node);

		if (s->phase != PHASE_ENDED)
			return false;
	}
	return true;
}

static void
manager_on_close(evutil_socket_t fd, short what, void *arg)
{
	struct manager *m = arg;

	(void)fd;
	(void)what;
	m->close_done(m->close_arg);
}

/* Looks every 20 ms whether all is done that was asked for, with a limit. */
static void
manager_on_close_tick(evutil_socket_t fd, short what, void *arg)
{
	struct manager *m = arg;
	struct timeval tick = { 0, 20000 };
	bool is_done = m->closes_all ? manager_is_empty(m) && boxes_halt(m)
				     : manager_is_quiet(m);

	if (m->closes_all && !pools_halt(m))
		is_done = false;

	if (is_done || clock_mono_ms() > m->close_deadline_ms)
		manager_on_close(fd, what, m);
	else
		evtimer_add(m->close_ev, &tick);
}

/* Or not, within the limit: the keeper goes on and flushes by itself. */
static void
manager_on_flushed(const struct manager_answer *a, void *arg)
{
	(void)a;
	(void)arg;
}

void
manager_close(
    struct manager *m, bool kill_all, void (*done)(void *arg), void *arg)
{
	int64_t limit_ms = kill_all ? (int64_t)m->conf->session.stop_grace_ms +
					  MANAGER_CLOSE_MS
				    : MANAGER_FLUSH_MS;
	struct timeval now = { 0, 0 };
	struct list *pos, *tmp;

	/* What sleeps hears no signal. */
	list_for_each (pos, tmp, &m->boxes) {
		if (kill_all)
			box_wake(list_entry(pos, struct box, node), NULL,
			    "berthd ends");
	}
	m->is_closing = true;
	m->closes_all = kill_all;
	m->close_done = done;
	m->close_arg = arg;
	m->close_deadline_ms = clock_mono_ms() + limit_ms;
	m->close_ev = evtimer_new(m->base, manager_on_close_tick, m);
	if (!m->close_ev)
		abort();
	list_for_each (pos, tmp, &m->sessions) {
		struct session *s = list_entry(pos, struct session, node);

		if (s->phase == PHASE_ENDED)
			continue;
		if (kill_all)
			session_stop(s);
		else if (s->is_ready && s->recording_id)
			manager_flush_recording(m, s, manager_on_flushed, NULL);
	}
	evtimer_add(m->close_ev, &now);
}
