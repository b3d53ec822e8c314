/*
 * The command line's end of a viewer link: shows what the session prints, sends
 * what is typed, within the credit of both sides.
 */
#ifndef CLI_VIEWER_H
#define CLI_VIEWER_H

#include <stdbool.h>

#include "sessions/wire/messages.h"

struct viewer_options {
	bool sends_size;  /* at the start and when it changes */
	bool reads_stdin; /* sends what comes on descriptor 0 */
	bool is_terminal; /* 0 is one: raw mode, and the key detaches */
	/*
	 * The process is ours alone: the end of the input is its end of input,
	 * and INT, QUIT, TERM, USR1 and USR2 are for it; HUP ends the viewer.
	 */
	bool is_bound;
	const struct wire_detach_key *detach_key; /* borrowed; NULL for none */
};

enum viewer_result {
	VIEWER_EXITED,    /* the process is gone, see `exit` */
	VIEWER_ENDED,     /* all was sent, the process may go on */
	VIEWER_DETACHED,  /* by the key, or at the end of the input */
	VIEWER_DROPPED,   /* by the other side, see `why` */
	VIEWER_SIGNALLED, /* by signal number `signal_number` */
	VIEWER_BROKEN     /* see `why` */
};

struct viewer_outcome {
	enum viewer_result result;
	struct wire_exit exit;
	int signal_number;
	char why[256]; /* printable */
};

/*
 * Runs until something ends it; returns with the terminal restored. Owns
 * LINK_FD. SIGINT, SIGTERM, SIGHUP and SIGQUIT end it in order.
 */
void viewer_run(int link_fd, const struct viewer_options *options,
    struct viewer_outcome *out);

#endif
