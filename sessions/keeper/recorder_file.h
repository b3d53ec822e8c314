/*
 * The file of a recording, as the recorder's thread sees it: whole lines at
 * known offsets, gaps where the disk did not take them, index rows. Knows no
 * thread and no queue. Invariant: `size` is the end of a line, and the file is
 * never left longer than that by a failed write.
 */
#ifndef SESSIONS_KEEPER_RECORDER_FILE_H
#define SESSIONS_KEEPER_RECORDER_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "sessions/keeper/cast.h"
#include "sessions/keeper/recorder.h"

/* Lines wait in a batch of at least this many bytes, or this many lines. */
#define RECORDER_BATCH (64U << 10)
#define RECORDER_LINES 512

/* After trouble the file is tried again this often. */
#define RECORDER_RETRY_US 1000000

struct recorder_line {
	size_t end;   /* in the batch */
	uint64_t raw; /* bytes of output that are lost with it */
	uint64_t t_us;
	unsigned cols, rows; /* of an `r` */
	char code;           /* 'o', 'r', 'm', or 'h' for the header */
};

struct recorder_file {
	int fd;
	struct recorder_config config; /* its strings are not used */
	struct buf header;
	struct cast_text text;
	char *batch; /* RECORDER_BATCH + CAST_LINE_MAX */
	size_t n_batch;
	struct recorder_line lines[RECORDER_LINES];
	unsigned n_lines;
	uint64_t last_us;              /* time of the newest line */
	unsigned cols, rows;           /* as they should be */
	unsigned kept_cols, kept_rows; /* as the file has them */

	uint64_t size, kept_us; /* of what is in the file */
	bool is_dirty;          /* since synced_us */
	int64_t synced_us, checked_us;
	uint64_t checked_size;

	bool is_in_gap; /* output is dropped until the file takes lines again */
	bool is_gap_counted, is_capped, is_damaged, has_failed, is_closing;
	int64_t retry_us;
	uint64_t lost; /* bytes of the present gap */
	uint32_t gaps;
	struct err error; /* the last one */

	struct recorder_index rows_due[RECORDER_INDEX_MAX];
	unsigned n_rows_due; /* the owner takes them and sets 0 */
	bool has_row;
	struct recorder_index row; /* the newest */
};

/* Takes FD; puts the header into the batch. Strings of C are copied. */
void recorder_file_init(
    struct recorder_file *f, int fd, const struct recorder_config *c);

/* Frees; closes the descriptor unless recorder_file_close() did. */
void recorder_file_release(struct recorder_file *f);

/*
 * Adds to the batch, which is written when it is full. T_US is
 * CLOCK_MONOTONIC; N is at most CAST_EVENT_MAX. LOST bytes are what the queue
 * did not take.
 */
void recorder_file_output(
    struct recorder_file *f, int64_t t_us, const uint8_t *p, size_t n);
void recorder_file_resize(
    struct recorder_file *f, int64_t t_us, unsigned cols, unsigned rows);
void recorder_file_gap(struct recorder_file *f, int64_t t_us, uint64_t lost);

/* TEXT is valid UTF-8 of at most RECORDER_MARKER_MAX bytes. */
void recorder_file_marker(
    struct recorder_file *f, int64_t t_us, const char *text);

/* Writes the batch; recorder_file_sync() also fdatasync's. */
void recorder_file_write(struct recorder_file *f);
void recorder_file_sync(struct recorder_file *f);

/* In a gap: tries to end it, at most every RECORDER_RETRY_US unless NOW. */
void recorder_file_retry(struct recorder_file *f, int64_t t_us, bool is_now);

/* When recorder_file_retry() would try, CLOCK_MONOTONIC; INT64_MAX: never. */
int64_t recorder_file_retry_at(const struct recorder_file *f);

/* Writes what is left, syncs and closes. */
void recorder_file_close(struct recorder_file *f, int64_t t_us);

#endif
