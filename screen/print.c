/*
 * Characters onto the grid; see print.h. Plain ASCII goes a run at a time, with
 * the row looked up once. Pure.
 */
#include "screen/print.h"

#include <string.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "screen/buffer.h"
#include "screen/cursor.h"
#include "screen/intern.h"

struct print_range {
	uint32_t first, last;
};

static bool
print_is_in(const struct print_range *r, size_t n, uint32_t c)
{
	for (; n; n--, r++)
		if (c >= r->first && c <= r->last)
			return true;
	return false;
}

/*
 * Characters that the C library gives another width than libutf8proc does.
 * Programs count with the former, and so do xterm and tmux: spacing marks and
 * the signs that stand around Arabic numbers take a column, two kinds of
 * symbols two. Returns libutf8proc's width, W, for all others.
 */
static int
print_width_of_libc(uint32_t c, int w)
{
	static const struct print_range signs[] = { { 0x600, 0x605 },
		{ 0x6dd, 0x6dd }, { 0x70f, 0x70f }, { 0x890, 0x891 },
		{ 0x8e2, 0x8e2 }, { 0x110bd, 0x110bd }, { 0x110cd, 0x110cd } };
	static const struct print_range wide[] = { { 0x3248, 0x324f },
		{ 0x4dc0, 0x4dff } };

	if (w == 1)
		return print_is_in(wide, ARRAY_LEN(wide), c) ? 2 : 1;
	if (!w &&
	    (utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_MC ||
		print_is_in(signs, ARRAY_LEN(signs), c)))
		return 1;
	return w;
}

unsigned
print_width(uint32_t c)
{
	int w;

	if (c < 0x300)
		return 1;
	if ((c >= 0x4e00 && c <= 0x9fff) || (c >= 0xac00 && c <= 0xd7a3) ||
	    (c >= 0x3041 && c <= 0x3096) || (c >= 0x30a0 && c <= 0x30ff))
		return 2;
	/* vowels and finals of Hangul join the consonant before them */
	if ((c >= 0x1160 && c <= 0x11ff) || (c >= 0xd7b0 && c <= 0xd7fb))
		return 0;
	w = print_width_of_libc(c, utf8proc_charwidth((utf8proc_int32_t)c));
	return w > 1 ? 2 : w < 1 ? 0 : 1;
}

bool
print_is_disputed(uint32_t c)
{
	int w;

	/* letters of Europe, symbols and CJK, which are most of what comes */
	if (c < 0x600 || (c >= 0x2000 && c <= 0x3247) ||
	    (c >= 0x4e00 && c <= 0x9fff) || (c >= 0xac00 && c <= 0xd7a3))
		return false;
	w = utf8proc_charwidth((utf8proc_int32_t)c);
	return print_width_of_libc(c, w) != w;
}

unsigned
print_encode(uint32_t c, uint8_t *out)
{
	if (c < 0x80) {
		out[0] = (uint8_t)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (uint8_t)(0xc0 | c >> 6);
		out[1] = (uint8_t)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (uint8_t)(0xe0 | c >> 12);
		out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
		out[2] = (uint8_t)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | c >> 18);
	out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3f));
	out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
	out[3] = (uint8_t)(0x80 | (c & 0x3f));
	return 4;
}

/* ---- one character ---- */

/* The column behind the last one that this row has for text. */
static unsigned
print_limit(const struct screen *s)
{
	return s->cursor.col <= s->right ? s->right + 1u : s->cols;
}

/* The wrap that is due. */
static void
print_wrap(struct screen *s, bool goes_on)
{
	cursor_index(s, goes_on && buffer_is_full_width(s));
	s->cursor.col = s->left;
}

/* Does a pending wrap. A row whose end was erased meanwhile does not go on. */
static inline void
print_settle(struct screen *s)
{
	struct row *r = buffer_at(s, s->cursor.row);

	if (!s->cursor.is_wrap_pending)
		return;
	s->cursor.is_wrap_pending = false;
	if (!mode_is_on(s, MODE_AUTOWRAP))
		return;
	print_wrap(s, row_goes_to(r, s->cols));
}

/* The cursor is behind what was printed; past LIMIT it waits there. */
static inline void
print_advance(struct screen *s, struct row *r, unsigned col, unsigned limit)
{
	if (r->used < col)
		r->used = (uint16_t)col;
	if (col < limit) {
		s->cursor.col = (uint16_t)col;
		return;
	}
	s->cursor.col = (uint16_t)(limit - 1);
	s->cursor.is_wrap_pending = true;
	/* at a margin the end of the row is another text's */
	if (limit == s->cols)
		r->is_wrapped = false;
}

/*
 * Joins C to the character before the cursor, be it a blank: so do xterm and
 * tmux, while VTE drops it where nothing was written.
 */
static void
print_join(struct screen *s, uint32_t c)
{
	struct row *r = buffer_at(s, s->cursor.row);
	uint8_t text[CLUSTER_MAX + 4];
	unsigned col = s->cursor.col, n;
	struct cell *at;
	uint32_t ch;

	if (!s->cursor.is_wrap_pending) {
		if (!col)
			return;
		col--;
	}
	at = &row_cells(r)[col];
	if (at->attr & CELL_TAIL) {
		at--;
		col--;
	}
	if (at->ch & CELL_CLUSTER) {
		const struct cluster *old =
		    &s->clusters[at->ch & ~CELL_CLUSTER];

		n = old->len;
		memcpy(text, old->text, n);
	} else {
		n = print_encode(at->ch ? at->ch : ' ', text);
	}
	n += print_encode(c, text + n);
	if (n > CLUSTER_MAX)
		return;
	ch = intern_cluster(s, text, n);
	if (!ch)
		return;
	at->ch = ch;
	if (r->used <= col)
		r->used = (uint16_t)(col + 1);
}

/* True when a character pushes others aside: in IRM, between the margins. */
static bool
print_inserts(const struct screen *s, unsigned limit)
{
	return mode_is_on(s, MODE_INSERT) && s->cursor.col >= s->left &&
	       limit == s->right + 1u;
}

static void
print_narrow(struct screen *s, uint32_t c)
{
	unsigned limit, col;
	struct cell *at;
	struct row *r;

	print_settle(s);
	limit = print_limit(s);
	col = s->cursor.col;
	if (print_inserts(s, limit))
		buffer_insert_cells(s, s->cursor.row, col, 1);
	r = buffer_at(s, s->cursor.row);
	at = &row_cells(r)[col];
	row_split(r, s->cols, col);
	row_split(r, s->cols, col + 1);
	*at = s->cursor.pen;
	at->ch = c;
	print_advance(s, r, col + 1, limit);
}

static void
print_wide(struct screen *s, uint32_t c)
{
	unsigned limit, col;
	struct cell *at;
	struct row *r;

	print_settle(s);
	limit = print_limit(s);
	if (s->cursor.col + 2u > limit) {
		if (!mode_is_on(s, MODE_AUTOWRAP) || limit - s->left < 2)
			return; /* no room for it */
		buffer_erase(s, s->cursor.row, s->cursor.col, limit);
		print_wrap(s, true);
		limit = print_limit(s);
		if (s->cursor.col + 2u > limit)
			return;
	}
	col = s->cursor.col;
	if (print_inserts(s, limit))
		buffer_insert_cells(s, s->cursor.row, col, 2);
	r = buffer_at(s, s->cursor.row);
	at = &row_cells(r)[col];
	row_split(r, s->cols, col);
	row_split(r, s->cols, col + 2);
	at[0] = at[1] = s->cursor.pen;
	at[0].ch = c;
	at[0].attr |= CELL_WIDE;
	at[1].attr |= CELL_TAIL;
	print_advance(s, r, col + 2, limit);
}

/* ---- character sets ---- */

/* DEC's line drawing, 0x5f to 0x7e. */
static const uint16_t print_lines[] = { 0x0020, 0x25c6, 0x2592, 0x2409, 0x240c,
	0x240d, 0x240a, 0x00b0, 0x00b1, 0x2424, 0x240b, 0x2518, 0x2510, 0x250c,
	0x2514, 0x253c, 0x23ba, 0x23bb, 0x2500, 0x23bc, 0x23bd, 0x251c, 0x2524,
	0x2534, 0x252c, 0x2502, 0x2264, 0x2265, 0x03c0, 0x2260, 0x00a3,
	0x00b7 };

static uint32_t
print_translate(struct screen *s, uint32_t c)
{
	unsigned set = s->single_shift ? s->single_shift : s->cursor.gl;

	s->single_shift = 0;
	if (s->cursor.g[set] == CHARSET_LINES && c >= 0x5f && c <= 0x7e)
		return print_lines[c - 0x5f];
	if (s->cursor.g[set] == CHARSET_UK && c == '#')
		return 0xa3;
	return c;
}

void
print_char(struct screen *s, uint32_t c)
{
	unsigned width;

	if (c < 0x80)
		c = print_translate(s, c);
	else
		s->single_shift = 0;
	width = print_width(c);
	if (!width) {
		print_join(s, c);
		return;
	}
	s->last_ch = c;
	if (width == 1)
		print_narrow(s, c);
	else
		print_wide(s, c);
}

void
print_repeat(struct screen *s, unsigned n)
{
	unsigned width, most;

	if (!s->last_ch)
		return;
	width = print_width(s->last_ch);
	most = s->cols * s->rows / width;
	for (n = n < most ? n : most; n; n--)
		if (width == 1)
			print_narrow(s, s->last_ch);
		else
			print_wide(s, s->last_ch);
}

/* ---- runs ---- */

/* Nothing changes characters on their way, and they push nothing aside. */
static inline bool
print_is_plain(const struct screen *s)
{
	return s->cursor.g[s->cursor.gl] == CHARSET_ASCII && !s->single_shift &&
	       !mode_is_on(s, MODE_INSERT);
}

#define PRINT_ONES  0x0101010101010101ULL
#define PRINT_HIGHS 0x8080808080808080ULL

/* How many of the N bytes at P are printable ASCII, up to the first other. */
static inline size_t
print_ascii_run(const uint8_t *p, size_t n)
{
	size_t i = 0;

	for (; n - i >= 8; i += 8) {
		uint64_t w;

		memcpy(&w, p + i, 8);
		/* a byte below 0x20, above 0x7e, or beyond ASCII */
		if (((w - PRINT_ONES * 0x20) | (w + PRINT_ONES) | w) &
		    PRINT_HIGHS)
			break;
	}
	while (i < n && (uint8_t)(p[i] - 0x20) < 0x5f)
		i++;
	return i;
}

/* ASCII at the cursor as far as the row goes; how many. */
static size_t
print_ascii(struct screen *s, const uint8_t *p, size_t n)
{
	unsigned col, limit;
	struct row *r;
	size_t i;

	print_settle(s);
	limit = print_limit(s);
	col = s->cursor.col;
	r = buffer_at(s, s->cursor.row);
	if (n > limit - col)
		n = limit - col;
	i = print_ascii_run(p, n);
	if (!row_take_text(r, col, p, i, &s->cursor.pen)) {
		struct cell *at = row_cells(r) + col;

		row_split(r, s->cols, col);
		row_split(r, s->cols, col + (unsigned)i);
		cell_put_ascii(at, p, i, &s->cursor.pen);
	}
	print_advance(s, r, col + (unsigned)i, limit);
	s->last_ch = p[i - 1];
	return i;
}

/*
 * Decodes one whole character beyond ASCII; its length, or 0 if it is cut,
 * invalid or a C1 control.
 */
static inline unsigned
print_decode(const uint8_t *p, size_t n, uint32_t *out)
{
	uint32_t c = p[0];

	if (n >= 3 && c >= 0xe1 && c <= 0xef && c != 0xed) {
		if ((p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80)
			return 0;
		*out = (c & 0xf) << 12 | (p[1] & 0x3fU) << 6 | (p[2] & 0x3fU);
		return 3;
	}
	if (n >= 2 && c >= 0xc2 && c <= 0xdf) {
		if ((p[1] & 0xc0) != 0x80 || (c == 0xc2 && p[1] < 0xa0))
			return 0;
		*out = (c & 0x1f) << 6 | (p[1] & 0x3fU);
		return 2;
	}
	if (n >= 3 && (c == 0xe0 || c == 0xed)) {
		uint8_t lo = c == 0xe0 ? 0xa0 : 0x80;
		uint8_t hi = c == 0xed ? 0x9f : 0xbf;

		if (p[1] < lo || p[1] > hi || (p[2] & 0xc0) != 0x80)
			return 0;
		*out = (c & 0xf) << 12 | (p[1] & 0x3fU) << 6 | (p[2] & 0x3fU);
		return 3;
	}
	if (n >= 4 && c >= 0xf0 && c <= 0xf4) {
		uint8_t lo = c == 0xf0 ? 0x90 : 0x80;
		uint8_t hi = c == 0xf4 ? 0x8f : 0xbf;

		if (p[1] < lo || p[1] > hi || (p[2] & 0xc0) != 0x80 ||
		    (p[3] & 0xc0) != 0x80)
			return 0;
		*out = (c & 7) << 18 | (p[1] & 0x3fU) << 12 |
		       (p[2] & 0x3fU) << 6 | (p[3] & 0x3fU);
		return 4;
	}
	return 0;
}

size_t
print_text(struct screen *s, const uint8_t *p, size_t n)
{
	size_t i = 0;

	while (i < n) {
		uint32_t c = p[i];
		unsigned len = 1;

		if (c >= 0x80)
			len = print_decode(p + i, n - i, &c);
		else if (c < 0x20 || c == 0x7f)
			break;
		if (!len)
			break;
		if (c < 0x80 && print_is_plain(s)) {
			i += print_ascii(s, p + i, n - i);
			continue;
		}
		print_char(s, c);
		i += len;
	}
	return i;
}
