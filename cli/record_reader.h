/*
 * Reads a recording (asciicast v2) from a descriptor by whole lines. That of a
 * running session ends where it ends now, that of a lost one before what a
 * crash left behind its last whole line.
 */
#ifndef CLI_RECORD_READER_H
#define CLI_RECORD_READER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct cli;
struct err;

/*
 * Asks berthd for the recording of that id, or of that session; *FD_OUT is the
 * caller's. Returns an exit code with a sentence.
 */
int record_open(
    const struct cli *c, const char *recording, int *fd_out, struct err *e);

/* Zero-initialised but for `fd`, which is borrowed. */
struct record_reader {
	int fd;
	struct buf buf;
	size_t n_given; /* bytes of it that the caller has */
	bool is_bad, is_over;
};

/*
 * Gives the next whole lines as *P of *N bytes, valid until the next call.
 * Returns 1, 0 at the end, or a negative errno with a sentence.
 */
int record_reader_next(
    struct record_reader *r, const char **p, size_t *n, struct err *e);

/* Frees what it holds. */
void record_reader_release(struct record_reader *r);

#endif
