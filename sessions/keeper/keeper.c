/* The life of a session, step by step; see keeper.h. */
#include "sessions/keeper/keeper.h"

#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "sessions/keeper/ring.h"
#include "sessions/keeper/size.h"
#include "sessions/keeper/viewer.h"

#define KEEPER_TICK_MS 250

/* Of what berth stopped without a signal: its own failures, as a client hears */
#define KEEPER_ASKED_CODE 255

/* A bound session whose client does not come is stopped after this. */
#define KEEPER_CLIENT_MS 10000

/* So long what is saved nowhere, an end or a log, waits for a new manager. */
#define KEEPER_ORPHAN_MS 60000

static void
keeper_on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct signalfd_siginfo si;

	(void)what;
	while (read(fd, &si, sizeof(si)) == (ssize_t)sizeof(si))
		;
	keeper_reap(arg);
}

static void
keeper_on_pump(evutil_socket_t fd, short what, void *arg)
{
	struct keeper *k = arg;

	(void)fd;
	(void)what;
	size_settle(k);
	viewer_pump_all(k);
	output_update(&k->output);
}

void
keeper_want_pump(struct keeper *k)
{
	event_active(k->pump_ev, EV_TIMEOUT, 0);
}

void
keeper_want_pump_in(struct keeper *k, int64_t ms)
{
	struct timeval tv = { .tv_sec = ms / 1000,
		.tv_usec = ms % 1000 * 1000 };
	int64_t at = clock_mono_ms() + ms;

	if (event_pending(k->later_ev, EV_TIMEOUT, NULL) && k->later_ms <= at)
		return;
	k->later_ms = at;
	event_add(k->later_ev, &tv);
}

void
keeper_want_tick(struct keeper *k)
{
	struct timeval tv = { .tv_usec = KEEPER_TICK_MS * 1000 };

	if (!event_pending(k->tick_ev, EV_TIMEOUT, NULL))
		event_add(k->tick_ev, &tv);
}

static void
keeper_on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct keeper *k = arg;
	int64_t age = clock_mono_ms() - k->launched_ms;

	(void)fd;
	(void)what;
	if (keeper_has(k, LAUNCH_BOUND) && !k->had_viewer) {
		if (age >= KEEPER_CLIENT_MS) {
			k->had_viewer = true;
			pipes_discard(&k->pipes);
			stop_begin(&k->stop, STOP_SESSION,
			    k->launch.stop_grace_ms, "its client never came");
		}
		keeper_want_tick(k);
	}
	viewer_tick_all(k);
	output_update(&k->output);
	pipes_update(&k->pipes);
	keeper_advance(k);
}

uint8_t *
keeper_scratch(struct keeper *k)
{
	if (!k->scratch)
		k->scratch = xmalloc(KEEPER_SCRATCH);
	return k->scratch;
}

void
keeper_stats(struct keeper *k, struct wire_stats *out)
{
	*out = (struct wire_stats){
		.bytes_out = k->output.bytes + k->pipes.bytes,
		.bytes_in = k->input.bytes,
		.cols = k->size.cols,
		.rows = k->size.rows,
		.rec_bytes = k->recording.bytes,
		.rec_duration_ms = k->recording.duration_ms,
		.rec_gaps = k->recording.gaps,
	};
}

/* Reports that there is no session, and to those who wait for it. */
static void
keeper_fail(struct keeper *k, const char *why)
{
	struct list *pos, *tmp;

	k->is_failed = true;
	manager_link_failed(&k->manager, why);
	list_for_each (pos, tmp, &k->viewers)
		viewer_detach(list_entry(pos, struct viewer, node), why, false);
	keeper_advance(k);
}

/* The program runs: its output and its input begin. */
static void
keeper_started(struct keeper *k)
{
	struct child *c = &k->child;

	k->state = STATE_RUNNING;
	k->started_ms = (uint64_t)clock_wall_ms();
	manager_link_started(&k->manager);
	state_save(k);
	recording_start(&k->recording);
	if (keeper_has(k, LAUNCH_PTY)) {
		output_open(&k->output, k, &c->master_fd, 1);
		input_open(
		    &k->input, fcntl(c->master_fd, F_DUPFD_CLOEXEC, 0), true);
		return;
	}
	if (keeper_is_bound_pipe(k))
		pipes_open(&k->pipes, k, c->stdio_fd[1], c->stdio_fd[2]);
	else
		output_open(&k->output, k, c->stdio_fd + 1, 2);
	input_open(&k->input, take_fd(&c->stdio_fd[0]), false);
}

/* Looks how exec went, if that is still open. */
static void
keeper_poll_exec(struct keeper *k)
{
	struct err e;
	int rc;

	if (!k->status_ev)
		return;
	rc = child_poll_exec(&k->child, &k->launch, &e);
	if (rc == 0)
		return;
	event_free(take_ptr(k->status_ev));
	if (rc < 0)
		keeper_fail(k, e.msg);
	else
		keeper_started(k);
}

static void
keeper_on_status(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	keeper_poll_exec(arg);
}

void
keeper_launch(struct keeper *k, struct wire_launch *l, int recording_fd)
{
	bool has_ring = !(l->flags & LAUNCH_BOUND) || (l->flags & LAUNCH_PTY);
	struct err e;
	int rc;

	k->launch = *l;
	k->is_launched = true;
	k->generation = l->generation;
	k->size = size_valid(&l->size, &l->size);
	k->launch.size = k->size;
	k->launched_ms = clock_mono_ms();
	log_set_id("sid", k->launch.sid);
	recording_init(&k->recording, k, recording_fd);
	if (has_ring)
		k->ring = ring_new(l->buffer_bytes);
	display_open(&k->display, k);
	rc = child_start(&k->child, &k->launch, &e);
	if (rc == 0) {
		rc = drop_now(&k->drop, &e);
		if (rc < 0)
			child_kill(&k->child);
	}
	if (rc < 0) {
		keeper_fail(k, e.msg);
		return;
	}
	k->status_ev = event_new(
	    k->base, k->child.status_fd, EV_READ, keeper_on_status, k);
	if (!k->status_ev)
		abort();
	event_add(k->status_ev, NULL);
	if (l->flags & LAUNCH_BOUND)
		keeper_want_tick(k);
}

void
keeper_reap(struct keeper *k)
{
	struct wire_exit x;
	struct list *pos, *tmp;

	if (!child_reap(&k->child, &x))
		return;
	/* It has run and ended before we were told that it runs. */
	keeper_poll_exec(k);
	if (k->state != STATE_RUNNING)
		return;
	if (k->stop.is_active)
		memcpy(x.note, k->stop.note, sizeof(x.note));
	/* It ended by itself because it was asked to: that is no success. */
	if (k->stop.is_active && k->stop.is_asking && k->stop.scope == STOP_ALL)
		x.value = x.is_signal || x.value ? x.value : KEEPER_ASKED_CODE;
	if (!k->stop.is_active && x.is_signal && x.value == SIGKILL &&
	    enter_had_oom(&k->child.enter))
		snprintf(x.note, sizeof(x.note), "%s", WIRE_NOTE_OOM);
	k->state = STATE_EXITED;
	k->exited.exit = x;
	k->exited.exited_ms = (uint64_t)clock_wall_ms();
	if (keeper_is_bound_pipe(k)) {
		list_for_each (pos, tmp, &k->viewers)
			viewer_send_exit(list_entry(pos, struct viewer, node));
	}
	output_drain(&k->output);
	keeper_advance(k);
}

/* True when no more output of the session will come, or be waited for. */
static bool
keeper_is_output_done(struct keeper *k)
{
	if (k->state != STATE_EXITED)
		return false;
	/* However fast it was, its client still gets all of it. */
	if (keeper_has(k, LAUNCH_BOUND) && !k->had_viewer)
		return false;
	/* Its client is gone and its processes are too. */
	if (k->had_viewer && !k->bound_viewer && !k->stop.is_active)
		return true;
	return k->ring ? k->output.is_done : pipes_are_done(&k->pipes);
}

static void
keeper_finish_output(struct keeper *k)
{
	struct list *pos, *tmp;

	k->is_over = true;
	k->over_ms = clock_mono_ms();
	output_finish(&k->output);
	pipes_finish(&k->pipes);
	input_close(&k->input);
	recording_close(&k->recording);
	list_for_each (pos, tmp, &k->viewers) {
		struct viewer *v = list_entry(pos, struct viewer, node);

		if (!k->ring)
			viewer_end(v);
		else
			viewer_pump(v);
	}
	/* Only now: what still holds the terminal is hung up by this. */
	child_release(&k->child);
}

static void
keeper_report(struct keeper *k)
{
	k->is_reported = true;
	keeper_stats(k, &k->exited.stats);
	k->exited.rec_state = recording_state(&k->recording);
	k->is_saved = state_save(k) == 0;
	log_lines_flush(&k->log);
	manager_link_exited(&k->manager);
}

/* True when nobody needs this process any more. */
static bool
keeper_may_go(const struct keeper *k)
{
	const struct manager_link *m = &k->manager;
	int64_t alone_ms = k->over_ms > m->lost_ms ? k->over_ms : m->lost_ms;

	if (!k->is_launched)
		return !m->wire;
	if (!list_empty(&k->viewers) || !manager_link_is_flushed(m))
		return false;
	if (k->is_failed)
		return true;
	if (!k->is_reported || k->stop.is_active)
		return false;
	if (k->is_released)
		return true;
	if (m->wire)
		return false;
	if (k->is_saved && !log_lines_are_waiting(&k->log))
		return true;
	return m->listen_fd < 0 ||
	       clock_mono_ms() - alone_ms > KEEPER_ORPHAN_MS;
}

void
keeper_advance(struct keeper *k)
{
	if (!k->is_over && keeper_is_output_done(k))
		keeper_finish_output(k);
	if (k->is_over && !k->is_reported && recording_is_over(&k->recording))
		keeper_report(k);
	if (keeper_may_go(k)) {
		/* Who left since then is told to the next manager. */
		if (k->manager.n_left)
			state_save(k);
		event_base_loopbreak(k->base);
	} else if (k->is_over || k->is_failed)
		keeper_want_tick(k);
}

void
keeper_abandon(struct keeper *k)
{
	if (k->state != STATE_RUNNING)
		return;
	log_err("session_abandoned", "why",
	    "nobody is left who could signal its processes", NULL);
	event_base_loopbreak(k->base);
}

/* An event of the keeper's own; never NULL. */
static struct event *
keeper_event(struct keeper *k, int fd, short what, event_callback_fn fn)
{
	struct event *ev = event_new(k->base, fd, what, fn, k);

	if (!ev)
		abort();
	return ev;
}

struct keeper *
keeper_new(int manager_fd, int lock_fd, int listen_fd, const struct drop *d)
{
	struct keeper *k = xcalloc(1, sizeof(*k));
	sigset_t set;

	k->drop = *d;
	state_init(&k->saved, lock_fd);
	k->base = event_base_new();
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	k->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (!k->base || k->signal_fd < 0)
		abort();
	k->signal_ev = keeper_event(
	    k, k->signal_fd, EV_READ | EV_PERSIST, keeper_on_signal);
	event_add(k->signal_ev, NULL);
	k->tick_ev = keeper_event(k, -1, 0, keeper_on_tick);
	k->pump_ev = keeper_event(k, -1, 0, keeper_on_pump);
	k->later_ev = keeper_event(k, -1, 0, keeper_on_pump);
	list_init(&k->viewers);
	child_init(&k->child, &k->drop.signaller);
	input_init(&k->input, k->base);
	recording_init(&k->recording, k, -1);
	stop_init(&k->stop, k);
	log_lines_init(&k->log, k);
	manager_link_init(&k->manager, k, manager_fd, listen_fd);
	return k;
}

void
keeper_run(struct keeper *k)
{
	event_base_dispatch(k->base);
}

void
keeper_free(struct keeper *k)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &k->viewers)
		viewer_free(list_entry(pos, struct viewer, node));
	manager_link_release(&k->manager);
	stop_release(&k->stop);
	output_release(&k->output);
	display_release(&k->display);
	pipes_release(&k->pipes);
	log_lines_release(&k->log);
	input_release(&k->input);
	recording_release(&k->recording);
	child_release(&k->child);
	signaller_release(&k->drop.signaller);
	ring_free(k->ring);
	if (k->status_ev)
		event_free(k->status_ev);
	event_free(k->signal_ev);
	event_free(k->tick_ev);
	event_free(k->pump_ev);
	event_free(k->later_ev);
	close(k->signal_fd);
	state_release(&k->saved);
	event_base_free(k->base);
	if (k->is_launched)
		wire_launch_release(&k->launch);
	free(k->scratch);
	free(k);
}
