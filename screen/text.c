/*
 * A screen as text, plain or with SGR: for people and scripts that look at it
 * without a terminal, and for the history of a terminal that comes later; see
 * screen.h. Pure.
 */
#include "base/buf.h"
#include "screen/emit.h"
#include "screen/history.h"
#include "screen/screen.h"
#include "screen/state.h"

/* The cells without the ones at the end that plain text does not show. */
static unsigned
text_used(const struct cell *cells, unsigned n)
{
	while (n && (!cells[n - 1].ch || cells[n - 1].ch == ' ') &&
	       !(cells[n - 1].attr & CELL_TAIL))
		n--;
	return n;
}

/* A row with the pen of SGR 0 at both ends. */
static void
text_ansi(struct emit *e, const struct cell *cells, unsigned n)
{
	static const struct cell none;

	emit_cells(e, cells, n, 0);
	emit_pen(e, &none);
}

static void
text_plain(struct buf *out, const struct cell_tables *t,
    const struct cell *cells, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct cell *c = &cells[i];

		if (c->attr & CELL_TAIL)
			continue;
		if (c->ch & CELL_CLUSTER) {
			const struct cluster *k =
			    &t->clusters[c->ch & ~CELL_CLUSTER];

			buf_put(out, k->text, k->len);
		} else {
			emit_char(out, c->ch ? c->ch : ' ');
		}
	}
}

/*
 * What makes a terminal go on in the next row behind a wrapped line, if what
 * comes there does not do it: a blank that has no room any more, and one more
 * where a wide character had none.
 */
static void
text_wrap(bool is_padded, struct buf *out)
{
	emit_put(out, is_padded ? "  " : " ");
}

uint64_t
screen_history(
    const struct screen *s, uint64_t from, size_t max, struct buf *out)
{
	struct history_reader r = { 0 };
	size_t begin = buf_len(out);
	uint64_t end = history_end(s->history);
	struct emit e;

	if (from < history_start(s->history))
		from = history_start(s->history);
	/* what stands in front of the first one, too, may go on in it */
	if (from > history_start(s->history))
		history_read(s->history, &r, from - 1);
	while (from < end) {
		bool was_wrapped = r.is_wrapped, was_padded = r.is_padded;

		if (!history_read(s->history, &r, from))
			break;
		if (was_wrapped && !r.n)
			text_wrap(was_padded, out);
		emit_init(&e, out, r.tables, EMIT_LINKS);
		text_ansi(&e, r.cells, r.n);
		/* the row that its first character brought in had its colour */
		if (was_wrapped && r.n % s->cols && r.cells[0].bg)
			emit_put(out, "\033[K");
		from++;
		if (!r.is_wrapped) {
			emit_put(out, "\r\n");
		} else if (from == end) {
			/* it goes on in the screen's first row */
			text_wrap(r.is_padded, out);
			buf_put_u8(out, '\r');
		}
		if (buf_len(out) - begin >= max)
			break;
	}
	history_reader_release(&r);
	return from;
}

/* A line without its end. */
static void
text_line(struct buf *out, const struct cell_tables *t,
    const struct cell *cells, unsigned n, unsigned flags)
{
	struct emit e;

	if (!(flags & SCREEN_TEXT_ANSI)) {
		text_plain(out, t, cells, text_used(cells, n));
		return;
	}
	emit_init(&e, out, *t, EMIT_LINKS);
	text_ansi(&e, cells, emit_used(cells, n));
}

static void
text_history(const struct screen *s, unsigned flags, struct buf *out)
{
	struct history_reader r = { 0 };

	for (uint64_t n = history_start(s->history);
	     history_read(s->history, &r, n); n++) {
		text_line(out, &r.tables, r.cells, r.n, flags);
		buf_put_u8(out, '\n');
	}
	history_reader_release(&r);
}

void
screen_text(const struct screen *s, unsigned flags, struct buf *out)
{
	struct cell_tables t = screen_tables(s);
	unsigned rows = s->rows;

	if (flags & SCREEN_TEXT_HISTORY)
		text_history(s, flags, out);
	while (rows) {
		const struct cell *cells = buffer_row(s, s->now, rows - 1);

		if (flags & SCREEN_TEXT_ANSI ? emit_used(cells, s->cols)
					     : text_used(cells, s->cols))
			break;
		rows--;
	}
	for (unsigned i = 0; i < rows; i++) {
		text_line(out, &t, buffer_row(s, s->now, i), s->cols, flags);
		buf_put_u8(out, '\n');
	}
}
