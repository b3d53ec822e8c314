/* The local terminal; see terminal.h. */
#include "cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "sessions/wire/messages.h"

static struct termios terminal_saved;
static bool terminal_is_raw;

void
terminal_restore(void)
{
	if (!terminal_is_raw)
		return;
	/* tcsetattr() from the background would stop the program. */
	signal(SIGTTOU, SIG_IGN);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal_saved);
	terminal_is_raw = false;
}

int
terminal_raw(void)
{
	static bool is_arranged;
	struct termios t;

	if (!terminal_is_raw) {
		if (tcgetattr(STDIN_FILENO, &terminal_saved) < 0)
			return -errno;
		if (!is_arranged && atexit(terminal_restore) != 0)
			return -ENOMEM;
		is_arranged = true;
	}
	t = terminal_saved;
	cfmakeraw(&t);
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &t) < 0)
		return -errno;
	terminal_is_raw = true;
	return 0;
}

void
terminal_leave(void)
{
	static const char reset[] =
	    "\033[m\033(B\033[?1047l\033[?25h\033[?1l"
	    "\033>\033[?7h\0337\033[r\0338\033[?1000l\033[?1002l"
	    "\033[?1003l\033[?1004l\033[?1006l"
	    "\033[?2004l\r\n";
	ssize_t n;
	int fd;

	if (!isatty(STDOUT_FILENO))
		return;
	/* A terminal that takes nothing must not keep us here. */
	fd = terminal_output(STDOUT_FILENO);
	if (fd < 0)
		return;
	n = write(fd, reset, strlen(reset));
	(void)n;
	close(fd);
}

bool
terminal_size(struct wire_size *out)
{
	struct winsize ws = { 0 };

	*out = (struct wire_size){ 0 };
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) < 0 &&
	    ioctl(STDIN_FILENO, TIOCGWINSZ, &ws) < 0)
		return false;
	*out = (struct wire_size){ ws.ws_col, ws.ws_row, ws.ws_xpixel,
		ws.ws_ypixel };
	return ws.ws_col > 0 && ws.ws_row > 0;
}

int
terminal_output(int fd)
{
	char path[32];
	struct stat st;
	int again;

	if (fstat(fd, &st) == 0 && (isatty(fd) || S_ISFIFO(st.st_mode))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		again =
		    open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
		if (again >= 0)
			return again;
	}
	again = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return again < 0 ? -errno : again;
}
