/*
 * Reads the client's socket 64 KiB at a time for libssh, which asks for 4 KiB
 * at a time and polls twice for each. berth-sshd defines poll() and recv()
 * itself, and libssh, its only caller with that socket, gets these.
 */
#ifndef SSHD_CONNECTION_READ_AHEAD_H
#define SSHD_CONNECTION_READ_AHEAD_H

#include <poll.h>
#include <stdbool.h>
#include <sys/types.h>

/* From now on FD, nonblocking and libssh's own, is read ahead; one a process.
 */
void read_ahead_start(int fd);

/*
 * The descriptor has an event. Without one after a read that emptied it, poll()
 * says by itself that there is nothing.
 */
void read_ahead_wake(void);

/* True if bytes are here that libssh has not taken: no event tells of them. */
bool read_ahead_has_bytes(void);

/* recv(2) and poll(2) by their symbols: what every library here calls. */
ssize_t read_ahead_recv(int fd, void *p, size_t n, int flags) __asm__("recv");
int read_ahead_poll(struct pollfd *fds, nfds_t n, int timeout_ms) __asm__(
    "poll");

#endif
