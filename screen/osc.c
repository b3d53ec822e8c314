/*
 * Operating system commands; see osc.h. Strings are cut at their caps at the
 * boundary of a character, or refused where half of one is of no use. Pure.
 */
#include "screen/osc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "screen/intern.h"
#include "screen/sgr.h"
#include "screen/state.h"

/* ---- titles ---- */

/* Cuts P, valid UTF-8, to at most MAX bytes. */
static void
osc_cut(char *p, size_t max)
{
	size_t n = strlen(p);

	if (n <= max)
		return;
	for (n = max; n && ((uint8_t)p[n] & 0xc0) == 0x80;)
		n--;
	p[n] = '\0';
}

static void
osc_replace(char **at, const char *value)
{
	free(*at);
	*at = value && *value ? xstrdup(value) : NULL;
}

static void
osc_title(struct screen *s, unsigned number, char *p)
{
	osc_cut(p, TITLE_MAX);
	if (number != 1)
		osc_replace(&s->titles.title, p);
	if (number != 2)
		osc_replace(&s->titles.icon, p);
}

void
osc_push_title(struct screen *s, unsigned what)
{
	struct titles *t = &s->titles;

	if (what > 2)
		return;
	if (t->depth == TITLE_DEPTH) {
		free(t->stack[0].title);
		free(t->stack[0].icon);
		memmove(&t->stack[0], &t->stack[1],
		    (TITLE_DEPTH - 1) * sizeof(t->stack[0]));
		t->depth--;
	}
	t->stack[t->depth].title = t->title ? xstrdup(t->title) : NULL;
	t->stack[t->depth].icon = t->icon ? xstrdup(t->icon) : NULL;
	t->depth++;
}

void
osc_pop_title(struct screen *s, unsigned what)
{
	struct titles *t = &s->titles;

	if (what > 2 || !t->depth)
		return;
	t->depth--;
	if (what != 1)
		osc_replace(&t->title, t->stack[t->depth].title);
	if (what != 2)
		osc_replace(&t->icon, t->stack[t->depth].icon);
	free(t->stack[t->depth].title);
	free(t->stack[t->depth].icon);
}

/* ---- colours ---- */

static const struct osc_name {
	const char *name;
	uint32_t colour;
} osc_names[] = {
	{ "black", 0x000000 },
	{ "blue", 0x0000ff },
	{ "brown", 0xa52a2a },
	{ "cyan", 0x00ffff },
	{ "gray", 0xbebebe },
	{ "green", 0x00ff00 },
	{ "grey", 0xbebebe },
	{ "magenta", 0xff00ff },
	{ "orange", 0xffa500 },
	{ "pink", 0xffc0cb },
	{ "purple", 0xa020f0 },
	{ "red", 0xff0000 },
	{ "white", 0xffffff },
	{ "yellow", 0xffff00 },
};

static int
osc_hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A number of N hexadecimal digits, scaled to 8 bits; -1 if it is none. */
static int
osc_component(const char *p, size_t n)
{
	unsigned v = 0, max = (1U << (4 * n)) - 1;

	for (size_t i = 0; i < n; i++) {
		int digit = osc_hex(p[i]);

		if (digit < 0)
			return -1;
		v = v * 16 + (unsigned)digit;
	}
	return (int)((v * 255 + max / 2) / max);
}

/* rgb:R/G/B with 1 to 4 digits each. */
static uint32_t
osc_rgb(const char *p)
{
	uint32_t colour = 0;

	for (unsigned i = 0; i < 3; i++) {
		size_t n = strcspn(p, "/");
		int v = n >= 1 && n <= 4 ? osc_component(p, n) : -1;

		if (v < 0 || (p[n] == '/') != (i < 2))
			return SCREEN_NO_COLOUR;
		colour = colour << 8 | (unsigned)v;
		p += n + (i < 2);
	}
	return colour;
}

/* #RGB, #RRGGBB and longer: the first digits of each count, as in X11. */
static uint32_t
osc_sharp(const char *p)
{
	size_t n = strlen(p);
	uint32_t colour = 0;

	if (n % 3 || n < 3 || n > 12 || strspn(p, "0123456789abcdefABCDEF") < n)
		return SCREEN_NO_COLOUR;
	n /= 3;
	for (unsigned i = 0; i < 3; i++, p += n) {
		int v = n == 1 ? osc_hex(p[0]) * 16 : osc_component(p, 2);

		colour = colour << 8 | (unsigned)v;
	}
	return colour;
}

static uint32_t
osc_colour(const char *p)
{
	if (strncmp(p, "rgb:", 4) == 0)
		return osc_rgb(p + 4);
	if (p[0] == '#')
		return osc_sharp(p + 1);
	for (size_t i = 0; i < ARRAY_LEN(osc_names); i++)
		if (strcasecmp(p, osc_names[i].name) == 0)
			return osc_names[i].colour;
	return SCREEN_NO_COLOUR;
}

/* A number at *P up to `;` or the end, behind which *P moves; -1: none. */
static int
osc_number(char **p)
{
	int v = 0;
	char *at = *p;

	while (*at >= '0' && *at <= '9' && v < 100000)
		v = v * 10 + (*at++ - '0');
	if (at == *p || (*at && *at != ';'))
		return -1;
	*p = *at ? at + 1 : at;
	return v;
}

/* The field at *P as a string of its own; *P moves behind it. */
static char *
osc_field(char **p)
{
	char *field = *p;
	size_t n = strcspn(field, ";");

	*p = field[n] ? field + n + 1 : field + n;
	field[n] = '\0';
	return field;
}

/* OSC 4: pairs of a number and a colour. */
static void
osc_palette(struct screen *s, char *p)
{
	while (*p) {
		int i = osc_number(&p);
		uint32_t colour = osc_colour(osc_field(&p));

		if (i < 0 || i >= PALETTE_COLOURS || colour == SCREEN_NO_COLOUR)
			continue;
		if (!s->palette) {
			size_t size = PALETTE_COLOURS * sizeof(*s->palette);

			s->palette = xmalloc(size);
			memset(s->palette, 0xff, size);
		}
		s->palette[i] = colour;
	}
}

/* OSC 104: the colours named, or all. */
static void
osc_palette_reset(struct screen *s, char *p)
{
	if (!*p) {
		free(s->palette);
		s->palette = NULL;
	}
	while (*p) {
		char *field = osc_field(&p);
		int i = osc_number(&field);

		if (s->palette && i >= 0 && i < PALETTE_COLOURS)
			s->palette[i] = SCREEN_NO_COLOUR;
	}
}

/* OSC 10 to 19: each further field is for the next of them. */
static void
osc_dynamic(struct screen *s, unsigned number, char *p)
{
	unsigned i = number - 10;

	for (; *p && i < DYNAMIC_COLOURS; i++) {
		uint32_t colour = osc_colour(osc_field(&p));

		if (colour != SCREEN_NO_COLOUR)
			s->dynamic[i] = colour;
	}
}

/* ---- the rest ---- */

static void
osc_cwd(struct screen *s, char *p)
{
	if (strlen(p) <= CWD_MAX)
		osc_replace(&s->cwd, p);
}

/* The value of id among the colon-separated parameters, or "". */
static const char *
osc_link_id(char *params)
{
	while (*params) {
		char *param = params;
		size_t n = strcspn(param, ":");

		params += n + (param[n] != '\0');
		param[n] = '\0';
		if (strncmp(param, "id=", 3) == 0)
			return strlen(param + 3) <= LINK_ID_MAX ? param + 3
								: "";
	}
	return "";
}

/* OSC 8: parameters; URI. */
static void
osc_link(struct screen *s, char *p)
{
	const struct cell *pen = &s->cursor.pen;
	uint32_t underline = pen->ext ? s->exts[pen->ext].underline : 0;
	char *uri = strchr(p, ';');
	unsigned link = 0;

	if (!uri)
		return;
	*uri++ = '\0';
	if (*uri && strlen(uri) <= LINK_MAX)
		link = intern_link(s, osc_link_id(p), uri);
	sgr_set_ext(s, underline, link);
}

void
osc_dispatch(struct screen *s, char *p, size_t n)
{
	int number;

	/* a C1 control within is none, and no part of a title either */
	(void)n;
	number = osc_number(&p);
	if (number >= 0 && number <= 2)
		osc_title(s, (unsigned)number, p);
	else if (number == 4)
		osc_palette(s, p);
	else if (number == 7)
		osc_cwd(s, p);
	else if (number == 8)
		osc_link(s, p);
	else if (number >= 10 && number <= 19)
		osc_dynamic(s, (unsigned)number, p);
	else if (number == 104)
		osc_palette_reset(s, p);
	else if (number >= 110 && number <= 119)
		s->dynamic[number - 110] = SCREEN_NO_COLOUR;
}

void
osc_reset(struct screen *s)
{
	osc_replace(&s->titles.title, NULL);
	osc_replace(&s->titles.icon, NULL);
	while (s->titles.depth) {
		s->titles.depth--;
		free(s->titles.stack[s->titles.depth].title);
		free(s->titles.stack[s->titles.depth].icon);
	}
	osc_replace(&s->cwd, NULL);
	free(s->palette);
	s->palette = NULL;
	for (unsigned i = 0; i < DYNAMIC_COLOURS; i++)
		s->dynamic[i] = SCREEN_NO_COLOUR;
}
