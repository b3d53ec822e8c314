/*
 * The files of recordings: RECORDINGS/SANDBOX/SID.cast, 0600, made once, never
 * through a link, removed when their time is over and their session has ended.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "conf/conf.h"
#include "sessions/manager/reindex.h"
#include "sessions/manager/session.h"

#define RECORDINGS_BATCH 64
#define RECORDINGS_PART  65536

static int
recordings_dir(struct manager *m, const char *sandbox, struct err *e)
{
	autoclose int root_fd = fd_open_dir(m->recordings_dir, 0700, e);

	if (root_fd < 0)
		return root_fd;
	return fd_open_dir_at(root_fd, sandbox, 0700, e);
}

int
recordings_create(struct manager *m, const char *sandbox, const char *sid,
    char *path_out, size_t path_size, struct err *e)
{
	autoclose int dir_fd = recordings_dir(m, sandbox, e);
	char name[STORE_ID_MAX + 8];
	int fd, n;

	if (dir_fd < 0)
		return dir_fd;
	snprintf(name, sizeof(name), "%s.cast", sid);
	n = snprintf(
	    path_out, path_size, "%s/%s/%s", m->recordings_dir, sandbox, name);
	if (n < 0 || (size_t)n >= path_size)
		return err_set(e, -ENAMETOOLONG, "recording.dir is too long");
	fd = openat(dir_fd, name,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(e, -errno, "cannot make %s", path_out);
	return fd;
}

int
recordings_open(
    struct manager *m, const struct store_recording *r, struct err *e)
{
	autoclose int dir_fd = recordings_dir(m, r->sandbox, e);
	char name[STORE_ID_MAX + 8];
	struct stat st;
	int fd;

	if (dir_fd < 0)
		return dir_fd;
	snprintf(name, sizeof(name), "%s.cast", r->session_id);
	fd = openat(
	    dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, -errno, "cannot open the recording of %s",
		    r->session_id);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return err_set(e, -EINVAL,
		    "the recording of %s is not a plain file", r->session_id);
	}
	return fd;
}

/* The file is there and its row was lost in a crash. */
static void
recordings_register_lost_row(struct session *s)
{
	struct store_recording row = { .started_ms = s->created_ms };
	struct err e = { 0 };
	autoclose int dir_fd = recordings_dir(s->m, s->sandbox, &e);
	char name[STORE_ID_MAX + 8];
	struct stat st;

	snprintf(name, sizeof(name), "%s.cast", s->id);
	if (dir_fd < 0 || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode))
		return;
	snprintf(row.session_id, sizeof(row.session_id), "%s", s->id);
	snprintf(row.sandbox, sizeof(row.sandbox), "%s", s->sandbox);
	snprintf(row.name, sizeof(row.name), "%s", s->name);
	snprintf(row.path, sizeof(row.path), "%s/%s/%s", s->m->recordings_dir,
	    s->sandbox, name);
	s->recording_ms = row.started_ms;
	s->recording_id = store_recording_insert(s->m->store, &row);
}

void
recordings_revive(struct session *s)
{
	struct store *store = s->m->store;
	struct store_recording r;
	int rc = store_recording_find(store, s->id, &r);

	if (rc == 0 && strcmp(r.state, "open") == 0) {
		s->recording_id = r.id;
		s->recording_ms = r.started_ms;
		s->stats.rec_bytes = r.bytes;
		s->stats.rec_duration_ms = (uint64_t)r.duration_ms;
	} else if (rc == -ENOENT) {
		recordings_register_lost_row(s);
	}
}

/* Where the last whole line of the N bytes of FD ends; 0 when there is none. */
static off_t
recordings_last_line(int fd, off_t n)
{
	char part[RECORDINGS_PART];

	while (n > 0) {
		off_t from =
		    n > (off_t)sizeof(part) ? n - (off_t)sizeof(part) : 0;
		ssize_t got = pread(fd, part, (size_t)(n - from), from);
		const char *nl =
		    got > 0 ? memrchr(part, '\n', (size_t)got) : NULL;

		if (got <= 0)
			return 0;
		if (nl)
			return from + (nl - part) + 1;
		n = from;
	}
	return 0;
}

/* The time of the event line that ends at N, in ms; 0 for the header. */
static uint64_t
recordings_line_ms(int fd, off_t n)
{
	off_t from = n > 1 ? recordings_last_line(fd, n - 1) : 0;
	char text[64];
	ssize_t got = pread(fd, text, sizeof(text) - 1, from);
	double t;

	text[got > 0 ? got : 0] = '\0';
	/* NOLINTNEXTLINE(cert-err34-c): a keeper printed it */
	if (sscanf(text, "[%lf,", &t) != 1 || !(t >= 0 && t < 1e12))
		return 0;
	return (uint64_t)(t * 1000.0);
}

/* Cuts the file of SID; true and what is left in the last two. */
static bool
recordings_cut_file(struct manager *m, const char *sandbox, const char *sid,
    uint64_t *bytes_out, uint64_t *duration_ms_out)
{
	struct err e = { 0 };
	autoclose int dir_fd = recordings_dir(m, sandbox, &e);
	autoclose int fd = -1;
	char name[STORE_ID_MAX + 8];
	struct stat st;
	off_t end;

	snprintf(name, sizeof(name), "%s.cast", sid);
	if (dir_fd >= 0)
		fd = openat(
		    dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		log_warn("recording_missing", "sid", sid, NULL);
		return false;
	}
	end = recordings_last_line(fd, st.st_size);
	if (end < st.st_size && ftruncate(fd, end) < 0)
		log_err("recording_cut", "sid", sid, "why",
		    strerrordesc_np(errno), NULL);
	*bytes_out = (uint64_t)end;
	*duration_ms_out = recordings_line_ms(fd, end);
	return true;
}

/* Mends recording ID of SID: whole lines, and an index that is in the file. */
static void
recordings_cut(struct manager *m, int64_t id, const char *sandbox,
    const char *sid, uint64_t *bytes_out, uint64_t *duration_ms_out)
{
	if (recordings_cut_file(m, sandbox, sid, bytes_out, duration_ms_out))
		store_recording_index_cut(m->store, id, *bytes_out);
}

void
recordings_repair(struct session *s)
{
	if (s->recording_id)
		recordings_cut(s->m, s->recording_id, s->sandbox, s->id,
		    &s->stats.rec_bytes, &s->stats.rec_duration_ms);
}

static bool
recordings_close_one(const struct store_recording *r, void *arg)
{
	struct manager *m = arg;
	uint64_t bytes = r->bytes, ms = (uint64_t)r->duration_ms;

	if (strcmp(r->state, "open") != 0 || session_by_id(m, r->session_id))
		return true;
	recordings_cut(m, r->id, r->sandbox, r->session_id, &bytes, &ms);
	store_recording_finished(m->store, r->id, "truncated", bytes,
	    (int64_t)ms, clock_wall_ms(), r->gaps);
	reindex_want(m, r->id, r->session_id);
	return true;
}

void
recordings_close_open(struct manager *m)
{
	store_recording_each(m->store, recordings_close_one, m);
}

static bool
recordings_prune(struct manager *m, const struct store_recording *r)
{
	struct err e = { 0 };
	autoclose int dir_fd = recordings_dir(m, r->sandbox, &e);
	char name[STORE_ID_MAX + 8];

	snprintf(name, sizeof(name), "%s.cast", r->session_id);
	if (dir_fd < 0 || (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)) {
		log_err("prune_failed", "sid", r->session_id, "why",
		    dir_fd < 0 ? e.msg : strerrordesc_np(errno), NULL);
		return false;
	}
	store_recording_finished(m->store, r->id, "pruned", r->bytes,
	    r->duration_ms, r->finished_ms, r->gaps);
	store_audit(m->store, "recording_prune", NULL, NULL, r->sandbox,
	    r->session_id, NULL);
	log_info("recording_pruned", "sid", r->session_id, NULL);
	return true;
}

static void
recordings_arm(struct manager *m)
{
	uint64_t ms = m->conf->recording.sweep_interval_ms;
	struct timeval tv = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000 };

	evtimer_add(m->sweep_ev, &tv);
}

static void
recordings_on_sweep(evutil_socket_t fd, short what, void *arg)
{
	struct manager *m = arg;
	int64_t before =
	    clock_wall_ms() - (int64_t)m->conf->recording.retention_ms;
	struct timeval soon = { 0, 10000 };
	struct store_recording *rows;
	size_t n, n_pruned = 0;

	(void)fd;
	(void)what;
	recordings_arm(m);
	if (m->conf->recording.retention_ms == 0)
		return;
	rows = xcalloc(RECORDINGS_BATCH, sizeof(*rows));
	n = store_recording_expired(m->store, before, rows, RECORDINGS_BATCH);
	for (size_t i = 0; i < n; i++)
		n_pruned += recordings_prune(m, &rows[i]);
	free(rows);
	/* More than one batch: go on soon, but let others have a turn. */
	if (n_pruned == RECORDINGS_BATCH)
		evtimer_add(m->sweep_ev, &soon);
}

void
recordings_start_sweep(struct manager *m)
{
	struct timeval soon = { 0, 1000 };

	m->sweep_ev = evtimer_new(m->base, recordings_on_sweep, m);
	if (!m->sweep_ev)
		abort();
	evtimer_add(m->sweep_ev, &soon);
}
