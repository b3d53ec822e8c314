/*
 * Removes terminal queries from what a program prints, so that no viewer's
 * terminal answers them, now or in a replay. Recognises DA1-3, DSR and CPR,
 * DECRQM, DECRQSS, XTVERSION, XTGETTCAP, OSC 4/5/10-19/52 with `?`, kitty
 * `CSI ? u`, window reports (CSI 11-21 t), ENQ, whatever the split. Everything
 * else passes as it is. No allocation.
 */
#ifndef SCREEN_QUERY_FILTER_H
#define SCREEN_QUERY_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "screen/vt_scan.h"

/*
 * An unfinished sequence is held back up to this. A longer one passes, unless
 * its beginning says that it is a query: then it is dropped; a colour or
 * clipboard string that asks later on is cancelled there (CAN). CAN also stands
 * for a query that cut off what came before it: without it the bytes behind
 * would go on with that, and could make a query of it.
 */
#define QUERY_HELD_MAX 4096

struct query_filter {
	uint8_t held[QUERY_HELD_MAX];
	size_t n_held;
	size_t n_late; /* so many of them were given out by a release */
	/*
	 * Called for each query of up to QUERY_HELD_MAX bytes that is left out,
	 * when the output up to OUT is all that comes before it; NULL for none.
	 */
	void (*on_query)(
	    void *arg, const uint8_t *q, size_t n, const uint8_t *out);
	void *arg;
	struct vt_scan scan;  /* behind the last byte of input */
	struct vt_scan shown; /* behind the output before FRESH */
	const uint8_t *fresh; /* during a run: where the rest of it begins */
	uint8_t mode;         /* what happens to the present sequence */
	uint8_t is_ending;    /* held ends in an ESC that may begin the ST */
};

/* Starts at a safe boundary, with nobody to call. */
void query_filter_init(struct query_filter *f);

/*
 * Filters N bytes of IN into OUT, which has room for N + QUERY_HELD_MAX and
 * does not overlap IN. Returns the bytes written.
 */
size_t query_filter_run(
    struct query_filter *f, const uint8_t *in, size_t n, uint8_t *out);

/*
 * Gives out what is held back, because its rest does not come, and goes on: if it
 * becomes a query after all, CAN ends it. Returns the bytes written, at most
 * QUERY_HELD_MAX.
 */
size_t query_filter_release(struct query_filter *f, uint8_t *out);

/* True when something is held back that query_filter_release() would give. */
bool query_filter_is_holding(const struct query_filter *f);

/*
 * True if N bytes of P are known to pass as they are, and nothing is held behind
 * them: a run that need not be made. Told at once and not of everything: text,
 * and the sequences that most output is made of.
 */
bool query_filter_is_clean(
    const struct query_filter *f, const uint8_t *p, size_t n);

/*
 * At the end of the replay: gives out what is held back, for its rest comes
 * live. Returns the bytes written, at most QUERY_HELD_MAX.
 */
size_t query_filter_finish(struct query_filter *f, uint8_t *out);

#endif
