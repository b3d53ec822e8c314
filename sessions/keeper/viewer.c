/*
 * The life of a viewer: attach, turns, end; see viewer.h. What it is sent is in
 * viewer_output.c, what it sends in viewer_frames.c.
 */
#include "sessions/keeper/viewer.h"

#include <assert.h>
#include <event2/event.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "screen/screen.h"
#include "sessions/keeper/keeper.h"
#include "sessions/keeper/ring.h"
#include "sessions/keeper/size.h"
#include "sessions/keeper/viewer_frames.h"
#include "sessions/keeper/viewer_output.h"

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

static bool
viewer_may_send(const struct viewer *v)
{
	return !v->is_closing && !v->wire.is_closing && !v->wire.is_broken &&
	       v->credit[STREAM_OUT] > 0 && link_is_idle(&v->wire.link);
}

void
viewer_pump(struct viewer *v)
{
	struct keeper *k = v->k;
	int frames = 0;

	if (!k->ring || v->is_closing)
		return;
	viewer_frames_flush_key(v);
	while (viewer_output_is_due(v) && viewer_may_send(v) &&
	       frames < VIEWER_TURN_FRAMES && viewer_output_step(v))
		frames++;
	if (viewer_output_is_due(v)) {
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
		viewer_output_end(v);
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
viewer_detach(struct viewer *v, const char *why, bool is_wish)
{
	struct buf b = { 0 };

	if (v->is_closing)
		return;
	viewer_output_end(v);
	buf_put_str(&b, why);
	wire_send_buf(
	    &v->wire, FRAME_DETACH, is_wish && v->wire.version >= 2, 0, &b);
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

/* Who is there belongs into the recording of what they see. */
static void
viewer_mark(const struct viewer *v, const char *what)
{
	autofree char *text = NULL;

	if (!v->identity || !(v->flags & VIEWER_FOLLOW) ||
	    v == v->k->bound_viewer)
		return;
	text = xasprintf("%s %s", v->identity, what);
	recording_marker(&v->k->recording, text);
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
	viewer_mark(v, "left");
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
	viewer_output_release(v);
	free(v->label);
	free(v->identity);
	free(v);
}

/* An application that fills the screen is asked to draw it. */
static void
viewer_wake_application(struct viewer *v, const struct wire_size *before)
{
	struct keeper *k = v->k;

	if (k->display.screen && screen_is_alternate(k->display.screen) &&
	    (v->flags & VIEWER_MAY_TYPE) && before->cols == k->size.cols &&
	    before->rows == k->size.rows)
		child_signal(&k->child, SIGWINCH);
}

/*
 * What berth has to say to V. On a new terminal it is the first line for all to
 * see; later it goes before the repaint, which is not of our making. The
 * recording has only what the program printed.
 */
static void
viewer_notify(struct viewer *v, const char *text)
{
	struct keeper *k = v->k;
	autofree char *line = xasprintf("[berth: %s]\r\n", text);

	if (k->display.screen && ring_end(k->ring) == 0) {
		ring_push(k->ring, line, strlen(line));
		screen_write(k->display.screen, line, strlen(line));
	} else {
		buf_put(&v->out, line, strlen(line));
	}
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
	struct wire_size before = k->size;
	int size = VIEWER_SOCKET_BYTES;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	v->k = k;
	v->attachment = spec->attachment;
	v->flags = spec->flags;
	v->label = spec->label ? xstrdup(spec->label) : NULL;
	v->identity = spec->identity ? xstrdup(spec->identity) : NULL;
	if (spec->notice && spec->notice[0] && k->ring)
		viewer_notify(v, spec->notice);
	list_append(&k->viewers, &v->node);
	k->n_viewers++;
	if (keeper_has(k, LAUNCH_BOUND) && !k->had_viewer) {
		k->bound_viewer = v;
		k->had_viewer = true;
	}
	wire_init(&v->wire, k->base, fd, &handler, v);
	v->wire.version = frame_version(spec->version);
	viewer_frames_init(v);
	size_attach(k, v, &spec->size);
	viewer_output_begin(v, spec);
	viewer_wake_application(v, &before);
	viewer_mark(v, "joined");
	/* The leader of a bound pipe session may have ended already. */
	if (k->state == STATE_EXITED && keeper_is_bound_pipe(k))
		viewer_send_exit(v);
	keeper_want_pump(k);
	pipes_update(&k->pipes);
	keeper_advance(k);
}
