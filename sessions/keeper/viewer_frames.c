/* What viewers send; see viewer_frames.h. */
#include "sessions/keeper/viewer_frames.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "sessions/keeper/keeper.h"
#include "sessions/keeper/size.h"
#include "sessions/keeper/terminal.h"
#include "sessions/keeper/viewer.h"

/* Input is granted again in pieces of at least this. */
#define VIEWER_GRANT_MIN (16U << 10)

/* A peer that does not read its credit gets no more of it. */
#define VIEWER_GRANT_PENDING_MAX (64U << 10)

/* A lone Escape is not held back for longer. */
#define VIEWER_KEY_MS 30

/* No peer needs more outstanding than this. */
#define VIEWER_CREDIT_MAX (1U << 30)

static void
viewer_frames_send_credit(struct viewer *v, uint32_t n)
{
	struct buf b = { 0 };

	buf_put_u32(&b, n);
	v->window += n;
	wire_send_buf(&v->wire, FRAME_CREDIT, STREAM_IN, 0, &b);
	buf_release(&b);
}

void
viewer_frames_grant(struct viewer *v)
{
	uint32_t n = v->owed;

	/* A grant for every key would wake the client's process for nothing. */
	if (n < VIEWER_GRANT_MIN || v->is_closing ||
	    link_pending(&v->wire.link) > VIEWER_GRANT_PENDING_MAX)
		return;
	v->owed = 0;
	viewer_frames_send_credit(v, n);
}

static void
viewer_frames_on_taken(struct input_source *s, size_t n)
{
	struct viewer *v = container_of(s, struct viewer, input);

	v->owed += (uint32_t)n;
	viewer_frames_grant(v);
}

void
viewer_frames_init(struct viewer *v)
{
	static const struct wire_detach_key none = { 0 };

	input_source_init(&v->input, viewer_frames_on_taken);
	/* A private terminal goes with its client: there is no leaving it. */
	detach_key_init(&v->detach_key,
	    v->k->display.screen ? &v->k->launch.detach_key : &none);
	viewer_frames_send_credit(v, FRAME_WINDOW);
}

/* A window that comes to the front says so by itself, nobody typed. */
static bool
viewer_frames_is_focus(const uint8_t *p, size_t n)
{
	return n == 3 &&
	       (memcmp(p, "\033[I", 3) == 0 || memcmp(p, "\033[O", 3) == 0);
}

/* N bytes of what V typed are not for the program, or may not go there. */
static void
viewer_frames_drop(struct viewer *v, uint32_t n)
{
	v->owed += n;
	viewer_frames_grant(v);
}

static void
viewer_frames_type(struct viewer *v, const uint8_t *p, size_t n)
{
	struct keeper *k = v->k;

	v->n_unnamed -= (uint32_t)n;
	if (!(v->flags & VIEWER_MAY_TYPE) || k->state == STATE_EXITED) {
		viewer_frames_drop(v, (uint32_t)n);
		return;
	}
	v->bytes_in += n;
	if (n && !viewer_frames_is_focus(p, n))
		manager_link_typed(&k->manager);
	input_push(&k->input, &v->input, p, n);
	manager_link_stats_changed(&k->manager);
}

/* Passes on what was typed but for the detach key, which is for everybody. */
static int
viewer_frames_data(struct viewer *v, const struct frame *f)
{
	struct detach_key_step step;
	size_t at = 0;

	if (f->arg != STREAM_IN || f->len > FRAME_DATA_MAX ||
	    f->len > v->window)
		return -EPROTO;
	v->window -= (uint32_t)f->len;
	v->n_unnamed += (uint32_t)f->len;
	if ((v->flags & VIEWER_MAY_TYPE) &&
	    !viewer_frames_is_focus(f->data, f->len))
		size_touch(v->k, v);
	while (at < f->len) {
		detach_key_step(
		    &v->detach_key, f->data + at, f->len - at, &step);
		at += step.used;
		viewer_frames_type(v, step.p, step.n);
		if (step.is_pressed) {
			viewer_detach(v, "detached", true);
			return 0;
		}
	}
	v->key_ms = 0;
	switch (detach_key_waits(&v->detach_key)) {
	case DETACH_KEY_HOLDS_NONE:
		viewer_frames_drop(v, v->n_unnamed);
		v->n_unnamed = 0;
		break;
	case DETACH_KEY_HOLDS_PART:
		v->key_ms = clock_mono_ms();
		keeper_want_pump_in(v->k, VIEWER_KEY_MS);
		break;
	case DETACH_KEY_HOLDS_FIRST:
		break;
	}
	return 0;
}

void
viewer_frames_flush_key(struct viewer *v)
{
	const uint8_t *p;
	size_t n;

	if (!v->key_ms || v->is_closing)
		return;
	if (clock_mono_ms() - v->key_ms < VIEWER_KEY_MS) {
		keeper_want_pump_in(v->k, VIEWER_KEY_MS);
		return;
	}
	v->key_ms = 0;
	n = detach_key_flush(&v->detach_key, &p);
	viewer_frames_type(v, p, n);
}

static int
viewer_frames_credit(struct viewer *v, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	uint32_t n = reader_u32(&r);

	if (!reader_done(&r) || f->arg >= STREAM_COUNT || f->arg == STREAM_IN ||
	    n > VIEWER_CREDIT_MAX - v->credit[f->arg])
		return -EPROTO;
	v->credit[f->arg] += n;
	viewer_pump(v);
	output_update(&v->k->output);
	pipes_pump(&v->k->pipes);
	return 0;
}

static int
viewer_frames_eof(struct viewer *v, const struct frame *f)
{
	bool is_lent = v == v->k->bound_viewer && v->k->pipes.is_lent;

	if (f->len || (f->arg != STREAM_IN && f->arg != STREAM_OUT))
		return -EPROTO;
	if (f->arg == STREAM_OUT && !is_lent)
		return -EPROTO;
	if (f->arg == STREAM_OUT) {
		pipes_take_back(&v->k->pipes);
		return 0;
	}
	/* A terminal has no end of input: sshd does nothing to one either. */
	if (v->flags & VIEWER_MAY_TYPE)
		input_eof(&v->k->input);
	return 0;
}

static int
viewer_frames_borrow(struct viewer *v, const struct frame *f)
{
	if (f->len || f->arg != STREAM_OUT)
		return -EPROTO;
	if (v == v->k->bound_viewer)
		pipes_lend(&v->k->pipes);
	return 0;
}

static int
viewer_frames_borrowed(struct viewer *v, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	uint32_t n = reader_u32(&r);

	if (!reader_done(&r) || f->arg != STREAM_OUT ||
	    v != v->k->bound_viewer || !v->k->pipes.is_lent)
		return -EPROTO;
	pipes_taken(&v->k->pipes, n);
	return 0;
}

static int
viewer_frames_resize(struct viewer *v, const struct frame *f)
{
	struct wire_size s;
	int rc = wire_size_decode(f->data, f->len, &s);

	if (rc < 0)
		return rc;
	size_report(v->k, v, &s);
	return 0;
}

static int
viewer_frames_signal(struct viewer *v, const struct frame *f)
{
	if (f->len || f->arg == 0 || f->arg >= NSIG)
		return -EPROTO;
	if (v->flags & VIEWER_MAY_TYPE)
		child_signal(&v->k->child, f->arg);
	return 0;
}

static int
viewer_frames_break(struct viewer *v, const struct frame *f)
{
	if (f->len != 4)
		return -EPROTO;
	if (v->flags & VIEWER_MAY_TYPE)
		terminal_break(v->k);
	return 0;
}

/* It leaves by itself, and wants its terminal back first. */
static int
viewer_frames_detach(struct viewer *v, const struct frame *f)
{
	if (f->len)
		return -EPROTO;
	viewer_detach(v, "detached", true);
	return 0;
}

static const struct {
	uint8_t type;
	int (*handle)(struct viewer *v, const struct frame *f);
} viewer_frames_table[] = {
	{ FRAME_DATA, viewer_frames_data },
	{ FRAME_CREDIT, viewer_frames_credit },
	{ FRAME_EOF, viewer_frames_eof },
	{ FRAME_RESIZE, viewer_frames_resize },
	{ FRAME_SIGNAL, viewer_frames_signal },
	{ FRAME_BREAK, viewer_frames_break },
	{ FRAME_DETACH, viewer_frames_detach },
	{ FRAME_BORROW, viewer_frames_borrow },
	{ FRAME_BORROWED, viewer_frames_borrowed },
};

void
viewer_frames_on_frame(struct wire *w, const struct frame *f)
{
	struct viewer *v = w->owner;
	int rc = -EPROTO;

	if (f->fd >= 0)
		close(f->fd);
	if (v->is_closing)
		return;
	for (size_t i = 0; i < ARRAY_LEN(viewer_frames_table) && f->fd < 0;
	     i++) {
		if (viewer_frames_table[i].type == f->type)
			rc = viewer_frames_table[i].handle(v, f);
	}
	if (rc == 0)
		return;
	log_warn("viewer_protocol", "frame", frame_name(f->type), NULL);
	wire_close(w, rc);
}
