/*
 * A link on a libevent loop: frames arrive in a callback, writes drain by
 * themselves. Used by the manager, the keeper and berth-sshd; the command line
 * uses link.h alone.
 */
#ifndef SESSIONS_WIRE_WIRE_H
#define SESSIONS_WIRE_WIRE_H

#include <stdbool.h>

#include "sessions/wire/link.h"

/* More than this waiting for one peer ends its link. */
#define WIRE_PENDING_MAX (4U << 20)

struct event;
struct event_base;
struct wire;

struct wire_handler {
	/*
	 * One frame. Owns f->fd. May send, pause or wire_close(), never free
	 * the wire.
	 */
	void (*on_frame)(struct wire *w, const struct frame *f);
	/*
	 * The link is over: RC is 0 at the peer's end of stream, -EPROTO for
	 * garbage, else a negative errno. Called once, last; may free the wire.
	 */
	void (*on_close)(struct wire *w, int rc);
	/* All that waited is sent; may be NULL. */
	void (*on_idle)(struct wire *w);
};

struct wire {
	struct link link;
	struct event_base *base;
	struct event *read_ev, *write_ev, *deferred_ev;
	const struct wire_handler *handler;
	void *owner;
	bool is_paused, is_closing, is_broken, in_callback;
	uint32_t version; /* of the frames spoken: ours until the owner knows */
	int close_rc;
};

/*
 * Starts W on the nonblocking socket FD, which it owns. OWNER is the caller's.
 * HANDLER must outlive W. No callback runs before the loop does.
 */
void wire_init(struct wire *w, struct event_base *base, int fd,
    const struct wire_handler *handler, void *owner);

/*
 * Right after wire_init(): the link goes on from where another left it, with
 * the bytes IN that were read and not handed out and the bytes OUT that wait to
 * be sent. Both are copied.
 */
void wire_continue(
    struct wire *w, const void *in, size_t n_in, const void *out, size_t n_out);

/* Ends the link without any callback. Harmless when never started. */
void wire_release(struct wire *w);

/* Ends it as if the peer had: on_close(w, RC) follows from the loop. */
void wire_close(struct wire *w, int rc);

/*
 * Sends through link_send() and flushes as far as the socket takes it. When
 * WIRE_PENDING_MAX bytes or LINK_FDS_MAX descriptors wait already, the link is
 * closed with -ENOBUFS instead.
 */
void wire_send(struct wire *w, uint8_t type, uint8_t arg, uint16_t tag,
    const void *p, size_t n);
void wire_send_fd(struct wire *w, uint8_t type, uint8_t arg, uint16_t tag,
    const void *p, size_t n, int fd);
void wire_send_buf(struct wire *w, uint8_t type, uint8_t arg, uint16_t tag,
    const struct buf *b);

/* FRAME_OK, or FRAME_ERROR with CODE and WHY, as the reply to TAG. */
void wire_reply_ok(struct wire *w, uint16_t tag);
void wire_reply_error(
    struct wire *w, uint16_t tag, uint8_t code, const char *why);

/*
 * Writes data straight from the caller's memory, see link_write_data(); arms
 * the write event for what is left. Returns true if more may follow at once.
 */
bool wire_write_data(
    struct wire *w, enum frame_stream stream, const struct iovec *iov, int n);

/* Stops or resumes reading; a paused wire still writes. */
void wire_pause(struct wire *w, bool paused);

#endif
