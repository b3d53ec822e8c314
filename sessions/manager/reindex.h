/*
 * Index rows of recordings that another manager may have lost: a child reads the
 * file, one at a time, and tells them again. Private to sessions/manager.
 */
#ifndef SESSIONS_MANAGER_REINDEX_H
#define SESSIONS_MANAGER_REINDEX_H

#include <stdint.h>

struct buf;
struct manager;
struct reader;

/* The rows of recording ID of the session SID (full id) are made again, soon. */
void reindex_want(struct manager *m, int64_t id, const char *sid);

/* For a handoff: appends what is wanted to B, and wants it again. */
void reindex_save(const struct manager *m, struct buf *b);
void reindex_load(struct manager *m, struct reader *r);

/* Ends the child and forgets who waits; the rows are only an aid. */
void reindex_release(struct manager *m);

#endif
