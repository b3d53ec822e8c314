/*
 * What is painted is what was there: another terminal, new or in any state,
 * that is sent a repaint becomes equal in everything that shows or decides what
 * the next byte does, stays equal under whatever comes then, and is as new after
 * a restore. Input: u8 columns, u8 rows, u8 columns and rows for a picture, u16
 * length and bytes of the screen, u16 and bytes of the terminal before, then
 * bytes for both.
 */
#include <stdbool.h>

#include "base/buf.h"
#include "screen/picture.h"
#include "screen/query_filter.h"
#include "screen/screen.h"
#include "screen/state.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/screen_equal.h"

#define REPAINT_HISTORY 200

/* FUZZ_CHECK() that says where two screens differ, and counts as one call. */
#define REPAINT_CHECK(what) repaint_must(what, __LINE__, #what)

static void
repaint_must(bool is_true, int line, const char *what)
{
	if (is_true)
		return;
	fprintf(stderr, "repaint_fuzz.c:%d: does not hold: %s\n%s\n", line,
	    what, screen_equal_where);
	abort();
}

struct repaint_input {
	unsigned cols, rows, picture_cols, picture_rows;
	const uint8_t *x, *y, *z;
	size_t n_x, n_y, n_z;
};

static struct screen *
repaint_screen(unsigned cols, unsigned rows)
{
	struct screen_config c = {
		.cols = cols,
		.rows = rows,
		.history_lines = REPAINT_HISTORY,
		.history_bytes = 1 << 20,
		.foreground = 0xffffff,
		.cursor_colour = SCREEN_NO_COLOUR,
	};

	return screen_new(&c);
}

/* What a repaint does not bring along, and what it cannot see. */
static void
repaint_align(const struct screen *from, struct screen *to)
{
	uint64_t kept = (uint64_t)1 << MODE_SYNC;

	for (unsigned m = 0; m < MODE_COUNT; m++)
		if (reset_is_preference(m))
			kept |= (uint64_t)1 << m;
	to->modes = (to->modes & ~kept) | (from->modes & kept);
	to->saved_modes =
	    (to->saved_modes & ~kept) | (from->saved_modes & kept);
	to->last_ch = from->last_ch;
}

/*
 * A resize moves a saved cursor with the text. One that was never saved stays at
 * home; a repaint cannot take it away, it saves it there.
 */
static void
repaint_forget_saved(const struct screen *from, struct screen *to)
{
	to->main.has_saved = from->main.has_saved;
	to->alt.has_saved = from->alt.has_saved;
}

static bool
repaint_has(const struct buf *b, const char *what)
{
	return memmem(buf_head(b), buf_len(b), what, strlen(what)) != NULL;
}

/* Nothing in B asks, rings, notifies or touches the clipboard. */
static void
repaint_check_quiet(const struct buf *b)
{
	struct query_filter *f;
	uint8_t *out;
	size_t n;

	if (!buf_len(b))
		return;
	f = xmalloc(sizeof(*f));
	out = xmalloc(buf_len(b) + QUERY_HELD_MAX);
	query_filter_init(f);
	n = query_filter_run(f, buf_head(b), buf_len(b), out);
	REPAINT_CHECK(f->n_held == 0 && n == buf_len(b) &&
		      memcmp(out, buf_head(b), n) == 0);
	free(out);
	free(f);
	REPAINT_CHECK(!memchr(buf_head(b), 0x07, buf_len(b)));
	REPAINT_CHECK(!repaint_has(b, "\033]52") &&
		      !repaint_has(b, "\033]9;") &&
		      !repaint_has(b, "\033]777"));
}

/* After REPAINT, Z and a new size: TO is what FROM is. */
static void
repaint_check_same(const struct repaint_input *in, struct screen *from,
    struct screen *to, unsigned flags)
{
	size_t pending = (size_t)screen_pending(from);

	REPAINT_CHECK(screen_equal(from, to, flags | SCREEN_EQUAL_NO_LAST));
	screen_write(to, in->x + in->n_x - pending, pending);
	repaint_align(from, to);
	screen_write(to, in->z, in->n_z);
}

static void
repaint_check_restore(const struct screen *x, struct screen *to)
{
	struct screen *fresh = repaint_screen(x->cols, x->rows);
	struct buf b = { 0 };
	struct cell none = { 0 };

	screen_repaint(x, &b);
	screen_restore(x, &b);
	repaint_check_quiet(&b);
	screen_write(to, "\030", 1);
	screen_write(to, buf_head(&b), buf_len(&b));
	/* nobody restores what was only saved */
	to->saved_modes = fresh->saved_modes;
	to->saved_mouse = fresh->saved_mouse;
	to->saved_encoding = fresh->saved_encoding;
	REPAINT_CHECK(screen_equal_modes(fresh, to, 0));
	REPAINT_CHECK(to->now == &to->main);
	REPAINT_CHECK(!to->main.kitty.n && !to->main.kitty.base);
	REPAINT_CHECK(!to->alt.kitty.n && !to->alt.kitty.base);
	REPAINT_CHECK(to->cursor.col == 0 && !to->cursor.is_wrap_pending);
	REPAINT_CHECK(!to->cursor.is_origin && !to->cursor.gl);
	REPAINT_CHECK(memcmp(&to->cursor.pen, &none, sizeof(none)) == 0);
	REPAINT_CHECK(to->top == 0 && to->bottom == to->rows - 1);
	REPAINT_CHECK(to->left == 0 && to->right == to->cols - 1);
	REPAINT_CHECK(memcmp(to->tabs, fresh->tabs, to->cols) == 0);
	for (unsigned i = to->cursor.row; i < to->rows; i++)
		for (unsigned k = 0; k < to->cols; k++)
			REPAINT_CHECK(!buffer_row(to, &to->main, i)[k].ch);
	buf_release(&b);
	screen_free(fresh);
}

static void
repaint_check_unknown(struct screen *to)
{
	struct screen *fresh = repaint_screen(to->cols, to->rows);
	struct buf b = { 0 };

	screen_restore_unknown(&b);
	repaint_check_quiet(&b);
	screen_write(to, buf_head(&b), buf_len(&b));
	to->saved_modes = fresh->saved_modes;
	to->saved_mouse = fresh->saved_mouse;
	to->saved_encoding = fresh->saved_encoding;
	REPAINT_CHECK(
	    screen_equal_modes(fresh, to, SCREEN_EQUAL_NO_PREFERENCES));
	REPAINT_CHECK(to->now == &to->main && to->cursor.col == 0);
	REPAINT_CHECK(!screen_pending(to) && !screen_is_updating(to));
	buf_release(&b);
	screen_free(fresh);
}

/*
 * Controls within a sequence are executed at once; sent once more with the rest
 * of it they would be twice.
 */
static bool
repaint_is_executed(const struct repaint_input *in, const struct screen *x)
{
	size_t pending = (size_t)screen_pending(x);

	for (size_t i = in->n_x - pending; i < in->n_x; i++)
		if (in->x[i] < 0x20 && in->x[i] != 0x1b)
			return true;
	return false;
}

static void
repaint_check(const struct repaint_input *in)
{
	struct screen *x = repaint_screen(in->cols, in->rows);
	struct screen *fresh = repaint_screen(in->cols, in->rows);
	struct screen *dirty = repaint_screen(in->cols, in->rows);
	struct buf all = { 0 }, paint = { 0 }, prologue = { 0 };
	bool is_executed;
	bool takes_back; /* plain lines, with spaces where blanks were */

	screen_write(x, in->x, in->n_x);
	is_executed = repaint_is_executed(in, x);
	/* nothing is there yet to be scrolled away, not even blank rows */
	screen_prologue(0, &all);
	screen_history(x, 0, (size_t)-1, &all);
	screen_push(in->rows, screen_history_end(x), &all);
	screen_repaint(x, &paint);
	buf_put(&all, buf_head(&paint), buf_len(&paint));
	repaint_check_quiet(&all);
	screen_write(fresh, buf_head(&all), buf_len(&all));
	screen_write(dirty, in->y, in->n_y);
	screen_prologue(0, &prologue);
	screen_write(dirty, buf_head(&prologue), buf_len(&prologue));
	screen_write(dirty, buf_head(&paint), buf_len(&paint));
	repaint_check_same(in, x, fresh, 0);
	repaint_check_same(in, x, dirty, SCREEN_EQUAL_NO_PREFERENCES);
	screen_write(x, in->z, in->n_z);
	REPAINT_CHECK(is_executed || screen_equal(x, fresh, 0));
	REPAINT_CHECK(is_executed || screen_equal(x, dirty, 0));
	repaint_forget_saved(x, fresh);
	takes_back = in->picture_rows > in->rows &&
		     screen_history_end(x) > screen_history_start(x);
	screen_resize(x, in->picture_cols, in->picture_rows);
	screen_resize(fresh, in->picture_cols, in->picture_rows);
	REPAINT_CHECK(is_executed || takes_back || screen_equal(x, fresh, 0));
	screen_free(fresh);
	fresh = repaint_screen(in->picture_cols, in->picture_rows);
	repaint_check_restore(x, fresh);
	repaint_check_unknown(dirty);
	buf_release(&all);
	buf_release(&paint);
	buf_release(&prologue);
	screen_free(x);
	screen_free(fresh);
	screen_free(dirty);
}

/* TO, a terminal, shows the part of X where its cursor is. */
static void
repaint_check_part(const struct screen *x, const struct screen *to)
{
	unsigned width = to->cols < x->cols ? to->cols : x->cols;
	unsigned height = to->rows < x->rows ? to->rows : x->rows;
	unsigned left = x->cursor.col - to->cursor.col;
	unsigned top = x->cursor.row - to->cursor.row;
	struct cell_tables tx = screen_tables(x), tt = screen_tables(to);

	REPAINT_CHECK(to->now == &to->alt);
	REPAINT_CHECK(left + width <= x->cols && top + height <= x->rows);
	for (unsigned i = 0; i < height; i++) {
		const struct cell *a = buffer_row(x, x->now, top + i) + left;
		const struct cell *b = buffer_row(to, to->now, i);

		for (unsigned k = 0; k < width; k++) {
			struct cell c = a[k], d = b[k];

			if ((c.attr & CELL_TAIL && k == 0) ||
			    (c.attr & CELL_WIDE && k + 1 == width)) {
				c.ch = ' ';
				c.attr &= CELL_STYLE;
			}
			/* spaces and nothing look the same */
			c.ch = c.ch ? c.ch : ' ';
			d.ch = d.ch ? d.ch : ' ';
			c.attr &= (uint16_t)~CELL_PROTECTED;
			if (!screen_equal_cell(&c, &tx, &d, &tt))
				screen_equal_fail_cell("picture", k, i, &c, &d);
			REPAINT_CHECK(screen_equal_cell(&c, &tx, &d, &tt));
		}
	}
	REPAINT_CHECK(
	    mode_is_on(to, MODE_CURSOR) == mode_is_on(x, MODE_CURSOR));
	REPAINT_CHECK(mode_is_on(to, MODE_PASTE) == mode_is_on(x, MODE_PASTE));
	REPAINT_CHECK(
	    kitty_flags(&to->alt.kitty) == kitty_flags(&x->now->kitty));
	REPAINT_CHECK(to->mouse == (left || top ? 0 : x->mouse));
	REPAINT_CHECK(strcmp(screen_title(to), screen_title(x)) == 0);
	REPAINT_CHECK(!screen_is_updating(to));
}

static void
repaint_paint(struct picture *p, const struct screen *x, struct screen *to)
{
	struct buf b = { 0 };

	picture_paint(p, x, to->cols, to->rows, &b);
	repaint_check_quiet(&b);
	screen_write(to, buf_head(&b), buf_len(&b));
	buf_clear(&b);
	repaint_check_part(x, to);
	picture_paint(p, x, to->cols, to->rows, &b);
	REPAINT_CHECK(buf_len(&b) == 0);
	buf_release(&b);
}

/* Pictures, one after the other, on a terminal of any size and state. */
static void
repaint_check_picture(const struct repaint_input *in)
{
	struct screen *x = repaint_screen(in->cols, in->rows);
	struct screen *to = repaint_screen(in->picture_cols, in->picture_rows);
	struct picture *p = picture_new();
	struct buf b = { 0 };

	screen_write(to, in->y, in->n_y);
	screen_write(to, "\030\033\\", 3);
	screen_write(x, in->x, in->n_x);
	repaint_paint(p, x, to);
	screen_write(x, in->z, in->n_z);
	repaint_paint(p, x, to);
	screen_resize(to, in->rows, in->cols);
	repaint_paint(p, x, to);
	screen_resize(x, in->picture_rows, in->picture_cols);
	repaint_paint(p, x, to);
	picture_clear(p, &b);
	repaint_check_quiet(&b);
	screen_write(to, buf_head(&b), buf_len(&b));
	REPAINT_CHECK(to->now == &to->main && !picture_is_shown(p));
	REPAINT_CHECK(!to->mouse && !to->mouse_encoding && !to->cursor_shape);
	REPAINT_CHECK(mode_is_on(to, MODE_CURSOR));
	REPAINT_CHECK(!to->alt.kitty.n && !to->alt.kitty.base);
	buf_release(&b);
	picture_free(p);
	screen_free(x);
	screen_free(to);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct fuzz_input in = { p, n };
	struct repaint_input r = { 0 };

	r.cols = 1 + fuzz_u8(&in) % 40;
	r.rows = 1 + fuzz_u8(&in) % 12;
	r.picture_cols = 1 + fuzz_u8(&in) % 40;
	r.picture_rows = 1 + fuzz_u8(&in) % 12;
	r.x = fuzz_take(&in, fuzz_u16(&in), &r.n_x);
	r.y = fuzz_take(&in, fuzz_u16(&in), &r.n_y);
	r.z = in.p;
	r.n_z = in.n;
	repaint_check(&r);
	repaint_check_picture(&r);
	return 0;
}
