/* The recorder's queue; see recorder_queue.h. */
#include "sessions/keeper/recorder_queue.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sessions/keeper/cast.h"
#include "sessions/keeper/recorder.h"

#define QUEUE_HEADS (3 * sizeof(struct recorder_event))

/*
 * Kept free for a gap, a resize and the head of an output, and for what the
 * display held back of an earlier one.
 */
#define QUEUE_SPARE (QUEUE_HEADS + 4096U)

/* What there is room for may come in so many pieces, each with a head. */
#define QUEUE_PIECES (RECORDER_CALLS * sizeof(struct recorder_event))

/* Kept free for markers: they come when output holds the rest. */
#define QUEUE_MARKERS \
	(16 * (sizeof(struct recorder_event) + RECORDER_MARKER_MAX))

/* Less room than this is called none, or a full queue would fill with heads. */
#define QUEUE_LEAST 4096U

#define QUEUE_SIZE                                                   \
	(RECORDER_QUEUE + QUEUE_LEAST + QUEUE_PIECES + QUEUE_SPARE + \
	    QUEUE_MARKERS)

#define QUEUE_EXTEND_US 1000

void
recorder_queue_init(struct recorder_queue *q)
{
	*q = (struct recorder_queue){ .data = xmalloc(QUEUE_SIZE) };
}

void
recorder_queue_release(struct recorder_queue *q)
{
	free(q->data);
	q->data = NULL;
}

size_t
recorder_queue_room(const struct recorder_queue *q)
{
	size_t room = QUEUE_SIZE - recorder_queue_used(q);
	size_t kept = QUEUE_PIECES + QUEUE_SPARE + QUEUE_MARKERS;

	if (room < kept + QUEUE_LEAST)
		return 0;
	room -= kept;
	return room < RECORDER_QUEUE ? room : RECORDER_QUEUE;
}

bool
recorder_queue_takes_output(const struct recorder_queue *q, size_t n)
{
	return QUEUE_SIZE - recorder_queue_used(q) >=
	       n + QUEUE_HEADS + QUEUE_MARKERS;
}

bool
recorder_queue_takes_marker(const struct recorder_queue *q, size_t n)
{
	/* A gap and a resize may have to come before it, and again behind. */
	return QUEUE_SIZE - recorder_queue_used(q) >=
	       n + sizeof(struct recorder_event) + 2 * QUEUE_SPARE;
}

/* Copies N bytes to the position AT. */
static void
recorder_queue_put(
    struct recorder_queue *q, uint64_t at, const void *p, size_t n)
{
	size_t to = (size_t)(at % QUEUE_SIZE);
	size_t part = n < QUEUE_SIZE - to ? n : QUEUE_SIZE - to;

	memcpy(q->data + to, p, part);
	if (n > part)
		memcpy(q->data, (const uint8_t *)p + part, n - part);
}

void
recorder_queue_push(
    struct recorder_queue *q, const struct recorder_event *ev, const void *p)
{
	size_t n = p ? (size_t)ev->arg : 0;

	assert(QUEUE_SIZE - recorder_queue_used(q) >= sizeof(*ev) + n);
	q->last = q->head;
	q->has_last = ev->kind == RECORDER_OUTPUT;
	recorder_queue_put(q, q->head, ev, sizeof(*ev));
	q->head += sizeof(*ev);
	if (n)
		recorder_queue_put(q, q->head, p, n);
	q->head += n;
}

bool
recorder_queue_extend(
    struct recorder_queue *q, int64_t t_us, const void *p, size_t n)
{
	struct recorder_event ev;

	if (!q->has_last || q->last < q->taken)
		return false;
	recorder_queue_event(q, q->last, &ev);
	if (t_us - ev.t_us > QUEUE_EXTEND_US || ev.arg + n > CAST_EVENT_MAX)
		return false;
	ev.arg += n;
	recorder_queue_put(q, q->last, &ev, sizeof(ev));
	recorder_queue_put(q, q->head, p, n);
	q->head += n;
	return true;
}

const uint8_t *
recorder_queue_bytes(
    const struct recorder_queue *q, uint64_t at, size_t max, size_t *n_out)
{
	size_t from = (size_t)(at % QUEUE_SIZE);

	*n_out = max < QUEUE_SIZE - from ? max : QUEUE_SIZE - from;
	return q->data + from;
}

uint64_t
recorder_queue_event(
    const struct recorder_queue *q, uint64_t at, struct recorder_event *out)
{
	uint8_t *to = (uint8_t *)out;

	for (size_t done = 0, n; done < sizeof(*out); done += n) {
		const uint8_t *p =
		    recorder_queue_bytes(q, at + done, sizeof(*out) - done, &n);

		memcpy(to + done, p, n);
	}
	return at + sizeof(*out);
}

void
recorder_queue_consume(struct recorder_queue *q, uint64_t at)
{
	q->tail = at;
	if (q->head != at)
		return;
	q->head = q->tail = q->taken = 0;
	q->has_last = false;
}
