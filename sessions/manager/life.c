/* The arithmetic of a sandbox's life; see life.h. Pure. */
#include "sessions/manager/life.h"

#include <stdio.h>

#include "base/text.h"

/* In how many milliseconds LIMIT_MS (0: never) has passed since SINCE_MS. */
static int64_t
life_left(uint64_t limit_ms, int64_t since_ms, int64_t now_ms)
{
	int64_t age_ms = now_ms - since_ms;

	if (limit_ms == 0 || limit_ms > INT64_MAX)
		return INT64_MAX;
	/* A clock that was set back: it is young again. */
	if (age_ms < 0)
		return (int64_t)limit_ms;
	return (uint64_t)age_ms >= limit_ms ? 0 : (int64_t)limit_ms - age_ms;
}

static int64_t
life_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

enum life_due
life_next(
    const struct life *l, int64_t now_ms, int64_t wall_ms, int64_t *in_ms_out)
{
	const struct life_rules *r = &l->rules;
	int64_t over = life_left(r->lifetime_ms, l->created_ms, wall_ms);
	int64_t gone = INT64_MAX, doze = INT64_MAX, next;

	*in_ms_out = -1;
	if (!l->is_busy) {
		gone = life_left(r->idle_teardown_ms, l->idle_since_ms, now_ms);
		if (!l->has_dozed)
			doze = life_left(
			    r->idle_suspend_ms, l->idle_since_ms, now_ms);
	}
	if (over == 0)
		return LIFE_OVER;
	if (gone == 0)
		return LIFE_IDLE;
	if (doze == 0)
		return LIFE_SUSPEND;
	next = life_min(over, life_min(gone, doze));
	if (next != INT64_MAX)
		*in_ms_out = life_min(next, LIFE_LOOK_MAX_MS);
	return LIFE_NONE;
}

bool
life_set_busy(struct life *l, bool is_busy, int64_t now_ms)
{
	if (l->is_busy == is_busy)
		return false;
	l->is_busy = is_busy;
	life_restart(l, now_ms);
	return true;
}

void
life_restart(struct life *l, int64_t now_ms)
{
	l->idle_since_ms = now_ms;
	l->has_dozed = false;
}

const char *
life_reason(enum life_due due)
{
	return due == LIFE_IDLE ? "idle" : due == LIFE_OVER ? "lifetime" : "";
}

void
life_sentence(const struct life_rules *r, enum life_due due, const char *name,
    char *out, unsigned size)
{
	char time[32];

	text_format_duration(due == LIFE_OVER   ? r->lifetime_ms
			     : due == LIFE_IDLE ? r->idle_teardown_ms
						: r->idle_suspend_ms,
	    time, sizeof(time));
	if (due == LIFE_OVER)
		snprintf(out, size,
		    "sandbox %s is removed: its lifetime of %s is over", name,
		    time);
	else
		snprintf(out, size, "sandbox %s is %s: it was idle for %s",
		    name, due == LIFE_IDLE ? "removed" : "suspended", time);
}
