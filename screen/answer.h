/*
 * The halves of screen_answer(): control sequences are answered in answer.c,
 * control strings in answer_string.c. An answer is typed into the program, which
 * may be a shell by the time it comes: it consists of numbers and of names that
 * are ours, never of what the query said.
 */
#ifndef SCREEN_ANSWER_H
#define SCREEN_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct screen;

#define ANSWER_PARAMS 16

struct answer {
	const struct screen *s;
	struct buf *out;
	char *text;  /* behind the introducer, printable ASCII; a C string */
	bool is_bel; /* the query ended so, and the answer will */
	char prefix, inter, final;
	unsigned n_params, params[ANSWER_PARAMS];
	char *data; /* of a DCS: behind the final byte */
};

/* Appends the end of the string that the answer is. */
void answer_end(const struct answer *a);

/* Each appends the answer, if there is one. */
void answer_osc(struct answer *a);
void answer_dcs(struct answer *a);

#endif
