/*
 * What the terminal of a session shows, as text, for `berth screen`. In the
 * keeper.
 */
#ifndef SESSIONS_KEEPER_SCREEN_TEXT_H
#define SESSIONS_KEEPER_SCREEN_TEXT_H

struct buf;
struct keeper;

/*
 * Appends the screen of K to OUT: a line per row ended by LF, in UTF-8, without
 * blanks at the ends; FLAGS of enum wire_screen add colours and the history.
 * -ENOTSUP when the keeper follows no screen.
 */
int keeper_screen_text(struct keeper *k, unsigned flags, struct buf *out);

#endif
