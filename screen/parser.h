/*
 * The DEC-ANSI state machine that takes output apart. Its grammar is that of
 * vt_scan: it stands on the ground exactly when vt_scan does. Parameters are
 * capped in number and size; a control string that is too long is dropped whole.
 */
#ifndef SCREEN_PARSER_H
#define SCREEN_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "screen/vt_scan.h"

struct screen;

#define PARSER_PARAMS     32
#define PARSER_PARAM_MAX  65535
#define PARSER_STRING_MAX 8192 /* bytes of an OSC string */

struct parser {
	struct vt_scan scan;
	uint32_t ch;      /* the bits of the present character so far */
	uint64_t pending; /* bytes since the last ground position */
	/* of the present sequence */
	uint8_t prefix; /* one of < = > ?, or 0 */
	uint8_t inter;  /* the intermediate byte, or 0 */
	bool is_bad;    /* means nothing: dropped at its end */
	bool is_full;   /* more parameters came than there is room for */
	uint8_t n_params;
	uint32_t given; /* bit I: parameter I is not empty */
	uint32_t subs;  /* bit I: parameter I follows a colon */
	uint32_t params[PARSER_PARAMS];
	/* of the present OSC string */
	bool is_osc;
	bool is_closing; /* behind the ESC that may begin its ST */
	char *string;
	size_t n_string, cap_string;
};

/* On the ground. Free with parser_free(). */
struct parser *parser_new(void);
void parser_free(struct parser *p);

/* Takes N bytes and does to S what they say. */
void parser_write(struct screen *s, const uint8_t *p, size_t n);

/* Parameter I, or FALLBACK when it is missing or 0. */
static inline unsigned
parser_param(const struct parser *p, unsigned i, unsigned fallback)
{
	return i < p->n_params && p->params[i] ? p->params[i] : fallback;
}

#endif
