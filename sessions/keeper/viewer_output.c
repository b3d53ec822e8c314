/*
 * What viewers are sent; see viewer_output.h. A viewer with a terminal of the
 * session's size is sent the history and the screen once and then the bytes of
 * the ring; one of another size gets pictures; one without a terminal, or where
 * no screen is kept, the bytes of the ring with the queries taken out.
 */
#include "sessions/keeper/viewer_output.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "screen/picture.h"
#include "screen/query_filter.h"
#include "screen/screen.h"
#include "sessions/keeper/keeper.h"
#include "sessions/keeper/ring.h"
#include "sessions/keeper/viewer.h"

/* A viewer that fell off the ring goes on this far from its end. */
#define VIEWER_RESYNC_BYTES 16384U
#define VIEWER_RESYNC_MS    1000

/* Of a terminal's credit, kept for what gives the terminal back. */
#define VIEWER_RESERVE 1024U

/* One piece of the history. */
#define VIEWER_PIECE (32U << 10)

/* A screen that is resized all the time is shown anew when it rests. */
#define VIEWER_STALE_MS     80
#define VIEWER_STALE_MAX_MS 500

/* 30 pictures a second; one between `?2026h` and l waits, but not for ever. */
#define VIEWER_PICTURE_MS 33
#define VIEWER_SYNC_MS    150

/* So far back a viewer is sent the begin of an unfinished control string. */
#define VIEWER_PENDING_MAX (64U << 10)

static struct screen *
viewer_screen(const struct viewer *v)
{
	return v->k->display.screen;
}

static bool
viewer_has_terminal(const struct viewer *v)
{
	return (v->flags & VIEWER_TERMINAL) && viewer_screen(v);
}

static bool
viewer_fits(const struct viewer *v)
{
	const struct wire_size *s = &v->k->size;

	return v->size.cols == 0 ||
	       (v->size.cols == s->cols && v->size.rows == s->rows);
}

static unsigned
viewer_rows(const struct viewer *v)
{
	return v->size.rows ? v->size.rows : v->k->size.rows;
}

static size_t
viewer_credit(const struct viewer *v)
{
	size_t n = v->credit[STREAM_OUT];

	if (!viewer_has_terminal(v))
		return n;
	return n > VIEWER_RESERVE ? n - VIEWER_RESERVE : 0;
}

/* What a frame may hold now. */
static size_t
viewer_frame_room(const struct viewer *v)
{
	size_t n = viewer_credit(v), most = frame_data_max(v->wire.version);

	return n < most ? n : most;
}

static void
viewer_begin_raw(struct viewer *v, uint64_t from)
{
	if (!v->filter)
		v->filter = xmalloc(sizeof(*v->filter));
	query_filter_init(v->filter);
	v->show = SHOW_REPLAY;
	v->pos = from;
	v->replay_end = ring_end(v->k->ring);
}

/*
 * V's terminal shows the screen as it is now: the bytes that follow are those of
 * the ring, from the begin of what is unfinished.
 */
static void
viewer_begin_live(struct viewer *v)
{
	uint64_t end = ring_end(v->k->ring), start = ring_start(v->k->ring);
	uint64_t pending = screen_pending(viewer_screen(v));

	v->show = SHOW_LIVE;
	v->is_shown = true;
	v->is_stale = false;
	v->is_skipping = pending > VIEWER_PENDING_MAX || pending > end - start;
	v->pos = v->is_skipping ? end : end - pending;
}

static void
viewer_begin_join(struct viewer *v, uint64_t line)
{
	v->show = SHOW_JOIN;
	v->next_line = line;
	v->n_lines = 0;
	v->is_shown = true;
}

static void
viewer_begin_picture(struct viewer *v)
{
	if (!v->picture)
		v->picture = picture_new();
	v->show = SHOW_PICTURE;
	v->is_shown = true;
	v->is_stale = false;
	v->painted_pos = UINT64_MAX;
	v->painted_ms = 0;
	v->pos = ring_end(v->k->ring);
}

/* The ring has passed V: it is shown the screen, and told what it missed. */
static void
viewer_resync_screen(struct viewer *v)
{
	char text[64];

	buf_put(&v->out, "\030\033\\", 3);
	if (!screen_is_alternate(viewer_screen(v))) {
		snprintf(text, sizeof(text), "[berth: %llu bytes skipped]\r\n",
		    (unsigned long long)(ring_end(v->k->ring) - v->pos));
		screen_prologue(viewer_rows(v), &v->out);
		buf_put(&v->out, text, strlen(text));
		screen_push(viewer_rows(v), 1, &v->out);
	}
	screen_repaint(viewer_screen(v), &v->out);
	viewer_begin_live(v);
}

static void
viewer_resync_raw(struct viewer *v)
{
	struct ring *ring = v->k->ring;
	uint64_t end = ring_end(ring), from = ring_start(ring), old = v->pos;
	char text[128];

	if (end - from > VIEWER_RESYNC_BYTES)
		from = end - VIEWER_RESYNC_BYTES;
	viewer_begin_raw(v, ring_safe_from(ring, from));
	snprintf(text, sizeof(text),
	    "\030\033\\\033[0m\r\n[berth: %llu bytes skipped]\r\n",
	    (unsigned long long)(v->pos - old));
	buf_put(&v->out, text, strlen(text));
}

/* False when it must wait. */
static bool
viewer_resync(struct viewer *v)
{
	int64_t now = clock_mono_ms();

	if (v->resync_ms && now - v->resync_ms < VIEWER_RESYNC_MS) {
		keeper_want_tick(v->k);
		return false;
	}
	v->resync_ms = now;
	v->resyncs++;
	manager_link_stats_changed(&v->k->manager);
	if (viewer_has_terminal(v) && v->is_shown)
		viewer_resync_screen(v);
	else
		viewer_resync_raw(v);
	return true;
}

/* Sends what is composed. */
static bool
viewer_step_out(struct viewer *v)
{
	size_t n = viewer_frame_room(v);
	struct iovec iov;

	n = n < buf_len(&v->out) ? n : buf_len(&v->out);
	if (n == 0)
		return false;
	iov = (struct iovec){ .iov_base = v->out.data + v->out.start,
		.iov_len = n };
	viewer_write(v, STREAM_OUT, &iov, 1);
	buf_consume(&v->out, n);
	if (buf_len(&v->out) == 0)
		buf_release(&v->out);
	return true;
}

/* Sends a frame of the filtered ring; false when there was no room for one. */
static bool
viewer_step_raw(struct viewer *v)
{
	struct query_filter *f = v->filter;
	uint64_t left = v->replay_end - v->pos;
	size_t room = viewer_frame_room(v), n, len = 0;
	uint8_t *out = keeper_scratch(v->k);
	struct iovec iov[2];

	if (room < f->n_held || (room == f->n_held && left))
		return false;
	if (left == 0) {
		len = query_filter_finish(f, out);
		free(take_ptr(v->filter));
		v->show = SHOW_LIVE;
		v->is_shown = true;
		viewer_output_resized(v);
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
	iov[0] = (struct iovec){ .iov_base = out, .iov_len = len };
	viewer_write(v, STREAM_OUT, iov, 1);
	return true;
}

/* Composes a piece of the history, or the screen when that is out. */
static bool
viewer_step_join(struct viewer *v)
{
	struct screen *s = viewer_screen(v);
	uint64_t start = screen_history_start(s), end = screen_history_end(s);
	uint64_t next = v->next_line < start ? start : v->next_line;

	/* A flood may scroll lines away as fast as they go out. */
	if (next < end && v->n_lines < 2 * (end - start)) {
		v->next_line = screen_history(s, next, VIEWER_PIECE, &v->out);
		v->n_lines += v->next_line - next;
		return true;
	}
	if (v->k->is_size_due)
		return false;
	/* Of another width they have taken who knows how many rows. */
	if (v->n_lines)
		screen_push(viewer_rows(v),
		    viewer_fits(v) ? v->n_lines : UINT64_MAX, &v->out);
	if (viewer_fits(v)) {
		screen_repaint(s, &v->out);
		viewer_begin_live(v);
	} else {
		viewer_begin_picture(v);
	}
	return true;
}

static bool
viewer_step_live(struct viewer *v)
{
	struct iovec iov[2];
	int n;

	if (v->is_skipping) {
		v->pos = ring_safe_from(v->k->ring, v->pos);
		if (v->pos == ring_end(v->k->ring))
			return false;
		v->is_skipping = false;
	}
	n = ring_peek(v->k->ring, v->pos, viewer_frame_room(v), iov);
	for (int i = 0; i < n; i++)
		v->pos += iov[i].iov_len;
	viewer_write(v, STREAM_OUT, iov, n);
	return n > 0;
}

/* When the next picture may be painted, or 0 when there is none to paint. */
static int64_t
viewer_picture_ms(const struct viewer *v)
{
	if (v->painted_pos == ring_end(v->k->ring) && !v->is_stale)
		return 0;
	return v->painted_ms + (screen_is_updating(viewer_screen(v))
				       ? VIEWER_SYNC_MS
				       : VIEWER_PICTURE_MS);
}

static bool
viewer_step_picture(struct viewer *v)
{
	int64_t now = clock_mono_ms(), when = viewer_picture_ms(v);

	if (when == 0)
		return false;
	if (now < when) {
		keeper_want_pump_in(v->k, when - now);
		return false;
	}
	picture_paint(
	    v->picture, viewer_screen(v), v->size.cols, v->size.rows, &v->out);
	v->pos = v->painted_pos = ring_end(v->k->ring);
	v->painted_ms = now;
	v->is_stale = false;
	return buf_len(&v->out) > 0;
}

/*
 * The size has changed and what was printed before is sent: true when V is to be
 * shown the session in another way, or anew, from here on.
 */
static bool
viewer_is_switching(struct viewer *v)
{
	int64_t now = clock_mono_ms();

	if (!v->is_stale || v->k->is_size_due || v->show == SHOW_JOIN ||
	    v->show == SHOW_REPLAY)
		return false;
	if (v->show == SHOW_PICTURE)
		return viewer_fits(v);
	if (v->pos < v->stale_pos)
		return false;
	if (!viewer_fits(v))
		return true;
	/* A terminal of the same size: it may have wrapped its lines itself. */
	if (now - v->stale_ms < VIEWER_STALE_MS ||
	    v->pos < ring_end(v->k->ring)) {
		keeper_want_pump_in(v->k, VIEWER_STALE_MS);
		return false;
	}
	return true;
}

static void
viewer_switch(struct viewer *v)
{
	if (v->show == SHOW_PICTURE) {
		picture_clear(v->picture, &v->out);
		screen_prologue(0, &v->out);
		buf_put(&v->out, "\033[J", 3);
		viewer_begin_join(v, v->next_line);
		v->is_stale = false;
	} else if (viewer_fits(v)) {
		screen_repaint(viewer_screen(v), &v->out);
		viewer_begin_live(v);
	} else {
		screen_prologue(0, &v->out);
		v->next_line = v->stale_lines;
		viewer_begin_picture(v);
	}
}

bool
viewer_output_is_due(struct viewer *v)
{
	if (buf_len(&v->out) || v->show == SHOW_REPLAY ||
	    v->show == SHOW_JOIN || viewer_is_switching(v))
		return true;
	if (v->show == SHOW_PICTURE)
		return viewer_picture_ms(v) != 0;
	return v->pos < ring_end(v->k->ring);
}

bool
viewer_output_step(struct viewer *v)
{
	static bool (*const steps[])(struct viewer * v) = {
		[SHOW_LIVE] = viewer_step_live,
		[SHOW_REPLAY] = viewer_step_raw,
		[SHOW_JOIN] = viewer_step_join,
		[SHOW_PICTURE] = viewer_step_picture,
	};

	if (buf_len(&v->out))
		return viewer_step_out(v);
	if (viewer_frame_room(v) == 0)
		return false;
	if (viewer_is_switching(v)) {
		viewer_switch(v);
		return true;
	}
	if (v->pos < ring_start(v->k->ring) &&
	    (v->show == SHOW_LIVE || v->show == SHOW_REPLAY))
		return viewer_resync(v);
	return steps[v->show](v);
}

void
viewer_output_resized(struct viewer *v)
{
	if (!viewer_has_terminal(v) || !v->is_shown)
		return;
	v->stale_ms = clock_mono_ms();
	/* what is printed up to here is for its terminal as it was */
	if (!v->is_stale || viewer_fits(v)) {
		v->stale_pos = ring_end(v->k->ring);
		v->stale_lines = screen_history_end(viewer_screen(v));
	}
	v->is_stale = true;
	keeper_want_pump(v->k);
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

void
viewer_output_begin(struct viewer *v, const struct wire_viewer *spec)
{
	struct ring *ring = v->k->ring;
	uint32_t replay = v->k->launch.replay;

	if (!ring)
		return;
	v->pos = ring_end(ring);
	if (v == v->k->bound_viewer) {
		v->pos = 0;
	} else if (v->flags & VIEWER_RAW_TAIL) {
		viewer_begin_raw(
		    v, ring_safe_lines(ring,
			   spec->tail_lines ? spec->tail_lines : UINT32_MAX));
	} else if (!(v->flags & VIEWER_REPLAY)) {
		v->is_skipping = true;
	} else if (!viewer_has_terminal(v) || replay == REPLAY_RAW ||
		   (v->flags & VIEWER_RAW)) {
		viewer_begin_raw(v, viewer_replay_start(ring));
	} else if (replay == REPLAY_NONE) {
		viewer_begin_live(v);
		viewer_output_resized(v);
	} else {
		screen_prologue(viewer_rows(v), &v->out);
		viewer_begin_join(v, 0);
	}
}

void
viewer_output_release(struct viewer *v)
{
	buf_release(&v->out);
	picture_free(v->picture);
	free(v->filter);
}

/* Shows a terminal of another size how the session ended, in its own lines. */
static void
viewer_leave_picture(struct viewer *v)
{
	struct buf text = { 0 };

	picture_clear(v->picture, &v->out);
	if (v->k->is_over) {
		screen_text(viewer_screen(v), SCREEN_TEXT_ANSI, &text);
		for (size_t i = 0; i < buf_len(&text); i++) {
			if (text.data[i] == '\n')
				buf_put_u8(&v->out, '\r');
			buf_put_u8(&v->out, text.data[i]);
		}
	}
	buf_release(&text);
}

void
viewer_output_end(struct viewer *v)
{
	bool is_even = buf_len(&v->out) == 0 && v->k->ring &&
		       v->show == SHOW_LIVE && v->pos == ring_end(v->k->ring) &&
		       !v->is_stale;
	struct buf b = { 0 };

	if (!viewer_has_terminal(v) || !v->is_shown)
		return;
	/* What waits is old: it would only delay what matters now. */
	if (buf_len(&v->out)) {
		buf_clear(&v->out);
		buf_put(&v->out, "\030\033\\", 3);
	}
	if (v->show == SHOW_PICTURE && picture_is_shown(v->picture))
		viewer_leave_picture(v);
	else if (is_even)
		screen_restore(viewer_screen(v), &v->out);
	else
		screen_restore_unknown(&v->out);
	while (buf_len(&v->out)) {
		size_t n = buf_len(&v->out), room = v->credit[STREAM_OUT];

		n = n < frame_data_max(v->wire.version)
			? n
			: frame_data_max(v->wire.version);
		if (n > room)
			break;
		buf_put(&b, buf_head(&v->out), n);
		wire_send_buf(&v->wire, FRAME_DATA, STREAM_OUT, 0, &b);
		v->credit[STREAM_OUT] -= (uint32_t)n;
		v->bytes_out += n;
		buf_consume(&v->out, n);
		buf_clear(&b);
	}
	buf_release(&b);
	buf_release(&v->out);
}
