/*
 * The files of recordings: RECORDINGS/SANDBOX/SID.cast, 0600, made once, never
 * through a link, removed when their time is over and their session has ended.
 */
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
#include "sessions/manager/session.h"

#define RECORDINGS_BATCH 64

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
	int fd;

	if (dir_fd < 0)
		return dir_fd;
	snprintf(name, sizeof(name), "%s.cast", r->session_id);
	fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, -errno, "cannot open the recording of %s",
		    r->session_id);
	return fd;
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
