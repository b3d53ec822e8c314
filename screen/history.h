/*
 * Lines that scrolled off the main screen, in a compact form: UTF-8 text and
 * changes of attributes, packed into large chunks. Hyperlinks and clusters are
 * stored in the line itself, so that the history keeps nothing of the screen's
 * tables alive. Bounded in lines and in bytes: the oldest go first.
 */
#ifndef SCREEN_HISTORY_H
#define SCREEN_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "screen/state.h"

struct history;

/*
 * An empty one of at most LINES lines in at most BYTES of memory; allocates
 * little before the first line. Free with history_free().
 */
struct history *history_new(uint32_t lines, size_t bytes);
void history_free(struct history *h);

/*
 * Appends a row of COLS cells, at most SCREEN_COLS_MAX, whose numbers are those
 * of T.
 */
void history_push(struct history *h, struct row *row, unsigned cols,
    const struct cell_tables *t);

/*
 * Forgets the last N lines, or all if there are fewer; the next ones get their
 * numbers. Costs a look at what is forgotten and at one chunk.
 */
void history_pop(struct history *h, uint64_t n);

/* Forgets all lines; numbers go on. */
void history_clear(struct history *h);

/* Lines are numbered for ever; [start, end) are there. */
uint64_t history_start(const struct history *h);
uint64_t history_end(const struct history *h);

/* The memory it holds, in bytes. */
size_t history_bytes(const struct history *h);

/*
 * Reads lines, next to each other at the best. Zero-initialised is ready; the
 * history must not change between its first use and history_reader_release().
 */
struct history_reader {
	/* the line that was read last */
	struct cell *cells; /* N of them; blank ones at the end are cut */
	unsigned n;
	bool is_wrapped; /* its text goes on in the next line ... */
	bool is_padded;  /* ... and the row had one blank cell more */
	/* what the numbers in these cells point into */
	struct cell_tables tables;
	/* of history_read.c */
	unsigned cap;
	uint64_t next; /* line at CHUNK, AT */
	unsigned chunk;
	size_t at;
	bool is_placed;
	struct cell_ext *exts;
	struct cell_link *links;
	struct cluster *clusters;
	unsigned n_exts, cap_exts, n_links, cap_links, n_clusters, cap_clusters;
};

/* Reads line N; false when there is none. */
bool history_read(
    const struct history *h, struct history_reader *r, uint64_t n);

/* Frees what R holds and leaves it ready. */
void history_reader_release(struct history_reader *r);

#endif
