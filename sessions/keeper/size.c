/* The terminal's size by policy; see size.h. */
#include "sessions/keeper/size.h"

#include <sys/ioctl.h>

#include "sessions/keeper/keeper.h"
#include "sessions/keeper/viewer.h"

#define SIZE_MAX_CELLS 65535U /* what struct winsize holds */

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
size_apply(struct keeper *k, const struct wire_size *s)
{
	struct wire_size *now = &k->size;
	struct winsize ws = {
		.ws_col = (unsigned short)s->cols,
		.ws_row = (unsigned short)s->rows,
		.ws_xpixel = (unsigned short)s->xpixel,
		.ws_ypixel = (unsigned short)s->ypixel,
	};

	if (!keeper_has(k, LAUNCH_PTY) || k->child.master_fd < 0)
		return;
	if (s->cols == now->cols && s->rows == now->rows &&
	    s->xpixel == now->xpixel && s->ypixel == now->ypixel)
		return;
	if (ioctl(k->child.master_fd, TIOCSWINSZ, &ws) < 0)
		return;
	*now = *s;
	recording_resize(&k->recording, s->cols, s->rows);
	manager_link_stats_changed(&k->manager);
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

void
size_update(struct keeper *k)
{
	uint32_t policy = k->launch.resize_policy;
	struct wire_size s = { 0 };
	struct list *pos, *tmp;
	uint64_t touch = 0;

	if (policy == RESIZE_FIXED)
		return;
	list_for_each (pos, tmp, &k->viewers) {
		const struct viewer *v = list_entry(pos, struct viewer, node);

		if (!(v->flags & VIEWER_MAY_TYPE) || v->size.cols == 0)
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

void
size_report(struct keeper *k, struct viewer *v, const struct wire_size *s)
{
	if (s->cols == 0 && s->rows == 0)
		return;
	v->size = size_valid(s, v->size.cols ? &v->size : &k->size);
	v->touch = ++k->touches;
	size_update(k);
}

void
size_touch(struct keeper *k, struct viewer *v)
{
	if (v->touch == k->touches || v->size.cols == 0)
		return;
	v->touch = ++k->touches;
	size_update(k);
}

void
size_set(struct keeper *k, const struct wire_size *s)
{
	struct wire_size want = size_valid(s, &k->size);

	size_apply(k, &want);
}
