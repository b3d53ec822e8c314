/* The terminal's size by policy; see size.h. */
#include "sessions/keeper/size.h"

#include <sys/ioctl.h>

#include "base/clock.h"
#include "sessions/keeper/keeper.h"
#include "sessions/keeper/viewer.h"
#include "sessions/keeper/viewer_output.h"

#define SIZE_MAX_CELLS 65535U /* what struct winsize holds */

/*
 * A window that is dragged has a new size with every step: the program, the
 * recording and the viewers hear about one in so many milliseconds, and of the
 * last.
 */
#define SIZE_REST_MS 40

/* Two who type by turns do not pull the size to and fro. */
#define SIZE_CALM_MS 1000

static uint32_t
size_clamp(uint32_t v, uint32_t otherwise)
{
	v = v ? v : otherwise;
	return v > SIZE_MAX_CELLS ? SIZE_MAX_CELLS : v;
}

struct wire_size
size_valid(const struct wire_size *s, const struct wire_size *known)
{
	return (struct wire_size){
		.cols = size_clamp(s->cols, known->cols),
		.rows = size_clamp(s->rows, known->rows),
		.xpixel = size_clamp(s->xpixel, 0),
		.ypixel = size_clamp(s->ypixel, 0),
	};
}

static void
size_set(struct keeper *k, const struct wire_size *s)
{
	struct list *pos, *tmp;
	struct winsize ws = {
		.ws_col = (unsigned short)s->cols,
		.ws_row = (unsigned short)s->rows,
		.ws_xpixel = (unsigned short)s->xpixel,
		.ws_ypixel = (unsigned short)s->ypixel,
	};

	if (k->child.master_fd < 0 ||
	    ioctl(k->child.master_fd, TIOCSWINSZ, &ws) < 0)
		return;
	list_for_each (pos, tmp, &k->viewers)
		viewer_output_resized(list_entry(pos, struct viewer, node));
	k->size = *s;
	k->sized_ms = clock_mono_ms();
	display_resize(&k->display);
	recording_resize(&k->recording, s->cols, s->rows);
	manager_link_stats_changed(&k->manager);
}

void
size_flush(struct keeper *k)
{
	if (!k->is_size_due)
		return;
	k->is_size_due = false;
	size_set(k, &k->next_size);
	keeper_want_pump(k);
}

void
size_settle(struct keeper *k)
{
	int64_t age = clock_mono_ms() - k->sized_ms;

	if (!k->is_size_due)
		return;
	if (age >= SIZE_REST_MS)
		size_flush(k);
	else
		keeper_want_pump_in(k, SIZE_REST_MS - age);
}

static void
size_apply(struct keeper *k, const struct wire_size *s)
{
	const struct wire_size *now = &k->size;

	if (!keeper_has(k, LAUNCH_PTY))
		return;
	k->next_size = *s;
	k->is_size_due = s->cols != now->cols || s->rows != now->rows ||
			 s->xpixel != now->xpixel || s->ypixel != now->ypixel;
	size_settle(k);
}

/* Of two viewers' sizes, the one that the policy prefers, into A. */
static void
size_merge(uint32_t policy, struct wire_size *a, const struct wire_size *b)
{
	bool is_larger = policy == RESIZE_LARGEST;

	if ((b->cols > a->cols) == is_larger) {
		a->cols = b->cols;
		a->xpixel = b->xpixel;
	}
	if ((b->rows > a->rows) == is_larger) {
		a->rows = b->rows;
		a->ypixel = b->ypixel;
	}
}

/* True if V's size is one of those that the policy looks at. */
static bool
size_counts(const struct viewer *v)
{
	return (v->flags & VIEWER_MAY_TYPE) && v->size.cols;
}

void
size_update(struct keeper *k)
{
	uint32_t policy = k->launch.resize_policy;
	struct wire_size s = { 0 };
	struct list *pos, *tmp;
	uint64_t touch = 0;

	if (policy == RESIZE_FIXED || k->is_size_pinned)
		return;
	list_for_each (pos, tmp, &k->viewers) {
		const struct viewer *v = list_entry(pos, struct viewer, node);

		if (!size_counts(v))
			continue;
		if (s.cols == 0 ||
		    (policy == RESIZE_LATEST && v->touch > touch)) {
			s = v->size;
			touch = v->touch;
		} else if (policy == RESIZE_SMALLEST ||
			   policy == RESIZE_LARGEST) {
			size_merge(policy, &s, &v->size);
		}
	}
	if (s.cols)
		size_apply(k, &s);
}

static void
size_take(struct keeper *k, struct viewer *v, const struct wire_size *s)
{
	if (s->cols == 0 && s->rows == 0)
		return;
	viewer_output_resized(v);
	v->size = size_valid(s, v->size.cols ? &v->size : &k->size);
	manager_link_stats_changed(&k->manager);
}

void
size_attach(struct keeper *k, struct viewer *v, const struct wire_size *s)
{
	bool is_alone = true;
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &k->viewers) {
		const struct viewer *o = list_entry(pos, struct viewer, node);

		is_alone = is_alone && (o == v || !size_counts(o));
	}
	size_take(k, v, s);
	if (is_alone && size_counts(v))
		v->touch = ++k->touches;
	size_update(k);
	size_flush(k);
}

void
size_report(struct keeper *k, struct viewer *v, const struct wire_size *s)
{
	size_take(k, v, s);
	if (!size_counts(v))
		return;
	v->touch = ++k->touches;
	size_update(k);
}

void
size_touch(struct keeper *k, struct viewer *v)
{
	int64_t now = clock_mono_ms(), typed = k->typed_ms;

	if (v->touch == k->touches) {
		k->typed_ms = now;
	} else if (size_counts(v) && !(typed && now - typed < SIZE_CALM_MS)) {
		k->typed_ms = now;
		v->touch = ++k->touches;
		size_update(k);
	}
	/* who reads it asks for the size that it was typed at */
	size_flush(k);
}

void
size_pin(struct keeper *k, const struct wire_size *s)
{
	struct wire_size want = size_valid(s, &k->size);

	k->is_size_pinned = true;
	size_apply(k, &want);
	size_flush(k);
}

void
size_unpin(struct keeper *k)
{
	k->is_size_pinned = false;
	size_update(k);
}
