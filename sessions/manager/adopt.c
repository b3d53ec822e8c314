/*
 * Taking over what a former manager left; see adopt.h. The order for each row:
 * the lock, then the keeper's word, then what it wrote down at its end.
 */
#include "sessions/manager/adopt.h"

#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "conf/conf.h"
#include "sessions/manager/handover.h"
#include "sessions/manager/leftover.h"
#include "sessions/manager/session.h"
#include "sessions/wire/state_file.h"

/* A keeper that holds its lock and says nothing for so long is mentioned. */
#define ADOPT_SILENT_MS 5000

/* From the end of a link to looking at the lock: exit takes its time. */
static const int adopt_look_ms[] = { 5, 20, 50, 100, 300, 1000 };

/* Ids that a crash may have given out without a row on the disk. */
#define ADOPT_IDS_SKIPPED 1000

/*
 * The lock file of S; true in *IS_FREE_OUT when no keeper holds it. One that
 * cannot be looked at (no descriptor is free, say) is no free lock.
 */
static int
adopt_open_lock(const struct session *s, bool *is_free_out)
{
	char name[STORE_ID_MAX + 8];
	int fd;

	snprintf(name, sizeof(name), "%s.lock", s->id);
	fd = openat(s->m->locks_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	*is_free_out =
	    fd < 0 ? errno == ENOENT : flock(fd, LOCK_EX | LOCK_NB) == 0;
	return fd;
}

/* What the keeper of S wrote down, if this file is its own. */
static bool
adopt_read_state(const struct session *s, int lock_fd, struct state_file *out)
{
	int rc = lock_fd < 0 ? -ENOENT : state_file_read(lock_fd, out);

	if (rc == -EPROTO)
		log_warn("state_unreadable", "sid", s->id, NULL);
	return rc == 0 && strcmp(out->sid, s->id) == 0;
}

/* The keeper is gone and left its end behind. */
static void
adopt_tell_end(struct session *s, const struct state_file *st)
{
	struct store *store = s->m->store;

	for (uint32_t i = 0; i < st->n_left; i++) {
		const struct wire_left *l = &st->left[i];

		store_attachment_ended(store, s->id, (int64_t)l->attachment,
		    (int64_t)l->left_ms, l->bytes_out, l->bytes_in, l->resyncs);
	}
	if (s->phase == PHASE_STARTING && st->started_ms)
		store_session_started(
		    store, s->id, st->pid, (int64_t)st->started_ms);
	session_exited(s, &st->exited);
}

/*
 * What the keeper left running. It wrote the file as a user who may signal
 * nobody, so the leader is only whom it named before it read a byte from
 * anybody; the row of one that was just starting does not know that yet.
 */
static void
adopt_stop_rest(struct session *s, const struct state_file *st)
{
	if (s->phase == PHASE_STARTING ? leftover_is_of(st)
				       : s->pid == (pid_t)st->pid)
		leftover_stop(s->m, st);
	else if (st->pid)
		log_warn("leftover_refused", "sid", s->id, "why",
		    "its keeper named a process that is not the session's",
		    NULL);
}

/* The lock of S is free: stores how it ended, or that nobody knows. */
static void
adopt_end(struct session *s, int lock_fd)
{
	struct state_file st;

	if (adopt_read_state(s, lock_fd, &st)) {
		if (st.has_exited) {
			adopt_tell_end(s, &st);
			return;
		}
		adopt_stop_rest(s, &st);
	}
	recordings_repair(s);
	session_lost(s, s->phase == PHASE_STARTING
			    ? "the session did not survive its start"
			    : "the session was lost: its keeper is gone");
}

static void
adopt_arm(struct session *s)
{
	unsigned last = ARRAY_LEN(adopt_look_ms) - 1;
	int ms = adopt_look_ms[s->n_looks < last ? s->n_looks : last];
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	s->n_looks++;
	evtimer_add(s->adopt_ev, &tv);
}

static void
adopt_connect(struct session *s)
{
	char name[STORE_ID_MAX + 8];
	int fd;

	snprintf(name, sizeof(name), "%s.sock", s->id);
	fd = fd_connect_unix_nonblock(s->m->locks_fd, name);
	if (fd < 0)
		return;
	s->is_ready = s->has_taken = false;
	session_connect(s, fd);
}

static void
adopt_note_silence(struct session *s)
{
	if (s->is_silence_noted ||
	    clock_mono_ms() - s->alone_ms < ADOPT_SILENT_MS)
		return;
	s->is_silence_noted = true;
	log_warn("keeper_silent", "sid", s->id, "why",
	    "its keeper runs and does not answer; asking again", NULL);
}

/* Until the keeper answers or its lock is free. */
static void
adopt_on_look(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	autoclose int lock_fd = -1;
	bool is_free;

	(void)fd;
	(void)what;
	if (s->is_ready || s->phase == PHASE_ENDED)
		return;
	lock_fd = adopt_open_lock(s, &is_free);
	if (is_free) {
		wire_release(&s->wire);
		adopt_end(s, lock_fd);
		session_maybe_free(s);
		return;
	}
	adopt_note_silence(s);
	if (s->wire.is_closing)
		adopt_connect(s);
	adopt_arm(s);
}

void
adopt_look_soon(struct session *s)
{
	wire_release(&s->wire);
	s->was_adopted = true;
	s->is_ready = s->is_silence_noted = false;
	s->n_looks = 0;
	s->alone_ms = clock_mono_ms();
	if (!s->adopt_ev)
		s->adopt_ev = evtimer_new(s->m->base, adopt_on_look, s);
	if (!s->adopt_ev)
		abort();
	adopt_arm(s);
}

/* It started while no manager was there to be told when. */
static void
adopt_learn_start(struct session *s)
{
	autoclose int lock_fd = -1;
	struct state_file st;
	bool is_free;

	if (s->started_ms)
		return;
	lock_fd = adopt_open_lock(s, &is_free);
	s->started_ms = adopt_read_state(s, lock_fd, &st) && st.started_ms
			    ? (int64_t)st.started_ms
			    : clock_wall_ms();
}

static void
adopt_take(struct session *s, uint64_t seen)
{
	struct manager *m = s->m;
	struct wire_take take = { .version = s->wire.version };
	struct buf b = { 0 };

	/* Whose lock on the state directory we hold: nobody comes after us. */
	if (seen >= m->generation)
		m->generation = seen + 1;
	take.generation = m->generation;
	wire_take_encode(&b, &take);
	wire_send_buf(&s->wire, FRAME_TAKE, 0, 0, &b);
	buf_release(&b);
	s->has_taken = true;
}

int
adopt_on_hello(struct session *s, const struct wire_hello *h)
{
	if (strcmp(h->sid, s->id) != 0)
		return -EPROTO;
	if (s->wire.version >= 2 && !s->has_taken) {
		adopt_take(s, h->generation);
		return 0;
	}
	s->is_ready = true;
	s->stats = h->stats;
	s->n_attached = h->n_viewers;
	if (s->adopt_ev)
		event_del(s->adopt_ev);
	log_info("session_adopted", "sid", s->id, NULL);
	if (h->state != STATE_STARTING) {
		adopt_learn_start(s);
		session_runs(s, (pid_t)h->pid, s->started_ms);
	}
	if (s->wants_stop)
		session_stop(s);
	box_adopted(s);
	request_on_ready(s);
	return 0;
}

/* ---- at the start ---------------------------------------------------------- */

struct adopt_rows {
	struct store_session *rows;
	size_t n, cap;
};

static bool
adopt_collect(const struct store_session *r, void *arg)
{
	struct adopt_rows *all = arg;

	if (all->n == all->cap) {
		all->cap = all->cap ? 2 * all->cap : 64;
		all->rows = xrealloc(all->rows, all->cap * sizeof(*all->rows));
	}
	all->rows[all->n] = *r;
	all->rows[all->n].argv = r->argv ? xstrdup(r->argv) : NULL;
	all->rows[all->n].cwd = r->cwd ? xstrdup(r->cwd) : NULL;
	all->n++;
	return true;
}

static struct session *
adopt_revive(struct manager *m, const struct store_session *r)
{
	struct session *s = session_new(m);

	snprintf(s->id, sizeof(s->id), "%s", r->id);
	snprintf(s->sandbox, sizeof(s->sandbox), "%s", r->sandbox);
	snprintf(s->name, sizeof(s->name), "%s", r->name);
	s->sandbox_id = r->sandbox_id;
	s->is_pty = r->is_pty;
	s->transfer.is_possible = !r->is_pty;
	s->created_ms = r->created_ms;
	s->started_ms = r->started_ms;
	s->pid = (pid_t)r->pid;
	s->stats.cols = r->cols;
	s->stats.rows = r->rows;
	s->stats.bytes_out = r->bytes_out;
	s->stats.bytes_in = r->bytes_in;
	s->argv_json = r->argv ? xstrdup(r->argv) : NULL;
	s->cwd = r->cwd ? xstrdup(r->cwd) : NULL;
	if (r->status == SESSION_RUNNING)
		s->phase = PHASE_RUNNING;
	recordings_revive(s);
	return s;
}

static void
adopt_one(struct manager *m, const struct store_session *r)
{
	struct session *s = adopt_revive(m, r);
	autoclose int lock_fd = -1;
	bool is_free;

	if (handover_resume(s))
		return;
	lock_fd = adopt_open_lock(s, &is_free);
	s->was_adopted = true;
	if (is_free) {
		adopt_end(s, lock_fd);
		session_maybe_free(s);
		return;
	}
	adopt_look_soon(s);
	adopt_connect(s);
}

/* True if the lock NAME ("SID.lock") is held or belongs to a session of M. */
static bool
adopt_is_lock_needed(struct manager *m, const char *name)
{
	size_t n = strlen(name) - 5;
	char id[STORE_ID_MAX];
	autoclose int fd = -1;

	if (n >= sizeof(id))
		return false;
	snprintf(id, sizeof(id), "%.*s", (int)n, name);
	if (session_by_id(m, id))
		return true;
	fd = openat(m->locks_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0;
}

/* Locks whose session has ended long ago, and their sockets. */
static void
adopt_clean_locks(struct manager *m)
{
	int fd = openat(m->locks_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((d = readdir(dir))) {
		const char *dot = strrchr(d->d_name, '.');
		char sock[STORE_ID_MAX + 8];

		if (!dot || strcmp(dot, ".lock") != 0 ||
		    adopt_is_lock_needed(m, d->d_name))
			continue;
		snprintf(sock, sizeof(sock), "%.*s.sock",
		    (int)(dot - d->d_name), d->d_name);
		unlinkat(m->locks_fd, sock, 0);
		unlinkat(m->locks_fd, d->d_name, 0);
	}
	closedir(dir);
}

void
adopt_all(struct manager *m)
{
	struct adopt_rows all = { 0 };

	store_session_each(m->store, false, adopt_collect, &all);
	if (all.n && list_empty(&m->handovers))
		store_attachment_skip_ids(m->store, ADOPT_IDS_SKIPPED);
	for (size_t i = 0; i < all.n; i++) {
		adopt_one(m, &all.rows[i]);
		store_session_release(&all.rows[i]);
	}
	free(all.rows);
	handover_forget(m);
	recordings_close_open(m);
	adopt_clean_locks(m);
}
