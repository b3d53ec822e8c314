/*
 * The state machine; see parser.h. vt_scan decides where a byte leads, this
 * file does what happens on the way. Common sequences are taken whole, past the
 * machine. Pure.
 */
#include "screen/parser.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "screen/csi.h"
#include "screen/esc.h"
#include "screen/osc.h"
#include "screen/print.h"
#include "screen/state.h"

#define PARSER_REPLACEMENT 0xfffd

struct parser *
parser_new(void)
{
	return xcalloc(1, sizeof(struct parser));
}

void
parser_free(struct parser *p)
{
	if (!p)
		return;
	free(p->string);
	free(p);
}

/* ---- sequences ---- */

static void
parser_begin(struct parser *p)
{
	p->prefix = 0;
	p->inter = 0;
	p->is_bad = false;
	p->is_full = false;
	p->n_params = 0;
	p->given = 0;
	p->subs = 0;
	p->is_osc = false;
	p->is_closing = false;
	p->n_string = 0;
}

static void
parser_begin_osc(struct parser *p)
{
	parser_begin(p);
	p->is_osc = true;
}

static void
parser_string_byte(struct parser *p, uint8_t c)
{
	if (p->n_string == p->cap_string) {
		if (p->cap_string >= PARSER_STRING_MAX) {
			p->is_bad = true;
			return;
		}
		p->cap_string = p->cap_string ? p->cap_string * 2 : 256;
		p->string = xrealloc(p->string, p->cap_string + 1);
	}
	p->string[p->n_string++] = (char)c;
}

/* The OSC string came to its end. */
static void
parser_end_osc(struct screen *s, struct parser *p)
{
	if (p->is_osc && !p->is_bad && p->n_string) {
		p->string[p->n_string] = '\0';
		osc_dispatch(s, p->string, p->n_string);
	}
	p->is_osc = false;
	p->is_closing = false;
	p->n_string = 0;
	if (p->cap_string > 1024) {
		free(p->string);
		p->string = NULL;
		p->cap_string = 0;
	}
}

static inline void
parser_digit(struct parser *p, uint8_t c)
{
	unsigned i;

	if (p->is_full)
		return;
	if (!p->n_params) {
		p->n_params = 1;
		p->params[0] = 0;
	}
	i = p->n_params - 1u;
	p->given |= 1U << i;
	p->params[i] = p->params[i] * 10 + (c - '0');
	if (p->params[i] > PARSER_PARAM_MAX)
		p->params[i] = PARSER_PARAM_MAX;
}

/* C is `;` or `:`. Parameters beyond the last one are left out. */
static inline void
parser_next_param(struct parser *p, uint8_t c)
{
	if (!p->n_params) {
		p->n_params = 1;
		p->params[0] = 0;
	}
	if (p->n_params == PARSER_PARAMS) {
		p->is_full = true;
		return;
	}
	if (c == ':')
		p->subs |= 1U << p->n_params;
	p->params[p->n_params++] = 0;
}

/* A byte of a CSI sequence that is no control. */
static void
parser_csi_byte(struct screen *s, struct parser *p, uint8_t c)
{
	if (c >= 0x40) {
		if (!p->is_bad)
			csi_dispatch(s, p, c);
	} else if (c < 0x30) {
		p->is_bad |= p->inter != 0;
		p->inter = c;
	} else if (p->inter) {
		p->is_bad = true;
	} else if (c >= 0x3c) {
		p->is_bad |= p->n_params || p->prefix;
		p->prefix = c;
	} else if (c <= '9') {
		parser_digit(p, c);
	} else {
		parser_next_param(p, c);
	}
}

/* A byte behind ESC that is no control. */
static void
parser_esc_byte(struct screen *s, struct parser *p, uint8_t c, uint8_t next)
{
	if (c < 0x30) {
		p->is_bad |= p->inter != 0;
		p->inter = c;
	} else if (next == VT_SCAN_OSC) {
		parser_begin_osc(p);
	} else if (next == VT_SCAN_GROUND) {
		if (c == '\\' && p->is_closing && !p->inter)
			parser_end_osc(s, p);
		else if (!p->is_bad)
			esc_dispatch(s, p->inter, c);
	} else {
		parser_begin(p); /* a CSI, or a string that says nothing */
	}
}

/* ASCII in the state FROM that leads to NEXT. */
static void
parser_ascii(
    struct screen *s, struct parser *p, uint8_t c, uint8_t from, uint8_t next)
{
	if (c == 0x1b) {
		if (from != VT_SCAN_OSC) {
			parser_begin(p);
			return;
		}
		p->is_closing = !p->is_bad;
		p->is_bad = false;
		return;
	}
	if (from >= VT_SCAN_OSC) {
		if (from == VT_SCAN_OSC && c == 0x07)
			parser_end_osc(s, p);
		else if (from == VT_SCAN_OSC && c >= 0x20 && c != 0x7f)
			parser_string_byte(p, c);
		else if (next == VT_SCAN_GROUND)
			parser_begin(p); /* CAN or SUB */
		return;
	}
	if (c < 0x20) {
		esc_control(s, c);
		return;
	}
	if (c == 0x7f)
		return;
	if (from == VT_SCAN_GROUND)
		print_char(s, c);
	else if (from == VT_SCAN_CSI)
		parser_csi_byte(s, p, c);
	else
		parser_esc_byte(s, p, c, next);
}

/* ---- characters ---- */

/* The character P->CH is whole, in the state FROM; a C1 control led to NEXT. */
static void
parser_whole(struct screen *s, struct parser *p, uint8_t from, uint8_t next)
{
	uint32_t c = p->ch;

	if (c >= 0x80 && c < 0xa0) {
		if (from >= VT_SCAN_OSC) {
			if (c == 0x9c && from == VT_SCAN_OSC)
				parser_end_osc(s, p);
			return;
		}
		if (next == VT_SCAN_OSC)
			parser_begin_osc(p);
		else if (next != VT_SCAN_GROUND)
			parser_begin(p);
		else
			esc_dispatch(s, 0, (uint8_t)(c - 0x40));
	} else if (from == VT_SCAN_GROUND) {
		print_char(s, c);
	} else if (from == VT_SCAN_OSC) {
		uint8_t utf8[4];
		unsigned n = print_encode(c, utf8);

		for (unsigned i = 0; i < n; i++)
			parser_string_byte(p, utf8[i]);
	}
}

/* A byte or the begun character is invalid in the state FROM. */
static void
parser_invalid(struct screen *s, struct parser *p, uint8_t from)
{
	if (from == VT_SCAN_GROUND) {
		print_char(s, PARSER_REPLACEMENT);
	} else if (from == VT_SCAN_OSC) {
		parser_string_byte(p, 0xef);
		parser_string_byte(p, 0xbf);
		parser_string_byte(p, 0xbd);
	}
}

static void
parser_high(
    struct screen *s, struct parser *p, uint8_t c, const struct vt_scan *before)
{
	if (before->need && c >= before->lo && c <= before->hi) {
		p->ch = p->ch << 6 | (c & 0x3f);
		if (!p->scan.need)
			parser_whole(s, p, before->state, p->scan.state);
		return;
	}
	if (before->need)
		parser_invalid(s, p, before->state);
	if (!p->scan.need)
		parser_invalid(s, p, p->scan.state);
	else
		p->ch = c & (0x7fU >> (p->scan.need + 1));
}

/*
 * True when C cuts off a sequence, or a character on the ground, and so begins
 * what is present now.
 */
static bool
parser_is_begun(const struct vt_scan *before, uint8_t c)
{
	if (before->state >= VT_SCAN_OSC)
		return false;
	if (c == 0x1b)
		return true;
	return before->state == VT_SCAN_GROUND && before->need &&
	       (c < before->lo || c > before->hi);
}

static void
parser_byte(struct screen *s, struct parser *p, uint8_t c)
{
	struct vt_scan before = p->scan;

	vt_scan_byte(&p->scan, c);
	if (c >= 0x80) {
		parser_high(s, p, c, &before);
	} else {
		if (before.need)
			parser_invalid(s, p, before.state);
		parser_ascii(s, p, c, before.state, p->scan.state);
	}
	if (vt_scan_is_ground(&p->scan))
		p->pending = 0;
	else if (parser_is_begun(&before, c))
		p->pending = 1;
	else
		p->pending++;
}

/* ---- the fast way ---- */

/*
 * A whole CSI sequence of parameters only, from its ESC on; its length, or 0 if
 * it is cut or unusual.
 */
static size_t
parser_csi(struct screen *s, struct parser *p, const uint8_t *at, size_t n)
{
	size_t i = 2;

	if (n < 3 || at[1] != '[')
		return 0;
	parser_begin(p);
	if (at[2] >= 0x3c && at[2] <= 0x3f)
		p->prefix = at[i++];
	for (; i < n; i++) {
		uint8_t c = at[i];

		if (c >= 0x40 && c <= 0x7e) {
			csi_dispatch(s, p, c);
			return i + 1;
		}
		if (c >= '0' && c <= '9')
			parser_digit(p, c);
		else if (c == ';' || c == ':')
			parser_next_param(p, c);
		else
			return 0;
	}
	return 0;
}

void
parser_write(struct screen *s, const uint8_t *p, size_t n)
{
	struct parser *parser = s->parser;
	const uint8_t *end = p + n;

	while (p < end) {
		size_t left = (size_t)(end - p), taken = 0;

		if (vt_scan_is_ground(&parser->scan)) {
			taken = print_text(s, p, left);
			p += taken;
			left -= taken;
			if (!left)
				break;
			taken = 0;
			if (*p == 0x1b) {
				taken = parser_csi(s, parser, p, left);
			} else if (*p < 0x20) {
				esc_control(s, *p);
				taken = 1;
			}
		}
		if (taken)
			p += taken;
		else
			parser_byte(s, parser, *p++);
	}
}
