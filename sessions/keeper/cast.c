/* The asciicast v2 encoder; see cast.h. */
#include "sessions/keeper/cast.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"

#define CAST_VALUE_MAX   1024 /* bytes of a value in the header */
#define CAST_REPLACEMENT "\xef\xbf\xbd"

#define CAST_ONES  0x0101010101010101ULL
#define CAST_HIGHS 0x8080808080808080ULL

/*
 * What becomes of an ASCII byte: 0 for itself, 'u' for \u00XX, else the letter
 * behind the backslash.
 */
static const char cast_escapes[128] = {
	[0x00 ... 0x07] = 'u',
	['\b'] = 'b',
	['\t'] = 't',
	['\n'] = 'n',
	[0x0b] = 'u',
	['\f'] = 'f',
	['\r'] = 'r',
	[0x0e ... 0x1f] = 'u',
	['"'] = '"',
	['\\'] = '\\',
	[0x7f] = 'u',
};

static char *
cast_put_unicode(char *out, uint8_t c)
{
	static const char digits[] = "0123456789abcdef";

	memcpy(out, "\\u00", 4);
	out[4] = digits[c >> 4];
	out[5] = digits[c & 15];
	return out + 6;
}

static char *
cast_put_ascii(char *out, uint8_t c)
{
	char how = cast_escapes[c];

	if (how == 'u')
		return cast_put_unicode(out, c);
	if (how)
		*out++ = '\\';
	else
		how = (char)c;
	*out++ = how;
	return out;
}

/* The length of the invalid sequence at P that one U+FFFD stands for. */
static size_t
cast_subpart(const uint8_t *p, size_t n)
{
	for (size_t k = n < 3 ? n : 3; k > 1; k--)
		if (text_utf8_len(p, k) < 0)
			return k;
	return 1;
}

/* A character of LEN > 1 bytes, or something invalid for LEN 0. */
static char *
cast_put_multibyte(char *out, const uint8_t *p, size_t len)
{
	if (!len) {
		memcpy(out, CAST_REPLACEMENT, 3);
		return out + 3;
	}
	if (p[0] == 0xc2 && p[1] < 0xa0)
		return cast_put_unicode(out, p[1]);
	memcpy(out, p, len);
	return out + len;
}

/* Feeds bytes to the held character until it is whole, or wrong. */
static size_t
cast_text_join(struct cast_text *t, const uint8_t *p, size_t n, char **out)
{
	size_t used = 0;
	int len = -1;

	while (used < n && len < 0) {
		t->held[t->n_held++] = p[used++];
		len = text_utf8_len(t->held, t->n_held);
	}
	if (len < 0)
		return used;
	if (len == 0)
		used--; /* the last byte begins something new */
	*out = cast_put_multibyte(*out, t->held, (size_t)len);
	t->n_held = 0;
	return used;
}

/* Nonzero if a byte of W is zero. */
static inline uint64_t
cast_zero(uint64_t w)
{
	return (w - CAST_ONES) & ~w & CAST_HIGHS;
}

/*
 * Copies to OUT the run at P that stands for itself, a word at a time; its
 * length. What is behind the last whole word it leaves alone.
 */
static size_t
cast_put_plain(char *out, const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; n - i >= 8; i += 8) {
		uint64_t w, odd;

		memcpy(&w, p + i, sizeof(w));
		memcpy(out + i, &w, sizeof(w));
		w = le64toh(w);
		odd = w | ((w - CAST_ONES * 0x20) & ~w);
		odd |= cast_zero(w ^ (CAST_ONES * '"'));
		odd |= cast_zero(w ^ (CAST_ONES * '\\'));
		odd |= cast_zero(w ^ (CAST_ONES * 0x7f));
		odd &= CAST_HIGHS;
		/* the lowest is right, borrows spoil only those above it */
		if (odd)
			return i + (size_t)__builtin_ctzll(odd) / 8;
	}
	return i;
}

size_t
cast_text_put(struct cast_text *t, const uint8_t *p, size_t n, char *out)
{
	char *o = out;
	size_t i = t->n_held ? cast_text_join(t, p, n, &o) : 0;

	while (i < n) {
		size_t plain = cast_put_plain(o, p + i, n - i);
		int len;

		o += plain;
		i += plain;
		if (i == n)
			break;
		if (p[i] < 0x80) {
			o = cast_put_ascii(o, p[i++]);
			continue;
		}
		len = text_utf8_len(p + i, n - i);
		if (len < 0) {
			t->n_held = n - i;
			memcpy(t->held, p + i, n - i);
			break;
		}
		o = cast_put_multibyte(o, p + i, (size_t)len);
		i += len ? (size_t)len : cast_subpart(p + i, n - i);
	}
	return (size_t)(o - out);
}

size_t
cast_text_end(struct cast_text *t, char *out)
{
	if (!t->n_held)
		return 0;
	t->n_held = 0;
	memcpy(out, CAST_REPLACEMENT, 3);
	return 3;
}

size_t
cast_event_open(uint64_t t_us, char code, char *out)
{
	return (size_t)snprintf(out, 64, "[%" PRIu64 ".%06u, \"%c\", \"",
	    t_us / 1000000, (unsigned)(t_us % 1000000), code);
}

size_t
cast_event_close(char *out)
{
	memcpy(out, "\"]\n", 3);
	return 3;
}

static void
cast_put_text(struct buf *out, const char *s)
{
	buf_put(out, s, strlen(s));
}

/* Appends `"KEY": "VALUE"`. */
static void
cast_put_pair(struct buf *out, const char *key, const char *value)
{
	struct cast_text t = { .n_held = 0 };
	size_t n = strnlen(value, CAST_VALUE_MAX), len;
	char *to;

	cast_put_text(out, "\"");
	cast_put_text(out, key);
	cast_put_text(out, "\": \"");
	to = (char *)buf_reserve(out, 6 * (n + 3));
	len = cast_text_put(&t, (const uint8_t *)value, n, to);
	len += cast_text_end(&t, to + len);
	buf_commit(out, len);
	cast_put_text(out, "\"");
}

void
cast_put_header(struct buf *out, const struct cast_header *h)
{
	char head[160];

	snprintf(head, sizeof(head),
	    "{\"version\": 2, \"width\": %u, \"height\": %u, "
	    "\"timestamp\": %" PRId64,
	    h->cols ? h->cols : 80, h->rows ? h->rows : 24, h->wall_s);
	cast_put_text(out, head);
	if (h->title) {
		cast_put_text(out, ", ");
		cast_put_pair(out, "title", h->title);
	}
	cast_put_text(out, ", \"env\": {");
	if (h->shell)
		cast_put_pair(out, "SHELL", h->shell);
	if (h->shell && h->term)
		cast_put_text(out, ", ");
	if (h->term)
		cast_put_pair(out, "TERM", h->term);
	cast_put_text(out, "}}\n");
}
