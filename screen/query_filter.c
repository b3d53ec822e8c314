/*
 * The query filter; see query_filter.h. Every sequence is held
 * until it is whole, judged by query_match(), then given out or dropped. What
 * is not a sequence passes at once. C0 controls inside a dropped sequence are
 * given out, for terminals execute them, except ENQ, which is a query itself.
 */
#include "screen/query_filter.h"

#include <string.h>

#include "screen/query_match.h"

#define QUERY_ENQ 0x05
#define QUERY_CAN 0x18
#define QUERY_SUB 0x1a
#define QUERY_ESC 0x1b

enum query_mode {
	QUERY_HOLD,
	QUERY_PASS,  /* a string too long to be held, known to be no query */
	QUERY_GUARD, /* passes too, but a `?` would make it one */
	QUERY_DROP, /* too long, known to be one; only its introducer is held */
};

void
query_filter_init(struct query_filter *f)
{
	f->n_held = f->n_late = 0;
	f->on_query = NULL;
	f->scan = (struct vt_scan){ 0 };
	f->shown = (struct vt_scan){ 0 };
	f->mode = QUERY_HOLD;
	f->is_ending = 0;
}

static void
query_filter_hold(struct query_filter *f, uint8_t c)
{
	f->held[f->n_held++] = c;
}

static void
query_filter_forget(struct query_filter *f)
{
	f->n_held = f->n_late = 0;
}

/* Takes the last byte held back. True if it was given out already. */
static bool
query_filter_unhold(struct query_filter *f)
{
	bool was_late = f->n_late == f->n_held;

	f->n_held--;
	f->n_late -= was_late;
	return was_late;
}

/* Gives out what of the held bytes is not yet. */
static uint8_t *
query_filter_flush(struct query_filter *f, uint8_t *out)
{
	size_t n = f->n_held - f->n_late;

	memcpy(out, f->held + f->n_late, n);
	query_filter_forget(f);
	return out + n;
}

/*
 * Something is left out at OUT. If the terminal is inside of a character, a
 * sequence or a string there, that ended it, and now CAN has to.
 */
static uint8_t *
query_filter_cancel(struct query_filter *f, uint8_t *out)
{
	vt_scan_run(&f->shown, f->fresh, (size_t)(out - f->fresh));
	f->fresh = out;
	if (!vt_scan_is_ground(&f->shown))
		*out++ = QUERY_CAN;
	return out;
}

/* Gives out the controls that a terminal executed inside what is held. */
static uint8_t *
query_filter_controls(
    const struct query_filter *f, bool is_string, uint8_t *out)
{
	for (size_t i = 1; i < f->n_held; i++) {
		if (f->held[i] < 0x20 && i >= f->n_late)
			*out++ = f->held[i];
		else if (f->held[i] < 0x20)
			continue;
		else if (is_string)
			break; /* the introducer; what follows is data */
	}
	return out;
}

/* The held sequence came to its end: out with it, or away. */
static uint8_t *
query_filter_judge(struct query_filter *f, bool is_string, uint8_t *out)
{
	if (f->mode == QUERY_HOLD && !query_match(f->held, f->n_held)) {
		out = query_filter_flush(f, out);
	} else if (f->mode == QUERY_HOLD) {
		out = query_filter_cancel(f, out);
		if (f->on_query)
			f->on_query(f->arg, f->held, f->n_held, out);
		out = query_filter_controls(f, is_string, out);
	}
	query_filter_forget(f);
	f->mode = QUERY_HOLD;
	return out;
}

/* The held sequence was cut off by another one. */
static uint8_t *
query_filter_abort(struct query_filter *f, uint8_t *out)
{
	if (f->mode == QUERY_HOLD)
		out = query_filter_flush(f, out);
	query_filter_forget(f);
	f->mode = QUERY_HOLD;
	return out;
}

/* Forgets what is held but for the introducer of the state S. */
static void
query_filter_drop(struct query_filter *f, const struct vt_scan *s)
{
	static const char second[] = {
		[VT_SCAN_ESC_INT] = ' ',
		[VT_SCAN_CSI] = '[',
		[VT_SCAN_OSC] = ']',
		[VT_SCAN_STR] = 'P',
	};

	f->mode = QUERY_DROP;
	query_filter_forget(f);
	query_filter_hold(f, QUERY_ESC);
	if (second[s->state])
		query_filter_hold(f, (uint8_t)second[s->state]);
}

/* Held is full, S is the state behind it. */
static uint8_t *
query_filter_overflow(struct query_filter *f, const struct vt_scan *s,
    bool is_string, uint8_t *out)
{
	switch (query_match_start(f->held, f->n_held)) {
	case QUERY_ALWAYS:
		out = query_filter_cancel(f, out);
		out = query_filter_controls(f, is_string, out);
		query_filter_drop(f, s);
		return out;
	case QUERY_IF_ASKED:
		f->mode = QUERY_GUARD;
		break;
	case QUERY_NEVER:
		f->mode = QUERY_PASS;
		break;
	}
	return query_filter_flush(f, out);
}

/* C inside of a string that passes unheld. */
static uint8_t *
query_filter_pass(struct query_filter *f, uint8_t c, uint8_t *out)
{
	if (c == QUERY_ESC) {
		f->mode = QUERY_HOLD;
		query_filter_hold(f, c);
	} else if (f->mode == QUERY_GUARD && c == '?') {
		*out++ = QUERY_CAN;
		query_filter_drop(f, &f->scan);
	} else {
		*out++ = c;
		if (vt_scan_is_ground(&f->scan))
			f->mode = QUERY_HOLD;
	}
	return out;
}

/* C with nothing held. */
static uint8_t *
query_filter_ground(struct query_filter *f, uint8_t c, uint8_t *out)
{
	bool may_be_c1 = f->scan.need && f->scan.is_c2;

	if (f->scan.state != VT_SCAN_GROUND || may_be_c1)
		query_filter_hold(f, c);
	else if (c == QUERY_ENQ)
		out = query_filter_cancel(f, out);
	else
		*out++ = c;
	return out;
}

/* Appends C to the sequence that BEFORE is inside of, and ends it if so. */
static uint8_t *
query_filter_inside(struct query_filter *f, const struct vt_scan *before,
    bool is_string, uint8_t c, uint8_t *out)
{
	bool is_over = vt_scan_is_ground(&f->scan);

	if (is_over && (c == QUERY_CAN || c == QUERY_SUB)) {
		out = query_filter_judge(f, is_string, out);
		*out++ = c;
		return out;
	}
	if (c == QUERY_ENQ && !is_string) {
		if (!before->need)
			return out;
		c = 0; /* it cut a character: something has to */
	}
	if (f->n_held == QUERY_HELD_MAX) {
		out = query_filter_overflow(f, before, is_string, out);
		if (f->mode != QUERY_DROP)
			return query_filter_pass(f, c, out);
	}
	if (f->mode == QUERY_HOLD) {
		query_filter_hold(f, c);
	} else if (is_string && c == QUERY_ESC) {
		query_filter_hold(f, c);
	} else if (!is_string && c < 0x20) {
		*out++ = c;
	}
	if (is_over)
		return query_filter_judge(f, is_string, out);
	f->is_ending = is_string && c == QUERY_ESC;
	return out;
}

/* True if C, behind BEFORE, ends what is held and begins something else. */
static bool
query_filter_is_cut(const struct vt_scan *before, uint8_t c)
{
	if (before->state == VT_SCAN_GROUND) /* half a C1 is held */
		return c < 0x80 || c > 0xbf;
	if (vt_scan_is_string(before))
		return false;
	return c == QUERY_ESC || (c >= 0x80 && before->state != VT_SCAN_CSI);
}

/* True if C makes a C1 control of the 0xc2 that a CSI ends in. */
static bool
query_filter_is_restart(const struct vt_scan *before, uint8_t c)
{
	return before->state == VT_SCAN_CSI && before->need && before->is_c2 &&
	       c >= 0x80 && c < 0xa0;
}

static uint8_t *
query_filter_byte(struct query_filter *f, uint8_t c, uint8_t *out)
{
	struct vt_scan before = f->scan;
	bool is_string = vt_scan_is_string(&before);

	vt_scan_byte(&f->scan, c);
	if (f->is_ending) {
		f->is_ending = 0;
		is_string = c == '\\';
		if (!is_string) {
			bool was_late = query_filter_unhold(f);

			out = query_filter_judge(f, true, out);
			query_filter_hold(f, QUERY_ESC);
			f->n_late = was_late;
		}
	}
	if (f->mode == QUERY_PASS || f->mode == QUERY_GUARD)
		return query_filter_pass(f, c, out);
	if (f->n_held && query_filter_is_cut(&before, c))
		out = query_filter_abort(f, out);
	if (!f->n_held)
		return query_filter_ground(f, c, out);
	if (query_filter_is_restart(&before, c)) {
		bool was_late = f->mode == QUERY_HOLD && query_filter_unhold(f);

		out = query_filter_abort(f, out);
		query_filter_hold(f, 0xc2);
		f->n_late = was_late;
	}
	return query_filter_inside(f, &before, is_string, c, out);
}

/* Plain text without the ENQ in it. */
static uint8_t *
query_filter_copy(const uint8_t *in, size_t n, uint8_t *out)
{
	const uint8_t *end = in + n, *enq;

	while ((enq = memchr(in, QUERY_ENQ, (size_t)(end - in)))) {
		memcpy(out, in, (size_t)(enq - in));
		out += enq - in;
		in = enq + 1;
	}
	memcpy(out, in, (size_t)(end - in));
	return out + (end - in);
}

size_t
query_filter_run(
    struct query_filter *f, const uint8_t *in, size_t n, uint8_t *out)
{
	const uint8_t *end = in + n;
	uint8_t *o = out;

	f->fresh = out;
	while (in < end) {
		if (f->mode == QUERY_HOLD && vt_scan_is_ground(&f->scan)) {
			size_t run = vt_scan_plain(in, (size_t)(end - in));

			o = query_filter_copy(in, run, o);
			in += run;
			if (in == end)
				break;
		}
		o = query_filter_byte(f, *in++, o);
	}
	vt_scan_run(&f->shown, f->fresh, (size_t)(o - f->fresh));
	return (size_t)(o - out);
}

size_t
query_filter_finish(struct query_filter *f, uint8_t *out)
{
	return (size_t)(query_filter_flush(f, out) - out);
}

size_t
query_filter_release(struct query_filter *f, uint8_t *out)
{
	size_t n = f->n_held - f->n_late;

	if (f->mode != QUERY_HOLD)
		return 0;
	memcpy(out, f->held + f->n_late, n);
	vt_scan_run(&f->shown, out, n);
	f->n_late = f->n_held;
	return n;
}

bool
query_filter_is_holding(const struct query_filter *f)
{
	return f->mode == QUERY_HOLD && f->n_held > f->n_late;
}

/* The final bytes of CSI that never ask, without a prefix. */
static const bool query_filter_calm[128] = {
	['@'] = true,
	['A' ... 'M'] = true,
	['P'] = true,
	['S'] = true,
	['T'] = true,
	['X'] = true,
	['Z'] = true,
	['d'] = true,
	['f'] = true,
	['h'] = true,
	['l'] = true,
	['m'] = true,
	['r'] = true,
};

/* Bytes of the whole and plain CSI at P that asks nothing, else 0. */
static size_t
query_filter_calm_csi(const uint8_t *p, size_t n)
{
	size_t i = 2;
	bool is_private = n > 2 && p[2] == '?';

	if (n < 3 || p[0] != QUERY_ESC || p[1] != '[')
		return 0;
	i += is_private;
	while (i < n && p[i] >= '0' && p[i] <= ';')
		i++;
	if (i == n || i >= QUERY_HELD_MAX || p[i] >= 0x80)
		return 0;
	if (is_private ? p[i] != 'h' && p[i] != 'l' : !query_filter_calm[p[i]])
		return 0;
	return i + 1;
}

/* Bytes of the whole UTF-8 character at P that is no C1 control, else 0. */
static size_t
query_filter_character(const uint8_t *p, size_t n)
{
	struct vt_scan s = { 0 };
	size_t i = 0;

	if (p[0] < 0xc2)
		return 0;
	do {
		uint8_t need = s.need;

		vt_scan_byte(&s, p[i++]);
		if (need && s.need >= need)
			return 0; /* cut */
	} while (s.need && i < n);
	return vt_scan_is_ground(&s) ? i : 0;
}

bool
query_filter_is_clean(const struct query_filter *f, const uint8_t *p, size_t n)
{
	const uint8_t *end = p + n;

	if (f->mode != QUERY_HOLD || !vt_scan_is_ground(&f->scan) ||
	    f->n_held || memchr(p, QUERY_ENQ, n))
		return false;
	for (p += vt_scan_plain(p, n); p < end;
	     p += vt_scan_plain(p, (size_t)(end - p))) {
		size_t left = (size_t)(end - p);
		size_t run = *p == QUERY_ESC ? query_filter_calm_csi(p, left)
					     : query_filter_character(p, left);

		if (!run)
			return false;
		p += run;
	}
	return true;
}
