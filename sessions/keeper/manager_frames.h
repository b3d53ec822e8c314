/*
 * What the manager may ask of a keeper: a row of a table for each frame. Which
 * manager that is, manager_link.h decides.
 */
#ifndef SESSIONS_KEEPER_MANAGER_FRAMES_H
#define SESSIONS_KEEPER_MANAGER_FRAMES_H

struct frame;
struct manager_link;

/*
 * Does what FRAME asks, and takes its descriptor. A negative errno when the
 * link must end, for it is no frame that a manager sends.
 */
int manager_frames_handle(struct manager_link *m, const struct frame *frame);

#endif
