/*
 * A viewer: its link, its place in the ring, its credit, its role. What it may
 * not do is refused here (viewer_frames.c); what it is sent is composed in
 * viewer_output.c: a repaint or a replay, then live output from exactly the next
 * byte, or a picture when its terminal has another size.
 */
#ifndef SESSIONS_KEEPER_VIEWER_H
#define SESSIONS_KEEPER_VIEWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "sessions/keeper/detach_key.h"
#include "sessions/keeper/input.h"
#include "sessions/wire/messages.h"
#include "sessions/wire/wire.h"

struct keeper;
struct picture;
struct query_filter;

enum viewer_show {
	SHOW_LIVE,   /* the bytes of the ring from `pos` on */
	SHOW_REPLAY, /* the same through the filter, up to `replay_end` */
	SHOW_JOIN,   /* the history from `next_line` on, then the screen */
	SHOW_PICTURE /* the screen, whatever the size of its terminal */
};

struct viewer {
	struct list node; /* in keeper.viewers */
	struct keeper *k;
	struct wire wire;
	uint64_t attachment;
	uint32_t flags;        /* enum wire_viewer_flags */
	char *label;           /* the manager's, or NULL */
	struct wire_size size; /* as last sent, 0 for unknown */
	uint64_t touch; /* when it last sent a size or typed, see size.h */
	char *identity; /* for the recording's markers, or NULL */
	struct input_source input;
	struct detach_key_scan detach_key;
	int64_t key_ms;     /* when a part of a key was held back */
	uint32_t n_unnamed; /* bytes typed, not yet passed on or dropped */
	uint32_t credit[STREAM_COUNT]; /* what it granted us */
	uint32_t window;               /* input that it may still send */
	uint32_t owed;                 /* input taken, not yet granted again */

	enum viewer_show show;
	struct buf out;              /* composed, to be sent before all else */
	uint64_t pos;                /* the next byte of the ring */
	uint64_t replay_end;         /* up to here through the filter */
	struct query_filter *filter; /* in SHOW_REPLAY */
	uint64_t next_line; /* of the history: the first that it lacks */
	uint64_t n_lines; /* of it that were sent since the screen was empty */
	struct picture *picture; /* made when first needed */
	uint64_t painted_pos;    /* what of the ring the picture shows */
	int64_t painted_ms;
	bool is_stale; /* the size changed: another way to show it is due */
	uint64_t stale_pos;   /* since this place in the ring */
	uint64_t stale_lines; /* and this end of the history */
	int64_t stale_ms;     /* since when */
	bool is_skipping;     /* to the end of a control string that it lacks */
	bool is_shown;        /* its terminal shows the screen */

	int64_t wait_ms; /* data waits and nothing moves since; 0 = it moves */
	int64_t resync_ms; /* of the last one, 0 = never */
	int64_t close_ms;  /* when to close whether it has read all or not */
	uint32_t resyncs;
	uint64_t bytes_out, bytes_in;
	bool is_exit_sent;
	bool is_closing; /* END or DETACH is sent, nothing follows */
};

/*
 * Attaches a viewer on the connected socket FD, which it owns; its first bytes
 * leave from the loop. It frees itself when its link ends.
 */
void viewer_attach(struct keeper *k, const struct wire_viewer *spec, int fd);

/* Frees V at once, without a word to it. */
void viewer_free(struct viewer *v);

/* Sends what the link takes now: some frames, so that others get their turn. */
void viewer_pump(struct viewer *v);
void viewer_pump_all(struct keeper *k);

/* Sends N bytes of STREAM straight; only within its credit, on an idle link. */
void viewer_write(
    struct viewer *v, enum frame_stream stream, const struct iovec *iov, int n);

/* Tells every viewer how the leader ended, once. */
void viewer_send_exit(struct viewer *v);

/* Sends END; V is closed when it has read all or stopped reading. */
void viewer_end(struct viewer *v);

/*
 * Gives its terminal back, sends FRAME_DETACH with WHY and closes soon. IS_WISH:
 * it asked for it.
 */
void viewer_detach(struct viewer *v, const char *why, bool is_wish);

/* Closes what has waited too long; asks for another tick while any waits. */
void viewer_tick_all(struct keeper *k);

/* True if data waits for V and it has taken nothing for 5 s. */
bool viewer_is_stuck(const struct viewer *v);

#endif
