/*
 * The replay ring of a session: absolute 64-bit positions, grows from 16 KiB to
 * its cap, forgets the oldest bytes. The PTY is read straight into it and
 * viewers are written straight from it. While bytes pass, a small scanner keeps
 * track of characters and escape sequences and notes positions where a replay
 * may begin.
 */
#ifndef SESSIONS_KEEPER_RING_H
#define SESSIONS_KEEPER_RING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct ring;

/* A ring that grows up to MAX_BYTES (at least 16 KiB); ring_free() frees it. */
struct ring *ring_new(size_t max_bytes);
void ring_free(struct ring *r);

/*
 * A contiguous place for 1 to WANT > 0 bytes (*N_OUT of them); grows the ring
 * when it may. In a full ring the place is that of the oldest bytes: they count
 * as kept until ring_commit(), but are gone as soon as it is written to, so
 * peek only after the commit.
 */
uint8_t *ring_reserve(struct ring *r, size_t want, size_t *n_out);

/* The first N <= *N_OUT bytes of the place now count. */
void ring_commit(struct ring *r, size_t n);

/*
 * Copies N bytes in; more than the cap keeps the last ones. Bytes are forgotten
 * in steps of ring_cap() / 256.
 */
void ring_push(struct ring *r, const void *p, size_t n);

/* Positions: the oldest byte kept, and one behind the newest. */
uint64_t ring_start(const struct ring *r);
uint64_t ring_end(const struct ring *r);

/* Bytes the ring can hold at most. */
size_t ring_cap(const struct ring *r);

/*
 * At most MAX bytes from POS (ring_start() <= POS <= ring_end()) as up to two
 * vectors, borrowed until the next reserve or push. Returns how many vectors.
 */
int ring_peek(
    const struct ring *r, uint64_t pos, size_t max, struct iovec v[2]);

/*
 * The first position >= FROM that lies neither inside a UTF-8 character nor
 * inside an escape sequence or control string; ring_end() when there is none.
 */
uint64_t ring_safe_from(const struct ring *r, uint64_t from);

/*
 * The safe position from which at most LINES whole lines (ended by LF) and the
 * unfinished last one follow.
 */
uint64_t ring_safe_lines(const struct ring *r, unsigned lines);

#endif
