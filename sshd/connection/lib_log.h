/*
 * What libssh tells only in its log: the names of channel requests that it does
 * not know (a "break", RFC 4335), messages that have no place before NEWKEYS,
 * signatures that do not verify and that it never answers. One connection a
 * process, so the state is the process's.
 */
#ifndef SSHD_CONNECTION_LIB_LOG_H
#define SSHD_CONNECTION_LIB_LOG_H

#include <stdbool.h>

/*
 * Takes over libssh's log of this thread; called once, before the key exchange.
 * Lines of libssh's own warnings go to our debug log.
 */
void lib_log_watch(void);

/*
 * Whether every packet is worth a line: true until the client is logged in, and
 * later while a channel has a PTY, which alone can have a break. Lines cost time
 * on the data path.
 */
void lib_log_set_packets(bool is_on);

/*
 * Called once for every channel request taken from libssh, in order: true if
 * it is a break.
 */
bool lib_log_next_break(void);

/*
 * Why the connection must end: something else than a key exchange came before
 * the first NEWKEYS (strict key exchange), or a signature was not valid. NULL
 * for no reason.
 */
const char *lib_log_offence(void);

/* One log line of libssh; separate for the unit test. */
void lib_log_feed(const char *line);

#endif
