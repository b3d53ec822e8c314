/*
 * Explicit resets; see reset.h. A sequence has at most a dozen parameters: some
 * terminals have room for 16. Pure.
 */
#include "screen/reset.h"

#include <stdint.h>

#include "base/buf.h"
#include "base/mem.h"
#include "screen/emit.h"

#define RESET_LIST_MAX 12

static const uint16_t reset_mice[] = { 9, 1000, 1001, 1002, 1003, 1005, 1006,
	1015, 1016 };

void
reset_list_add(struct reset_list *l, unsigned number)
{
	emit_put(l->out, l->n ? ";%u" : "\033[?%u", number);
	if (++l->n == RESET_LIST_MAX)
		reset_list_end(l);
}

void
reset_list_end(struct reset_list *l)
{
	if (l->n)
		buf_put_u8(l->out, (uint8_t)l->final);
	l->n = 0;
}

bool
reset_is_preference(enum mode m)
{
	switch (m) {
	case MODE_BACKARROW:
	case MODE_ALT_SCROLL:
	case MODE_META_8BIT:
	case MODE_NUMLOCK:
	case MODE_META_ESC:
	case MODE_ALT_ESC:
		return true;
	default:
		return false;
	}
}

void
reset_mode(struct buf *out, enum mode m, bool is_on)
{
	const struct mode_info *info = mode_info(m);

	if (m == MODE_KEYPAD) {
		/* ?66 is known to fewer terminals than DECKPAM */
		emit_put(out, is_on ? "\033=" : "\033>");
		return;
	}
	emit_put(out, "\033[%s%u%s", info->is_private ? "?" : "", info->number,
	    is_on ? "h" : "l");
}

void
reset_mouse(struct buf *out)
{
	struct reset_list l = { .out = out, .final = 'l' };

	for (size_t i = 0; i < ARRAY_LEN(reset_mice); i++)
		reset_list_add(&l, reset_mice[i]);
	reset_list_end(&l);
}

static void
reset_modes(struct buf *out, bool is_on)
{
	struct reset_list l = { .out = out, .final = is_on ? 'h' : 'l' };

	for (unsigned m = 0; m < MODE_COUNT; m++) {
		const struct mode_info *info = mode_info(m);

		if (info->is_private && info->is_shown &&
		    info->is_on == is_on && !reset_is_preference(m))
			reset_list_add(&l, info->number);
	}
	if (!is_on)
		reset_list_add(&l, 6);
	reset_list_end(&l);
}

void
reset_kitty(struct buf *out)
{
	/* more than there can be: that clears the flags below the stack too */
	emit_put(out, "\033[<99u\033[=0;1u");
}

void
reset_charsets(struct buf *out)
{
	emit_put(out, "\033(B\033)B\033*B\033+B\017");
}

void
reset_pen(struct emit *e)
{
	emit_put(e->out, "\033[?6l");
	reset_charsets(e->out);
	emit_neutral(e);
}

void
reset_terminal(struct emit *e)
{
	struct buf *out = e->out;

	/* DECSTR first: it turns things on that are turned off below */
	emit_put(out, "\033[!p\033[4;20l");
	reset_modes(out, false);
	reset_modes(out, true);
	reset_mouse(out);
	emit_put(out, "\033>\033[>m\033[>4m\033[0 q");
	reset_kitty(out);
	reset_charsets(out);
	emit_neutral(e);
	emit_put(out, "\033[r\033[H");
}

void
reset_colours(struct buf *out)
{
	emit_put(out, "\033]104\033\\");
	for (unsigned i = 0; i < DYNAMIC_COLOURS; i++)
		emit_put(out, "\033]%u\033\\", 110 + i);
}
