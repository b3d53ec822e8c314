/* Ends processes without a keeper; see leftover.h. */
#include "sessions/manager/leftover.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/process.h"
#include "conf/conf.h"
#include "sessions/manager/session.h"
#include "sessions/wire/state_file.h"

#define LEFTOVER_PROCESSES_MAX 4096
#define LEFTOVER_ENVIRON_MAX   (256U << 10)

/* Pidfds, so that the wait for the grace cannot meet a reused pid. */
struct leftover {
	struct list node; /* of manager->leftovers */
	struct event *ev;
	size_t n;
	int pidfds[];
};

static void
leftover_free(struct leftover *l)
{
	list_remove(&l->node);
	event_free(l->ev);
	for (size_t i = 0; i < l->n; i++)
		close(l->pidfds[i]);
	free(l);
}

static void
leftover_kill(struct leftover *l)
{
	for (size_t i = 0; i < l->n; i++)
		proc_signal(l->pidfds[i], SIGKILL);
	leftover_free(l);
}

static void
leftover_on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	leftover_kill(arg);
}

static bool
leftover_is_this_boot(const struct state_file *st)
{
	char boot[40];

	state_file_boot(boot);
	return st->pid > 1 && strcmp(boot, st->boot) == 0;
}

static bool
leftover_has_leader(const struct state_file *st)
{
	struct process p;

	return process_read((pid_t)st->pid, &p) == 0 &&
	       p.start_ticks == st->pid_start;
}

/* True if PID was started with the session's id in its environment. */
static bool
leftover_carries_id(pid_t pid, const char *sid)
{
	struct buf b = { 0 };
	char path[64], want[64];
	const char *at;
	size_t n;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	n = (size_t)snprintf(want, sizeof(want), "BERTH_SESSION=%s", sid) + 1;
	if (fd_read_file(path, LEFTOVER_ENVIRON_MAX, &b, NULL) == 0) {
		buf_put_u8(&b, 0);
		at = memmem(buf_head(&b), buf_len(&b), want, n);
		found = at && (at == (const char *)buf_head(&b) || !at[-1]);
	}
	buf_release(&b);
	return found;
}

bool
leftover_is_of(const struct state_file *st)
{
	return st->pid > 1 && leftover_carries_id((pid_t)st->pid, st->sid);
}

static bool
leftover_is_meant(
    const struct process *p, const struct state_file *st, bool has_leader)
{
	pid_t leader = (pid_t)st->pid;

	if (has_leader)
		return p->pid == leader || p->session == leader || p->is_marked;
	return p->session == leader && leftover_carries_id(p->pid, st->sid);
}

/* A pidfd of P if that is still the process that was read. */
static int
leftover_open(const struct process *p)
{
	autoclose int fd = pidfd_open(p->pid, 0);
	struct process now;

	if (fd < 0 || process_read(p->pid, &now) < 0 ||
	    now.start_ticks != p->start_ticks)
		return -1;
	return take_fd(&fd);
}

void
leftover_stop(struct manager *m, const struct state_file *st)
{
	static const int first[] = { SIGHUP, SIGCONT, SIGTERM };
	uint64_t ms = m->conf->session.stop_grace_ms;
	struct timeval tv = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000 };
	autofree struct process *v = NULL;
	bool has_leader = leftover_has_leader(st);
	struct leftover *l;
	size_t n;

	if (!leftover_is_this_boot(st))
		return;
	n = process_walk((pid_t)st->pid, &v);
	l = xcalloc(1, sizeof(*l) + n * sizeof(l->pidfds[0]));
	for (size_t i = 0; i < n && l->n < LEFTOVER_PROCESSES_MAX; i++) {
		int fd;

		if (!leftover_is_meant(&v[i], st, has_leader))
			continue;
		fd = leftover_open(&v[i]);
		if (fd >= 0)
			l->pidfds[l->n++] = fd;
	}
	if (l->n == 0) {
		free(l);
		return;
	}
	log_info("leftover", "sid", st->sid, "why",
	    "its keeper is gone, its processes are ended", NULL);
	for (size_t i = 0; i < l->n; i++)
		for (size_t j = 0; j < ARRAY_LEN(first); j++)
			proc_signal(l->pidfds[i], first[j]);
	list_append(&m->leftovers, &l->node);
	l->ev = evtimer_new(m->base, leftover_on_timer, l);
	if (!l->ev)
		abort();
	evtimer_add(l->ev, &tv);
}

void
leftover_release_all(struct manager *m)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &m->leftovers)
		leftover_kill(list_entry(pos, struct leftover, node));
}
