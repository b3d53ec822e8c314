/*
 * How the history keeps lines; only for history.c, history_write.c and
 * history_read.c. A line is a header and a string of characters in UTF-8 and of
 * operations below 0x20, with the pen of SGR 0 at its start. Lines never cross
 * the end of a chunk.
 */
#ifndef SCREEN_HISTORY_LAYOUT_H
#define SCREEN_HISTORY_LAYOUT_H

#include "screen/history.h"

/* Operations. Numbers are of this machine's byte order. */
#define HISTORY_BLANKS  0x01 /* u16 count: cells without a character */
#define HISTORY_CLUSTER 0x02 /* u8 width, u8 length, text: a cluster */
#define HISTORY_EXT     0x03 /* u32 underline colour; no link */
#define HISTORY_LINK    0x04 /* u32 underline; u8 n, id, u16 n, uri */
#define HISTORY_RELINK  0x05 /* u32 underline; the last link of this line */
#define HISTORY_PEN     0x10 /* | what changed: */
#define HISTORY_FG      0x01 /* a colour */
#define HISTORY_BG      0x02 /* a colour */
#define HISTORY_ATTR    0x04 /* u16 */

/* The most that a cell takes, and all links of a line. */
#define HISTORY_CELL_MAX  (11 + 7 + 3 + CLUSTER_MAX)
#define HISTORY_LINKS_MAX 4096
#define HISTORY_LINE_MAX \
	(SCREEN_COLS_MAX * HISTORY_CELL_MAX + HISTORY_LINKS_MAX)

#define HISTORY_CHUNK (64U << 10)

enum history_wrap {
	HISTORY_ENDS,
	HISTORY_WRAPS, /* the text goes on in the next line */
	HISTORY_PADDED /* so it does; the last cell is blank and not stored */
};

/* In front of a line. */
struct history_head {
	uint16_t bytes;
	uint8_t wrap; /* enum history_wrap */
} __attribute__((packed));

struct history_chunk {
	uint64_t first; /* the number of the line at START */
	uint32_t n;     /* lines from there on */
	uint32_t start, end, cap;
	uint8_t data[];
};

struct history {
	uint32_t max_lines;
	size_t max_bytes;
	uint64_t start, end;
	size_t bytes;                  /* of all chunks */
	struct history_chunk **chunks; /* a ring */
	unsigned first, n, cap;
	uint8_t *scratch;
	size_t cap_scratch;
};

static inline struct history_chunk *
history_chunk(const struct history *h, unsigned i)
{
	return h->chunks[(h->first + i) % h->cap];
}

/* Appends the N bytes at P as a line. */
void history_store(
    struct history *h, const uint8_t *p, size_t n, enum history_wrap wrap);

#endif
