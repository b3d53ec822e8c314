/* From the PTY into the ring, at the pace that DESIGN sets; see output.h. */
#include "sessions/keeper/output.h"

#include <errno.h>
#include <event2/event.h>
#include <unistd.h>

#include "base/mem.h"
#include "sessions/keeper/keeper.h"
#include "sessions/keeper/recorder.h"
#include "sessions/keeper/ring.h"
#include "sessions/keeper/viewer.h"

/*
 * The echo of a key does not wait for a read that says there is no more. And a
 * read of an empty terminal waits for the kernel's worker: in a flood of short
 * lines it would return every crumb.
 */
#define OUTPUT_TRICKLE 2048

/*
 * More than the kernel holds between the leader's last write and us (a tty
 * buffer is limited to 640 KiB, a pipe to 1 MiB): what comes behind it was
 * printed by others.
 */
#define OUTPUT_DRAIN_MAX (2U << 20)

static void
output_end_fd(struct output *o, int i)
{
	if (o->read_ev[i])
		event_free(o->read_ev[i]);
	o->read_ev[i] = NULL;
	o->fd[i] = -1;
	o->is_reading[i] = false;
}

void
output_finish(struct output *o)
{
	if (!o->k)
		return;
	output_end_fd(o, 0);
	output_end_fd(o, 1);
	o->is_done = true;
}

void
output_release(struct output *o)
{
	if (!o->k)
		return;
	output_finish(o);
	*o = (struct output){ 0 };
}

/* How far behind the pace-maker is, or 0 when nobody sets the pace. */
static uint64_t
output_lag(const struct output *o)
{
	struct keeper *k = o->k;
	uint64_t end = ring_end(k->ring), least = UINT64_MAX;
	struct list *pos, *tmp;

	/* The one client of a bound session loses nothing, however slow. */
	if (keeper_has(k, LAUNCH_BOUND)) {
		if (k->bound_viewer)
			return end - k->bound_viewer->pos;
		return k->had_viewer ? 0 : end;
	}
	list_for_each (pos, tmp, &k->viewers) {
		const struct viewer *v = list_entry(pos, struct viewer, node);

		if (v->show != SHOW_LIVE || v->is_closing ||
		    viewer_is_stuck(v) || !(v->flags & VIEWER_FOLLOW))
			continue;
		if (end - v->pos < least)
			least = end - v->pos;
	}
	return least == UINT64_MAX ? 0 : least;
}

/* Bytes that may be read now. */
static size_t
output_room(const struct output *o)
{
	size_t half = ring_cap(o->k->ring) / 2;
	size_t room = recording_room(&o->k->recording);
	uint64_t lag = output_lag(o);

	if (room == 0 || lag >= half) {
		/* The recorder reports room; a pace-maker may get stuck. */
		keeper_want_tick(o->k);
		return 0;
	}
	return room < half - lag ? room : (size_t)(half - lag);
}

/* A terminal gives 4 KiB at a time. */
static ssize_t
output_fill(int fd, uint8_t *p, size_t n)
{
	ssize_t rc;

	do
		rc = read(fd, p, n);
	while (rc < 0 && errno == EINTR);
	return rc < 0 ? -errno : rc;
}

/* N bytes at Q are output. They lie in the ring's place P, or elsewhere. */
static void
output_show(struct output *o, const uint8_t *p, const uint8_t *q, size_t n)
{
	struct keeper *k = o->k;

	if (p == q)
		ring_commit(k->ring, n);
	else
		ring_push(k->ring, q, n);
	display_show(&k->display, q, n);
}

/*
 * Sends what has been shown, of which the last N bytes at Q are not recorded yet.
 * The viewers come before the recorder: waking its thread is not what an echo
 * should wait for. Nobody has reserved since: the bytes are still there.
 */
static void
output_send(struct output *o, const uint8_t *q, size_t n)
{
	struct keeper *k = o->k;

	viewer_pump_all(k);
	recording_output(&k->recording, q, n);
	manager_link_stats_changed(&k->manager);
}

/*
 * Reads one turn from descriptor I, no more than ROOM bytes; what the last read
 * said is returned. What a read gave is worked on before the next one: meanwhile
 * the kernel's worker fills the terminal again, on another processor, and the next
 * read finds something instead of waiting for it.
 */
static ssize_t
output_read(struct output *o, int i, size_t room)
{
	struct keeper *k = o->k;
	size_t want = room < OUTPUT_TURN_MAX ? room : OUTPUT_TURN_MAX, n = 0;
	size_t more = o->is_draining ? 1 : OUTPUT_TRICKLE;
	const uint8_t *q = NULL;
	unsigned n_pieces = 0;
	ssize_t rc;

	do {
		size_t cap;
		uint8_t *p;

		recording_output(&k->recording, q, n);
		n = 0;
		p = ring_reserve(k->ring, want, &cap);
		rc = output_fill(o->fd[i], p, cap);
		if (rc <= 0)
			break;
		n = (size_t)rc;
		want -= n;
		o->bytes += n;
		if (o->is_draining)
			o->drain_left -= n < o->drain_left ? n : o->drain_left;
		q = display_filter(&k->display, p, &n);
		output_show(o, p, q, n);
		n_pieces++;
	} while (want && rc >= (ssize_t)more && n_pieces < RECORDER_CALLS);
	if (n_pieces)
		output_send(o, q, n);
	return rc;
}

void
output_flush(struct output *o)
{
	const uint8_t *q;
	size_t n;

	if (!o->k || !o->k->ring)
		return;
	q = display_flush(&o->k->display, &n);
	if (n) {
		output_show(o, NULL, q, n);
		output_send(o, q, n);
	}
}

/* Nothing more to read that the leader wrote. */
static bool
output_is_drained(const struct output *o, ssize_t rc)
{
	return o->is_draining && (rc == -EAGAIN || o->drain_left == 0);
}

static void
output_turn(struct output *o, int i)
{
	size_t room = output_room(o);
	ssize_t rc = room ? output_read(o, i, room) : -EBUSY;

	if (output_is_drained(o, rc) ||
	    (rc <= 0 && rc != -EAGAIN && rc != -EBUSY))
		output_end_fd(o, i);
}

static void
output_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct output *o = arg;

	(void)what;
	for (int i = 0; i < 2; i++) {
		if (o->fd[i] >= 0 && o->fd[i] == fd)
			output_turn(o, i);
	}
	output_update(o);
}

void
output_open(struct output *o, struct keeper *k, const int *fds, int n)
{
	*o = (struct output){ .k = k, .fd = { -1, -1 } };
	for (int i = 0; i < n; i++) {
		o->fd[i] = fds[i];
		o->read_ev[i] = event_new(
		    k->base, fds[i], EV_READ | EV_PERSIST, output_on_read, o);
		if (!o->read_ev[i])
			abort();
	}
	output_update(o);
}

void
output_update(struct output *o)
{
	bool may_read;

	if (!o->k || o->is_done)
		return;
	may_read = output_room(o) > 0;
	for (int i = 0; i < 2; i++) {
		if (o->fd[i] < 0)
			continue;
		if (may_read && !o->is_reading[i])
			event_add(o->read_ev[i], NULL);
		if (!may_read && o->is_reading[i])
			event_del(o->read_ev[i]);
		o->is_reading[i] = may_read;
		/* Nothing may be left, and then no event would come. */
		if (may_read && o->is_draining)
			event_active(o->read_ev[i], EV_READ, 0);
	}
	if (o->is_draining && o->fd[0] < 0 && o->fd[1] < 0) {
		output_flush(o);
		o->is_done = true;
		keeper_advance(o->k);
	}
}

void
output_drain(struct output *o)
{
	if (!o->k || o->is_draining)
		return;
	o->is_draining = true;
	o->drain_left = OUTPUT_DRAIN_MAX;
	output_update(o);
}
