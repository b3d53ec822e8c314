/*
 * One end of a link: frames in, frames out, descriptors beside them. Knows no
 * event loop, never blocks on a nonblocking socket, never allocates what a peer
 * names before it checked the length. Control frames queue apart from data, so
 * that they overtake it.
 */
#ifndef SESSIONS_WIRE_LINK_H
#define SESSIONS_WIRE_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "sessions/wire/frame.h"

#define LINK_FDS_MAX 16

/* Zero-initialise `fd` to -1 with link_init() before use. */
struct link {
	int fd;
	struct buf in;
	struct buf partial;       /* the rest of a frame whose head is sent */
	struct buf out;           /* whole frames that wait */
	int in_fds[LINK_FDS_MAX]; /* received, not yet asked for */
	unsigned n_in_fds;
	int out_fds[LINK_FDS_MAX];        /* wait with their frame in `out` */
	uint64_t out_fd_at[LINK_FDS_MAX]; /* position of that frame's header */
	unsigned n_out_fds;
	uint64_t out_pos; /* bytes that ever left `out` */
};

/* A received frame. The payload is borrowed until the next link_fill(). */
struct frame {
	uint8_t type, arg;
	uint16_t tag;
	int fd; /* -1, or a descriptor that the receiver owns from now on */
	const uint8_t *data;
	size_t len;
};

/* Takes over the connected socket FD. */
void link_init(struct link *l, int fd);

/* Closes the socket and every descriptor that nobody fetched. */
void link_release(struct link *l);

/*
 * Reads once, at most 128 KiB. Returns the bytes read, 0 at the end of the
 * stream, -EAGAIN, -EPROTO when descriptors were cut (MSG_CTRUNC), or another
 * negative errno.
 */
int link_fill(struct link *l);

/*
 * Takes the next whole frame: 1, 0 when more bytes are needed, -EPROTO for a
 * header that cannot be right.
 */
int link_next(struct link *l, struct frame *out);

/* Queues a frame of N <= FRAME_MAX bytes; link_flush() sends it. */
void link_send(struct link *l, uint8_t type, uint8_t arg, uint16_t tag,
    const void *p, size_t n);

/*
 * The same with the descriptor FD, which the link owns from now on. At most
 * LINK_FDS_MAX of them wait (link_has_fd_room()).
 */
void link_send_fd(struct link *l, uint8_t type, uint8_t arg, uint16_t tag,
    const void *p, size_t n, int fd);

/*
 * Writes one FRAME_DATA straight from the caller's memory; only what the socket
 * did not take is copied. Call it only when link_is_idle(). The N vectors hold
 * 1 to FRAME_DATA_MAX bytes; N <= 2. 0 or a negative errno.
 */
int link_write_data(
    struct link *l, enum frame_stream stream, const struct iovec *iov, int n);

/* Drops what waits to be sent, and its descriptors. */
void link_drop_out(struct link *l);

/* Sends what waits: 0 when all is out, -EAGAIN, or another negative errno. */
int link_flush(struct link *l);

/* True if nothing waits to be sent. */
static inline bool
link_is_idle(const struct link *l)
{
	return buf_len(&l->out) == 0 && buf_len(&l->partial) == 0;
}

/* True if one more descriptor may be queued. */
static inline bool
link_has_fd_room(const struct link *l)
{
	return l->n_out_fds < LINK_FDS_MAX;
}

/* Bytes that wait to be sent. */
static inline size_t
link_pending(const struct link *l)
{
	return buf_len(&l->out) + buf_len(&l->partial);
}

#endif
