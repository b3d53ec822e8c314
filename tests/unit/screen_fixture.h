/*
 * What the tests of the terminal engine share: a screen, and its text with a
 * line for each row, blanks at the end of rows and of the screen left out.
 */
#ifndef TESTS_UNIT_SCREEN_FIXTURE_H
#define TESTS_UNIT_SCREEN_FIXTURE_H

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "screen/history.h"
#include "screen/print.h"
#include "screen/screen.h"
#include "screen/state.h"

static inline struct screen *
screen_of(unsigned cols, unsigned rows)
{
	struct screen_config c = {
		.cols = cols,
		.rows = rows,
		.history_lines = 1000,
		.history_bytes = 1 << 20,
		.foreground = 0xffffff,
		.cursor_colour = SCREEN_NO_COLOUR,
	};

	return screen_new(&c);
}

static inline void
screen_put(struct screen *s, const char *text)
{
	screen_write(s, text, strlen(text));
}

/* The text of N cells whose numbers are those of T, without blanks behind it. */
static inline void
cells_text(const struct cell *c, unsigned n, const struct cell_tables *t,
    struct buf *out)
{
	unsigned used = n;

	while (used && (!c[used - 1].ch || c[used - 1].ch == ' ') &&
	       !(c[used - 1].attr & CELL_TAIL))
		used--;
	for (unsigned i = 0; i < used; i++) {
		uint8_t utf8[4];

		if (c[i].attr & CELL_TAIL)
			continue;
		if (c[i].ch & CELL_CLUSTER) {
			const struct cluster *k =
			    &t->clusters[c[i].ch & ~CELL_CLUSTER];

			buf_put(out, k->text, k->len);
		} else {
			uint32_t ch = c[i].ch ? c[i].ch : ' ';

			buf_put(out, utf8, print_encode(ch, utf8));
		}
	}
}

/* The text of B as a C string that the caller frees; rows divided by `|`. */
static inline char *
buffer_text(const struct screen *s, const struct buffer *b)
{
	struct cell_tables t = screen_tables(s);
	struct buf out = { 0 };
	char *text;
	size_t n;

	for (unsigned i = 0; i < s->rows; i++) {
		cells_text(buffer_row(s, b, i), s->cols, &t, &out);
		buf_put_u8(&out, '|');
	}
	n = buf_len(&out);
	while (n && buf_head(&out)[n - 1] == '|')
		n--;
	text = xstrndup((const char *)buf_head(&out), n);
	buf_release(&out);
	return text;
}

/* The lines of the history likewise. */
static inline char *
history_text(const struct screen *s)
{
	struct history_reader r = { 0 };
	struct buf out = { 0 };
	char *text;

	for (uint64_t n = screen_history_start(s);
	     history_read(s->history, &r, n); n++) {
		cells_text(r.cells, r.n, &r.tables, &out);
		buf_put_u8(&out, r.is_wrapped ? '>' : '|');
	}
	history_reader_release(&r);
	buf_put_u8(&out, 0);
	text = xstrdup((const char *)buf_head(&out));
	buf_release(&out);
	return text;
}

#endif
