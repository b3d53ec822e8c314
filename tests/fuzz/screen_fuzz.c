/*
 * The terminal engine: whatever comes in whatever pieces, the grid stays sound
 * (wide characters have both halves, cells past row.used are zero, the cursor
 * is inside), numbers point into their tables, the parser stands on the ground
 * when vt_scan does, memory is bounded, and the pieces make no difference.
 * Input: u8 columns, u8 rows, u8 count of pieces, u16 each; then the terminal's
 * bytes, where 0xfe and two more bytes are a resize.
 */
#include "base/buf.h"
#include "screen/history.h"
#include "screen/intern.h"
#include "screen/parser.h"
#include "screen/state.h"
#include "tests/fuzz/fuzz.h"

#define SCREEN_PIECES        16
#define SCREEN_RESIZE        0xfe
#define SCREEN_RESIZES       16 /* the rest is left out */
#define SCREEN_HISTORY_BYTES (256U << 10)

static void
screen_check_cell(const struct screen *s, const struct cell *c)
{
	if (c->ch & CELL_CLUSTER) {
		uint32_t i = c->ch & ~CELL_CLUSTER;

		FUZZ_CHECK(i && i < s->n_clusters && s->clusters[i].len);
	} else {
		FUZZ_CHECK(c->ch <= 0x10ffff);
		FUZZ_CHECK(c->ch == 0 || c->ch >= 0x20);
		FUZZ_CHECK(c->ch < 0x7f || c->ch > 0x9f);
	}
	if (c->ext) {
		FUZZ_CHECK(c->ext < s->n_exts);
		FUZZ_CHECK(s->exts[c->ext].underline || s->exts[c->ext].link);
		FUZZ_CHECK(
		    s->exts[c->ext].link < (s->n_links ? s->n_links : 1));
		if (s->exts[c->ext].link)
			FUZZ_CHECK(s->links[s->exts[c->ext].link].uri);
	}
}

static void
screen_check_buffer(const struct screen *s, const struct buffer *b)
{
	static const struct cell zero;

	screen_check_cell(s, &b->saved.pen);
	FUZZ_CHECK(b->saved.col < s->cols && b->saved.row < s->rows);
	for (unsigned r = 0; b->rows && r < s->rows; r++) {
		const struct cell *c = buffer_row(s, b, r);

		FUZZ_CHECK(b->rows[r].used <= s->cols);
		for (unsigned i = 0; i < s->cols; i++) {
			bool is_wide = c[i].attr & CELL_WIDE;
			bool is_next =
			    i + 1 < s->cols && c[i + 1].attr & CELL_TAIL;

			screen_check_cell(s, &c[i]);
			FUZZ_CHECK(is_wide == is_next);
			FUZZ_CHECK(i || !(c[i].attr & CELL_TAIL));
			FUZZ_CHECK(!is_wide || c[i].ch);
			FUZZ_CHECK(!(c[i].attr & CELL_TAIL) || !c[i].ch);
			if (i >= b->rows[r].used)
				FUZZ_CHECK(
				    memcmp(&c[i], &zero, sizeof(zero)) == 0);
		}
	}
}

static void
screen_check(const struct screen *s)
{
	const struct cursor *c = &s->cursor;

	FUZZ_CHECK(c->col < s->cols && c->row < s->rows);
	FUZZ_CHECK(s->top <= s->bottom && s->bottom < s->rows);
	FUZZ_CHECK(s->left <= s->right && s->right < s->cols);
	FUZZ_CHECK(s->main_cursor.col < s->cols);
	FUZZ_CHECK(s->main_cursor.row < s->rows);
	screen_check_cell(s, &c->pen);
	screen_check_buffer(s, &s->main);
	screen_check_buffer(s, &s->alt);
	FUZZ_CHECK(
	    history_bytes(s->history) < SCREEN_HISTORY_BYTES + (256U << 10));
	FUZZ_CHECK(strlen(screen_title(s)) <= TITLE_MAX);
}

/* Reads the whole history, so that ASan sees what is wrong with it. */
static uint64_t
screen_read_history(const struct screen *s)
{
	struct history_reader r = { 0 };
	uint64_t sum = 0;

	for (uint64_t n = screen_history_start(s); n < screen_history_end(s);
	     n++) {
		FUZZ_CHECK(history_read(s->history, &r, n));
		FUZZ_CHECK(r.n <= SCREEN_COLS_MAX);
		for (unsigned i = 0; i < r.n; i++) {
			struct cell c = r.cells[i];

			sum = sum * 31 + c.ch + c.fg + c.bg + c.attr;
			if (c.ext)
				sum += r.tables.exts[c.ext].underline;
			if (c.ch & CELL_CLUSTER)
				sum +=
				    r.tables.clusters[c.ch & ~CELL_CLUSTER].len;
		}
		sum += r.is_wrapped;
	}
	history_reader_release(&r);
	return sum;
}

static struct screen *
screen_fresh(unsigned cols, unsigned rows)
{
	struct screen_config c = {
		.cols = cols,
		.rows = rows,
		.history_lines = 100,
		.history_bytes = SCREEN_HISTORY_BYTES,
	};

	return screen_new(&c);
}

/* All of IN, in pieces or a byte at a time; resizes where it says. */
static struct screen *
screen_run(struct fuzz_input in, unsigned cols, unsigned rows,
    const unsigned *pieces, unsigned n_pieces)
{
	struct screen *s = screen_fresh(cols, rows);
	struct vt_scan scan = { 0 };
	unsigned resizes = 0;

	for (unsigned i = 0; in.n; i++) {
		size_t part = n_pieces ? pieces[i % n_pieces] : 1, n;
		const uint8_t *p;
		const uint8_t *resize = memchr(in.p, SCREEN_RESIZE, in.n);

		if (resize == in.p) {
			unsigned size;

			fuzz_u8(&in);
			size = fuzz_u16(&in);
			if (++resizes > SCREEN_RESIZES)
				continue;
			screen_resize(s, size >> 8, size & 0xff);
			screen_check(s);
			continue;
		}
		if (resize && (size_t)(resize - in.p) < part)
			part = (size_t)(resize - in.p);
		p = fuzz_take(&in, part, &n);
		screen_write(s, p, n);
		vt_scan_run(&scan, p, n);
		FUZZ_CHECK(vt_scan_is_ground(&scan) == !screen_pending(s));
		FUZZ_CHECK(scan.state == s->parser->scan.state);
		if (n > 8 || !in.n)
			screen_check(s);
	}
	return s;
}

static void
screen_compare_cells(const struct screen *a, const struct screen *b,
    const struct cell *x, const struct cell *y)
{
	FUZZ_CHECK(x->fg == y->fg && x->bg == y->bg && x->attr == y->attr);
	FUZZ_CHECK((x->ch & CELL_CLUSTER) == (y->ch & CELL_CLUSTER));
	FUZZ_CHECK(!x->ext == !y->ext);
	if (x->ch & CELL_CLUSTER) {
		const struct cluster *k = &a->clusters[x->ch & ~CELL_CLUSTER];
		const struct cluster *l = &b->clusters[y->ch & ~CELL_CLUSTER];

		FUZZ_CHECK(k->len == l->len);
		FUZZ_CHECK(memcmp(k->text, l->text, k->len) == 0);
	} else {
		FUZZ_CHECK(x->ch == y->ch);
	}
}

static void
screen_compare(const struct screen *a, const struct screen *b)
{
	FUZZ_CHECK(a->cols == b->cols && a->rows == b->rows);
	FUZZ_CHECK(a->cursor.col == b->cursor.col);
	FUZZ_CHECK(a->cursor.row == b->cursor.row);
	FUZZ_CHECK(a->cursor.is_wrap_pending == b->cursor.is_wrap_pending);
	FUZZ_CHECK(a->modes == b->modes && a->mouse == b->mouse);
	FUZZ_CHECK(screen_is_alternate(a) == screen_is_alternate(b));
	FUZZ_CHECK(strcmp(screen_title(a), screen_title(b)) == 0);
	FUZZ_CHECK(screen_pending(a) == screen_pending(b));
	FUZZ_CHECK(screen_history_end(a) == screen_history_end(b));
	FUZZ_CHECK(screen_read_history(a) == screen_read_history(b));
	for (unsigned r = 0; r < a->rows; r++)
		for (unsigned c = 0; c < a->cols; c++) {
			screen_compare_cells(a, b,
			    buffer_row(a, &a->main, r) + c,
			    buffer_row(b, &b->main, r) + c);
			screen_compare_cells(a, b,
			    buffer_row(a, &a->alt, r) + c,
			    buffer_row(b, &b->alt, r) + c);
		}
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct fuzz_input in = { p, n };
	unsigned cols = fuzz_u8(&in), rows = fuzz_u8(&in) % 64;
	unsigned n_pieces = 1 + fuzz_u8(&in) % SCREEN_PIECES;
	unsigned pieces[SCREEN_PIECES] = { 0 };
	struct screen *whole, *parts, *bytes;
	unsigned all = 1U << 20;

	for (unsigned i = 0; i < n_pieces; i++)
		pieces[i] = 1 + fuzz_u16(&in) % 512;
	whole = screen_run(in, cols, rows, &all, 1);
	parts = screen_run(in, cols, rows, pieces, n_pieces);
	bytes = screen_run(in, cols, rows, NULL, 0);
	screen_compare(whole, parts);
	screen_compare(whole, bytes);
	screen_free(whole);
	screen_free(parts);
	screen_free(bytes);
	return 0;
}
