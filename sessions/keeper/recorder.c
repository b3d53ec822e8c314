/*
 * The recorder of the keeper, the loop's side: what comes goes into the queue, or
 * into a gap; see recorder.h and recorder_core.h.
 */
#include "sessions/keeper/recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "sessions/keeper/recorder_core.h"

#define RECORDER_STALL_US 5000000

/* The handle; the core stays with its thread if that hangs in the disk. */
struct recorder {
	struct recorder_core *core;
};

/* Makes the event descriptor readable when the disk counts as stalled. */
static void
recorder_arm(struct recorder_core *c)
{
	int64_t at = c->progress_us + RECORDER_STALL_US;
	struct itimerspec when = { .it_value = { .tv_sec = at / 1000000,
				       .tv_nsec = at % 1000000 * 1000 } };

	if (c->is_signalled || c->is_armed)
		return;
	c->is_armed = true;
	timerfd_settime(c->event_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

struct recorder *
recorder_new(int fd, const struct recorder_config *config)
{
	struct recorder *r = xcalloc(1, sizeof(*r));
	struct recorder_core *c = xcalloc(1, sizeof(*c));
	pthread_condattr_t attr;
	int rc;

	r->core = c;
	pthread_mutex_init(&c->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&c->work, &attr);
	pthread_cond_init(&c->done, &attr);
	pthread_condattr_destroy(&attr);
	recorder_queue_init(&c->queue);
	c->cols = config->cols;
	c->rows = config->rows;
	c->flush_ms = config->flush_ms;
	c->is_stop_on_error = config->is_stop_on_error;
	c->event_fd =
	    timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	recorder_file_init(&c->file, fd, config);
	rc = recorder_spawn(c);
	if (rc) {
		snprintf(c->report.error, sizeof(c->report.error),
		    "start the recorder's thread: %s", strerror(rc));
		c->report.has_failed = config->is_stop_on_error;
		c->is_closing = c->is_closed = true;
		recorder_signal(c);
	}
	c->has_thread = rc == 0;
	return r;
}

/* True when what comes is thrown away whatever room there is. */
static bool
recorder_is_deaf(const struct recorder_core *c)
{
	return c->is_closing || c->has_stalled || c->report.has_failed;
}

size_t
recorder_room(const struct recorder *r)
{
	struct recorder_core *c = r->core;
	size_t room = RECORDER_QUEUE;

	pthread_mutex_lock(&c->lock);
	if (!recorder_is_deaf(c)) {
		room = recorder_queue_room(&c->queue);
		c->is_wanting_room |= !room;
		if (!room &&
		    clock_mono_us() - c->progress_us >= RECORDER_STALL_US)
			room = RECORDER_QUEUE;
		else if (!room)
			recorder_arm(c);
	}
	pthread_mutex_unlock(&c->lock);
	return room;
}

/* Bytes that nobody will see: part of one gap until there is room again. */
static void
recorder_drop(struct recorder_core *c, size_t n)
{
	if (!c->dropped && !c->report.has_failed) {
		c->drop_gaps++;
		recorder_signal(c);
	}
	c->dropped += n;
	if (c->is_stop_on_error && !c->has_stalled) {
		c->has_stalled = true;
		recorder_signal(c);
	}
}

/* The queue grew from BEFORE bytes: wakes the thread if it has to know. */
static void
recorder_wake(struct recorder_core *c, size_t before, bool is_first)
{
	if (before && recorder_waiting(c) < RECORDER_BATCH)
		return;
	if (before < RECORDER_BATCH)
		pthread_cond_signal(&c->work);
	if (is_first || (!c->is_working && before < RECORDER_BATCH))
		c->progress_us = clock_mono_us();
}

static void
recorder_push(
    struct recorder_core *c, const struct recorder_event *ev, const void *p)
{
	size_t before = recorder_waiting(c);
	bool is_first = recorder_queue_used(&c->queue) == 0;

	if (!before)
		c->first_us = ev->t_us;
	recorder_queue_push(&c->queue, ev, p);
	recorder_wake(c, before, is_first);
}

/* Puts what was held back by a full queue before the next event. */
static void
recorder_push_due(struct recorder_core *c, int64_t now)
{
	struct recorder_event ev = { .t_us = now };

	if (c->dropped) {
		ev.kind = RECORDER_GAP;
		ev.arg = c->dropped;
		c->dropped = 0;
		recorder_push(c, &ev, NULL);
	}
	if (c->is_resize_due) {
		ev.kind = RECORDER_RESIZE;
		ev.arg = (uint64_t)c->cols << 16 | c->rows;
		c->is_resize_due = false;
		recorder_push(c, &ev, NULL);
	}
}

/* True if N bytes that come NOW do not fit, or the disk is not waited for. */
static bool
recorder_is_full(const struct recorder_core *c, int64_t now, size_t n)
{
	return !recorder_queue_takes_output(&c->queue, n) ||
	       (!recorder_queue_room(&c->queue) &&
		   now - c->progress_us >= RECORDER_STALL_US);
}

void
recorder_output(struct recorder *r, const void *p, size_t n)
{
	struct recorder_core *c = r->core;
	struct recorder_event ev = {
		.t_us = clock_mono_us(), .kind = RECORDER_OUTPUT, .arg = n
	};

	if (!n)
		return;
	pthread_mutex_lock(&c->lock);
	if (c->is_closing) {
		c->is_late = true;
	} else if (recorder_is_deaf(c) || recorder_is_full(c, ev.t_us, n)) {
		recorder_drop(c, n);
	} else {
		size_t before;

		recorder_push_due(c, ev.t_us);
		before = recorder_waiting(c);
		if (recorder_queue_extend(&c->queue, ev.t_us, p, n))
			recorder_wake(c, before, false);
		else
			recorder_push(c, &ev, p);
	}
	pthread_mutex_unlock(&c->lock);
}

void
recorder_resize(struct recorder *r, unsigned cols, unsigned rows)
{
	struct recorder_core *c = r->core;

	pthread_mutex_lock(&c->lock);
	if ((cols != c->cols || rows != c->rows) && !recorder_is_deaf(c)) {
		c->cols = cols;
		c->rows = rows;
		c->is_resize_due = true;
		if (recorder_queue_room(&c->queue))
			recorder_push_due(c, clock_mono_us());
	}
	pthread_mutex_unlock(&c->lock);
}

void
recorder_marker(struct recorder *r, const char *text)
{
	struct recorder_core *c = r->core;
	char shown[RECORDER_MARKER_MAX + 1];
	struct recorder_event ev = { .kind = RECORDER_MARKER };

	ev.arg = text_escape_json(text, strlen(text), shown, sizeof(shown));
	ev.t_us = clock_mono_us();
	pthread_mutex_lock(&c->lock);
	if (ev.arg && !recorder_is_deaf(c) &&
	    recorder_queue_takes_marker(&c->queue, ev.arg)) {
		recorder_push_due(c, ev.t_us);
		recorder_push(c, &ev, shown);
	}
	pthread_mutex_unlock(&c->lock);
}

int
recorder_event_fd(const struct recorder *r)
{
	return r->core->event_fd;
}

void
recorder_poll(struct recorder *r, struct recorder_report *out)
{
	struct recorder_core *c = r->core;
	uint64_t n;

	pthread_mutex_lock(&c->lock);
	if (read(c->event_fd, &n, sizeof(n)) > 0 || c->is_signalled)
		c->is_signalled = c->is_armed = false;
	*out = c->report;
	out->gaps += c->drop_gaps;
	out->has_failed |= c->has_stalled;
	out->is_flushed = c->n_flush_asked == c->n_flush_done || c->is_closed;
	out->is_closed = c->is_closed;
	out->is_complete = c->is_closed && c->has_thread && !c->is_late &&
			   !out->gaps && !out->has_failed &&
			   !c->file.is_damaged;
	if (c->has_stalled && !out->error[0])
		snprintf(out->error, sizeof(out->error),
		    "the disk of the recording made no progress for 5 s");
	c->report.n_index = 0;
	pthread_mutex_unlock(&c->lock);
}

void
recorder_flush(struct recorder *r)
{
	struct recorder_core *c = r->core;

	pthread_mutex_lock(&c->lock);
	c->n_flush_asked++;
	pthread_cond_signal(&c->work);
	pthread_mutex_unlock(&c->lock);
}

void
recorder_close(struct recorder *r)
{
	struct recorder_core *c = r->core;

	pthread_mutex_lock(&c->lock);
	if (!c->is_closing) {
		c->is_closing = true;
		c->close_us = clock_mono_us();
		pthread_cond_signal(&c->work);
	}
	pthread_mutex_unlock(&c->lock);
}

void
recorder_free(struct recorder *r)
{
	struct recorder_core *c;
	struct timespec until;
	bool is_closed;
	int rc = 0;

	if (!r)
		return;
	recorder_close(r);
	c = r->core;
	free(r);
	pthread_mutex_lock(&c->lock);
	until = recorder_timespec(c->close_us + RECORDER_STALL_US);
	while (!c->is_closed && rc == 0)
		rc = pthread_cond_timedwait(&c->done, &c->lock, &until);
	is_closed = c->is_closed;
	if (!is_closed) {
		c->is_orphan = true; /* it hangs in the disk */
		pthread_detach(c->thread);
	}
	pthread_mutex_unlock(&c->lock);
	if (!is_closed)
		return;
	if (c->has_thread)
		pthread_join(c->thread, NULL);
	recorder_core_free(c);
}
