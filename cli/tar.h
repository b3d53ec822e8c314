/*
 * The tar format as streams of it are met: ustar, with the long names of GNU
 * tar and the extended headers of POSIX when read, with those of GNU when
 * written. Pure but for the descriptor that is read; what it reads is hostile.
 */
#ifndef CLI_TAR_H
#define CLI_TAR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct err;

#define TAR_BLOCK    512
#define TAR_PATH_MAX 4096 /* longer names are refused */

enum tar_type {
	TAR_FILE = '0',
	TAR_HARD_LINK = '1',
	TAR_SYMLINK = '2',
	TAR_DIRECTORY = '5'
};

struct tar_entry {
	char path[TAR_PATH_MAX];
	char link[TAR_PATH_MAX]; /* of links, else "" */
	char type;               /* enum tar_type, or another one */
	mode_t mode;             /* 07777 */
	uint64_t size;           /* bytes that follow; of files */
	int64_t mtime_s;
	uint32_t mtime_ns;
};

/* Appends the header of E to B: a block, or more for long names. */
void tar_encode(struct buf *b, const struct tar_entry *e);

/* How many bytes fill the last block of SIZE bytes. */
size_t tar_padding(uint64_t size);

/* Zero-initialised but for `fd`, which is borrowed and blocking. */
struct tar_reader {
	int fd;
	uint64_t left;    /* of the present entry */
	size_t padding;   /* behind it */
	uint64_t n_bytes; /* read so far */
};

/*
 * The next entry, past what is left of the one before. 1, 0 at the end of the
 * archive, or a negative errno with a sentence: -EPIPE when the stream ends too
 * early, -EPROTO when it is no tar, -EINTR when a signal came.
 */
int tar_next(struct tar_reader *r, struct tar_entry *out, struct err *e);

/* Up to N bytes of the entry; 0 at its end, or a negative errno as above. */
ssize_t tar_data(struct tar_reader *r, void *p, size_t n, struct err *e);

#endif
