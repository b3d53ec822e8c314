/*
 * The recorder as the keeper sees it: there or not, on the loop, with its
 * reports passed to the manager. Every function is harmless for a session
 * without a recording.
 */
#ifndef SESSIONS_KEEPER_RECORDING_H
#define SESSIONS_KEEPER_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct event;
struct keeper;
struct recorder;

#define RECORDING_FLUSH_MAX 16

struct recording {
	struct keeper *k;
	struct recorder *recorder; /* NULL for none */
	struct event *report_ev;
	int waiting_fd; /* the file, until the program runs; or -1 */
	uint16_t flush_tags[RECORDING_FLUSH_MAX]; /* to be answered */
	unsigned n_flush_tags;
	uint64_t bytes, duration_ms;
	uint32_t gaps;
	int64_t close_ms; /* when it was asked to close, 0 before */
	bool is_closed, is_complete;
};

/* Holds FD (-1 for none) until recording_start(). */
void recording_init(struct recording *r, struct keeper *k, int fd);
void recording_start(struct recording *r);
void recording_release(struct recording *r);

/* Bytes that recording_output() takes now; SIZE_MAX without a recording. */
size_t recording_room(const struct recording *r);
void recording_output(struct recording *r, const void *p, size_t n);
void recording_resize(struct recording *r, unsigned cols, unsigned rows);

/* TEXT happened now, like "alice joined"; see recorder_marker(). */
void recording_marker(struct recording *r, const char *text);

/* Answers the manager's TAG with FRAME_OK when all is on the disk. */
void recording_flush(struct recording *r, uint16_t tag);

/* The output is complete; keeper_advance() follows when the file is closed. */
void recording_close(struct recording *r);

/* True when closed, or when the disk did not manage it in 5 s. */
bool recording_is_over(const struct recording *r);

/* For wire_exited.rec_state. */
uint8_t recording_state(const struct recording *r);

#endif
