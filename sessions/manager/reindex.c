/* Children that read recordings again; see reindex.h. */
#include "sessions/manager/reindex.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/proc.h"
#include "sessions/manager/session.h"

#define REINDEX_KILL_MS 1000

/* A recording whose rows are wanted; the first of the list is being read. */
struct reindex {
	struct list node; /* of manager->reindexes */
	struct manager *m;
	int64_t id;
	char sid[STORE_ID_MAX];
	struct wire wire;
	int pidfd;
	struct event *pid_ev;
};

static void reindex_next(struct manager *m);

static void
reindex_free(struct reindex *x)
{
	list_remove(&x->node);
	wire_release(&x->wire);
	if (x->pid_ev)
		event_free(x->pid_ev);
	if (x->pidfd >= 0)
		close(x->pidfd);
	free(x);
}

static void
reindex_on_frame(struct wire *w, const struct frame *f)
{
	struct reindex *x = w->owner;
	struct reader r = reader_over(f->data, f->len);
	uint32_t n = reader_u32(&r);

	if (f->fd >= 0)
		close(f->fd);
	while (f->type == FRAME_INDEX && n-- > 0 && !r.failed) {
		uint64_t t_ms = reader_u64(&r);
		uint64_t offset = reader_u64(&r);

		if (!r.failed)
			store_recording_index(
			    x->m->store, x->id, (int64_t)t_ms, offset);
	}
	if (!reader_done(&r))
		wire_close(w, -EPROTO);
}

static void
reindex_on_close(struct wire *w, int rc)
{
	(void)rc;
	wire_release(w);
}

/* Reaped: its last frames are still read before the next one begins. */
static void
reindex_on_pid(evutil_socket_t fd, short what, void *arg)
{
	struct reindex *x = arg;
	struct manager *m = x->m;
	int status = 0;

	(void)what;
	if (!x->wire.is_closing)
		return;
	if (proc_reap((int)fd, &status) == 0)
		return;
	if (status)
		log_warn("reindex_failed", "sid", x->sid, NULL);
	reindex_free(x);
	reindex_next(m);
}

static int
reindex_spawn(struct reindex *x, int file_fd, struct err *e)
{
	static const struct wire_handler handler = {
		.on_frame = reindex_on_frame,
		.on_close = reindex_on_close,
	};
	const char *argv[] = { "berth-session", "--index", NULL };
	char *env[] = { NULL, NULL };
	autofree char *asan = NULL;
	int pair[2], rc;
	pid_t pid;

	rc = fd_socketpair(pair, false);
	if (rc < 0)
		return err_sys(e, rc, "no descriptor");
	asan = getenv("ASAN_OPTIONS")
		   ? xasprintf("ASAN_OPTIONS=%s", getenv("ASAN_OPTIONS"))
		   : NULL;
	env[0] = asan;
	pid = proc_spawn(x->m->keeper_path, (char **)(uintptr_t)argv, env,
	    (int[]){ pair[1], file_fd }, 2, &x->pidfd);
	close(pair[1]);
	if (pid < 0 || fd_set_nonblock(pair[0], true) < 0) {
		close(pair[0]);
		return err_sys(e, pid < 0 ? (int)pid : -EIO, "cannot run %s",
		    x->m->keeper_path);
	}
	wire_init(&x->wire, x->m->base, pair[0], &handler, x);
	x->pid_ev = event_new(
	    x->m->base, x->pidfd, EV_READ | EV_PERSIST, reindex_on_pid, x);
	if (!x->pid_ev)
		abort();
	event_add(x->pid_ev, NULL);
	return 0;
}

static int
reindex_start(struct reindex *x, struct err *e)
{
	struct store_recording r;
	autoclose int fd = -1;
	int rc = store_recording_find(x->m->store, x->sid, &r);

	if (rc < 0)
		return err_sys(e, rc, "there is no recording of it");
	fd = recordings_open(x->m, &r, e);
	return fd < 0 ? fd : reindex_spawn(x, fd, e);
}

/* Begins with the first of the list; what cannot be read is skipped. */
static void
reindex_next(struct manager *m)
{
	while (!list_empty(&m->reindexes)) {
		struct reindex *x =
		    list_entry(m->reindexes.next, struct reindex, node);
		struct err e = { 0 };

		if (x->pidfd >= 0 || reindex_start(x, &e) == 0)
			return;
		log_warn("reindex_failed", "sid", x->sid, "why", e.msg, NULL);
		reindex_free(x);
	}
}

void
reindex_want(struct manager *m, int64_t id, const char *sid)
{
	struct reindex *x = xcalloc(1, sizeof(*x));

	x->m = m;
	x->id = id;
	x->pidfd = -1;
	x->wire.is_closing = true;
	snprintf(x->sid, sizeof(x->sid), "%s", sid);
	list_append(&m->reindexes, &x->node);
	reindex_next(m);
}

void
reindex_save(const struct manager *m, struct buf *b)
{
	const struct list *pos;
	uint32_t n = 0;

	for (pos = m->reindexes.next; pos != &m->reindexes; pos = pos->next)
		n++;
	buf_put_u32(b, n);
	for (pos = m->reindexes.next; pos != &m->reindexes; pos = pos->next) {
		const struct reindex *x = list_entry(
		    (struct list *)(uintptr_t)pos, struct reindex, node);

		buf_put_u64(b, (uint64_t)x->id);
		buf_put_str(b, x->sid);
	}
}

void
reindex_load(struct manager *m, struct reader *r)
{
	uint32_t n = reader_u32(r);

	while (n-- > 0 && !r->failed) {
		int64_t id = (int64_t)reader_u64(r);
		char sid[STORE_ID_MAX];

		reader_str_into(r, sid, sizeof(sid));
		if (!r->failed)
			reindex_want(m, id, sid);
	}
}

/* No zombie is left to whoever is executed in our place. */
static void
reindex_kill(struct reindex *x)
{
	struct pollfd p = { .fd = x->pidfd, .events = POLLIN };
	int status;

	proc_signal(x->pidfd, SIGKILL);
	poll(&p, 1, REINDEX_KILL_MS);
	proc_reap(x->pidfd, &status);
}

void
reindex_release(struct manager *m)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &m->reindexes) {
		struct reindex *x = list_entry(pos, struct reindex, node);

		if (x->pidfd >= 0)
			reindex_kill(x);
		reindex_free(x);
	}
}
