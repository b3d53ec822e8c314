/*
 * What a viewer sends: input, credit, sizes, signals, break, EOF, by a table.
 * The role is checked here, where the act happens: a viewer that may not type
 * has its input, sizes, signals and breaks dropped.
 */
#ifndef SESSIONS_KEEPER_VIEWER_FRAMES_H
#define SESSIONS_KEEPER_VIEWER_FRAMES_H

struct frame;
struct viewer;
struct wire;

/* Sets up V's queue and grants the first window of input. */
void viewer_frames_init(struct viewer *v);

/* Grants again what was taken, unless V does not even read that. */
void viewer_frames_grant(struct viewer *v);

/* The wire's handler; its owner is the struct viewer. */
void viewer_frames_on_frame(struct wire *w, const struct frame *f);

/* Passes on the part of a key whose rest did not come in time. */
void viewer_frames_flush_key(struct viewer *v);

#endif
