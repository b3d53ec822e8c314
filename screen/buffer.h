/*
 * The grid: rows of cells, moved by turning row pointers, erased with the pen's
 * background. Everything here acts on the buffer in use and keeps what must
 * hold of a grid: a wide character's halves are next to each other.
 */
#ifndef SCREEN_BUFFER_H
#define SCREEN_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "screen/row.h"
#include "screen/state.h"

/*
 * Rows and cells of a blank grid. There is room for twice as many rows: the
 * second half serves when rows are turned.
 */
void buffer_alloc(struct buffer *b, unsigned cols, unsigned rows);

/* Frees the grid; B is blank and unused then. */
void buffer_release(struct buffer *b);

/* Makes sure that the buffer in use has a grid. */
void buffer_use(struct screen *s);

/* True when the margins are the left and the right edge. */
static inline bool
buffer_is_full_width(const struct screen *s)
{
	return s->left == 0 && s->right == s->cols - 1;
}

/* The row of the buffer in use. */
static inline struct row *
buffer_at(struct screen *s, unsigned row)
{
	return &s->now->rows[row];
}

/* What is left of a cell when something is erased: the pen's background. */
static inline struct cell
buffer_blank(const struct screen *s)
{
	return (struct cell){ .bg = s->cursor.pen.bg };
}

/* Erases columns [FROM, TO) of a row of the screen. */
void buffer_erase(struct screen *s, unsigned row, unsigned from, unsigned to);

/* The same, but protected cells stay. */
void buffer_erase_selective(
    struct screen *s, unsigned row, unsigned from, unsigned to);

/*
 * Scrolls the rows [TOP, BOTTOM] within the left and right margins up or down
 * by N; what comes in is blank. Rows that leave the main screen at its very top
 * go to the history if IS_KEPT.
 */
void buffer_scroll_up(
    struct screen *s, unsigned top, unsigned bottom, unsigned n, bool is_kept);
void buffer_scroll_down(
    struct screen *s, unsigned top, unsigned bottom, unsigned n);

/*
 * Inserts N blank cells at COL of a row, or deletes N; what is right of it up to
 * the right margin moves.
 */
void buffer_insert_cells(
    struct screen *s, unsigned row, unsigned col, unsigned n);
void buffer_delete_cells(
    struct screen *s, unsigned row, unsigned col, unsigned n);

/* Copies N cells of row FROM at FROM_COL to row TO at TO_COL; may overlap. */
void buffer_copy_cells(struct screen *s, unsigned from, unsigned from_col,
    unsigned to, unsigned to_col, unsigned n);

#endif
