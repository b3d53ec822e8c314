/*
 * The keeper's link to its manager: what the manager may ask, by a table, and
 * what it is told. The manager may go; the session goes on, and the keeper
 * waits on its listening socket for the next one, whom it tells everything.
 */
#ifndef SESSIONS_KEEPER_MANAGER_LINK_H
#define SESSIONS_KEEPER_MANAGER_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "sessions/keeper/input.h"
#include "sessions/wire/state_file.h"
#include "sessions/wire/wire.h"

struct event;
struct keeper;

struct manager_link {
	struct keeper *k;
	struct wire wires[2];
	struct wire *wire; /* to the manager, one of the two, or NULL */
	struct wire *next; /* who connected and has not said TAKE, or NULL */
	struct event *listen_ev, *stats_ev;
	int listen_fd;
	int64_t lost_ms;           /* since when there is none */
	struct input_source input; /* what `berth send` types */
	/* Viewers that left while nobody was there to be told. */
	struct wire_left left[STATE_FILE_LEFT_MAX];
	unsigned n_left;
	struct buf viewer_stats; /* FRAME_VIEWER_STATS as last sent */
};

/*
 * Takes over the socket FD to the manager, whose first frame is HELLO, and the
 * listening socket LISTEN_FD (-1 for none), both nonblocking.
 */
void manager_link_init(
    struct manager_link *m, struct keeper *k, int fd, int listen_fd);
/* Closes both without a word. */
void manager_link_release(struct manager_link *m);

/* Sends a frame, or nothing when there is no manager. */
void manager_link_send(struct manager_link *m, uint8_t type, uint8_t arg,
    uint16_t tag, const struct buf *b);

/* FRAME_STARTED, FRAME_FAILED, FRAME_EXITED, FRAME_VIEWER_GONE. */
void manager_link_started(struct manager_link *m);
void manager_link_failed(struct manager_link *m, const char *why);
void manager_link_exited(struct manager_link *m);
void manager_link_left(struct manager_link *m, const struct wire_left *left);

/* FRAME_VIEWER_STATS now, whether the manager knows it or not. */
void manager_link_tell_viewers(struct manager_link *m);

/* Somebody typed: told once if the sandbox sleeps. */
void manager_link_typed(struct manager_link *m);

/* Figures changed, those of viewers too: FRAME_STATS within a second. */
void manager_link_stats_changed(struct manager_link *m);

/* True when everything sent has left. */
bool manager_link_is_flushed(const struct manager_link *m);

#endif
