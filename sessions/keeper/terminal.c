/* A break, which a PTY cannot carry by itself; see terminal.h. */
#include "sessions/keeper/terminal.h"

#include <signal.h>
#include <termios.h>

#include "sessions/keeper/keeper.h"

void
terminal_break(struct keeper *k)
{
	struct input_source *typist = &k->manager.input;
	struct termios t;

	if (k->child.slave_fd < 0 || tcgetattr(k->child.slave_fd, &t) < 0)
		return;
	if (t.c_iflag & IGNBRK)
		return;
	if (t.c_iflag & BRKINT) {
		if (!(t.c_lflag & NOFLSH))
			tcflush(k->child.slave_fd, TCIOFLUSH);
		child_signal(&k->child, SIGINT);
	} else if (t.c_iflag & PARMRK) {
		input_push(&k->input, typist, "\377\0\0", 3);
	} else {
		input_push(&k->input, typist, "\0", 1);
	}
}
