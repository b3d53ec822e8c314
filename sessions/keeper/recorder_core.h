/*
 * What the two sides of the recorder share, for recorder.c (the loop's) and
 * recorder_thread.c only. Everything in the core is under its lock but the file,
 * which only the thread touches, and the queued bytes that the thread has taken.
 * The loop never waits for the lock longer than a copy of 256 KiB takes: the
 * thread does no I/O under it.
 */
#ifndef SESSIONS_KEEPER_RECORDER_CORE_H
#define SESSIONS_KEEPER_RECORDER_CORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "sessions/keeper/recorder.h"
#include "sessions/keeper/recorder_file.h"
#include "sessions/keeper/recorder_queue.h"

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

/* Bytes in the queue that the thread has not taken. */
static inline size_t
recorder_waiting(const struct recorder_core *c)
{
	return (size_t)(c->queue.head - c->queue.taken);
}

/* A time of CLOCK_MONOTONIC in microseconds. */
static inline struct timespec
recorder_timespec(int64_t us)
{
	return (struct timespec){ .tv_sec = us / 1000000,
		.tv_nsec = us % 1000000 * 1000 };
}

/* Makes the event descriptor readable now; under the lock. */
void recorder_signal(struct recorder_core *c);

/* Starts the thread, which takes no signals; 0 or an error number. */
int recorder_spawn(struct recorder_core *c);

/* Frees the core; nobody else may have it any more. */
void recorder_core_free(struct recorder_core *c);

#endif
