/* What the manager may ask of a keeper: a table; see manager_frames.h. */
#include "sessions/keeper/manager_frames.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "sessions/keeper/keeper.h"
#include "sessions/keeper/screen_text.h"
#include "sessions/keeper/size.h"
#include "sessions/keeper/viewer.h"

/* Exit codes of the berth command line, in FRAME_ERROR. */
#define MANAGER_FAILED   1
#define MANAGER_CONFLICT 4

#define MANAGER_INPUT_MAX FRAME_WINDOW

static int
manager_frames_enter(struct manager_link *m, struct frame *f)
{
	struct keeper *k = m->k;
	struct wire_entry w;
	int rc;

	if (k->is_launched || f->fd < 0)
		return -EPROTO;
	rc = wire_entry_decode(f->data, f->len, &w);
	if (rc == 0)
		enter_set(&k->child.enter, &w, take_fd(&f->fd));
	return rc;
}

static int
manager_frames_launch(struct manager_link *m, struct frame *f)
{
	struct keeper *k = m->k;
	struct wire_launch l;
	int rc;

	if (k->is_launched)
		return -EPROTO;
	rc = wire_launch_decode(f->data, f->len, &l);
	if (rc < 0)
		return rc;
	if (l.version < m->wire->version)
		m->wire->version = l.version;
	keeper_launch(k, &l, take_fd(&f->fd));
	return 0;
}

/* A bound session that ended before its client came still owes it the end. */
static bool
manager_frames_may_attach(struct keeper *k)
{
	bool is_first = keeper_has(k, LAUNCH_BOUND) && !k->had_viewer;

	keeper_reap(k);
	if (k->is_failed || k->is_reported)
		return false;
	if (keeper_is_bound_pipe(k))
		return is_first;
	return k->state != STATE_EXITED || is_first;
}

static int
manager_frames_viewer(struct manager_link *m, struct frame *f)
{
	struct wire_viewer spec;
	struct buf b = { 0 };
	bool may_attach;
	int rc = wire_viewer_decode(f->data, f->len, m->wire->version, &spec);

	if (rc < 0)
		return rc;
	if (f->fd < 0 || !m->k->is_launched ||
	    fd_set_nonblock(f->fd, true) < 0) {
		wire_viewer_release(&spec);
		return -EPROTO;
	}
	may_attach = manager_frames_may_attach(m->k);
	buf_put_u64(&b, spec.attachment);
	manager_link_send(m, FRAME_VIEWER_ACK, may_attach, f->tag, &b);
	buf_release(&b);
	if (may_attach)
		viewer_attach(m->k, &spec, take_fd(&f->fd));
	wire_viewer_release(&spec);
	return 0;
}

static int
manager_frames_kill(struct manager_link *m, struct frame *f)
{
	if (f->len || f->arg == 0 || f->arg >= NSIG)
		return -EPROTO;
	child_signal(&m->k->child, f->arg);
	return 0;
}

static int
manager_frames_stop(struct manager_link *m, struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	uint32_t grace = reader_u32(&r);

	if (!reader_done(&r))
		return -EPROTO;
	if (m->k->child.pid > 0)
		stop_begin(
		    &m->k->stop, STOP_ALL, grace, "the session was stopped");
	return 0;
}

static int
manager_frames_drop(struct manager_link *m, struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	uint64_t attachment = reader_u64(&r);
	autofree char *why = reader_str(&r, 1024);
	struct list *pos, *tmp;

	if (!reader_done(&r) || !why)
		return -EPROTO;
	list_for_each (pos, tmp, &m->k->viewers) {
		struct viewer *v = list_entry(pos, struct viewer, node);

		if (v->attachment == attachment)
			viewer_detach(v, why, false);
	}
	return 0;
}

static int
manager_frames_input(struct manager_link *m, struct frame *f)
{
	struct keeper *k = m->k;

	if (f->len > FRAME_DATA_MAX)
		return -EPROTO;
	if (k->state == STATE_EXITED || k->input.is_closed) {
		wire_reply_error(m->wire, f->tag, MANAGER_CONFLICT,
		    "nothing reads the session's input any more");
		return 0;
	}
	if (m->input.queued + f->len > MANAGER_INPUT_MAX) {
		wire_reply_error(m->wire, f->tag, MANAGER_FAILED,
		    "the session does not read its input; try again later");
		return 0;
	}
	size_flush(k);
	input_push(&k->input, &m->input, f->data, f->len);
	manager_link_stats_changed(m);
	wire_reply_ok(m->wire, f->tag);
	return 0;
}

static int
manager_frames_input_eof(struct manager_link *m, struct frame *f)
{
	if (f->len)
		return -EPROTO;
	if (keeper_has(m->k, LAUNCH_PTY)) {
		wire_reply_error(m->wire, f->tag, MANAGER_CONFLICT,
		    "a terminal session has no stdin to close");
		return 0;
	}
	input_eof(&m->k->input);
	wire_reply_ok(m->wire, f->tag);
	return 0;
}

static int
manager_frames_set_size(struct manager_link *m, struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	struct wire_size s = { .cols = reader_u32(&r) };

	s.rows = reader_u32(&r);
	if (!reader_done(&r))
		return -EPROTO;
	if (!keeper_has(m->k, LAUNCH_PTY)) {
		wire_reply_error(m->wire, f->tag, MANAGER_CONFLICT,
		    "the session has no terminal");
		return 0;
	}
	if (s.cols || s.rows)
		size_pin(m->k, &s);
	else
		size_unpin(m->k);
	wire_reply_ok(m->wire, f->tag);
	return 0;
}

static int
manager_frames_flush(struct manager_link *m, struct frame *f)
{
	if (f->len)
		return -EPROTO;
	recording_flush(&m->k->recording, f->tag);
	return 0;
}

/* The text goes into the manager's file, however long it is. */
static int
manager_frames_screen(struct manager_link *m, struct frame *f)
{
	struct keeper *k = m->k;
	struct buf text = { 0 }, b = { 0 };
	int rc;

	if (f->len || f->fd < 0 || (f->arg & ~WIRE_SCREEN_ALL))
		return -EPROTO;
	if (!keeper_has(k, LAUNCH_PTY)) {
		wire_reply_error(m->wire, f->tag, MANAGER_CONFLICT,
		    "the session has no terminal");
		return 0;
	}
	rc = keeper_screen_text(k, f->arg, &text);
	if (rc == 0)
		rc = fd_write_all(f->fd, buf_head(&text), buf_len(&text));
	buf_release(&text);
	if (rc < 0) {
		wire_reply_error(m->wire, f->tag, MANAGER_FAILED,
		    rc == -ENOTSUP ? "the session keeps no screen"
				   : strerrordesc_np(-rc));
		return 0;
	}
	buf_put_u32(&b, k->size.cols);
	buf_put_u32(&b, k->size.rows);
	manager_link_send(m, FRAME_TEXT, 0, f->tag, &b);
	buf_release(&b);
	return 0;
}

static int
manager_frames_who(struct manager_link *m, struct frame *f)
{
	if (f->len)
		return -EPROTO;
	manager_link_tell_viewers(m);
	return 0;
}

static int
manager_frames_sleep(struct manager_link *m, struct frame *f)
{
	if (f->len || f->arg > 1)
		return -EPROTO;
	m->k->is_asleep = f->arg == 1;
	return 0;
}

static int
manager_frames_bye(struct manager_link *m, struct frame *f)
{
	if (f->len)
		return -EPROTO;
	m->k->is_released = m->k->is_reported;
	keeper_advance(m->k);
	return 0;
}

static const struct {
	uint8_t type;
	int (*handle)(struct manager_link *m, struct frame *f);
} manager_frames_table[] = {
	{ FRAME_ENTER, manager_frames_enter },
	{ FRAME_LAUNCH, manager_frames_launch },
	{ FRAME_VIEWER, manager_frames_viewer },
	{ FRAME_KILL, manager_frames_kill },
	{ FRAME_STOP, manager_frames_stop },
	{ FRAME_DROP, manager_frames_drop },
	{ FRAME_INPUT, manager_frames_input },
	{ FRAME_INPUT_EOF, manager_frames_input_eof },
	{ FRAME_SET_SIZE, manager_frames_set_size },
	{ FRAME_FLUSH, manager_frames_flush },
	{ FRAME_BYE, manager_frames_bye },
	{ FRAME_SCREEN, manager_frames_screen },
	{ FRAME_WHO, manager_frames_who },
	{ FRAME_SLEEP, manager_frames_sleep },
};

int
manager_frames_handle(struct manager_link *m, const struct frame *frame)
{
	struct frame f = *frame;
	int rc = -EPROTO;

	for (size_t i = 0; i < ARRAY_LEN(manager_frames_table); i++) {
		if (manager_frames_table[i].type == f.type)
			rc = manager_frames_table[i].handle(m, &f);
	}
	if (f.fd >= 0)
		close(f.fd);
	if (rc < 0)
		log_err("manager_protocol", "frame", frame_name(f.type), NULL);
	return rc;
}
