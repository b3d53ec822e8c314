/*
 * Where the cursor goes: moves within margins, line feeds that scroll, tabs,
 * saving and restoring. All positions are from 0.
 */
#ifndef SCREEN_CURSOR_H
#define SCREEN_CURSOR_H

#include <stdbool.h>

#include "screen/state.h"

/* The cursor of an empty screen. */
struct cursor cursor_initial(void);

/* To a position as programs name it: in origin mode relative to the margins. */
void cursor_to(struct screen *s, unsigned col, unsigned row);

/* Only the column, or only the row, as above. */
void cursor_to_col(struct screen *s, unsigned col);
void cursor_to_row(struct screen *s, unsigned row);

/* By N, stopped by the margins if it begins within them. */
void cursor_up(struct screen *s, unsigned n);
void cursor_down(struct screen *s, unsigned n);
void cursor_left(struct screen *s, unsigned n);
void cursor_right(struct screen *s, unsigned n);

/* To the left margin, or to the edge when the cursor is left of it. */
void cursor_return(struct screen *s);

/*
 * One row down; scrolls at the bottom margin. With IS_WRAP the text of this row
 * goes on in the next one.
 */
void cursor_index(struct screen *s, bool is_wrap);

/* One row up; scrolls at the top margin. */
void cursor_reverse_index(struct screen *s);

/* N tab stops to the right or to the left. */
void cursor_tab(struct screen *s, unsigned n);
void cursor_back_tab(struct screen *s, unsigned n);

/* The stops of a new screen in the columns [FROM, TO). */
void cursor_default_tabs(uint8_t *tabs, unsigned from, unsigned to);

/* DECSC and DECRC, of the buffer in use. */
void cursor_save(struct screen *s);
void cursor_restore(struct screen *s);

/* The margins to the edges. */
void cursor_reset_margins(struct screen *s);

#endif
