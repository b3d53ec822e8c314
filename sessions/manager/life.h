/*
 * How long a sandbox lives, and when it sleeps: arithmetic alone, without clocks
 * and timers, which are box_life.c's. Idle counts on the monotonic clock, the
 * lifetime on that of the wall, because it goes on when nobody is there to look.
 */
#ifndef SESSIONS_MANAGER_LIFE_H
#define SESSIONS_MANAGER_LIFE_H

#include <stdbool.h>
#include <stdint.h>

/* Of its template; 0: never. */
struct life_rules {
	uint64_t idle_suspend_ms, idle_teardown_ms, lifetime_ms;
	bool viewers_wake; /* who only watches counts as much as who may type */
};

struct life {
	struct life_rules rules;
	int64_t created_ms;    /* wall */
	int64_t idle_since_ms; /* monotonic; while it is not busy */
	bool is_busy;          /* somebody uses it */
	bool has_dozed;        /* was suspended, or refused that, since then */
};

enum life_due {
	LIFE_NONE,
	LIFE_SUSPEND,
	LIFE_IDLE, /* idle_teardown */
	LIFE_OVER  /* lifetime */
};

/* Nobody looks less often than this: the wall clock may be set. */
#define LIFE_LOOK_MAX_MS 600000

/*
 * What is due for L at NOW_MS (monotonic) and WALL_MS, the gravest first. With
 * LIFE_NONE *IN_MS_OUT is when to ask again, 1 to LIFE_LOOK_MAX_MS, or -1: not
 * before L changes.
 */
enum life_due life_next(
    const struct life *l, int64_t now_ms, int64_t wall_ms, int64_t *in_ms_out);

/* Somebody uses it or nobody does, at NOW_MS. True if that is a change. */
bool life_set_busy(struct life *l, bool is_busy, int64_t now_ms);

/* It was woken, or made: what was idle before that does not count. */
void life_restart(struct life *l, int64_t now_ms);

/* "idle", "lifetime", or "": a session's reason. */
const char *life_reason(enum life_due due);

/* Why the sandbox NAME is suspended or removed, in a sentence. */
void life_sentence(const struct life_rules *r, enum life_due due,
    const char *name, char *out, unsigned size);

#endif
