/*
 * The table of terminal queries; see query_match.h. Sources: xterm's ctlseqs,
 * the kitty and iTerm2 protocol pages. A list that mixes settings and questions
 * counts as a question as a whole.
 */
#include "screen/query_match.h"

#include <string.h>

#include "base/mem.h"

/* A sequence taken apart; the pointers borrow from it. */
struct query_parts {
	uint8_t kind;        /* the byte after ESC: '[', ']', 'P', ... */
	const uint8_t *body; /* behind the introducer */
	size_t n;
};

struct query_csi {
	char prefix; /* one of < = > ?, or 0 */
	char inter;  /* the intermediate byte, or 0 */
	char final;
	bool (*is_asked)(unsigned long first); /* NULL for any parameter */
};

static bool
query_match_is_dsr(unsigned long first)
{
	return first != 0 && first != 3; /* those two are answers */
}

static bool
query_match_is_window_report(unsigned long first)
{
	return first == 11 || (first >= 13 && first <= 16) ||
	       (first >= 18 && first <= 21);
}

static const struct query_csi query_csis[] = {
	{ 0, 0, 'c', NULL },               /* DA1 */
	{ '>', 0, 'c', NULL },             /* DA2 */
	{ '=', 0, 'c', NULL },             /* DA3 */
	{ 0, 0, 'n', query_match_is_dsr }, /* DSR, CPR */
	{ '?', 0, 'n', NULL },             /* DEC DSR, colour scheme */
	{ 0, '$', 'p', NULL },             /* DECRQM */
	{ '?', '$', 'p', NULL }, { '>', 0, 'q', NULL }, /* XTVERSION */
	{ '?', 0, 'u', NULL },                       /* kitty keyboard flags */
	{ 0, 0, 't', query_match_is_window_report }, /* XTWINOPS */
	{ 0, 0, 'x', NULL },                         /* DECREQTPARM */
	{ 0, '*', 'y', NULL },                       /* DECRQCRA */
	{ '?', 0, 'm', NULL },                       /* XTQMODKEYS */
	{ '?', 0, 'g', NULL },                       /* XTQFMTKEYS */
	{ '?', 0, 'S', NULL },  /* XTSMGRAPHICS answers whatever it does */
	{ 0, '#', '|', NULL },  /* XTREPORTSGR */
	{ 0, '#', 'R', NULL },  /* XTREPORTCOLORS */
	{ 0, '&', 'u', NULL },  /* DECRQUPSS */
	{ 0, '$', 'u', NULL },  /* DECRQTSR */
	{ 0, '$', 'w', NULL },  /* DECRQPSR */
	{ 0, '"', 'v', NULL },  /* DECRQDE */
	{ 0, '\'', '|', NULL }, /* DECRQLP */
};

/* OSC strings whose fields may ask. */
static const struct query_osc {
	unsigned long first, last;
} query_oscs[] = {
	{ 3, 5 },   /* X properties, colours, special colours */
	{ 10, 19 }, /* dynamic colours */
	{ 21, 22 }, /* kitty colours, pointer shapes */
	{ 50, 50 }, /* font */
	{ 52, 52 }, /* clipboard */
};

/* OSC strings that ask by their beginning. */
static const char *const query_osc_starts[] = {
	"60",
	"61",
	"1337;ReportCellSize",
	"1337;ReportVariable",
	"1337;Capabilities",
};

/* Not part of a sequence: C0 are executed by the way, the rest is ignored. */
static bool
query_match_is_skipped(uint8_t c)
{
	return c < 0x20 || c >= 0x7f;
}

static struct query_parts
query_match_parts(const uint8_t *p, size_t n)
{
	struct query_parts q = { .kind = 0, .body = p + n, .n = 0 };
	size_t i = 1;

	if (n >= 2 && p[0] == 0xc2) {
		q.kind = p[1] - 0x40; /* C1 in UTF-8 */
	} else if (n >= 2 && p[0] == 0x1b) {
		while (i < n && query_match_is_skipped(p[i]))
			i++;
		if (i < n)
			q.kind = p[i];
	}
	if (q.kind) {
		q.body = p + i + 1;
		q.n = n - i - 1;
	}
	return q;
}

/* Reads a number at *AT, which moves behind it; huge ones saturate. */
static unsigned long
query_match_number(const uint8_t *p, size_t n, size_t *at)
{
	unsigned long v = 0;

	for (; *at < n; ++*at) {
		uint8_t c = p[*at];

		if (c >= '0' && c <= '9')
			v = v > 99999 ? v : v * 10 + (c - '0');
		else if (!query_match_is_skipped(c))
			break;
	}
	return v;
}

/* Takes the frame of a CSI or DCS apart; the final byte is 0 when missing. */
static struct query_csi
query_match_frame(const uint8_t *p, size_t n, unsigned long *first_out)
{
	struct query_csi c = { 0 };
	size_t at = 0;
	bool is_first = true;

	*first_out = 0;
	for (size_t i = 0; i < n && !c.final; i++) {
		uint8_t b = p[i];

		if (query_match_is_skipped(b))
			continue;
		if (b < 0x30)
			c.inter = (char)b;
		else if (b >= 0x40)
			c.final = (char)b;
		else if (is_first && b >= 0x3c)
			c.prefix = (char)b;
		if (is_first && b >= 0x30)
			at = i + (b >= 0x3c);
		is_first = false;
	}
	*first_out = query_match_number(p, n, &at);
	return c;
}

static bool
query_match_csi(const uint8_t *p, size_t n)
{
	unsigned long first;
	struct query_csi c = query_match_frame(p, n, &first);

	for (size_t i = 0; i < ARRAY_LEN(query_csis); i++) {
		const struct query_csi *row = &query_csis[i];

		if (row->prefix == c.prefix && row->inter == c.inter &&
		    row->final == c.final)
			return !row->is_asked || row->is_asked(first);
	}
	return false;
}

static bool
query_match_is_asking_osc(const uint8_t *p, size_t n, size_t *at_out)
{
	unsigned long number;

	*at_out = 0;
	number = query_match_number(p, n, at_out);
	if (*at_out == 0 || *at_out == n || p[*at_out] != ';')
		return false;
	for (size_t i = 0; i < ARRAY_LEN(query_oscs); i++)
		if (number >= query_oscs[i].first &&
		    number <= query_oscs[i].last)
			return true;
	return false;
}

static bool
query_match_osc(const uint8_t *p, size_t n)
{
	size_t at;

	for (size_t i = 0; i < ARRAY_LEN(query_osc_starts); i++) {
		const char *start = query_osc_starts[i];
		size_t len = strlen(start);

		if (n < len || memcmp(p, start, len) != 0)
			continue;
		/* "60" is a number and "600" another one */
		if (len > 2 || n == len || p[len] < '0' || p[len] > '9')
			return true;
	}
	return query_match_is_asking_osc(p, n, &at) &&
	       memchr(p + at, '?', n - at) != NULL;
}

static bool
query_match_dcs(const uint8_t *p, size_t n)
{
	unsigned long first;
	struct query_csi c = query_match_frame(p, n, &first);

	/* DECRQSS, XTGETTCAP, XTGETXRES */
	return (c.final == 'q' && (c.inter == '$' || c.inter == '+')) ||
	       (c.final == 'Q' && c.inter == '+');
}

/* A kitty graphics command whose keys, before the first `;`, say a=q. */
static bool
query_match_apc(const uint8_t *p, size_t n)
{
	const uint8_t *end = memchr(p, ';', n);

	if (!n || p[0] != 'G')
		return false;
	if (end)
		n = (size_t)(end - p);
	for (size_t i = 1; i + 3 <= n; i++)
		if (memcmp(p + i, "a=q", 3) == 0 && (i == 1 || p[i - 1] == ','))
			return true;
	return false;
}

bool
query_match(const uint8_t *p, size_t n)
{
	struct query_parts q = query_match_parts(p, n);

	switch (q.kind) {
	case 'Z':
		return true; /* DECID */
	case '[':
		return query_match_csi(q.body, q.n);
	case ']':
		return query_match_osc(q.body, q.n);
	case 'P':
		return query_match_dcs(q.body, q.n);
	case '_':
		return query_match_apc(q.body, q.n);
	default:
		return false;
	}
}

static bool
query_match_is_digits(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] < '0' || p[i] > '9')
			return false;
	return true;
}

enum query_start
query_match_start(const uint8_t *p, size_t n)
{
	struct query_parts q = query_match_parts(p, n);
	unsigned long first;
	size_t at;

	if (q.kind != ']' && q.kind != 'P' && q.kind != '_')
		return q.kind == 'X' || q.kind == '^' ? QUERY_NEVER
						      : QUERY_ALWAYS;
	if (query_match(p, n))
		return QUERY_ALWAYS;
	if (q.kind == ']' && query_match_is_asking_osc(q.body, q.n, &at))
		return QUERY_IF_ASKED;
	if (q.kind == ']')
		return query_match_is_digits(q.body, q.n) ? QUERY_ALWAYS
							  : QUERY_NEVER;
	if (q.kind == 'P')
		return query_match_frame(q.body, q.n, &first).final
			   ? QUERY_NEVER
			   : QUERY_ALWAYS;
	return q.n && q.body[0] == 'G' && !memchr(q.body, ';', q.n)
		   ? QUERY_ALWAYS
		   : QUERY_NEVER;
}
