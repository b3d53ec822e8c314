/* The stop sequence; see stop.h. */
#include "sessions/keeper/stop.h"

#include <event2/event.h>
#include <signal.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "sessions/keeper/keeper.h"

#define STOP_LOOK_MIN_MS 20
#define STOP_LOOK_MAX_MS 500

/* What survives KILL this long hangs in the kernel; nobody waits for it. */
#define STOP_AFTER_KILL_MS 5000

/* So long a process may take to end by itself, at most half of the grace. */
#define STOP_ASK_MS 1000

/* New processes may appear while old ones are killed: look again. */
#define STOP_KILL_ROUNDS 8

static const int stop_first_signals[] = { SIGHUP, SIGCONT, SIGTERM };

/* Sends each of the N signals to all that are meant; returns how many are. */
static size_t
stop_signal_all(const struct stop *s, const int *sigs, size_t n_sigs)
{
	struct signaller_request r = {
		.kind =
		    s->scope == STOP_ALL ? SIGNALLER_ALL : SIGNALLER_SESSION,
		.leader = s->k->child.pid,
		.n_signals = (uint32_t)n_sigs,
	};
	int n;

	for (size_t i = 0; i < n_sigs; i++)
		r.signals[i] = sigs[i];
	n = signaller_send(&s->k->drop.signaller, &r);
	/* A keeper that cannot end its session leaves that to the manager. */
	if (signaller_is_gone(&s->k->drop.signaller))
		keeper_abandon(s->k);
	return n > 0 ? (size_t)n : 0;
}

static void
stop_kill(struct stop *s)
{
	static const int sig = SIGKILL;

	s->is_killing = true;
	s->deadline_ms = clock_mono_ms() + STOP_AFTER_KILL_MS;
	s->wait_ms = STOP_LOOK_MIN_MS;
	for (int i = 0; i < STOP_KILL_ROUNDS; i++) {
		if (stop_signal_all(s, &sig, 1) == 0)
			break;
	}
}

static void
stop_signal_first(struct stop *s)
{
	s->is_asking = false;
	stop_signal_all(s, stop_first_signals, ARRAY_LEN(stop_first_signals));
}

static void
stop_schedule(struct stop *s)
{
	int64_t until = s->is_asking ? s->ask_ms : s->deadline_ms;
	int64_t left = until - clock_mono_ms();
	int64_t ms = s->wait_ms < left ? s->wait_ms : left;
	struct timeval tv;

	ms = ms < 1 ? 1 : ms;
	tv = (struct timeval){ .tv_sec = ms / 1000,
		.tv_usec = ms % 1000 * 1000 };
	event_add(s->ev, &tv);
}

static void
stop_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct stop *s = arg;
	bool is_late = clock_mono_ms() >= s->deadline_ms;
	size_t left;

	(void)fd;
	(void)what;
	keeper_reap(s->k);
	left = stop_signal_all(s, NULL, 0);
	if (left == 0 || (s->is_killing && is_late)) {
		s->is_active = false;
		if (left)
			log_warn("stop_survived", "note", s->note, NULL);
		keeper_advance(s->k);
		return;
	}
	if (s->is_asking && clock_mono_ms() >= s->ask_ms)
		stop_signal_first(s);
	if (is_late)
		stop_kill(s);
	else if (s->wait_ms < STOP_LOOK_MAX_MS)
		s->wait_ms *= 2;
	stop_schedule(s);
}

void
stop_init(struct stop *s, struct keeper *k)
{
	*s = (struct stop){ .k = k };
	s->ev = event_new(k->base, -1, 0, stop_on_timer, s);
	if (!s->ev)
		abort();
}

void
stop_release(struct stop *s)
{
	if (s->ev)
		event_free(s->ev);
	s->ev = NULL;
}

static int64_t
stop_ask_until(uint32_t grace_ms)
{
	uint32_t ms = grace_ms / 2 < STOP_ASK_MS ? grace_ms / 2 : STOP_ASK_MS;

	return clock_mono_ms() + ms;
}

void
stop_begin(
    struct stop *s, enum stop_scope scope, uint32_t grace_ms, const char *note)
{
	int64_t deadline = clock_mono_ms() + grace_ms;

	if (scope == STOP_ALL)
		s->scope = scope;
	if (s->is_active) {
		if (!s->is_killing && deadline < s->deadline_ms)
			s->deadline_ms = deadline;
	} else {
		s->is_active = true;
		s->is_killing = false;
		s->is_asking = keeper_has(s->k, LAUNCH_LOG_STDERR);
		s->deadline_ms = deadline;
		s->ask_ms = stop_ask_until(grace_ms);
		if (s->is_asking)
			input_eof(&s->k->input);
		snprintf(s->note, sizeof(s->note), "%s", note);
	}
	s->wait_ms = STOP_LOOK_MIN_MS;
	if (!s->is_killing && !s->is_asking)
		stop_signal_first(s);
	stop_schedule(s);
}
