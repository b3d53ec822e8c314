/*
 * What the terminal of a shared session shows: between the PTY and the ring it
 * takes the queries out and answers them, and it keeps the model of the screen
 * in step with the ring. The terminal of a private process is its client's own:
 * it has no display, and its bytes pass as they are.
 */
#ifndef SESSIONS_KEEPER_DISPLAY_H
#define SESSIONS_KEEPER_DISPLAY_H

#include <stddef.h>
#include <stdint.h>

#include "sessions/keeper/input.h"

struct event;
struct keeper;
struct query_filter;
struct screen;

struct display {
	struct keeper *k;
	struct screen *screen; /* NULL: no display */
	struct query_filter *filter;
	struct input_source answers;
	struct event *hold_ev;
	uint8_t *out;       /* a filtered turn, made when first needed */
	const uint8_t *fed; /* during a turn: up to here the screen has it */
};

/* Makes the display of K's session, which is launched, if it has one. */
void display_open(struct display *d, struct keeper *k);
void display_release(struct display *d);

/*
 * Filters a turn of *N bytes of output at P, at most OUTPUT_TURN_MAX, and
 * answers its queries. Returns the bytes that pass, *N of them: P itself, or
 * memory of the display that is valid until the next turn.
 */
const uint8_t *display_filter(struct display *d, const uint8_t *p, size_t *n);

/* Shows what display_filter() returned. */
void display_show(struct display *d, const uint8_t *p, size_t n);

/*
 * Gives out what is held back, because nothing will follow; as
 * display_filter().
 */
const uint8_t *display_flush(struct display *d, size_t *n);

/* The terminal has the size of the keeper now. */
void display_resize(struct display *d);

#endif
