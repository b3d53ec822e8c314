/*
 * The bounded queue between the keeper's loop and the recorder's thread: events
 * and their bytes in one ring, nothing allocated for an event. Has no lock of
 * its own: recorder.c holds one around all of this but the reading of bytes
 * between `tail` and `taken`, which nobody writes to.
 */
#ifndef SESSIONS_KEEPER_RECORDER_QUEUE_H
#define SESSIONS_KEEPER_RECORDER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum recorder_kind {
	RECORDER_OUTPUT, /* ARG bytes follow */
	RECORDER_RESIZE, /* ARG is cols << 16 | rows */
	RECORDER_GAP,    /* ARG bytes were not recorded here */
	RECORDER_MARKER, /* ARG bytes of text follow */
};

struct recorder_event {
	int64_t t_us; /* CLOCK_MONOTONIC */
	uint64_t arg;
	uint64_t kind;
};

struct recorder_queue {
	uint8_t *data;
	uint64_t head, tail; /* filled: tail..head, absolute positions */
	uint64_t taken;      /* up to here the thread is at work */
	uint64_t last; /* where the newest event is, if it may still grow */
	bool has_last;
};

/* Makes Q empty with all of its memory; recorder_queue_release() frees it. */
void recorder_queue_init(struct recorder_queue *q);

/* Frees the memory; whatever is queued is gone. */
void recorder_queue_release(struct recorder_queue *q);

/*
 * Bytes of output that fit beside one resize, one gap and some markers; 0 for a
 * few only.
 */
size_t recorder_queue_room(const struct recorder_queue *q);

static inline size_t
recorder_queue_used(const struct recorder_queue *q)
{
	return (size_t)(q->head - q->tail);
}

/* True if an output of N bytes fits, and a gap and a resize before it. */
bool recorder_queue_takes_output(const struct recorder_queue *q, size_t n);

/* True if a marker of N bytes fits, and a resize and a gap behind it. */
bool recorder_queue_takes_marker(const struct recorder_queue *q, size_t n);

/*
 * Appends an event; there must be room. P is the output or the text, else NULL.
 */
void recorder_queue_push(
    struct recorder_queue *q, const struct recorder_event *ev, const void *p);

/*
 * Adds N bytes to the newest event when that is a small output of the last
 * millisecond that the thread has not seen yet; false if it is not.
 */
bool recorder_queue_extend(
    struct recorder_queue *q, int64_t t_us, const void *p, size_t n);

/* Copies the event at AT, and returns the position behind it. */
uint64_t recorder_queue_event(
    const struct recorder_queue *q, uint64_t at, struct recorder_event *out);

/* At most MAX contiguous bytes at AT, *N_OUT of them. */
const uint8_t *recorder_queue_bytes(
    const struct recorder_queue *q, uint64_t at, size_t max, size_t *n_out);

/* Frees what is before AT; an empty queue begins at the front again. */
void recorder_queue_consume(struct recorder_queue *q, uint64_t at);

#endif
