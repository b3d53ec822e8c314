/*
 * The one writer to the PTY or to stdin. Every typist has a queue of frames,
 * bounded by the credit it was granted; the writer takes one frame after the
 * other, round robin, and a bracketed paste (up to 1 MiB) as if it were one
 * frame. So no typist's bytes are ever torn apart by another's.
 */
#ifndef SESSIONS_KEEPER_INPUT_H
#define SESSIONS_KEEPER_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"

struct event;
struct event_base;

/* A paste longer than this is no longer kept in one piece. */
#define INPUT_PASTE_MAX (1U << 20)

/* How long a typist in the middle of a paste may leave the others waiting. */
#define INPUT_HOLD_MS 1000

/* One typist. Embedded in its owner, ended with input_source_release(). */
struct input_source {
	struct list node;  /* in input.ready */
	struct buf queue;  /* per frame: u32 length in host order, bytes */
	size_t queued;     /* bytes of input in `queue` */
	size_t frame_left; /* of the frame that is being written */
	size_t paste_bytes;
	uint8_t match; /* bytes of a paste marker matched so far */
	bool is_pasting;
	/* N bytes of this source were written or dropped; may be NULL. */
	void (*on_taken)(struct input_source *s, size_t n);
};

struct input {
	struct event_base *base;
	struct event *write_ev, *hold_ev;
	int fd;            /* -1 before input_open() and after the end */
	bool is_terminal;  /* else a pipe: has an end, knows no pastes */
	bool is_closed;    /* nothing reads any more: input is dropped */
	bool is_eof;       /* close behind what is queued */
	struct list ready; /* sources with whole frames, not the holder */
	struct input_source *holder;
	uint64_t bytes; /* written so far */
};

/* Nothing to write to yet; BASE outlives it. */
void input_init(struct input *in, struct event_base *base);

/* Closes; sources are released by their owners, before. */
void input_release(struct input *in);

/*
 * Writes to the nonblocking FD from now on, which it owns. What was queued
 * before is written now.
 */
void input_open(struct input *in, int fd, bool is_terminal);

/* Nothing reads any more: closes, drops what waits and what comes. */
void input_close(struct input *in);

/* An empty queue; ON_TAKEN may be NULL and must not free the source. */
void input_source_init(
    struct input_source *s, void (*on_taken)(struct input_source *s, size_t n));

/* Forgets the source; the rest of a frame whose head is written goes too. */
void input_source_release(struct input *in, struct input_source *s);

/* Queues one frame of N bytes; nothing for N = 0. */
void input_push(
    struct input *in, struct input_source *s, const void *p, size_t n);

/* Closes stdin of a pipe session behind everything queued now. */
void input_eof(struct input *in);

#endif
