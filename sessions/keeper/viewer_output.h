/*
 * What a viewer is sent: see viewer.h for the ways to show a session. All of
 * it goes through viewer_output_step(), a frame at a time, within the credit.
 */
#ifndef SESSIONS_KEEPER_VIEWER_OUTPUT_H
#define SESSIONS_KEEPER_VIEWER_OUTPUT_H

#include <stdbool.h>

#include "sessions/wire/messages.h"

struct keeper;
struct viewer;

/* Decides how V, which has just come as SPEC says, is shown the session. */
void viewer_output_begin(struct viewer *v, const struct wire_viewer *spec);

/* Forgets what was composed. */
void viewer_output_release(struct viewer *v);

/* True if something is to be sent, now or when its time comes. */
bool viewer_output_is_due(struct viewer *v);

/* Sends a frame; false when nothing can be sent now. On an idle link only. */
bool viewer_output_step(struct viewer *v);

/*
 * The size of the session or of V's terminal changed: V is shown it anew soon,
 * behind the bytes that were printed before.
 */
void viewer_output_resized(struct viewer *v);

/*
 * Composes what gives V's terminal back to its shell, after what else was
 * composed, and queues all of it whatever the state of the link.
 */
void viewer_output_end(struct viewer *v);

#endif
