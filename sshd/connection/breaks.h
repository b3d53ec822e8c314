/*
 * Which of the channel requests is a "break" (RFC 4335)? libssh hands a request
 * that it does not know on without its name, so the name is read from the line
 * that it logs for each channel request, in the order of the messages.
 */
#ifndef SSHD_CONNECTION_BREAKS_H
#define SSHD_CONNECTION_BREAKS_H

#include <stdbool.h>

/*
 * Takes over libssh's log of this thread; called once, before the first channel
 * request can arrive. Lines of libssh's own warnings go to our debug log.
 */
void breaks_watch(void);

/*
 * Called once for every channel request taken from libssh, in order: true if
 * it is a break.
 */
bool breaks_next(void);

/* One log line of libssh; separate for the unit test. */
void breaks_feed(const char *line);

#endif
