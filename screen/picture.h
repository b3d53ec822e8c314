/*
 * The screen as a picture for a terminal of another size: clipped or with a
 * margin, and after the first time only what has changed. Remembers what that
 * terminal shows. It draws on the alternate screen, so that the history of that
 * terminal stays as it is.
 */
#ifndef SCREEN_PICTURE_H
#define SCREEN_PICTURE_H

#include <stdbool.h>

struct buf;
struct picture;
struct screen;

/* Nothing is shown yet. Free with picture_free(). */
struct picture *picture_new(void);
void picture_free(struct picture *p);

/* From now on the keys and the mouse of P's terminal are not for the program. */
void picture_mute(struct picture *p);

/*
 * Appends what turns P's terminal, now of COLS x ROWS, from the last picture into
 * one of S as it is now: text, cursor, the modes that decide what its keys
 * and mouse send, cursor shape, title. Where S is larger, the part with the
 * cursor is shown; where it is smaller, the margin is blank and says
 * `session is 120x40` where there is room. The mouse is on only when the top
 * left corners agree. Appends nothing when nothing has changed.
 */
void picture_paint(struct picture *p, const struct screen *s, unsigned cols,
    unsigned rows, struct buf *out);

/*
 * Appends what takes the picture away again: modes off, alternate screen left,
 * as screen_restore() does. P is empty then. Nothing if it was.
 */
void picture_clear(struct picture *p, struct buf *out);

/* True when something was painted and not cleared. */
bool picture_is_shown(const struct picture *p);

#endif
