/*
 * What the terminal that we claim to be answers: one like xterm, a VT220 with
 * colours and without graphics. Sources: xterm's ctlseqs, the VT510 manual, the
 * pages of kitty, Contour and iTerm2. Not answered: checksums of the screen,
 * the clipboard, graphics. Pure.
 */
#include "screen/answer.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "screen/emit.h"
#include "screen/screen.h"
#include "screen/state.h"

/* Of the pixels of a cell nobody knows: these are usual. */
#define ANSWER_CELL_WIDTH  8
#define ANSWER_CELL_HEIGHT 16

#define ANSWER_DA1 "\033[?62;22c"

typedef void (*answer_handler)(struct answer *a);

static unsigned
answer_param(const struct answer *a, unsigned i)
{
	return i < a->n_params ? a->params[i] : 0;
}

/* ---- who is it ---- */

static void
answer_da1(struct answer *a)
{
	if (!answer_param(a, 0))
		emit_put(a->out, ANSWER_DA1);
}

/* As xterm: editors conclude from the number that the mouse works, and so on. */
static void
answer_da2(struct answer *a)
{
	if (!answer_param(a, 0))
		emit_put(a->out, "\033[>41;354;0c");
}

static void
answer_da3(struct answer *a)
{
	if (!answer_param(a, 0))
		emit_put(a->out, "\033P!|00000000\033\\");
}

static void
answer_xtversion(struct answer *a)
{
	const char *name = a->s->config.name ? a->s->config.name : "berth";

	if (answer_param(a, 0))
		return;
	emit_put(a->out, "\033P>|");
	for (; *name; name++)
		if (*name >= 0x20 && *name <= 0x7e)
			buf_put_u8(a->out, (uint8_t)*name);
	emit_put(a->out, "\033\\");
}

static void
answer_decreqtparm(struct answer *a)
{
	if (answer_param(a, 0) <= 1)
		emit_put(
		    a->out, "\033[%u;1;1;128;128;1;0x", answer_param(a, 0) + 2);
}

/* ---- status ---- */

static void
answer_position(struct answer *a, const char *prefix)
{
	const struct cursor *c = &a->s->cursor;
	unsigned row = c->row - (c->is_origin ? a->s->top : 0u);
	unsigned col = c->col - (c->is_origin ? a->s->left : 0u);

	emit_put(a->out, "\033[%s%u;%uR", prefix, row + 1, col + 1);
}

static void
answer_dsr(struct answer *a)
{
	if (answer_param(a, 0) == 5)
		emit_put(a->out, "\033[0n");
	else if (answer_param(a, 0) == 6)
		answer_position(a, "");
}

static bool
answer_is_dark(const struct screen *s)
{
	uint32_t c = s->dynamic[1];

	if (c == SCREEN_NO_COLOUR)
		c = s->config.background;
	return 299 * (c >> 16 & 0xff) + 587 * (c >> 8 & 0xff) +
		   114 * (c & 0xff) <
	       128 * 1000;
}

static void
answer_dec_dsr(struct answer *a)
{
	static const struct {
		unsigned number;
		const char *text;
	} rows[] = {
		{ 15, "\033[?13n" },       /* no printer */
		{ 25, "\033[?20n" },       /* user keys are not locked */
		{ 26, "\033[?27;1;0;0n" }, /* a North American keyboard */
		{ 53, "\033[?50n" },       /* no locator */
		{ 55, "\033[?50n" },       /* the same */
		{ 56, "\033[?57;0n" },     /* none that has a kind */
		{ 62, "\033[0*{" },        /* no room for macros */
		{ 75, "\033[?70n" },       /* no errors */
		{ 85, "\033[?83n" },       /* not set up for sessions */
	};
	unsigned what = answer_param(a, 0);

	if (what == 6)
		answer_position(a, "?");
	else if (what == 63)
		emit_put(a->out, "\033P%u!~0000\033\\", answer_param(a, 1));
	else if (what == 996)
		emit_put(
		    a->out, "\033[?997;%un", answer_is_dark(a->s) ? 1u : 2u);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].number == what)
			emit_put(a->out, "%s", rows[i].text);
}

/* ---- modes ---- */

enum answer_mode {
	ANSWER_UNKNOWN,
	ANSWER_SET,
	ANSWER_RESET,
	ANSWER_ALWAYS_SET,
	ANSWER_ALWAYS_RESET
};

static enum answer_mode
answer_is_set(bool is_on)
{
	return is_on ? ANSWER_SET : ANSWER_RESET;
}

static enum answer_mode
answer_private_mode(const struct screen *s, unsigned number)
{
	switch (number) {
	case 2:
		return ANSWER_ALWAYS_SET; /* not a VT52 */
	case 3:
	case 4:
		return ANSWER_ALWAYS_RESET; /* 132 columns, smooth scroll */
	case 6:
		return answer_is_set(s->cursor.is_origin);
	case 9:
	case 1000:
	case 1001:
	case 1002:
	case 1003:
		return answer_is_set(s->mouse == number);
	case 1005:
	case 1006:
	case 1015:
	case 1016:
		return answer_is_set(s->mouse_encoding == number);
	case 47:
	case 1047:
	case 1049:
		return answer_is_set(s->now == &s->alt);
	case 1048:
		return answer_is_set(s->now->has_saved);
	default:
		return ANSWER_UNKNOWN;
	}
}

static enum answer_mode
answer_ansi_mode(unsigned number)
{
	if (number == 12)
		return ANSWER_ALWAYS_SET; /* no local echo */
	if (number >= 1 && number <= 19 && number != 6 && number != 8 &&
	    number != 9)
		return ANSWER_ALWAYS_RESET;
	return ANSWER_UNKNOWN;
}

static void
answer_decrqm(struct answer *a)
{
	bool is_private = a->prefix == '?';
	unsigned number = answer_param(a, 0);
	enum answer_mode mode = is_private ? answer_private_mode(a->s, number)
					   : answer_ansi_mode(number);

	for (unsigned m = 0; m < MODE_COUNT; m++)
		if (mode_info(m)->number == number &&
		    mode_info(m)->is_private == is_private)
			mode = answer_is_set(mode_is_on(a->s, m));
	emit_put(a->out, "\033[%s%u;%u$y", is_private ? "?" : "", number,
	    (unsigned)mode);
}

/* ---- keyboard ---- */

static void
answer_kitty(struct answer *a)
{
	emit_put(a->out, "\033[?%uu", kitty_flags(&a->s->now->kitty));
}

static void
answer_modify_keys(struct answer *a)
{
	unsigned what = answer_param(a, 0);
	unsigned value;

	if (what >= ARRAY_LEN(a->s->modify_keys) || what == 5)
		return;
	value = a->s->modify_keys[what];
	/* xterm begins with 2 for cursor and function keys */
	if (!value && (what == 1 || what == 2))
		value = 2;
	emit_put(a->out, "\033[>%u;%um", what, value);
}

static void
answer_format_keys(struct answer *a)
{
	if (answer_param(a, 0) < ARRAY_LEN(a->s->modify_keys))
		emit_put(a->out, "\033[>%u;0f", answer_param(a, 0));
}

/* ---- window ---- */

static void
answer_pixels(struct answer *a, unsigned what)
{
	emit_put(a->out, "\033[%u;%u;%ut", what,
	    a->s->rows * ANSWER_CELL_HEIGHT, a->s->cols * ANSWER_CELL_WIDTH);
}

static void
answer_window(struct answer *a)
{
	switch (answer_param(a, 0)) {
	case 11:
		emit_put(a->out, "\033[1t"); /* not an icon */
		break;
	case 13:
		emit_put(a->out, "\033[3;0;0t");
		break;
	case 14:
		answer_pixels(a, 4);
		break;
	case 15:
		answer_pixels(a, 5);
		break;
	case 16:
		emit_put(a->out, "\033[6;%u;%ut", ANSWER_CELL_HEIGHT,
		    ANSWER_CELL_WIDTH);
		break;
	case 18:
	case 19:
		emit_put(a->out, "\033[%u;%u;%ut", answer_param(a, 0) - 10,
		    a->s->rows, a->s->cols);
		break;
	case 20: /* titles could be commands: they are said to be empty */
		emit_put(a->out, "\033]L\033\\");
		break;
	case 21:
		emit_put(a->out, "\033]l\033\\");
		break;
	default:
		break;
	}
}

/* ---- more of DEC's ---- */

static void
answer_colour_stack(struct answer *a)
{
	emit_put(a->out, "\033[?0;0#Q");
}

static void
answer_upss(struct answer *a)
{
	emit_put(a->out, "\033P0!u%%5\033\\");
}

static void
answer_extent(struct answer *a)
{
	emit_put(a->out, "\033[%u;%u;1;1;1\"w", a->s->rows, a->s->cols);
}

static void
answer_locator(struct answer *a)
{
	emit_put(a->out, "\033[0&w");
}

/* DECTABSR */
static void
answer_presentation(struct answer *a)
{
	bool is_first = true;

	if (answer_param(a, 0) != 2)
		return;
	emit_put(a->out, "\033P2$u");
	for (unsigned i = 0; i < a->s->cols; i++) {
		if (!a->s->tabs[i])
			continue;
		emit_put(a->out, is_first ? "%u" : "/%u", i + 1);
		is_first = false;
	}
	emit_put(a->out, "\033\\");
}

/* ---- the table ---- */

static const struct answer_row {
	char prefix, inter, final;
	answer_handler answer;
} answer_rows[] = {
	{ 0, 0, 'c', answer_da1 },
	{ '>', 0, 'c', answer_da2 },
	{ '=', 0, 'c', answer_da3 },
	{ 0, 0, 'n', answer_dsr },
	{ '?', 0, 'n', answer_dec_dsr },
	{ 0, '$', 'p', answer_decrqm },
	{ '?', '$', 'p', answer_decrqm },
	{ '>', 0, 'q', answer_xtversion },
	{ '?', 0, 'u', answer_kitty },
	{ 0, 0, 't', answer_window },
	{ 0, 0, 'x', answer_decreqtparm },
	{ '?', 0, 'm', answer_modify_keys },
	{ '?', 0, 'g', answer_format_keys },
	{ 0, '#', 'R', answer_colour_stack },
	{ 0, '&', 'u', answer_upss },
	{ 0, '$', 'w', answer_presentation },
	{ 0, '"', 'v', answer_extent },
	{ 0, '\'', '|', answer_locator },
};

static void
answer_csi(struct answer *a)
{
	for (size_t i = 0; i < ARRAY_LEN(answer_rows); i++) {
		const struct answer_row *row = &answer_rows[i];

		if (row->prefix == a->prefix && row->inter == a->inter &&
		    row->final == a->final)
			row->answer(a);
	}
}

/* ---- taking a query apart ---- */

void
answer_end(const struct answer *a)
{
	emit_put(a->out, a->is_bel ? "\a" : "\033\\");
}

/* Prefix, parameters, intermediate and final byte; what follows is data. */
static void
answer_parse(struct answer *a)
{
	char *p = a->text;

	if (*p >= 0x3c && *p <= 0x3f)
		a->prefix = *p++;
	for (; *p && !a->final; p++) {
		if (*p >= '0' && *p <= ';' && !a->n_params)
			a->n_params = 1;
		if (*p >= '0' && *p <= '9') {
			unsigned *v = &a->params[a->n_params - 1];

			*v = *v * 10 + (unsigned)(*p - '0');
			*v = *v > 65535 ? 65535 : *v;
		} else if (*p == ';' || *p == ':') {
			if (a->n_params == ANSWER_PARAMS)
				return;
			a->n_params++;
		} else if (*p < 0x30) {
			a->inter = *p;
		} else if (*p >= 0x40) {
			a->final = *p;
		}
	}
	a->data = p;
}

/* The length of Q without the end of a string. */
static size_t
answer_cut_end(struct answer *a, const uint8_t *q, size_t n)
{
	if (n && q[n - 1] == 0x07) {
		a->is_bel = true;
		return n - 1;
	}
	if (n >= 2 && ((q[n - 2] == 0x1b && q[n - 1] == '\\') ||
			  (q[n - 2] == 0xc2 && q[n - 1] == 0x9c)))
		return n - 2;
	return n;
}

void
screen_answer(struct screen *s, const uint8_t *q, size_t n, struct buf *out)
{
	struct answer a = { .s = s, .out = out };
	size_t i = 1, k = 0;
	uint8_t kind = 0;

	n = answer_cut_end(&a, q, n);
	if (n >= 2 && q[0] == 0xc2) {
		kind = (uint8_t)(q[1] - 0x40);
		i = 2;
	} else if (n >= 2 && q[0] == 0x1b) {
		while (i < n && (q[i] < 0x20 || q[i] >= 0x7f))
			i++;
		if (i < n)
			kind = q[i];
		i++;
	}
	a.text = xmalloc(n + 1);
	for (; i < n; i++)
		if (q[i] >= 0x20 && q[i] < 0x7f)
			a.text[k++] = (char)q[i];
	a.text[k] = '\0';
	if (kind == 'Z') {
		emit_put(out, ANSWER_DA1);
	} else if (kind == '[') {
		answer_parse(&a);
		answer_csi(&a);
	} else if (kind == ']') {
		answer_osc(&a);
	} else if (kind == 'P') {
		answer_parse(&a);
		if (a.data)
			answer_dcs(&a);
	}
	free(a.text);
}
