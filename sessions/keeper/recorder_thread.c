/*
 * The recorder's thread: takes the queue, writes the file and publishes what it
 * has come to; see recorder_core.h.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "sessions/keeper/recorder_core.h"

/* Sanitizers put much more on a stack than the code does. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RECORDER_STACK (512U << 10)
#elif defined(__clang__)
#define RECORDER_STACK (256U << 10) /* does not say whether it sanitizes */
#else
#define RECORDER_STACK (64U << 10)
#endif

#define RECORDER_SYNC_US 1000000

/* The thread gives room back in pieces of this size. */
#define RECORDER_PIECE (16U << 10)

/* The loop hears about room again when this much is free. */
#define RECORDER_ROOM_AGAIN (64U << 10)

void
recorder_signal(struct recorder_core *c)
{
	struct itimerspec now = { .it_value = { .tv_nsec = 1 } };

	if (c->is_signalled)
		return;
	c->is_signalled = true;
	timerfd_settime(c->event_fd, 0, &now, NULL);
}

static int64_t
recorder_earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* When the thread has to do something; 0 for at once. */
static int64_t
recorder_due(const struct recorder_core *c)
{
	int64_t due = recorder_file_retry_at(&c->file);

	if (c->is_closing || c->n_flush_asked != c->n_flush_done ||
	    recorder_waiting(c) >= RECORDER_BATCH || c->file.n_batch)
		return 0;
	if (recorder_waiting(c))
		due = recorder_earlier(
		    due, c->first_us + (int64_t)c->flush_ms * 1000);
	if (c->file.is_dirty)
		due =
		    recorder_earlier(due, c->file.synced_us + RECORDER_SYNC_US);
	return due;
}

static void
recorder_wait(struct recorder_core *c)
{
	int64_t due;

	while ((due = recorder_due(c)) > clock_mono_us()) {
		struct timespec until = recorder_timespec(due);

		if (due == INT64_MAX)
			pthread_cond_wait(&c->work, &c->lock);
		else
			pthread_cond_timedwait(&c->work, &c->lock, &until);
	}
}

/* Gives the queue before AT back to the loop. */
static void
recorder_give_back(struct recorder_core *c, uint64_t at)
{
	pthread_mutex_lock(&c->lock);
	recorder_queue_consume(&c->queue, at);
	c->progress_us = clock_mono_us();
	if (c->is_wanting_room &&
	    recorder_queue_room(&c->queue) >= RECORDER_ROOM_AGAIN) {
		c->is_wanting_room = false;
		recorder_signal(c);
	}
	pthread_mutex_unlock(&c->lock);
}

/* The N bytes of an output event at AT; returns the position behind them. */
static uint64_t
recorder_take_output(struct recorder_core *c, const struct recorder_event *ev,
    uint64_t at, uint64_t *given)
{
	uint64_t left = ev->arg;

	while (left) {
		size_t n =
		    left < CAST_EVENT_MAX ? (size_t)left : CAST_EVENT_MAX;
		const uint8_t *p = recorder_queue_bytes(&c->queue, at, n, &n);

		recorder_file_output(&c->file, ev->t_us, p, n);
		at += n;
		left -= n;
		if (left && at - *given >= RECORDER_PIECE) {
			recorder_give_back(c, at);
			*given = at;
		}
	}
	return at;
}

/* The text of a marker at AT; returns the position behind it. */
static uint64_t
recorder_take_marker(
    struct recorder_core *c, const struct recorder_event *ev, uint64_t at)
{
	char text[RECORDER_MARKER_MAX + 1];
	size_t len = (size_t)ev->arg;

	for (size_t done = 0, n; done < len; done += n) {
		const uint8_t *p =
		    recorder_queue_bytes(&c->queue, at + done, len - done, &n);

		memcpy(text + done, p, n);
	}
	text[len] = '\0';
	recorder_file_marker(&c->file, ev->t_us, text);
	return at + len;
}

/* Moves the queue from AT to END into the file's batches. */
static void
recorder_take(struct recorder_core *c, uint64_t at, uint64_t end)
{
	uint64_t given = at;

	while (at < end) {
		struct recorder_event ev;

		at = recorder_queue_event(&c->queue, at, &ev);
		if (ev.kind == RECORDER_OUTPUT)
			at = recorder_take_output(c, &ev, at, &given);
		else if (ev.kind == RECORDER_RESIZE)
			recorder_file_resize(&c->file, ev.t_us,
			    (unsigned)(ev.arg >> 16),
			    (unsigned)(ev.arg & 0xffff));
		else if (ev.kind == RECORDER_MARKER)
			at = recorder_take_marker(c, &ev, at);
		else
			recorder_file_gap(&c->file, ev.t_us, ev.arg);
		if (at < end && at - given >= RECORDER_PIECE) {
			recorder_give_back(c, at);
			given = at;
		}
	}
	if (at != given)
		recorder_give_back(c, at);
}

/* Tells the loop what the file has come to; under the lock. */
static void
recorder_publish(struct recorder_core *c)
{
	struct recorder_report *r = &c->report;
	struct recorder_file *f = &c->file;
	unsigned n = RECORDER_INDEX_MAX - r->n_index;

	if (n > f->n_rows_due)
		n = f->n_rows_due;
	memcpy(r->index + r->n_index, f->rows_due, n * sizeof(f->row));
	r->n_index += n;
	f->n_rows_due -= n;
	memmove(f->rows_due, f->rows_due + n, f->n_rows_due * sizeof(f->row));
	if (n || f->gaps != r->gaps || f->has_failed != r->has_failed ||
	    strcmp(f->error.msg, r->error) != 0)
		recorder_signal(c);
	r->bytes = f->size;
	r->duration_ms = f->kept_us / 1000;
	r->gaps = f->gaps;
	r->has_failed = f->has_failed;
	memcpy(r->error, f->error.msg, sizeof(r->error));
	c->progress_us = clock_mono_us();
}

/* The last of what waits: it came in too late for the queue. */
static void
recorder_finish(struct recorder_core *c)
{
	int64_t now = clock_mono_us();

	/* the loop leaves these alone after recorder_close() */
	if (c->dropped)
		recorder_file_gap(&c->file, now, c->dropped);
	if (c->is_resize_due)
		recorder_file_resize(&c->file, now, c->cols, c->rows);
	recorder_file_close(&c->file, now);
}

void
recorder_core_free(struct recorder_core *c)
{
	recorder_file_release(&c->file);
	recorder_queue_release(&c->queue);
	close(c->event_fd);
	pthread_cond_destroy(&c->work);
	pthread_cond_destroy(&c->done);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static void *
recorder_run(void *arg)
{
	struct recorder_core *c = arg;
	bool is_closing = false, is_orphan;

	pthread_mutex_lock(&c->lock);
	while (!is_closing) {
		uint64_t from, to;
		unsigned n_flush;

		c->is_working = false;
		recorder_wait(c);
		c->is_working = true;
		is_closing = c->is_closing;
		n_flush = c->n_flush_asked;
		from = c->queue.taken;
		to = c->queue.taken = c->queue.head;
		c->progress_us = clock_mono_us();
		pthread_mutex_unlock(&c->lock);

		recorder_take(c, from, to);
		recorder_file_retry(
		    &c->file, clock_mono_us(), n_flush != c->n_flush_done);
		if (is_closing)
			recorder_finish(c);
		else if (n_flush != c->n_flush_done ||
			 clock_mono_us() >=
			     c->file.synced_us + RECORDER_SYNC_US)
			recorder_file_sync(&c->file);
		else
			recorder_file_write(&c->file);

		pthread_mutex_lock(&c->lock);
		recorder_publish(c);
		if (n_flush != c->n_flush_done || is_closing)
			recorder_signal(c);
		c->n_flush_done = n_flush;
	}
	c->is_closed = true;
	is_orphan = c->is_orphan;
	pthread_cond_broadcast(&c->done);
	pthread_mutex_unlock(&c->lock);
	if (is_orphan)
		recorder_core_free(c);
	return NULL;
}

int
recorder_spawn(struct recorder_core *c)
{
	sigset_t all, old;
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, RECORDER_STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&c->thread, &attr, recorder_run, c);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}
