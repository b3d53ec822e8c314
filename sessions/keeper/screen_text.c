/* The screen as text; see screen_text.h. */
#include "sessions/keeper/screen_text.h"

#include <errno.h>

#include "screen/screen.h"
#include "sessions/keeper/keeper.h"

int
keeper_screen_text(struct keeper *k, unsigned flags, struct buf *out)
{
	unsigned text = 0;

	if (!k->display.screen)
		return -ENOTSUP;
	if (flags & WIRE_SCREEN_ANSI)
		text |= SCREEN_TEXT_ANSI;
	if (flags & WIRE_SCREEN_HISTORY)
		text |= SCREEN_TEXT_HISTORY;
	screen_text(k->display.screen, text, out);
	return 0;
}
