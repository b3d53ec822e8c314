/*
 * Descriptors: close-on-exec at birth, flags, directories and files with the
 * right owner and mode, sealed memory files. Nothing here blocks for long.
 */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct buf;
struct err;

/* Sets O_NONBLOCK or FD_CLOEXEC; 0 or a negative errno. */
int fd_set_nonblock(int fd, bool on);
int fd_set_cloexec(int fd, bool on);

/*
 * A connected pair of AF_UNIX SOCK_STREAM sockets, close-on-exec; nonblocking
 * as asked. The caller closes both.
 */
int fd_socketpair(int out[2], bool nonblock);

/*
 * Opens the directory PATH, making it (one level, MODE) when absent. Refuses
 * one that is owned by anybody but the caller's effective uid, or writable by
 * group or others. Returns a descriptor or a negative errno with a sentence.
 */
int fd_open_dir(const char *path, mode_t mode, struct err *e);

/* The same below DIR_FD, never through a symbolic link; no owner check. */
int fd_open_dir_at(int dir_fd, const char *name, mode_t mode, struct err *e);

/* Makes every missing directory of PATH, 0700; 0 or a negative errno. */
int fd_make_dirs(const char *path, struct err *e);

/*
 * Reads the file whole into OUT (appended), at most MAX bytes; -EFBIG for a
 * longer one.
 */
int fd_read_file(const char *path, size_t max, struct buf *out, struct err *e);
int fd_read_all(int fd, size_t max, struct buf *out);

/* Writes all N bytes to a blocking descriptor; 0 or a negative errno. */
int fd_write_all(int fd, const void *p, size_t n);

/* A memory file with the N bytes of P, sealed against any change, at offset 0. */
int fd_sealed_memfd(const char *name, const void *p, size_t n);

/*
 * Puts the N descriptors FDS at 3, 4, ... without close-on-exec and closes
 * everything above; between fork and exec only.
 */
int fd_arrange(const int *fds, size_t n);

/* The most descriptors that fd_send() and fd_receive() take. */
#define FD_PASS_MAX 4

/*
 * One message of N bytes with the N_FDS descriptors FDS, which stay the
 * caller's. The bytes that went, or a negative errno. Async-signal-safe.
 */
ssize_t fd_send(
    int sock, const void *p, size_t n, const int *fds, size_t n_fds);

/*
 * Receives one message of at most N bytes, waiting as the socket does, and puts
 * its descriptors into FDS, at most MAX, close-on-exec and the caller's; the
 * rest of FDS becomes -1. The bytes, 0 at the end, or a negative errno; -EPROTO
 * (and no descriptor) when there were more of them.
 */
ssize_t fd_receive(int sock, void *p, size_t n, int *fds, size_t max);

/*
 * A listening AF_UNIX stream socket NAME in the directory DIR_FD (through
 * /proc/self/fd, so no path is too long), mode 0600, nonblocking. A stale
 * socket file is replaced; a live one is -EADDRINUSE.
 */
int fd_listen_unix(int dir_fd, const char *name);

/*
 * Connects to such a socket, blocking only as connect() on AF_UNIX does; the
 * second makes a nonblocking one, -EAGAIN when nobody accepts.
 */
int fd_connect_unix(int dir_fd, const char *name);
int fd_connect_unix_nonblock(int dir_fd, const char *name);

#endif
