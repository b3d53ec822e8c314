/*
 * What brings a terminal in an unknown state to the state of a new one, by an
 * explicit list: RIS would take its history along. Used at the beginning of a
 * repaint and when a terminal is given back.
 */
#ifndef SCREEN_RESET_H
#define SCREEN_RESET_H

#include <stdbool.h>

#include "screen/state.h"

struct buf;
struct emit;

/* Private modes, a few of them a sequence: `CSI ? N ; N FINAL`. */
struct reset_list {
	struct buf *out;
	char final; /* h, l, s */
	unsigned n; /* in the present sequence */
};

/* Appends NUMBER. */
void reset_list_add(struct reset_list *l, unsigned number);

/* Ends the present sequence. */
void reset_list_end(struct reset_list *l);

/*
 * True for modes that people configure in their terminals. They are set when a
 * program has changed them and left alone otherwise.
 */
bool reset_is_preference(enum mode m);

/* ?N of M with N for DEC's modes, plain N for ANSI's: on or off. */
void reset_mode(struct buf *out, enum mode m, bool is_on);

/*
 * Margins, modes, mouse, keyboard, character sets, cursor shape, pen. The
 * cursor ends at the top left, visible; what is shown stays, and so do titles,
 * colours and tab stops. Only the kitty stack of the screen in use is emptied.
 * E's pen is the default one then.
 */
void reset_terminal(struct emit *e);

/* Empties the kitty stack of the screen in use. */
void reset_kitty(struct buf *out);

/* Pen, character sets and origin mode: what a DECRC may have brought back. */
void reset_pen(struct emit *e);

/* ASCII everywhere, G0 shifted in. */
void reset_charsets(struct buf *out);

/* All colours to those of the terminal. */
void reset_colours(struct buf *out);

/* Mouse tracking and encodings off. */
void reset_mouse(struct buf *out);

#endif
