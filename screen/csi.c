/*
 * The table of control sequences; see csi.h. Here are the handlers that move the
 * cursor and set modes. Pure.
 */
#include "screen/csi.h"

#include <string.h>

#include "base/mem.h"
#include "screen/csi_edit.h"
#include "screen/cursor.h"
#include "screen/esc.h"
#include "screen/modes.h"
#include "screen/osc.h"
#include "screen/parser.h"
#include "screen/print.h"
#include "screen/rect.h"
#include "screen/sgr.h"
#include "screen/state.h"

typedef void (*csi_handler)(struct screen *s, const struct parser *p);

/* ---- cursor ---- */

static void
csi_cuu(struct screen *s, const struct parser *p)
{
	cursor_up(s, parser_param(p, 0, 1));
}

static void
csi_cud(struct screen *s, const struct parser *p)
{
	cursor_down(s, parser_param(p, 0, 1));
}

static void
csi_cuf(struct screen *s, const struct parser *p)
{
	cursor_right(s, parser_param(p, 0, 1));
}

static void
csi_cub(struct screen *s, const struct parser *p)
{
	cursor_left(s, parser_param(p, 0, 1));
}

static void
csi_cnl(struct screen *s, const struct parser *p)
{
	csi_cud(s, p);
	cursor_return(s);
}

static void
csi_cpl(struct screen *s, const struct parser *p)
{
	csi_cuu(s, p);
	cursor_return(s);
}

static void
csi_cha(struct screen *s, const struct parser *p)
{
	cursor_to_col(s, parser_param(p, 0, 1) - 1);
}

static void
csi_cup(struct screen *s, const struct parser *p)
{
	cursor_to(s, parser_param(p, 1, 1) - 1, parser_param(p, 0, 1) - 1);
}

static void
csi_vpa(struct screen *s, const struct parser *p)
{
	cursor_to_row(s, parser_param(p, 0, 1) - 1);
}

/* HPR and VPR are not stopped by margins. */
static void
csi_hpr(struct screen *s, const struct parser *p)
{
	unsigned base = s->cursor.is_origin ? s->left : 0;

	cursor_to_col(s, s->cursor.col - base + parser_param(p, 0, 1));
}

static void
csi_vpr(struct screen *s, const struct parser *p)
{
	unsigned base = s->cursor.is_origin ? s->top : 0;

	cursor_to_row(s, s->cursor.row - base + parser_param(p, 0, 1));
}

static void
csi_cht(struct screen *s, const struct parser *p)
{
	cursor_tab(s, parser_param(p, 0, 1));
}

static void
csi_cbt(struct screen *s, const struct parser *p)
{
	cursor_back_tab(s, parser_param(p, 0, 1));
}

static void
csi_tbc(struct screen *s, const struct parser *p)
{
	unsigned what = parser_param(p, 0, 0);

	if (what == 0)
		s->tabs[s->cursor.col] = 0;
	else if (what == 3)
		memset(s->tabs, 0, s->cols);
}

/* DECST8C */
static void
csi_default_tabs(struct screen *s, const struct parser *p)
{
	if (parser_param(p, 0, 0) == 5)
		cursor_default_tabs(s->tabs, 0, s->cols);
}

static void
csi_decstbm(struct screen *s, const struct parser *p)
{
	unsigned top = parser_param(p, 0, 1);
	unsigned bottom = parser_param(p, 1, s->rows);

	if (bottom > s->rows)
		bottom = s->rows;
	if (top >= bottom)
		return;
	s->top = (uint16_t)(top - 1);
	s->bottom = (uint16_t)(bottom - 1);
	cursor_to(s, 0, 0);
}

static void
csi_save_cursor(struct screen *s, const struct parser *p)
{
	(void)p;
	cursor_save(s);
}

static void
csi_restore_cursor(struct screen *s, const struct parser *p)
{
	(void)p;
	cursor_restore(s);
}

/* DECSLRM, which shares its final byte with SCOSC. */
static void
csi_decslrm(struct screen *s, const struct parser *p)
{
	unsigned left, right;

	if (!mode_is_on(s, MODE_MARGINS)) {
		csi_save_cursor(s, p);
		return;
	}
	left = parser_param(p, 0, 1);
	right = parser_param(p, 1, s->cols);
	if (right > s->cols)
		right = s->cols;
	if (left >= right)
		return;
	s->left = (uint16_t)(left - 1);
	s->right = (uint16_t)(right - 1);
	cursor_to(s, 0, 0);
}

static void
csi_rep(struct screen *s, const struct parser *p)
{
	print_repeat(s, parser_param(p, 0, 1));
}

/* ---- modes ---- */

static void
csi_sm(struct screen *s, const struct parser *p)
{
	modes_set(s, p, false, true);
}

static void
csi_rm(struct screen *s, const struct parser *p)
{
	modes_set(s, p, false, false);
}

static void
csi_decset(struct screen *s, const struct parser *p)
{
	modes_set(s, p, true, true);
}

static void
csi_decrst(struct screen *s, const struct parser *p)
{
	modes_set(s, p, true, false);
}

static void
csi_decstr(struct screen *s, const struct parser *p)
{
	(void)p;
	esc_soft_reset(s);
}

static void
csi_decscusr(struct screen *s, const struct parser *p)
{
	if (parser_param(p, 0, 0) <= 6)
		s->cursor_shape = (uint8_t)parser_param(p, 0, 0);
}

static void
csi_decsca(struct screen *s, const struct parser *p)
{
	s->cursor.pen.attr &= (uint16_t)~CELL_PROTECTED;
	if (parser_param(p, 0, 0) == 1)
		s->cursor.pen.attr |= CELL_PROTECTED;
}

/* XTMODKEYS: without a value, or without anything, back to the default. */
static void
csi_modify_keys(struct screen *s, const struct parser *p)
{
	unsigned what = parser_param(p, 0, 0);

	if (!p->n_params)
		memset(s->modify_keys, 0, sizeof(s->modify_keys));
	else if (what < sizeof(s->modify_keys))
		s->modify_keys[what] = (uint8_t)parser_param(p, 1, 0);
}

/* Switches one of them off. */
static void
csi_no_modify_keys(struct screen *s, const struct parser *p)
{
	unsigned what = parser_param(p, 0, 2);

	if (what < sizeof(s->modify_keys))
		s->modify_keys[what] = 0;
}

/* Only the stack of titles; sizes and places are not the program's. */
static void
csi_window(struct screen *s, const struct parser *p)
{
	unsigned op = parser_param(p, 0, 0);

	if (op == 22)
		osc_push_title(s, parser_param(p, 1, 0));
	else if (op == 23)
		osc_pop_title(s, parser_param(p, 1, 0));
}

/* ---- kitty's keyboard protocol ---- */

#define CSI_KITTY_FLAGS 31

static void
csi_kitty_push(struct screen *s, const struct parser *p)
{
	struct kitty *k = &s->now->kitty;

	if (k->n == KITTY_DEPTH) {
		memmove(k->flags, k->flags + 1, KITTY_DEPTH - 1);
		k->n--;
	}
	k->flags[k->n++] = (uint8_t)(parser_param(p, 0, 0) & CSI_KITTY_FLAGS);
}

static void
csi_kitty_pop(struct screen *s, const struct parser *p)
{
	struct kitty *k = &s->now->kitty;
	unsigned n = parser_param(p, 0, 1);

	/* more than there are: everything is off, kitty's page says */
	if (n > k->n)
		k->base = 0;
	k->n = (uint8_t)(n < k->n ? k->n - n : 0);
}

static void
csi_kitty_set(struct screen *s, const struct parser *p)
{
	struct kitty *k = &s->now->kitty;
	uint8_t *flags = k->n ? &k->flags[k->n - 1] : &k->base;
	uint8_t given = (uint8_t)(parser_param(p, 0, 0) & CSI_KITTY_FLAGS);

	switch (parser_param(p, 1, 1)) {
	case 1:
		*flags = given;
		break;
	case 2:
		*flags |= given;
		break;
	case 3:
		*flags &= (uint8_t)~given;
		break;
	default:
		break;
	}
}

/* ---- the tables ---- */

/* Without prefix and intermediate byte, by final byte. */
static const csi_handler csi_plain[] = {
	['@' - '@'] = csi_ich,
	['A' - '@'] = csi_cuu,
	['B' - '@'] = csi_cud,
	['C' - '@'] = csi_cuf,
	['D' - '@'] = csi_cub,
	['E' - '@'] = csi_cnl,
	['F' - '@'] = csi_cpl,
	['G' - '@'] = csi_cha,
	['H' - '@'] = csi_cup,
	['I' - '@'] = csi_cht,
	['J' - '@'] = csi_ed,
	['K' - '@'] = csi_el,
	['L' - '@'] = csi_il,
	['M' - '@'] = csi_dl,
	['P' - '@'] = csi_dch,
	['S' - '@'] = csi_su,
	['T' - '@'] = csi_sd,
	['X' - '@'] = csi_ech,
	['Z' - '@'] = csi_cbt,
	['^' - '@'] = csi_sd,
	['`' - '@'] = csi_cha,
	['a' - '@'] = csi_hpr,
	['b' - '@'] = csi_rep,
	['d' - '@'] = csi_vpa,
	['e' - '@'] = csi_vpr,
	['f' - '@'] = csi_cup,
	['g' - '@'] = csi_tbc,
	['h' - '@'] = csi_sm,
	['l' - '@'] = csi_rm,
	['m' - '@'] = sgr_apply,
	['r' - '@'] = csi_decstbm,
	['s' - '@'] = csi_decslrm,
	['t' - '@'] = csi_window,
	['u' - '@'] = csi_restore_cursor,
};

static const struct csi_row {
	char prefix, inter, final;
	csi_handler handle;
} csi_rows[] = {
	{ '?', 0, 'h', csi_decset },
	{ '?', 0, 'l', csi_decrst },
	{ '?', 0, 's', modes_save },
	{ '?', 0, 'r', modes_restore },
	{ '?', 0, 'J', csi_decsed },
	{ '?', 0, 'K', csi_decsel },
	{ '?', 0, 'W', csi_default_tabs },
	{ '>', 0, 'm', csi_modify_keys },
	{ '>', 0, 'n', csi_no_modify_keys },
	{ '>', 0, 'u', csi_kitty_push },
	{ '<', 0, 'u', csi_kitty_pop },
	{ '=', 0, 'u', csi_kitty_set },
	{ 0, '!', 'p', csi_decstr },
	{ 0, ' ', 'q', csi_decscusr },
	{ 0, '"', 'q', csi_decsca },
	{ 0, ' ', '@', csi_sl },
	{ 0, ' ', 'A', csi_sr },
	{ 0, '\'', '}', csi_decic },
	{ 0, '\'', '~', csi_decdc },
	{ 0, '$', 'x', rect_fill },
	{ 0, '$', 'z', rect_erase },
	{ 0, '$', '{', rect_erase_selective },
	{ 0, '$', 'v', rect_copy },
};

void
csi_dispatch(struct screen *s, const struct parser *p, uint8_t c)
{
	unsigned at = c - '@';

	if (!p->prefix && !p->inter) {
		if (at < ARRAY_LEN(csi_plain) && csi_plain[at])
			csi_plain[at](s, p);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(csi_rows); i++) {
		const struct csi_row *row = &csi_rows[i];

		if (row->final == (char)c && row->prefix == (char)p->prefix &&
		    row->inter == (char)p->inter) {
			row->handle(s, p);
			return;
		}
	}
}
