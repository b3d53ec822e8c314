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
#include <sys/file.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "conf/conf.h"
#include "sessions/manager/session.h"

#define MANAGER_PUMP_MS  50
#define MANAGER_CLOSE_MS 3000 /* beyond stop_grace at a closing with kill */

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

/* ---- what a former manager left ------------------------------------------ */

/* True if the keeper of ID holds its lock, so the session lives. */
static bool
manager_is_kept(struct manager *m, const char *id)
{
	autoclose int fd = -1;
	char name[STORE_ID_MAX + 8];

	snprintf(name, sizeof(name), "%s.lock", id);
	fd = openat(m->locks_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false;
	return flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

struct manager_left {
	struct store_session *rows;
	size_t n, cap;
};

static bool
manager_collect(const struct store_session *r, void *arg)
{
	struct manager_left *left = arg;

	if (left->n == left->cap) {
		left->cap = left->cap ? 2 * left->cap : 64;
		left->rows =
		    xrealloc(left->rows, left->cap * sizeof(*left->rows));
	}
	left->rows[left->n] = *r;
	left->rows[left->n].argv = r->argv ? xstrdup(r->argv) : NULL;
	left->rows[left->n].cwd = r->cwd ? xstrdup(r->cwd) : NULL;
	left->n++;
	return true;
}

static struct session *
manager_revive(struct manager *m, const struct store_session *r)
{
	struct session *s = session_new(m);
	struct store_recording rec;

	snprintf(s->id, sizeof(s->id), "%s", r->id);
	snprintf(s->sandbox, sizeof(s->sandbox), "%s", r->sandbox);
	snprintf(s->name, sizeof(s->name), "%s", r->name);
	s->sandbox_id = r->sandbox_id;
	s->is_pty = r->is_pty;
	s->created_ms = r->created_ms;
	s->started_ms = r->started_ms;
	s->pid = (pid_t)r->pid;
	s->argv_json = r->argv ? xstrdup(r->argv) : NULL;
	s->cwd = r->cwd ? xstrdup(r->cwd) : NULL;
	if (store_recording_find(m->store, r->id, &rec) == 0 &&
	    strcmp(rec.state, "open") == 0) {
		s->recording_id = rec.id;
		s->recording_ms = rec.started_ms;
		s->stats.rec_bytes = rec.bytes;
	}
	return s;
}

/* Every row that says creating or running is true, or becomes so. */
static void
manager_reconcile(struct manager *m)
{
	struct manager_left left = { 0 };

	store_session_each(m->store, false, manager_collect, &left);
	for (size_t i = 0; i < left.n; i++) {
		struct store_session *r = &left.rows[i];
		struct session *s = manager_revive(m, r);
		char name[STORE_ID_MAX + 8];
		int fd = -1;

		snprintf(name, sizeof(name), "%s.sock", r->id);
		if (r->status == SESSION_RUNNING)
			s->phase = PHASE_RUNNING;
		if (manager_is_kept(m, r->id))
			fd = fd_connect_unix(m->locks_fd, name);
		if (fd >= 0 && fd_set_nonblock(fd, true) == 0) {
			log_info("session_adopted", "sid", s->id, NULL);
			session_connect(s, fd);
		} else {
			session_lost(s, "the session did not survive");
			session_free(s);
		}
		store_session_release(r);
	}
	free(left.rows);
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
	m->generation = (uint64_t)clock_wall_ms();
	list_init(&m->sessions);
	m->locks_fd = fd_open_dir_at(m->runtime_fd, "sessions", 0700, e);
	m->pump_ev = evtimer_new(base, manager_on_pump, m);
	if (!m->pump_ev)
		abort();
	if (m->locks_fd < 0) {
		int rc = m->locks_fd;

		manager_free(m);
		return rc;
	}
	store_on_queued(store, manager_on_queued, m);
	manager_reconcile(m);
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
	free(m);
}

void
manager_reconfigure(struct manager *m, const struct conf *conf)
{
	m->conf = conf;
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

/* Looks every 20 ms whether the last session is gone, with a limit. */
static void
manager_on_close_tick(evutil_socket_t fd, short what, void *arg)
{
	struct manager *m = arg;
	struct timeval tick = { 0, 20000 };

	if (manager_is_empty(m) || clock_mono_ms() > m->close_deadline_ms)
		manager_on_close(fd, what, m);
	else
		evtimer_add(m->close_ev, &tick);
}

void
manager_close(
    struct manager *m, bool kill_all, void (*done)(void *arg), void *arg)
{
	uint64_t grace_ms = m->conf->session.stop_grace_ms;
	struct timeval now = { 0, 0 };
	struct list *pos, *tmp;

	m->is_closing = true;
	m->close_done = done;
	m->close_arg = arg;
	m->close_deadline_ms =
	    clock_mono_ms() + (int64_t)grace_ms + MANAGER_CLOSE_MS;
	m->close_ev = evtimer_new(
	    m->base, kill_all ? manager_on_close_tick : manager_on_close, m);
	if (!m->close_ev)
		abort();
	list_for_each (pos, tmp, &m->sessions) {
		struct session *s = list_entry(pos, struct session, node);

		if (kill_all && s->phase != PHASE_ENDED)
			session_stop(s);
	}
	evtimer_add(m->close_ev, &now);
}
