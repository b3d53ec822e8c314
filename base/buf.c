/* Encoding and decoding of bytes; see buf.h. */
#include "base/buf.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

#define BUF_MIN_CAP 256

void
buf_release(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ 0 };
}

void
buf_clear(struct buf *b)
{
	b->start = b->end = 0;
}

uint8_t *
buf_reserve(struct buf *b, size_t n)
{
	size_t len = buf_len(b);
	size_t cap = b->cap ? b->cap : BUF_MIN_CAP;

	assert(n <= SIZE_MAX / 4);
	if (b->cap - b->end >= n && b->data)
		return b->data + b->end;
	if (b->data && b->cap - len >= n && b->start >= len) {
		memcpy(b->data, b->data + b->start, len);
	} else {
		uint8_t *data;

		while (cap - len < n)
			cap *= 2;
		data = xmalloc(cap);
		if (b->data && len)
			memcpy(data, b->data + b->start, len);
		free(b->data);
		b->data = data;
		b->cap = cap;
	}
	b->start = 0;
	b->end = len;
	return b->data + b->end;
}

void
buf_commit(struct buf *b, size_t n)
{
	assert(n <= b->cap - b->end);
	b->end += n;
}

void
buf_consume(struct buf *b, size_t n)
{
	assert(n <= buf_len(b));
	b->start += n;
	if (b->start == b->end)
		buf_clear(b);
}

void
buf_put(struct buf *b, const void *p, size_t n)
{
	if (n == 0)
		return;
	memcpy(buf_reserve(b, n), p, n);
	buf_commit(b, n);
}

void
buf_put_u8(struct buf *b, uint8_t v)
{
	buf_put(b, &v, 1);
}

void
buf_put_u16(struct buf *b, uint16_t v)
{
	uint8_t out[2] = { (uint8_t)(v >> 8), (uint8_t)v };

	buf_put(b, out, sizeof(out));
}

void
buf_put_u32(struct buf *b, uint32_t v)
{
	buf_put_u16(b, (uint16_t)(v >> 16));
	buf_put_u16(b, (uint16_t)v);
}

void
buf_put_u64(struct buf *b, uint64_t v)
{
	buf_put_u32(b, (uint32_t)(v >> 32));
	buf_put_u32(b, (uint32_t)v);
}

void
buf_put_bytes(struct buf *b, const void *p, size_t n)
{
	assert(n <= UINT32_MAX);
	buf_put_u32(b, (uint32_t)n);
	buf_put(b, p, n);
}

void
buf_put_str(struct buf *b, const char *s)
{
	buf_put_bytes(b, s, s ? strlen(s) : 0);
}

void
buf_put_strv(struct buf *b, char *const *v)
{
	uint32_t n = 0;

	while (v && v[n])
		n++;
	buf_put_u32(b, n);
	for (uint32_t i = 0; i < n; i++)
		buf_put_str(b, v[i]);
}

const uint8_t *
reader_take(struct reader *r, size_t n)
{
	const uint8_t *p = r->p;

	if (r->failed || (size_t)(r->end - r->p) < n) {
		r->failed = true;
		return NULL;
	}
	r->p += n;
	return p;
}

uint8_t
reader_u8(struct reader *r)
{
	const uint8_t *p = reader_take(r, 1);

	return p ? p[0] : 0;
}

uint16_t
reader_u16(struct reader *r)
{
	const uint8_t *p = reader_take(r, 2);

	return p ? (uint16_t)((unsigned)p[0] << 8 | p[1]) : 0;
}

uint32_t
reader_u32(struct reader *r)
{
	uint32_t hi = reader_u16(r), lo = reader_u16(r);

	return r->failed ? 0 : hi << 16 | lo;
}

uint64_t
reader_u64(struct reader *r)
{
	uint64_t hi = reader_u32(r), lo = reader_u32(r);

	return r->failed ? 0 : hi << 32 | lo;
}

const uint8_t *
reader_bytes(struct reader *r, size_t max, size_t *n_out)
{
	uint32_t n = reader_u32(r);
	const uint8_t *p;

	if (n > max)
		r->failed = true;
	p = reader_take(r, n);
	*n_out = p ? n : 0;
	return p;
}

char *
reader_str(struct reader *r, size_t max)
{
	size_t n;
	const uint8_t *p = reader_bytes(r, max, &n);

	if (p && memchr(p, 0, n))
		r->failed = true;
	if (r->failed)
		return NULL;
	return xstrndup((const char *)p, n);
}

void
reader_str_into(struct reader *r, char *out, size_t size)
{
	size_t n;
	const uint8_t *p = reader_bytes(r, size - 1, &n);

	if (p && memchr(p, 0, n))
		r->failed = true;
	if (r->failed)
		n = 0;
	else
		memcpy(out, p, n);
	out[n] = '\0';
}

char **
reader_strv(struct reader *r, size_t max_count, size_t max_len)
{
	uint32_t n = reader_u32(r);
	char **v;

	if (n > max_count || n > (size_t)(r->end - r->p) / 4)
		r->failed = true;
	if (r->failed)
		return NULL;
	v = xcalloc(n + 1U, sizeof(*v));
	for (uint32_t i = 0; i < n; i++) {
		v[i] = reader_str(r, max_len);
		if (!v[i]) {
			strv_free(v);
			return NULL;
		}
	}
	return v;
}

bool
reader_done(const struct reader *r)
{
	return !r->failed && r->p == r->end;
}
