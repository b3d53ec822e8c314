/*
 * What viewers get: replay, live output, the end; see viewer.h. What they send
 * is in viewer_frames.c.
 */
#include "sessions/keeper/viewer.h"

#include <assert.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "screen/query_filter.h"
#include "sessions/keeper/keeper.h"
#include "sessions/keeper/ring.h"
#include "sessions/keeper/size.h"
#include "sessions/keeper/viewer_frames.h"

/* Room for some frames in the link's socket; the kernel doubles it. */
#define VIEWER_SOCKET_BYTES (208 << 10)

/* One turn of a viewer; the others come next. */
#define VIEWER_TURN_FRAMES 4

/* A viewer that takes nothing for so long sets nobody's pace any more. */
#define VIEWER_STUCK_MS 5000

/* After the session's end a viewer may take nothing for so long. */
#define VIEWER_LINGER_MS 10000

/* From END or DETACH handed over to closing the link ourselves. */
#define VIEWER_CLOSE_MS 2000

/* A viewer that fell off the ring goes on this far from its end. */
#define VIEWER_RESYNC_BYTES  (16U << 10)
#define VIEWER_RESYNC_MS     1000
#define VIEWER_RESYNC_CREDIT 128

bool
viewer_is_stuck(const struct viewer *v)
{
	return v->wait_ms && clock_mono_ms() - v->wait_ms > VIEWER_STUCK_MS;
}

void
viewer_write(
    struct viewer *v, enum frame_stream stream, const struct iovec *iov, int n)
{
	size_t len = 0;

	for (int i = 0; i < n; i++)
		len += iov[i].iov_len;
	if (len == 0)
		return;
	assert(len <= v->credit[stream]);
	v->credit[stream] -= (uint32_t)len;
	v->bytes_out += len;
	v->wait_ms = 0;
	wire_write_data(&v->wire, stream, iov, n);
}

static void
viewer_write_bytes(struct viewer *v, uint8_t *p, size_t n)
{
	struct iovec iov = { .iov_base = p, .iov_len = n };

	viewer_write(v, STREAM_OUT, &iov, 1);
}

static void
viewer_begin_replay(struct viewer *v, uint64_t from)
{
	if (!v->filter)
		v->filter = xmalloc(sizeof(*v->filter));
	query_filter_init(v->filter);
	v->pos = from;
	v->replay_end = ring_end(v->k->ring);
}

/*
 * The ring has passed V: ends what its terminal may be in the middle of, says
 * how much is missing and goes on near the end. False when it must wait.
 */
static bool
viewer_resync(struct viewer *v)
{
	struct ring *ring = v->k->ring;
	uint64_t end = ring_end(ring), from = ring_start(ring), old = v->pos;
	int64_t now = clock_mono_ms();
	char text[VIEWER_RESYNC_CREDIT];
	int n;

	if (v->credit[STREAM_OUT] < VIEWER_RESYNC_CREDIT)
		return false;
	if (v->resync_ms && now - v->resync_ms < VIEWER_RESYNC_MS) {
		keeper_want_tick(v->k);
		return false;
	}
	if (end - from > VIEWER_RESYNC_BYTES)
		from = end - VIEWER_RESYNC_BYTES;
	viewer_begin_replay(v, ring_safe_from(ring, from));
	v->resync_ms = now;
	v->resyncs++;
	n = snprintf(text, sizeof(text),
	    "\030\033\\\033[0m\r\n[berth: %llu bytes skipped]\r\n",
	    (unsigned long long)(v->pos - old));
	viewer_write_bytes(v, (uint8_t *)text, (size_t)n);
	return true;
}

/* Sends a frame of the replay; false when there was no room for one. */
static bool
viewer_send_replay(struct viewer *v)
{
	struct query_filter *f = v->filter;
	uint64_t left = v->replay_end - v->pos;
	size_t room = v->credit[STREAM_OUT], n, len = 0;
	uint8_t *out = keeper_scratch(v->k);
	struct iovec iov[2];

	n = frame_data_max(v->wire.version);
	room = room < n ? room : n;
	if (room < f->n_held || (room == f->n_held && left))
		return false;
	if (left == 0) {
		len = query_filter_finish(f, out);
		free(take_ptr(v->filter));
	} else {
		/* What the filter holds back may come out too. */
		n = room - f->n_held;
		n = left < n ? (size_t)left : n;
		for (int i = 0, k = ring_peek(v->k->ring, v->pos, n, iov);
		     i < k; i++)
			len += query_filter_run(
			    f, iov[i].iov_base, iov[i].iov_len, out + len);
		v->pos += n;
	}
	viewer_write_bytes(v, out, len);
	return true;
}

static bool
viewer_send_live(struct viewer *v)
{
	size_t max = v->credit[STREAM_OUT], most;
	struct iovec iov[2];
	int n;

	most = frame_data_max(v->wire.version);
	max = max < most ? max : most;
	n = ring_peek(v->k->ring, v->pos, max, iov);
	for (int i = 0; i < n; i++)
		v->pos += iov[i].iov_len;
	viewer_write(v, STREAM_OUT, iov, n);
	return n > 0;
}

static bool
viewer_has_data(const struct viewer *v)
{
	return v->notice || v->filter || v->pos < ring_end(v->k->ring);
}

static bool
viewer_may_send(const struct viewer *v)
{
	return !v->is_closing && !v->wire.is_closing && !v->wire.is_broken &&
	       v->credit[STREAM_OUT] > 0 && link_is_idle(&v->wire.link);
}

/* What berth itself has to say comes before the first byte of the session. */
static bool
viewer_send_notice(struct viewer *v)
{
	size_t n = strlen(v->notice);

	if (v->credit[STREAM_OUT] < n)
		return false;
	viewer_write_bytes(v, (uint8_t *)v->notice, n);
	free(take_ptr(v->notice));
	return true;
}

/* Sends one frame; false when nothing can be sent now. */
static bool
viewer_step(struct viewer *v)
{
	if (v->notice)
		return viewer_send_notice(v);
	if (v->pos < ring_start(v->k->ring))
		return viewer_resync(v);
	return v->filter ? viewer_send_replay(v) : viewer_send_live(v);
}

void
viewer_pump(struct viewer *v)
{
	struct keeper *k = v->k;
	int frames = 0;

	if (!k->ring || v->is_closing)
		return;
	while (viewer_has_data(v) && viewer_may_send(v) &&
	       frames < VIEWER_TURN_FRAMES && viewer_step(v))
		frames++;
	if (viewer_has_data(v)) {
		if (!v->wait_ms)
			v->wait_ms = clock_mono_ms();
		if (frames == VIEWER_TURN_FRAMES && viewer_may_send(v))
			keeper_want_pump(k);
		return;
	}
	v->wait_ms = 0;
	if (!(v->flags & VIEWER_FOLLOW)) {
		viewer_end(v);
	} else if (k->is_over) {
		viewer_send_exit(v);
		viewer_end(v);
	}
}

void
viewer_pump_all(struct keeper *k)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &k->viewers)
		viewer_pump(list_entry(pos, struct viewer, node));
}

void
viewer_send_exit(struct viewer *v)
{
	struct buf b = { 0 };

	if (v->is_exit_sent || v->is_closing)
		return;
	v->is_exit_sent = true;
	wire_exit_encode(&b, &v->k->exited.exit);
	wire_send_buf(&v->wire, FRAME_EXIT, 0, 0, &b);
	buf_release(&b);
}

static void
viewer_begin_close(struct viewer *v)
{
	v->is_closing = true;
	v->close_ms = clock_mono_ms() + VIEWER_CLOSE_MS;
	keeper_want_tick(v->k);
}

void
viewer_end(struct viewer *v)
{
	if (v->is_closing)
		return;
	wire_send(&v->wire, FRAME_END, 0, 0, NULL, 0);
	viewer_begin_close(v);
	if (!link_is_idle(&v->wire.link))
		v->close_ms += VIEWER_LINGER_MS;
	/* A bound client loses nothing, however slow it is. */
	if (!link_is_idle(&v->wire.link) && v == v->k->bound_viewer)
		v->close_ms = INT64_MAX;
}

void
viewer_detach(struct viewer *v, const char *why)
{
	struct buf b = { 0 };

	if (v->is_closing)
		return;
	buf_put_str(&b, why);
	wire_send_buf(&v->wire, FRAME_DETACH, 0, 0, &b);
	buf_release(&b);
	viewer_begin_close(v);
}

void
viewer_tick_all(struct keeper *k)
{
	int64_t now = clock_mono_ms();
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &k->viewers) {
		struct viewer *v = list_entry(pos, struct viewer, node);
		bool is_late = k->is_over && v != k->bound_viewer &&
			       v->wait_ms &&
			       now - v->wait_ms > VIEWER_LINGER_MS;

		if (is_late || (v->is_closing && now >= v->close_ms))
			wire_close(&v->wire, 0);
		else if (v->is_closing || k->is_over)
			keeper_want_tick(k);
		viewer_pump(v);
	}
}

static void
viewer_on_idle(struct wire *w)
{
	struct viewer *v = w->owner;

	if (v->is_closing) {
		v->close_ms = clock_mono_ms() + VIEWER_CLOSE_MS;
		keeper_want_tick(v->k);
		return;
	}
	v->wait_ms = 0;
	viewer_frames_grant(v);
	viewer_pump(v);
	output_update(&v->k->output);
	pipes_pump(&v->k->pipes);
}

/* The link of a bound session's client is the session's life. */
static void
viewer_lost_client(struct keeper *k)
{
	if (k->is_over)
		return;
	pipes_discard(&k->pipes);
	input_eof(&k->input);
	stop_begin(&k->stop, STOP_SESSION, k->launch.stop_grace_ms,
	    "the client is gone");
}

static void
viewer_on_close(struct wire *w, int rc)
{
	struct viewer *v = w->owner;
	struct keeper *k = v->k;
	struct wire_left left = {
		.attachment = v->attachment,
		.bytes_out = v->bytes_out,
		.bytes_in = v->bytes_in,
		.resyncs = v->resyncs,
		.left_ms = (uint64_t)clock_wall_ms(),
	};
	bool was_bound = v == k->bound_viewer;

	if (rc < 0)
		log_debug(
		    "viewer_link_error", "error", strerrordesc_np(-rc), NULL);
	manager_link_left(&k->manager, &left);
	viewer_free(v);
	if (was_bound)
		viewer_lost_client(k);
	size_update(k);
	output_update(&k->output);
	keeper_advance(k);
}

void
viewer_free(struct viewer *v)
{
	struct keeper *k = v->k;

	list_remove(&v->node);
	k->n_viewers--;
	if (v == k->bound_viewer)
		k->bound_viewer = NULL;
	input_source_release(&k->input, &v->input);
	wire_release(&v->wire);
	free(v->filter);
	free(v->label);
	free(v->notice);
	free(v);
}

/*
 * The oldest quarter of a full ring is left out: while the replay goes out, a
 * flood would overtake a viewer that began at the very end.
 */
static uint64_t
viewer_replay_start(const struct ring *ring)
{
	uint64_t end = ring_end(ring), from = ring_start(ring);
	uint64_t most = ring_cap(ring) - ring_cap(ring) / 4;

	if (end - from > most)
		from = end - most;
	return ring_safe_from(ring, from);
}

/* Where V begins: from the start of a bound session, else as it asked. */
static void
viewer_place(struct viewer *v, const struct wire_viewer *spec)
{
	struct ring *ring = v->k->ring;

	if (!ring)
		return;
	v->pos = ring_end(ring);
	if (v == v->k->bound_viewer)
		v->pos = 0;
	else if (v->flags & VIEWER_RAW_TAIL)
		viewer_begin_replay(
		    v, ring_safe_lines(ring,
			   spec->tail_lines ? spec->tail_lines : UINT32_MAX));
	else if (v->flags & VIEWER_REPLAY)
		viewer_begin_replay(v, viewer_replay_start(ring));
}

void
viewer_attach(struct keeper *k, const struct wire_viewer *spec, int fd)
{
	static const struct wire_handler handler = {
		.on_frame = viewer_frames_on_frame,
		.on_close = viewer_on_close,
		.on_idle = viewer_on_idle,
	};
	struct viewer *v = xcalloc(1, sizeof(*v));
	int size = VIEWER_SOCKET_BYTES;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	v->k = k;
	v->attachment = spec->attachment;
	v->flags = spec->flags;
	v->label = spec->label ? xstrdup(spec->label) : NULL;
	if (spec->notice && spec->notice[0] && k->ring)
		v->notice = xasprintf("[berth: %s]\r\n", spec->notice);
	list_append(&k->viewers, &v->node);
	k->n_viewers++;
	if (keeper_has(k, LAUNCH_BOUND) && !k->had_viewer) {
		k->bound_viewer = v;
		k->had_viewer = true;
	}
	wire_init(&v->wire, k->base, fd, &handler, v);
	v->wire.version = frame_version(spec->version);
	viewer_frames_init(v);
	viewer_place(v, spec);
	size_report(k, v, &spec->size);
	/* The leader of a bound pipe session may have ended already. */
	if (k->state == STATE_EXITED && keeper_is_bound_pipe(k))
		viewer_send_exit(v);
	keeper_want_pump(k);
	pipes_update(&k->pipes);
	keeper_advance(k);
}
