/* The model of the session's terminal in the keeper; see display.h. */
#include "sessions/keeper/display.h"

#include <event2/event.h>

#include "base/buf.h"
#include "base/mem.h"
#include "screen/query_filter.h"
#include "screen/screen.h"
#include "sessions/keeper/keeper.h"
#include "sessions/keeper/output.h"

/* An unfinished sequence is held back so long. */
#define DISPLAY_HOLD_MS 50

/* Who asks and never reads the answers gets no more of them. */
#define DISPLAY_ANSWERS_MAX (64U << 10)

static void
display_on_query(void *arg, const uint8_t *q, size_t n, const uint8_t *out)
{
	struct display *d = arg;
	struct buf b = { 0 };

	/* The answer is about the screen as it was at the question. */
	screen_write(d->screen, d->fed, (size_t)(out - d->fed));
	d->fed = out;
	screen_answer(d->screen, q, n, &b);
	if (d->answers.queued + buf_len(&b) <= DISPLAY_ANSWERS_MAX)
		input_push(
		    &d->k->input, &d->answers, buf_head(&b), buf_len(&b));
	buf_release(&b);
}

static void
display_on_hold(evutil_socket_t fd, short what, void *arg)
{
	struct display *d = arg;

	(void)fd;
	(void)what;
	output_flush(&d->k->output);
}

void
display_open(struct display *d, struct keeper *k)
{
	const struct wire_launch *l = &k->launch;
	struct screen_config c = {
		.cols = k->size.cols,
		.rows = k->size.rows,
		.history_lines = l->scrollback_lines,
		.history_bytes = l->scrollback_bytes,
		.name = l->answer.name,
		.term = l->term,
		.foreground = l->answer.foreground,
		.background = l->answer.background,
		.cursor_colour = l->answer.cursor,
	};

	*d = (struct display){ .k = k };
	input_source_init(&d->answers, NULL);
	if (!(l->flags & LAUNCH_PTY) || (l->flags & LAUNCH_BOUND))
		return;
	d->screen = screen_new(&c);
	d->filter = xmalloc(sizeof(*d->filter));
	query_filter_init(d->filter);
	d->filter->on_query = display_on_query;
	d->filter->arg = d;
	d->hold_ev = event_new(k->base, -1, 0, display_on_hold, d);
	if (!d->hold_ev)
		abort();
}

void
display_release(struct display *d)
{
	if (!d->screen)
		return;
	event_free(d->hold_ev);
	input_source_release(&d->k->input, &d->answers);
	screen_free(d->screen);
	free(d->filter);
	free(d->out);
	*d = (struct display){ 0 };
}

/* Waits for the rest of what is held back, from now on. */
static void
display_arm(struct display *d)
{
	struct timeval tv = { .tv_usec = DISPLAY_HOLD_MS * 1000 };

	if (query_filter_is_holding(d->filter))
		event_add(d->hold_ev, &tv);
	else if (event_pending(d->hold_ev, EV_TIMEOUT, NULL))
		event_del(d->hold_ev);
}

static uint8_t *
display_out(struct display *d)
{
	if (!d->out)
		d->out = xmalloc(OUTPUT_TURN_MAX + QUERY_HELD_MAX);
	return d->out;
}

const uint8_t *
display_filter(struct display *d, const uint8_t *p, size_t *n)
{
	d->fed = p;
	if (!d->screen || query_filter_is_clean(d->filter, p, *n))
		return p;
	d->fed = display_out(d);
	*n = query_filter_run(d->filter, p, *n, d->out);
	display_arm(d);
	return d->out;
}

void
display_show(struct display *d, const uint8_t *p, size_t n)
{
	if (d->screen)
		screen_write(d->screen, d->fed, (size_t)(p + n - d->fed));
}

const uint8_t *
display_flush(struct display *d, size_t *n)
{
	*n = 0;
	if (!d->screen)
		return NULL;
	d->fed = display_out(d);
	*n = query_filter_release(d->filter, d->out);
	display_arm(d);
	return d->out;
}

void
display_resize(struct display *d)
{
	if (d->screen)
		screen_resize(d->screen, d->k->size.cols, d->k->size.rows);
}
