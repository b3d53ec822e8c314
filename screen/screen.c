/*
 * A screen as a whole: its beginning and its end, what is asked about it; see
 * screen.h. Pure.
 */
#include "screen/screen.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "screen/buffer.h"
#include "screen/cursor.h"
#include "screen/esc.h"
#include "screen/history.h"
#include "screen/intern.h"
#include "screen/osc.h"
#include "screen/parser.h"
#include "screen/state.h"

static unsigned
screen_clamp(unsigned v, unsigned max)
{
	return v < 1 ? 1 : v > max ? max : v;
}

struct screen *
screen_new(const struct screen_config *c)
{
	struct screen *s = xcalloc(1, sizeof(*s));

	s->config = *c;
	s->config.name = c->name ? xstrdup(c->name) : NULL;
	s->config.term = c->term ? xstrdup(c->term) : NULL;
	s->cols = screen_clamp(c->cols, SCREEN_COLS_MAX);
	s->rows = screen_clamp(c->rows, SCREEN_ROWS_MAX);
	s->tabs = xmalloc(s->cols);
	s->history = history_new(c->history_lines, c->history_bytes);
	s->parser = parser_new();
	esc_reset(s);
	return s;
}

void
screen_free(struct screen *s)
{
	if (!s)
		return;
	osc_reset(s);
	intern_free(s);
	buffer_release(&s->main);
	buffer_release(&s->alt);
	history_free(s->history);
	parser_free(s->parser);
	free(s->tabs);
	free((void *)(uintptr_t)s->config.name);
	free((void *)(uintptr_t)s->config.term);
	free(s);
}

void
screen_write(struct screen *s, const void *p, size_t n)
{
	if (n)
		parser_write(s, p, n);
}

unsigned
screen_cols(const struct screen *s)
{
	return s->cols;
}

unsigned
screen_rows(const struct screen *s)
{
	return s->rows;
}

uint64_t
screen_pending(const struct screen *s)
{
	return s->parser->pending;
}

bool
screen_is_updating(const struct screen *s)
{
	return mode_is_on(s, MODE_SYNC);
}

bool
screen_is_alternate(const struct screen *s)
{
	return s->now == &s->alt;
}

const char *
screen_title(const struct screen *s)
{
	return s->titles.title ? s->titles.title : "";
}

uint64_t
screen_history_start(const struct screen *s)
{
	return history_start(s->history);
}

uint64_t
screen_history_end(const struct screen *s)
{
	return history_end(s->history);
}
