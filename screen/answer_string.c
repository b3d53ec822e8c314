/*
 * Answers to control strings: colours, settings, capabilities; see answer.h.
 * Pure.
 */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "screen/answer.h"
#include "screen/emit.h"
#include "screen/screen.h"
#include "screen/state.h"

/* ---- colours ---- */

/* The first 16 colours of xterm. */
static const uint32_t answer_base_colours[] = { 0x000000, 0xcd0000, 0x00cd00,
	0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000,
	0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff };

static uint32_t
answer_cube(unsigned v)
{
	return v ? 55 + 40 * v : 0;
}

static uint32_t
answer_palette(const struct screen *s, unsigned i)
{
	if (s->palette && s->palette[i] != SCREEN_NO_COLOUR)
		return s->palette[i];
	if (i < ARRAY_LEN(answer_base_colours))
		return answer_base_colours[i];
	if (i >= 232)
		return (8 + 10 * (i - 232)) * 0x010101U;
	i -= 16;
	return answer_cube(i / 36) << 16 | answer_cube(i / 6 % 6) << 8 |
	       answer_cube(i % 6);
}

/* OSC 10 + I; SCREEN_NO_COLOUR when there is no telling. */
static uint32_t
answer_dynamic(const struct screen *s, unsigned i)
{
	if (s->dynamic[i] != SCREEN_NO_COLOUR)
		return s->dynamic[i];
	if (i == 0)
		return s->config.foreground;
	if (i == 1)
		return s->config.background;
	if (i == 2 && s->config.cursor_colour != SCREEN_NO_COLOUR)
		return s->config.cursor_colour;
	/* the cursor is drawn in what the text is drawn in */
	return i == 2 ? answer_dynamic(s, 0) : SCREEN_NO_COLOUR;
}

/* rgb: with 16 bits each, as everybody does it. */
static void
answer_rgb(const struct answer *a, uint32_t c)
{
	static const char digits[] = "0123456789abcdef";
	char text[] = "rgb:xxxx/xxxx/xxxx";

	for (unsigned i = 0; i < 3; i++) {
		unsigned v = c >> (16 - 8 * i) & 0xff;

		for (unsigned k = 0; k < 4; k++)
			text[4 + 5 * i + k] = digits[k % 2 ? v & 0xf : v >> 4];
	}
	emit_put(a->out, "%s", text);
}

/* Cuts the field at *P off; *P moves behind it, to NULL after the last one. */
static char *
answer_field(char **p)
{
	char *field = *p;
	char *end = strchr(field, ';');

	*p = end ? end + 1 : NULL;
	if (end)
		*end = '\0';
	return field;
}

/* The number that P is; LIMIT if it is none or as large as that. */
static unsigned
answer_number(const char *p, unsigned limit)
{
	unsigned v = 0;

	if (!*p)
		return limit;
	for (; *p; p++) {
		if (*p < '0' || *p > '9' || v >= limit)
			return limit;
		v = v * 10 + (unsigned)(*p - '0');
	}
	return v < limit ? v : limit;
}

/* OSC 4: pairs of a number and a colour or a `?`. */
static void
answer_osc_palette(struct answer *a, char *p)
{
	unsigned most = PALETTE_COLOURS;

	while (p && most) {
		unsigned i = answer_number(answer_field(&p), PALETTE_COLOURS);
		const char *value = p ? answer_field(&p) : "";

		if (i == PALETTE_COLOURS || strcmp(value, "?") != 0)
			continue;
		emit_put(a->out, "\033]4;%u;", i);
		answer_rgb(a, answer_palette(a->s, i));
		answer_end(a);
		most--;
	}
}

/* OSC 10 to 19: each further field is for the next of them. */
static void
answer_osc_dynamic(struct answer *a, unsigned number, char *p)
{
	for (unsigned i = number - 10; p && i < DYNAMIC_COLOURS; i++) {
		uint32_t c = answer_dynamic(a->s, i);

		if (strcmp(answer_field(&p), "?") != 0 || c == SCREEN_NO_COLOUR)
			continue;
		emit_put(a->out, "\033]%u;", 10 + i);
		answer_rgb(a, c);
		answer_end(a);
	}
}

/* OSC 21, kitty's: names and numbers, of which we know some. */
static void
answer_osc_names(struct answer *a, char *p)
{
	static const char *const names[] = { "foreground", "background",
		"cursor" };
	unsigned most = PALETTE_COLOURS;
	bool is_begun = false;

	for (; p && most; most--) {
		char *field = answer_field(&p);
		size_t n = strcspn(field, "=");
		unsigned k;

		if (strcmp(field + n, "=?") != 0)
			continue;
		field[n] = '\0';
		for (k = 0; k < ARRAY_LEN(names); k++)
			if (strcmp(field, names[k]) == 0)
				break;
		n = answer_number(field, PALETTE_COLOURS);
		if (k == ARRAY_LEN(names) && n == PALETTE_COLOURS)
			continue;
		emit_put(a->out, is_begun ? ";" : "\033]21;");
		if (k < ARRAY_LEN(names))
			emit_put(a->out, "%s=", names[k]);
		else
			emit_put(a->out, "%u=", (unsigned)n);
		answer_rgb(a, k < ARRAY_LEN(names)
				  ? answer_dynamic(a->s, k)
				  : answer_palette(a->s, (unsigned)n));
		is_begun = true;
	}
	if (is_begun)
		answer_end(a);
}

void
answer_osc(struct answer *a)
{
	char *p = a->text;
	unsigned number = answer_number(answer_field(&p), 1000);

	if (number == 4)
		answer_osc_palette(a, p);
	else if (number >= 10 && number <= 19)
		answer_osc_dynamic(a, number, p);
	else if (number == 21)
		answer_osc_names(a, p);
}

/* ---- settings: DECRQSS ---- */

static void
answer_setting_sgr(const struct answer *a)
{
	struct cell_tables t = screen_tables(a->s);

	emit_sgr_report(a->out, &a->s->cursor.pen, &t);
}

static void
answer_setting_rows(const struct answer *a)
{
	emit_put(a->out, "%u;%u", a->s->top + 1u, a->s->bottom + 1u);
}

static void
answer_setting_cols(const struct answer *a)
{
	emit_put(a->out, "%u;%u", a->s->left + 1u, a->s->right + 1u);
}

static void
answer_setting_level(const struct answer *a)
{
	emit_put(a->out, "62;1");
}

static void
answer_setting_protected(const struct answer *a)
{
	emit_put(
	    a->out, "%u", a->s->cursor.pen.attr & CELL_PROTECTED ? 1u : 0u);
}

static void
answer_setting_shape(const struct answer *a)
{
	emit_put(a->out, "%u", a->s->cursor_shape);
}

static void
answer_setting_height(const struct answer *a)
{
	emit_put(a->out, "%u", a->s->rows);
}

static void
answer_setting_width(const struct answer *a)
{
	emit_put(a->out, "%u", a->s->cols);
}

static void
answer_setting_zero(const struct answer *a)
{
	emit_put(a->out, "0");
}

static const struct answer_setting {
	const char *name;
	void (*value)(const struct answer *a);
} answer_settings[] = {
	{ "m", answer_setting_sgr },
	{ "r", answer_setting_rows },
	{ "s", answer_setting_cols },
	{ "t", answer_setting_height },
	{ "\"p", answer_setting_level },
	{ "\"q", answer_setting_protected },
	{ " q", answer_setting_shape },
	{ "*x", answer_setting_zero },
	{ "*|", answer_setting_height },
	{ "$|", answer_setting_width },
	{ "$}", answer_setting_zero },
	{ "$~", answer_setting_zero },
};

static void
answer_decrqss(struct answer *a)
{
	for (size_t i = 0; i < ARRAY_LEN(answer_settings); i++) {
		const struct answer_setting *row = &answer_settings[i];

		if (strcmp(row->name, a->data) != 0)
			continue;
		emit_put(a->out, "\033P1$r");
		row->value(a);
		emit_put(a->out, "%s\033\\", row->name);
		return;
	}
	emit_put(a->out, "\033P0$r\033\\");
}

/* ---- capabilities: XTGETTCAP ---- */

#define ANSWER_NAME_MAX 16
#define ANSWER_CAPS_MAX 64 /* names of one query that are answered */

/* Values as in terminfo, escapes as they are sent. NULL: it is just there. */
static const struct answer_cap {
	const char *name, *value;
} answer_caps[] = {
	{ "Co", "256" },
	{ "colors", "256" },
	{ "RGB", "8/8/8" },
	{ "Tc", NULL },
	{ "Su", NULL },
	{ "Smulx", "\033[4:%p1%dm" },
	{ "Setulc", "\033[58:2::%p1%{65536}%/%d:%p1%{256}%/%{255}%&%d:"
		    "%p1%{255}%&%d%;m" },
	{ "setrgbf", "\033[38:2:%p1%d:%p2%d:%p3%dm" },
	{ "setrgbb", "\033[48:2:%p1%d:%p2%d:%p3%dm" },
	{ "Ss", "\033[%p1%d q" },
	{ "Se", "\033[2 q" },
	{ "smcup", "\033[?1049h" },
	{ "rmcup", "\033[?1049l" },
};

static void
answer_hex(const struct answer *a, const char *text)
{
	static const char digits[] = "0123456789ABCDEF";

	for (; *text; text++) {
		buf_put_u8(a->out, (uint8_t)digits[(uint8_t)*text >> 4]);
		buf_put_u8(a->out, (uint8_t)digits[(uint8_t)*text & 0xf]);
	}
}

static int
answer_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The name that HEX spells; "" for one that cannot be known. */
static void
answer_name(const char *hex, char *out)
{
	size_t n = strlen(hex), k = 0;

	*out = '\0';
	if (n % 2 || n / 2 >= ANSWER_NAME_MAX)
		return;
	for (size_t i = 0; i < n; i += 2) {
		int high = answer_digit(hex[i]), low = answer_digit(hex[i + 1]);

		if (high < 0 || low < 0)
			return;
		out[k++] = (char)(high << 4 | low);
	}
	out[k] = '\0';
}

static void
answer_cap(struct answer *a, const char *name)
{
	const char *term = a->s->config.term;
	struct answer_cap cap = { NULL, NULL };

	if (!strcmp(name, "TN") || !strcmp(name, "name")) {
		cap.name = name[0] == 'T' ? "TN" : "name";
		cap.value = term ? term : "xterm-256color";
	}
	for (size_t i = 0; i < ARRAY_LEN(answer_caps); i++)
		if (strcmp(answer_caps[i].name, name) == 0)
			cap = answer_caps[i];
	if (!cap.name) {
		emit_put(a->out, "\033P0+r\033\\");
		return;
	}
	emit_put(a->out, "\033P1+r");
	answer_hex(a, cap.name);
	if (cap.value) {
		buf_put_u8(a->out, '=');
		answer_hex(a, cap.value);
	}
	emit_put(a->out, "\033\\");
}

static void
answer_xtgettcap(struct answer *a)
{
	char *p = a->data;

	for (unsigned n = 0; p && n < ANSWER_CAPS_MAX; n++) {
		char name[ANSWER_NAME_MAX];

		answer_name(answer_field(&p), name);
		answer_cap(a, name);
	}
}

void
answer_dcs(struct answer *a)
{
	if (a->final == 'q' && a->inter == '$')
		answer_decrqss(a);
	else if (a->final == 'q' && a->inter == '+')
		answer_xtgettcap(a);
	else if (a->final == 'Q' && a->inter == '+')
		emit_put(a->out, "\033P0+R\033\\");
}
