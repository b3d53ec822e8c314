/* The writer to the PTY or to stdin; see input.h. */
#include "sessions/keeper/input.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

/* One callback writes at most this much, so that output gets its turn. */
#define INPUT_TURN_MAX (64U << 10)

/* Of a pipe, instead of the kernel's 64 KiB: fewer turns of both sides. */
#define INPUT_PIPE_SIZE (256 << 10)

#define INPUT_MARKER_LEN 6

static const char input_paste_begin[] = "\033[200~";
static const char input_paste_end[] = "\033[201~";

static void input_pump(struct input *in);

static void
input_on_write(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	input_pump(arg);
}

static void
input_on_hold(evutil_socket_t fd, short what, void *arg)
{
	struct input *in = arg;
	struct input_source *s = in->holder;

	(void)fd;
	(void)what;
	/* In the middle of a frame it is the reader that keeps us waiting. */
	if (!s || s->frame_left || s->queued)
		return;
	s->is_pasting = false;
	in->holder = NULL;
	input_pump(in);
}

void
input_init(struct input *in, struct event_base *base)
{
	*in = (struct input){ .base = base, .fd = -1 };
	list_init(&in->ready);
	in->hold_ev = event_new(base, -1, 0, input_on_hold, in);
	if (!in->hold_ev)
		abort();
}

static void
input_drop_fd(struct input *in)
{
	if (in->write_ev)
		event_free(in->write_ev);
	in->write_ev = NULL;
	if (in->fd >= 0)
		close(in->fd);
	in->fd = -1;
}

void
input_release(struct input *in)
{
	input_drop_fd(in);
	if (in->hold_ev)
		event_free(in->hold_ev);
	in->hold_ev = NULL;
}

void
input_open(struct input *in, int fd, bool is_terminal)
{
	in->fd = fd;
	in->is_terminal = is_terminal;
	if (!is_terminal)
		fcntl(fd, F_SETPIPE_SZ, INPUT_PIPE_SIZE);
	in->write_ev = event_new(in->base, fd, EV_WRITE, input_on_write, in);
	if (!in->write_ev)
		abort();
	input_pump(in);
}

void
input_source_init(
    struct input_source *s, void (*on_taken)(struct input_source *s, size_t n))
{
	*s = (struct input_source){ .on_taken = on_taken };
	list_init(&s->node);
}

void
input_source_release(struct input *in, struct input_source *s)
{
	list_remove(&s->node);
	buf_release(&s->queue);
	s->on_taken = NULL;
	if (in->holder != s)
		return;
	in->holder = NULL;
	input_pump(in);
}

static void
input_drop_source(struct input_source *s)
{
	size_t n = s->queued;

	buf_clear(&s->queue);
	s->queued = s->frame_left = 0;
	s->is_pasting = false;
	if (s->on_taken && n)
		s->on_taken(s, n);
}

void
input_close(struct input *in)
{
	struct list *pos, *tmp;
	struct input_source *holder = in->holder;

	in->is_closed = true;
	in->holder = NULL;
	input_drop_fd(in);
	event_del(in->hold_ev);
	if (holder)
		input_drop_source(holder);
	list_for_each (pos, tmp, &in->ready) {
		list_remove(pos);
		input_drop_source(list_entry(pos, struct input_source, node));
	}
}

/* Follows the paste markers through N bytes; they may be cut anywhere. */
static void
input_scan(struct input_source *s, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *marker =
		    s->is_pasting ? input_paste_end : input_paste_begin;

		if (p[i] != (uint8_t)marker[s->match])
			s->match = 0;
		if (p[i] != (uint8_t)marker[s->match])
			continue;
		if (++s->match < INPUT_MARKER_LEN)
			continue;
		s->match = 0;
		s->is_pasting = !s->is_pasting;
		s->paste_bytes = 0;
	}
	s->paste_bytes += n;
	if (s->paste_bytes > INPUT_PASTE_MAX)
		s->is_pasting = false;
}

/* The holder's frame is out: it goes on only in the middle of a paste. */
static void
input_frame_done(struct input *in)
{
	struct input_source *s = in->holder;

	if (s->is_pasting)
		return;
	in->holder = NULL;
	if (s->queued)
		list_append(&in->ready, &s->node);
}

/* Makes the next frame the one to write; false if there is none now. */
static bool
input_next_frame(struct input *in)
{
	struct input_source *s = in->holder;
	uint32_t n;

	if (!s) {
		if (list_empty(&in->ready))
			return false;
		s = list_entry(in->ready.next, struct input_source, node);
		in->holder = s;
	}
	list_remove(&s->node);
	if (s->frame_left)
		return true;
	if (s->queued == 0) {
		struct timeval tv = { .tv_sec = INPUT_HOLD_MS / 1000 };

		/* What others type meanwhile must not prolong it. */
		if (!event_pending(in->hold_ev, EV_TIMEOUT, NULL))
			event_add(in->hold_ev, &tv);
		return false;
	}
	event_del(in->hold_ev);
	memcpy(&n, buf_head(&s->queue), sizeof(n));
	buf_consume(&s->queue, sizeof(n));
	s->frame_left = n;
	if (in->is_terminal)
		input_scan(s, buf_head(&s->queue), n);
	return true;
}

/* Writes a piece of the holder's frame: its bytes, or a negative errno. */
static ssize_t
input_write_some(struct input *in)
{
	struct input_source *s = in->holder;
	ssize_t n;

	do
		n = write(in->fd, buf_head(&s->queue), s->frame_left);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	buf_consume(&s->queue, (size_t)n);
	s->frame_left -= (size_t)n;
	s->queued -= (size_t)n;
	in->bytes += (uint64_t)n;
	return n;
}

static void
input_pump(struct input *in)
{
	size_t done = 0;

	if (in->fd < 0)
		return;
	while (done < INPUT_TURN_MAX && input_next_frame(in)) {
		struct input_source *s = in->holder;
		ssize_t n = input_write_some(in);

		if (n == -EAGAIN)
			break;
		if (n < 0) {
			input_close(in);
			return;
		}
		if (s->frame_left == 0)
			input_frame_done(in);
		if (s->on_taken)
			s->on_taken(s, (size_t)n);
		done += (size_t)n;
	}
	if (in->holder || !list_empty(&in->ready)) {
		/* A holder that has nothing to write waits in hold_ev. */
		if (!in->holder || in->holder->queued)
			event_add(in->write_ev, NULL);
	} else if (in->is_eof) {
		input_close(in);
	}
}

void
input_push(struct input *in, struct input_source *s, const void *p, size_t n)
{
	uint32_t len = (uint32_t)n;

	if (n == 0)
		return;
	if (in->is_closed || in->is_eof) {
		if (s->on_taken)
			s->on_taken(s, n);
		return;
	}
	buf_put(&s->queue, &len, sizeof(len));
	buf_put(&s->queue, p, n);
	s->queued += n;
	if (in->holder != s && s->node.next == &s->node)
		list_append(&in->ready, &s->node);
	/* While the writer waits for the reader, the event goes on. */
	if (in->fd >= 0 && !event_pending(in->write_ev, EV_WRITE, NULL))
		input_pump(in);
}

void
input_eof(struct input *in)
{
	if (in->is_closed || in->is_terminal)
		return;
	in->is_eof = true;
	if (in->fd >= 0 && !event_pending(in->write_ev, EV_WRITE, NULL))
		input_pump(in);
}
