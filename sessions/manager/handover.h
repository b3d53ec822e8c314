/*
 * The manager's part of what one berthd leaves to the program that it executes
 * in its place: links to keepers with what is under way on them, so that nothing
 * has to be asked again. A session that is left out is taken over as after a
 * crash. Private to sessions/manager; the owner of both calls manager_save().
 */
#ifndef SESSIONS_MANAGER_HANDOVER_H
#define SESSIONS_MANAGER_HANDOVER_H

#include <stdbool.h>

struct handoff;
struct manager;
struct session;

/* Reads the section; what manager_save() told of each session waits in M. */
int handover_load(struct manager *m, const struct handoff *h);

/* If the session S, made from its row, was handed over: goes on with it. */
bool handover_resume(struct session *s);

/* Drops what no row asked for. */
void handover_forget(struct manager *m);

#endif
