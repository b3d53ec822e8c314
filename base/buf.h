/*
 * Bytes: a growable buffer to encode into and a cursor to decode from. Every
 * wire format of berth goes through these two; numbers are big-endian, strings
 * are a u32 length and the bytes (RFC 4251 5). Knows nothing of berth.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A queue of bytes: data[start..end) is filled. Zero-initialised is empty. The
 * owner releases it with buf_release().
 */
struct buf {
	uint8_t *data;
	size_t start, end, cap;
};

static inline size_t
buf_len(const struct buf *b)
{
	return b->end - b->start;
}

/* NULL when there never was anything. */
static inline const uint8_t *
buf_head(const struct buf *b)
{
	return b->start ? b->data + b->start : b->data;
}

/* Frees the memory and leaves B empty and usable. */
void buf_release(struct buf *b);

/* Forgets the content, keeps the memory. */
void buf_clear(struct buf *b);

/*
 * Makes room for N more bytes and returns where they go; they count only after
 * buf_commit(). May move the content.
 */
uint8_t *buf_reserve(struct buf *b, size_t n);
void buf_commit(struct buf *b, size_t n);

/* Drops the first N bytes; N <= buf_len(). */
void buf_consume(struct buf *b, size_t n);

/* Each appends; numbers are big-endian. */
void buf_put(struct buf *b, const void *p, size_t n);
void buf_put_u8(struct buf *b, uint8_t v);
void buf_put_u16(struct buf *b, uint16_t v);
void buf_put_u32(struct buf *b, uint32_t v);
void buf_put_u64(struct buf *b, uint64_t v);

/* A u32 length and the bytes. */
void buf_put_bytes(struct buf *b, const void *p, size_t n);

/* A string like buf_put_bytes(); NULL is sent as an empty one. */
void buf_put_str(struct buf *b, const char *s);

/* A u32 count and the strings of the NULL-terminated vector V (or NULL). */
void buf_put_strv(struct buf *b, char *const *v);

/*
 * A cursor over borrowed bytes. Any read past the end sets `failed`, returns
 * zeros or NULL from then on, and is checked once by reader_done().
 */
struct reader {
	const uint8_t *p, *end;
	bool failed;
};

static inline struct reader
reader_over(const void *p, size_t n)
{
	return (struct reader){ .p = p, .end = (const uint8_t *)p + n };
}

/* Each takes one number; 0 once the reader failed. */
uint8_t reader_u8(struct reader *r);
uint16_t reader_u16(struct reader *r);
uint32_t reader_u32(struct reader *r);
uint64_t reader_u64(struct reader *r);

/* N borrowed bytes, or NULL. */
const uint8_t *reader_take(struct reader *r, size_t n);

/*
 * A string of at most MAX bytes; borrowed, not terminated. *N_OUT is its
 * length, 0 on failure.
 */
const uint8_t *reader_bytes(struct reader *r, size_t max, size_t *n_out);

/*
 * A string of at most MAX bytes without a NUL in it, as a new C string that the
 * caller frees; NULL on failure.
 */
char *reader_str(struct reader *r, size_t max);

/*
 * Copies a string without NUL into OUT of SIZE bytes, terminated; fails when it
 * does not fit. OUT is "" on failure.
 */
void reader_str_into(struct reader *r, char *out, size_t size);

/*
 * A vector of at most MAX_COUNT strings of at most MAX_LEN bytes; the caller
 * frees it with strv_free(). NULL on failure.
 */
char **reader_strv(struct reader *r, size_t max_count, size_t max_len);

/* True if every read succeeded and nothing is left over. */
bool reader_done(const struct reader *r);

#endif
