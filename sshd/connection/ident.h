/*
 * The first line of a peer, looked at before libssh gets the socket: whoever
 * is no SSH-2 client is told so in one short line, as OpenSSH does.
 */
#ifndef SSHD_CONNECTION_IDENT_H
#define SSHD_CONNECTION_IDENT_H

#include <stddef.h>

enum ident_verdict {
	IDENT_MORE,    /* a start of an identification so far */
	IDENT_OK,      /* SSH-2 */
	IDENT_GARBAGE, /* not SSH, or a line over 255 bytes */
	IDENT_OLD,     /* SSH, but not version 2 */
	IDENT_GONE     /* the peer closed before a whole line */
};

/* Judges the first N bytes that a peer sent (RFC 4253 4.2). */
enum ident_verdict ident_judge(const char *p, size_t n);

/*
 * Looks at what waits on the nonblocking socket FD without taking it. For
 * IDENT_MORE the socket becomes readable only when more bytes than now wait,
 * or when the peer closes.
 */
enum ident_verdict ident_peek(int fd);

/* Undoes what ident_peek() did to the socket; before libssh waits on it. */
void ident_finish(int fd);

/*
 * Sends the line that belongs to a refusal, as far as the socket takes it, and
 * returns the reason for the log.
 */
const char *ident_refuse(int fd, enum ident_verdict v);

#endif
