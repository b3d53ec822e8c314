/*
 * What the parts of `berth sandbox cp` share: copy.c is the verb, copy_pack.c
 * makes a tar stream of files of this host, copy_unpack.c makes files of one.
 */
#ifndef CLI_COPY_H
#define CLI_COPY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct copy {
	int fd;                       /* of the stream; borrowed, blocking */
	bool shows_progress;          /* on stderr, a terminal */
	bool is_json;                 /* what was done, at the end */
	uint64_t done, total;         /* bytes of files; total 0: not known */
	int64_t started_ms, shown_ms; /* monotonic */
	unsigned n_files;             /* and links and directories */
	unsigned n_skipped;           /* each with a sentence on stderr */
	char current[128];            /* being copied, or "" */
};

/* True once a signal said that it is enough. */
bool copy_is_stopped(void);

/* N more bytes of CURRENT are copied. */
void copy_advance(struct copy *c, uint64_t n);

/* PATH begins; it is escaped where it is shown. */
void copy_begins(struct copy *c, const char *path);

/* Says that PATH was left out, and why; counts it. */
void copy_skip(struct copy *c, const char *path, const char *why);

/*
 * Writes to the stream: all N bytes of P. 0, -EINTR when stopped, or another
 * negative errno with a sentence.
 */
int copy_write(struct copy *c, const void *p, size_t n, struct err *e);

/*
 * Writes SRC and all below it as an archive whose first name is TOP; with TOP
 * "." only what is below SRC. No link is followed, not even SRC. 0 or a
 * negative errno with a sentence; what cannot be read is skipped.
 */
int copy_pack(struct copy *c, const char *src, const char *top, struct err *e);

/* Bytes of the files that copy_pack() would read. */
uint64_t copy_count(const char *src);

/*
 * Makes files of an archive whose names all begin with TOP: as NAME, and below
 * it, in the directory DIR_FD, or, with NAME NULL, what is below TOP in DIR_FD
 * itself. No link is followed on the way, nothing that is there is written
 * through, and a file is there whole or not at all. 0 or a negative errno with a
 * sentence.
 */
int copy_unpack(struct copy *c, int dir_fd, const char *top, const char *name,
    struct err *e);

#endif
