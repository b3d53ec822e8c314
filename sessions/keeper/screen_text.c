/* The screen as text; see screen_text.h. */
#include "sessions/keeper/screen_text.h"

#include <errno.h>

int
keeper_screen_text(struct keeper *k, unsigned flags, struct buf *out)
{
	(void)k;
	(void)flags;
	(void)out;
	return -ENOTSUP;
}
