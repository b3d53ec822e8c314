/*
 * The table of modes; see modes.h. Mouse tracking and encoding are numbers of
 * their own, the alternate screen and DECSC are actions. Pure.
 */
#include "screen/modes.h"

#include "base/mem.h"
#include "screen/buffer.h"
#include "screen/cursor.h"
#include "screen/parser.h"

#define MODES_ORIGIN 6

static const struct mode_info modes_infos[MODE_COUNT] = {
	/* number, private, on, shown */
	[MODE_INSERT] = { 4, false, false, true },
	[MODE_NEWLINE] = { 20, false, false, true },
	[MODE_CURSOR_KEYS] = { 1, true, false, true },
	[MODE_REVERSE] = { 5, true, false, true },
	[MODE_AUTOWRAP] = { 7, true, true, true },
	[MODE_AUTOREPEAT] = { 8, true, true, true },
	[MODE_CURSOR_BLINK] = { 12, true, false, true },
	[MODE_CURSOR] = { 25, true, true, true },
	[MODE_REVERSE_WRAP] = { 45, true, false, true },
	[MODE_KEYPAD] = { 66, true, false, true },
	[MODE_BACKARROW] = { 67, true, false, true },
	[MODE_MARGINS] = { 69, true, false, true },
	[MODE_FOCUS] = { 1004, true, false, true },
	[MODE_ALT_SCROLL] = { 1007, true, false, true },
	[MODE_META_8BIT] = { 1034, true, false, true },
	[MODE_NUMLOCK] = { 1035, true, false, true },
	[MODE_META_ESC] = { 1036, true, false, true },
	[MODE_ALT_ESC] = { 1039, true, false, true },
	[MODE_PASTE] = { 2004, true, false, true },
	[MODE_SYNC] = { 2026, true, false, false },
	[MODE_GRAPHEMES] = { 2027, true, false, true },
	[MODE_THEME] = { 2031, true, false, true },
	[MODE_IN_BAND_SIZE] = { 2048, true, false, true },
	[MODE_WIN32] = { 9001, true, false, true },
};

const struct mode_info *
mode_info(enum mode m)
{
	return &modes_infos[m];
}

uint64_t
modes_initial(void)
{
	uint64_t modes = 0;

	for (unsigned m = 0; m < MODE_COUNT; m++)
		modes |= (uint64_t)modes_infos[m].is_on << m;
	return modes;
}

void
modes_put(struct screen *s, enum mode m, bool is_on)
{
	if (is_on)
		s->modes |= (uint64_t)1 << m;
	else
		s->modes &= ~((uint64_t)1 << m);
}

/* ---- the alternate screen ---- */

void
modes_show(struct screen *s, bool is_alt)
{
	struct buffer *to = is_alt ? &s->alt : &s->main;

	if (s->now == to)
		return;
	if (is_alt)
		s->main_cursor = s->cursor;
	s->now = to;
	s->cursor.is_wrap_pending = false;
	s->is_alt_cursor_kept = false;
	buffer_use(s);
}

static void
modes_clear(struct screen *s)
{
	for (unsigned i = 0; i < s->rows; i++)
		buffer_erase(s, i, 0, s->cols);
}

static void
modes_alt_47(struct screen *s, bool is_on)
{
	modes_show(s, is_on);
}

static void
modes_alt_1047(struct screen *s, bool is_on)
{
	if (!is_on && s->now == &s->alt)
		modes_clear(s);
	modes_show(s, is_on);
}

static void
modes_cursor_1048(struct screen *s, bool is_on)
{
	if (is_on)
		cursor_save(s);
	else
		cursor_restore(s);
}

static void
modes_alt_1049(struct screen *s, bool is_on)
{
	if (is_on) {
		/* from the alternate screen it saves that one's cursor */
		bool is_entered = s->now == &s->main;

		cursor_save(s);
		modes_show(s, true);
		s->is_alt_cursor_kept |= is_entered;
		modes_clear(s);
	} else {
		modes_show(s, false);
		cursor_restore(s);
	}
}

/* ---- side effects ---- */

static void
modes_origin(struct screen *s, bool is_on)
{
	s->cursor.is_origin = is_on;
	cursor_to(s, 0, 0);
}

static void
modes_margins(struct screen *s, bool is_on)
{
	modes_put(s, MODE_MARGINS, is_on);
	s->left = 0;
	s->right = (uint16_t)(s->cols - 1);
	s->cursor.is_wrap_pending = false;
}

static const struct modes_action {
	uint16_t number;
	void (*act)(struct screen *s, bool is_on);
} modes_actions[] = {
	{ MODES_ORIGIN, modes_origin },
	{ 47, modes_alt_47 },
	{ 69, modes_margins },
	{ 1047, modes_alt_1047 },
	{ 1048, modes_cursor_1048 },
	{ 1049, modes_alt_1049 },
};

static const uint16_t modes_mice[] = { 9, 1000, 1001, 1002, 1003 };
static const uint16_t modes_encodings[] = { 1005, 1006, 1015, 1016 };

static bool
modes_is_among(const uint16_t *list, size_t n, unsigned number)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == number)
			return true;
	return false;
}

#define MODES_AMONG(list, number) modes_is_among(list, ARRAY_LEN(list), number)

/* The mode NUMBER, or MODE_COUNT. */
static enum mode
modes_find(unsigned number, bool is_private)
{
	unsigned m = 0;

	while (m < MODE_COUNT && (modes_infos[m].number != number ||
				     modes_infos[m].is_private != is_private))
		m++;
	return m;
}

static void
modes_set_private(struct screen *s, unsigned number, bool is_on)
{
	enum mode m = modes_find(number, true);

	for (size_t i = 0; i < ARRAY_LEN(modes_actions); i++) {
		if (modes_actions[i].number == number) {
			modes_actions[i].act(s, is_on);
			return;
		}
	}
	if (m != MODE_COUNT)
		modes_put(s, m, is_on);
	else if (MODES_AMONG(modes_mice, number))
		s->mouse = is_on ? (uint16_t)number : 0;
	else if (MODES_AMONG(modes_encodings, number))
		s->mouse_encoding = is_on ? (uint16_t)number : 0;
}

void
modes_set(struct screen *s, const struct parser *p, bool is_private, bool is_on)
{
	for (unsigned i = 0; i < p->n_params; i++) {
		if (is_private) {
			modes_set_private(s, p->params[i], is_on);
		} else {
			enum mode m = modes_find(p->params[i], false);

			if (m != MODE_COUNT)
				modes_put(s, m, is_on);
		}
	}
}

void
modes_save(struct screen *s, const struct parser *p)
{
	for (unsigned i = 0; i < p->n_params; i++) {
		enum mode m = modes_find(p->params[i], true);
		uint64_t bit = (uint64_t)1 << m;

		if (m != MODE_COUNT)
			s->saved_modes =
			    (s->saved_modes & ~bit) | (s->modes & bit);
		else if (MODES_AMONG(modes_mice, p->params[i]))
			s->saved_mouse = s->mouse;
		else if (MODES_AMONG(modes_encodings, p->params[i]))
			s->saved_encoding = s->mouse_encoding;
	}
}

void
modes_restore(struct screen *s, const struct parser *p)
{
	for (unsigned i = 0; i < p->n_params; i++) {
		enum mode m = modes_find(p->params[i], true);

		if (m != MODE_COUNT)
			modes_set_private(
			    s, p->params[i], s->saved_modes >> m & 1);
		else if (MODES_AMONG(modes_mice, p->params[i]))
			s->mouse = s->saved_mouse;
		else if (MODES_AMONG(modes_encodings, p->params[i]))
			s->mouse_encoding = s->saved_encoding;
	}
}
