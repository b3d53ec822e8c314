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
	IDENT_OLD      /* SSH, but not version 2 */
};

/* Judges the first N bytes that a peer sent (RFC 4253 4.2). */
enum ident_verdict ident_judge(const char *p, size_t n);

/*
 * Looks at what waits on the nonblocking socket FD without taking it. For
 * IDENT_MORE the socket becomes readable only when more bytes than now wait.
 * The end of the stream is IDENT_GARBAGE.
 */
enum ident_verdict ident_peek(int fd);

/* Sends the line that belongs to a refusal, as far as the socket takes it. */
void ident_refuse(int fd, enum ident_verdict v);

#endif
