/*
 * The recorder of a session: asciicast v2 on a thread of its own behind a
 * bounded queue, so that a slow disk holds the PTY back but nothing else, and
 * a flood cannot blind it. The keeper's loop calls everything here; only
 * recorder.c knows the thread.
 */
#ifndef SESSIONS_KEEPER_RECORDER_H
#define SESSIONS_KEEPER_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recorder;

/* Bytes that may wait; recorder_room() is 0 when they do. */
#define RECORDER_QUEUE (256U << 10)

/* What recorder_room() says may come in so many calls, whatever passes between. */
#define RECORDER_CALLS 64

struct recorder_config {
	unsigned cols, rows;              /* 1..65535 */
	const char *title, *shell, *term; /* for the header; copied */
	int64_t wall_s;                   /* start, seconds since 1970 */
	int64_t start_us;   /* CLOCK_MONOTONIC of time 0 of the recording */
	uint32_t flush_ms;  /* longest time a byte waits before it is written */
	uint32_t index_ms;  /* an index row at least this often with output */
	uint64_t min_free;  /* bytes the file system must keep free; 0 = none */
	uint64_t max_bytes; /* cap of the file; 0 = none */
	bool is_stop_on_error; /* else: a marked gap, and it goes on */
};

/*
 * Starts recording into FD, an empty file that the recorder owns from now on.
 * The header is written by the thread. Never NULL.
 */
struct recorder *recorder_new(int fd, const struct recorder_config *c);

/*
 * Output bytes that recorder_output() takes now. After 0 the event descriptor
 * tells when to ask again: there is room, or the disk made no progress for 5 s;
 * then the answer is RECORDER_QUEUE and what does not fit becomes a gap, or the
 * failure that is_stop_on_error asks for.
 */
size_t recorder_room(const struct recorder *r);

/*
 * Records N bytes, within recorder_room(), that the process printed now (stdout and
 * stderr alike); nothing after recorder_close(). Characters split over calls
 * are joined, invalid bytes become U+FFFD, times never go back.
 */
void recorder_output(struct recorder *r, const void *p, size_t n);

/* Records a new size; nothing when it is the present one. */
void recorder_resize(struct recorder *r, unsigned cols, unsigned rows);

/* A marker's text at most, after escapes. */
#define RECORDER_MARKER_MAX 256

/*
 * Records that TEXT happened now, behind the output before. What is no text to
 * look at, controls among it, becomes an escape like \u001b, what is too long
 * is cut. Lost when the disk does not keep up with a dozen of them; nothing
 * after recorder_close().
 */
void recorder_marker(struct recorder *r, const char *text);

/*
 * Readable when recorder_poll() has something to say, or recorder_room() has
 * changed from 0. Belongs to the recorder.
 */
int recorder_event_fd(const struct recorder *r);

struct recorder_index {
	uint64_t t_ms, offset; /* OFFSET is where an event's line begins */
};

#define RECORDER_INDEX_MAX 64

struct recorder_report {
	uint64_t bytes, duration_ms; /* written so far */
	uint32_t gaps;
	bool has_failed; /* is_stop_on_error and it could not go on */
	bool is_flushed; /* no recorder_flush() is waiting */
	bool
	    is_closed; /* recorder_close() is done; recorder_free() is instant */
	bool is_complete; /* with is_closed: everything was written */
	char error[256];  /* what went wrong last, "" for nothing */
	struct recorder_index index[RECORDER_INDEX_MAX]; /* new ones */
	unsigned n_index;
};

/* Clears the event descriptor and tells what happened since the last call. */
void recorder_poll(struct recorder *r, struct recorder_report *out);

/* Asks for everything queued to be written and fdatasync'ed. */
void recorder_flush(struct recorder *r);

/* Asks for the end: what is queued is written, synced, the file closed. */
void recorder_close(struct recorder *r);

/*
 * Waits for the thread, at most until 5 s after recorder_close(), which it
 * calls if nobody did, and frees; a thread that hangs in the disk by then is
 * left behind with the file. Take the event descriptor out of the loop before.
 */
void recorder_free(struct recorder *r);

#endif
