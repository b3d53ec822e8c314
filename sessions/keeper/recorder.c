/*
 * The recorder of the keeper: the loop's side and the thread between the queue
 * and the file; see recorder.h. Everything in the core is under its lock but
 * the file, which only the thread touches, and the queued bytes that the thread
 * has taken. The loop never waits for the lock longer than a copy of 256 KiB
 * takes: the thread does no I/O under it.
 */
#include "sessions/keeper/recorder.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "sessions/keeper/recorder_file.h"
#include "sessions/keeper/recorder_queue.h"

/* Sanitizers put much more on a stack than the code does. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RECORDER_STACK (512U << 10)
#elif defined(__clang__)
#define RECORDER_STACK (256U << 10) /* does not say whether it sanitizes */
#else
#define RECORDER_STACK (64U << 10)
#endif

#define RECORDER_STALL_US 5000000
#define RECORDER_SYNC_US  1000000

/* The thread gives room back in pieces of this size. */
#define RECORDER_PIECE (16U << 10)

/* The loop hears about room again when this much is free. */
#define RECORDER_ROOM_AGAIN (64U << 10)

struct recorder_core {
	pthread_mutex_t lock;
	pthread_cond_t work; /* for the thread */
	pthread_cond_t done; /* for recorder_free() */
	pthread_t thread;
	struct recorder_queue queue;
	int64_t first_us;    /* when the oldest byte not taken came */
	int64_t progress_us; /* when the thread moved on, or had to begin */
	bool is_working;
	unsigned cols, rows; /* the newest size */
	bool is_resize_due;  /* and it is not in the queue yet */
	uint64_t dropped;    /* bytes of the present gap before the queue */
	uint32_t drop_gaps;
	bool has_stalled; /* and must stop on that */
	bool is_wanting_room, is_signalled, is_armed, has_thread;
	bool is_closing, is_closed;
	bool is_late;   /* output came after recorder_close() */
	bool is_orphan; /* recorder_free() gave up: the thread frees */
	unsigned n_flush_asked, n_flush_done;
	int64_t close_us;
	int event_fd; /* a timer: now for news, later for a stall */
	struct recorder_report report; /* what the thread has published */
	uint32_t flush_ms;
	bool is_stop_on_error;

	struct recorder_file file; /* the thread's */
};

/* The handle; the core stays with its thread if that hangs in the disk. */
struct recorder {
	struct recorder_core *core;
};

static void
recorder_signal(struct recorder_core *c)
{
	struct itimerspec now = { .it_value = { .tv_nsec = 1 } };

	if (c->is_signalled)
		return;
	c->is_signalled = true;
	timerfd_settime(c->event_fd, 0, &now, NULL);
}

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

static struct timespec
recorder_timespec(int64_t us)
{
	return (struct timespec){ .tv_sec = us / 1000000,
		.tv_nsec = us % 1000000 * 1000 };
}

static int64_t
recorder_earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Bytes in the queue that the thread has not taken. */
static size_t
recorder_waiting(const struct recorder_core *c)
{
	return (size_t)(c->queue.head - c->queue.taken);
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

static void
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

/* Starts the thread, which takes no signals; 0 or an error number. */
static int
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
	} else if (recorder_is_deaf(c) || n > recorder_queue_room(&c->queue)) {
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
