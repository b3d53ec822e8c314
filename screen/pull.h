/*
 * Lines that come back from the history because the screen has become taller:
 * rows again, with the numbers of the screen's tables.
 */
#ifndef SCREEN_PULL_H
#define SCREEN_PULL_H

#include <stdbool.h>

#include "screen/state.h"

/*
 * Rows of their own width: `used` cells, which for one that is wrapped are all
 * that it had. Zero-initialised is none.
 */
struct pull {
	struct row *rows;
	unsigned n;
	bool is_held; /* the tables, until pull_release() */
};

/*
 * Takes the last N lines off the history of S, or as many as there are. A link
 * or cluster that the tables have no room for is left out, as in print.c. Until
 * pull_release() no number in the rows is given to something else.
 */
void pull_take(struct screen *s, unsigned n, struct pull *p);

/* Frees the rows; their numbers must be in a grid of S by now. */
void pull_release(struct screen *s, struct pull *p);

#endif
