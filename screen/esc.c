/*
 * C0 controls and escape sequences; see esc.h. Pure.
 */
#include "screen/esc.h"

#include <string.h>

#include "base/mem.h"
#include "screen/buffer.h"
#include "screen/csi_edit.h"
#include "screen/cursor.h"
#include "screen/history.h"
#include "screen/intern.h"
#include "screen/modes.h"
#include "screen/osc.h"

static void
esc_backspace(struct screen *s)
{
	struct cursor *c = &s->cursor;
	bool is_reverse =
	    mode_is_on(s, MODE_REVERSE_WRAP) && mode_is_on(s, MODE_AUTOWRAP);

	/* xterm: a pending wrap counts as a column in reverse wrap */
	if (is_reverse && c->is_wrap_pending) {
		c->is_wrap_pending = false;
		return;
	}
	if (is_reverse && c->col == s->left && c->row > s->top &&
	    buffer_at(s, c->row - 1u)->is_wrapped) {
		c->row--;
		c->col = s->right;
		return;
	}
	cursor_left(s, 1);
}

static void
esc_line_feed(struct screen *s)
{
	cursor_index(s, false);
	if (mode_is_on(s, MODE_NEWLINE))
		cursor_return(s);
}

void
esc_control(struct screen *s, uint8_t c)
{
	switch (c) {
	case 0x08:
		esc_backspace(s);
		break;
	case 0x09:
		cursor_tab(s, 1);
		break;
	case 0x0a:
	case 0x0b:
	case 0x0c:
		esc_line_feed(s);
		break;
	case 0x0d:
		cursor_return(s);
		break;
	case 0x0e:
		s->cursor.gl = 1;
		break;
	case 0x0f:
		s->cursor.gl = 0;
		break;
	default:
		break;
	}
}

/* ---- resets ---- */

void
esc_soft_reset(struct screen *s)
{
	static const enum mode off[] = { MODE_INSERT, MODE_CURSOR_KEYS,
		MODE_KEYPAD, MODE_REVERSE_WRAP, MODE_MARGINS };
	struct cursor c = cursor_initial();

	for (size_t i = 0; i < ARRAY_LEN(off); i++)
		modes_put(s, off[i], false);
	modes_put(s, MODE_CURSOR, true);
	modes_put(s, MODE_AUTOWRAP, true);
	cursor_reset_margins(s);
	s->now->saved = c;
	s->now->has_saved = false;
	c.col = s->cursor.col;
	c.row = s->cursor.row;
	s->cursor = c;
	s->single_shift = 0;
	memset(&s->now->kitty, 0, sizeof(s->now->kitty));
	memset(s->modify_keys, 0, sizeof(s->modify_keys));
	s->cursor_shape = 0;
}

void
esc_reset(struct screen *s)
{
	buffer_release(&s->alt);
	buffer_release(&s->main);
	s->main = (struct buffer){ 0 };
	s->alt = (struct buffer){ 0 };
	s->now = &s->main;
	buffer_use(s);
	s->cursor = cursor_initial();
	s->main_cursor = cursor_initial();
	s->is_alt_cursor_kept = false;
	cursor_reset_margins(s);
	s->modes = modes_initial();
	s->saved_modes = modes_initial();
	s->mouse = s->saved_mouse = 0;
	s->mouse_encoding = s->saved_encoding = 0;
	s->cursor_shape = 0;
	memset(s->modify_keys, 0, sizeof(s->modify_keys));
	cursor_default_tabs(s->tabs, 0, s->cols);
	s->last_ch = 0;
	s->single_shift = 0;
	osc_reset(s);
	intern_reset(s);
	history_clear(s->history);
}

/* ---- escape sequences ---- */

/* DECALN: the screen full of E, for adjusting a tube. */
static void
esc_align(struct screen *s)
{
	cursor_reset_margins(s);
	s->cursor.is_origin = false;
	cursor_to(s, 0, 0);
	for (unsigned i = 0; i < s->rows; i++) {
		struct row *r = buffer_at(s, i);

		row_fill(r, s->cols, 0, s->cols, (struct cell){ .ch = 'E' });
		r->is_wrapped = false;
	}
}

static void
esc_designate(struct screen *s, unsigned set, uint8_t c)
{
	if (c != CHARSET_LINES && c != CHARSET_UK)
		c = CHARSET_ASCII;
	s->cursor.g[set] = c;
}

static void
esc_plain(struct screen *s, uint8_t c)
{
	switch (c) {
	case '6':
		csi_back_index(s);
		break;
	case '7':
		cursor_save(s);
		break;
	case '8':
		cursor_restore(s);
		break;
	case '9':
		csi_forward_index(s);
		break;
	case 'D':
		cursor_index(s, false);
		break;
	case 'E':
		cursor_index(s, false);
		cursor_return(s);
		break;
	case 'H':
		s->tabs[s->cursor.col] = 1;
		break;
	case 'M':
		cursor_reverse_index(s);
		break;
	case 'N':
	case 'O':
		s->single_shift = c == 'N' ? 2 : 3;
		break;
	case 'V':
	case 'W':
		s->cursor.pen.attr &= (uint16_t)~CELL_PROTECTED;
		if (c == 'V')
			s->cursor.pen.attr |= CELL_PROTECTED;
		break;
	case 'c':
		esc_reset(s);
		break;
	case 'n':
	case 'o':
		s->cursor.gl = c == 'n' ? 2 : 3;
		break;
	case '=':
	case '>':
		modes_put(s, MODE_KEYPAD, c == '=');
		break;
	default:
		break;
	}
}

void
esc_dispatch(struct screen *s, uint8_t inter, uint8_t c)
{
	if (!inter)
		esc_plain(s, c);
	else if (inter >= '(' && inter <= '+')
		esc_designate(s, inter - '(', c);
	else if (inter >= '-' && inter <= '/')
		esc_designate(s, inter - '-' + 1u, c); /* sets of 96 */
	else if (inter == '#' && c == '8')
		esc_align(s);
}
