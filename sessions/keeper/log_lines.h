/*
 * The stderr of a process that logs for the manager (sftp-server): cut into
 * lines, kept for a moment and sent together as FRAME_LOG. What is read here
 * comes from the sandbox: lines and queue are bounded, the process never waits,
 * and what does not fit is counted instead.
 */
#ifndef SESSIONS_KEEPER_LOG_LINES_H
#define SESSIONS_KEEPER_LOG_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct event;
struct keeper;

#define LOG_LINES_LINE_MAX  2048       /* bytes; the rest of it is dropped */
#define LOG_LINES_QUEUE_MAX (1U << 20) /* bytes that wait for the manager */

struct log_lines {
	struct keeper *k;
	struct event *flush_ev;
	struct buf queue; /* strings as in FRAME_LOG */
	struct buf line;  /* that has not ended yet */
	uint32_t n, lost;
};

/* Nothing is queued. Release with log_lines_release(). */
void log_lines_init(struct log_lines *l, struct keeper *k);
void log_lines_release(struct log_lines *l);

/* Takes N bytes of the stream; its lines go to the manager a little later. */
void log_lines_put(struct log_lines *l, const void *p, size_t n);

/* The stream is at its end: what was begun is a line too. */
void log_lines_end(struct log_lines *l);

/* Sends now what waits, if there is a manager to hear it. */
void log_lines_flush(struct log_lines *l);

/* True while lines wait for a manager. */
bool log_lines_are_waiting(const struct log_lines *l);

#endif
