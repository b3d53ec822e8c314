/*
 * Socket addresses as text, and listening sockets from the text of
 * server.listen. Used by berthd at start; nothing here is called in the loop
 * but the formatting.
 */
#ifndef SSHD_LISTENER_ADDRESS_H
#define SSHD_LISTENER_ADDRESS_H

#include <stddef.h>
#include <sys/socket.h>

#include "sessions/wire/messages.h"

struct err;

#define ADDRESS_TEXT_MAX 64 /* "[v6]:port" and a NUL */
#define ADDRESS_ENDS_MAX WIRE_ENDS_MAX

/* The numeric host of SA alone, "?" for an unknown family. */
void address_host(const struct sockaddr *sa, char out[ADDRESS_TEXT_MAX]);

/* "1.2.3.4:22" or "[::1]:22". */
void address_text(const struct sockaddr *sa, char out[ADDRESS_TEXT_MAX]);

/*
 * Both ends of the connected socket FD as SSH_CONNECTION has them: numeric
 * host and port of its peer PEER, then its own. "" when one of them has none.
 */
void address_ends(
    int fd, const struct sockaddr *peer, char out[ADDRESS_ENDS_MAX]);

/*
 * Binds what SPEC ("host:port" or "[v6]:port"; port 0 = any) resolves to and
 * listens: nonblocking, close-on-exec, IPv6 sockets for IPv6 alone. Appends the
 * descriptors, which the caller closes, to FDS of MAX entries at *COUNT. On
 * failure nothing stays open and a negative errno with a sentence is returned.
 */
int address_listen(
    const char *spec, int *fds, size_t max, size_t *count, struct err *e);

#endif
