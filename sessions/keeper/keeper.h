/*
 * The keeper (berth-session): one process per session. It owns the PTY or the
 * pipes, the ring, the viewers and the recorder, and ends when the session is
 * over and told. Its parts each have a file; this header is the struct that
 * ties them together and the steps of its life. Nothing in it ever blocks.
 */
#ifndef SESSIONS_KEEPER_KEEPER_H
#define SESSIONS_KEEPER_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "sessions/keeper/child.h"
#include "sessions/keeper/display.h"
#include "sessions/keeper/drop.h"
#include "sessions/keeper/input.h"
#include "sessions/keeper/log_lines.h"
#include "sessions/keeper/manager_link.h"
#include "sessions/keeper/output.h"
#include "sessions/keeper/pipes.h"
#include "sessions/keeper/recording.h"
#include "sessions/keeper/state.h"
#include "sessions/keeper/stop.h"
#include "sessions/wire/messages.h"

struct event;
struct event_base;
struct ring;
struct viewer;

struct keeper {
	struct event_base *base;
	struct event *signal_ev, *status_ev, *tick_ev, *pump_ev, *later_ev;
	int signal_fd;
	struct wire_launch launch; /* valid once is_launched */
	uint64_t generation;       /* highest of a manager seen */
	bool is_launched;
	bool is_over; /* the output is complete, EXIT and END are on the way */
	bool is_reported; /* FRAME_EXITED was offered to a manager */
	bool is_released; /* FRAME_BYE came: the manager knows the end */
	bool had_viewer;  /* a bound session had its one viewer */
	bool is_asleep;   /* the sandbox is suspended: keys are told */
	bool is_failed;   /* the child could not be started */
	bool is_saved;    /* its end stands in the lock file */
	enum wire_session_state state;
	int64_t launched_ms, over_ms; /* CLOCK_MONOTONIC */
	uint64_t started_ms;          /* wall clock, 0 = not yet */
	struct wire_exited exited;    /* valid in STATE_EXITED */
	struct manager_link manager;
	struct drop drop;
	struct state saved; /* in the lock file */
	struct child child;
	struct ring *ring;      /* NULL for a bound pipe session */
	struct display display; /* the model of the terminal */
	struct output output;   /* PTY or lingering pipes to the ring */
	struct pipes pipes;     /* bound pipes to the one viewer */
	struct log_lines log;   /* of LAUNCH_LOG_STDERR */
	struct input input;
	struct recording recording;
	struct stop stop;
	struct list viewers; /* of struct viewer, in order of attachment */
	unsigned n_viewers;
	struct viewer *bound_viewer; /* whose end is the session's, or NULL */
	struct wire_size size;       /* of the terminal */
	struct wire_size next_size;  /* which it gets soon, if is_size_due */
	bool is_size_due;
	int64_t sized_ms;    /* when it got the last one */
	bool is_size_pinned; /* by an administrator */
	int64_t later_ms;    /* when later_ev comes */
	int64_t typed_ms;    /* when who set the size typed last */
	uint64_t touches;    /* counts sizes sent and keys typed, see size.h */
	uint8_t *scratch; /* KEEPER_SCRATCH bytes, for one callback at a time */
};

/* Room for a filtered frame: FRAME_DATA_MAX and what a filter holds, twice. */
#define KEEPER_SCRATCH (FRAME_DATA_MAX + 2 * 4096U)

/*
 * Starts a keeper on the socket MANAGER_FD, the session's lock LOCK_FD and the
 * listening socket LISTEN_FD (-1 for none); it owns all three, and what D holds.
 * SIGCHLD must be blocked. Nothing runs before keeper_run(). Free with
 * keeper_free().
 */
struct keeper *keeper_new(
    int manager_fd, int lock_fd, int listen_fd, const struct drop *d);
void keeper_free(struct keeper *k);

/* Runs the loop until the keeper has nothing left to do. */
void keeper_run(struct keeper *k);

/*
 * Starts the session that L describes and takes over what L holds, and the
 * recording RECORDING_FD (-1 for none). That it runs, or why not, goes to the
 * manager later, as FRAME_STARTED or FRAME_FAILED.
 */
void keeper_launch(struct keeper *k, struct wire_launch *l, int recording_fd);

/* Reaps what has ended; the leader's end starts the end of the session. */
void keeper_reap(struct keeper *k);

/*
 * Takes every step of the session's end whose conditions are met; harmless at
 * any time. Call it whenever one of them may have become true.
 */
void keeper_advance(struct keeper *k);

/*
 * Leaves the session to the manager: this process ends as if it were killed,
 * but with its recording written. For a leader that runs and cannot be ended
 * from here; otherwise without effect.
 */
void keeper_abandon(struct keeper *k);

/* Looks at everything that waits for time to pass within 250 ms. */
void keeper_want_tick(struct keeper *k);

/* Sends viewers what they may have, from the loop, after this callback. */
void keeper_want_pump(struct keeper *k);

/* The same, in MS milliseconds or before. */
void keeper_want_pump_in(struct keeper *k, int64_t ms);

static inline bool
keeper_has(const struct keeper *k, enum wire_launch_flags flag)
{
	return k->is_launched && (k->launch.flags & flag);
}

static inline bool
keeper_is_bound_pipe(const struct keeper *k)
{
	return keeper_has(k, LAUNCH_BOUND) && !keeper_has(k, LAUNCH_PTY);
}

/* The scratch buffer, made when first asked for. */
uint8_t *keeper_scratch(struct keeper *k);

/* The figures of the session as they are now. */
void keeper_stats(struct keeper *k, struct wire_stats *out);

#endif
