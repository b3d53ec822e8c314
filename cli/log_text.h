/*
 * What a terminal was sent, as lines to be read: no escape sequence, no control
 * character, nothing of what was shown on the alternate screen; what a carriage
 * return writes over is gone, as it is on the terminal. Pure; the input is
 * hostile.
 */
#ifndef CLI_LOG_TEXT_H
#define CLI_LOG_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "screen/vt_scan.h"

#define LOG_TEXT_LINE_MAX 16384 /* longer lines are broken */

/*
 * A line, without its end and terminated: valid UTF-8, printable but for tabs.
 * MS is the time of its first byte.
 */
typedef void (*log_text_fn)(int64_t ms, const char *line, void *arg);

/* Zero-initialised but for `fn` and `arg`. */
struct log_text {
	log_text_fn fn;
	void *arg;
	struct vt_scan scan;
	char sequence[12]; /* the beginning of the present one */
	size_t n_sequence;
	bool is_hidden; /* the alternate screen is shown */
	bool has_cr;
	bool has_begun; /* something came since the last end of a line */
	int64_t ms;
	struct buf line;
};

/* Takes N bytes of P that came at MS. */
void log_text_feed(struct log_text *t, const void *p, size_t n, int64_t ms);

/* The rest is a line, if it is something. */
void log_text_end(struct log_text *t);

/* Frees what it holds. */
void log_text_release(struct log_text *t);

#endif
