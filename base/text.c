/* Escaping, numbers with units, globs; see text.h. */
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"

struct text_unit {
	const char *suffix;
	uint64_t factor;
};

static const struct text_unit text_sizes[] = {
	{ "", 1 },
	{ "k", 1ULL << 10 },
	{ "M", 1ULL << 20 },
	{ "G", 1ULL << 30 },
};

static const struct text_unit text_durations[] = {
	{ "ms", 1 },
	{ "s", 1000 },
	{ "m", 60ULL * 1000 },
	{ "h", 3600ULL * 1000 },
	{ "d", 24ULL * 3600 * 1000 },
};

int
text_utf8_len(const uint8_t *s, size_t n)
{
	uint8_t c = s[0], lo = 0x80, hi = 0xbf;
	int want;

	if (c < 0x80)
		return 1;
	if (c < 0xc2 || c > 0xf4)
		return 0;
	want = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	if (c == 0xe0)
		lo = 0xa0;
	else if (c == 0xed)
		hi = 0x9f;
	else if (c == 0xf0)
		lo = 0x90;
	else if (c == 0xf4)
		hi = 0x8f;
	for (int i = 1; i < want; i++) {
		if ((size_t)i == n)
			return -(want - i);
		if (s[i] < lo || s[i] > hi)
			return 0;
		lo = 0x80;
		hi = 0xbf;
	}
	return want;
}

struct text_out {
	char *p;
	size_t len, size;
	bool is_full;
};

static void
text_put(struct text_out *o, const char *s, size_t n)
{
	if (o->is_full || o->len + n + 1 > o->size) {
		o->is_full = true;
		return;
	}
	memcpy(o->p + o->len, s, n);
	o->len += n;
}

static size_t
text_end(struct text_out *o)
{
	if (o->size)
		o->p[o->len] = '\0';
	return o->len;
}

static const char *
text_short_escape(unsigned char c)
{
	switch (c) {
	case '\n':
		return "\\n";
	case '\r':
		return "\\r";
	case '\t':
		return "\\t";
	case '"':
		return "\\\"";
	case '\\':
		return "\\\\";
	default:
		return NULL;
	}
}

size_t
text_escape(const char *s, size_t n, char *out, size_t size)
{
	struct text_out o = { .p = out, .size = size };

	for (size_t i = 0; i < n && !o.is_full; i++) {
		unsigned char c = (unsigned char)s[i];
		const char *esc = c == 0x1b ? "\\e" : text_short_escape(c);
		char hex[8];

		if (esc) {
			text_put(&o, esc, 2);
		} else if (c >= ' ' && c < 0x7f) {
			text_put(&o, s + i, 1);
		} else {
			snprintf(hex, sizeof(hex), "\\x%02x", c);
			text_put(&o, hex, 4);
		}
	}
	return text_end(&o);
}

/* Code points that may not stand as they are in text that people look at. */
static bool
text_is_unsafe(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x061c ||
	       (cp >= 0x200b && cp <= 0x200f) ||
	       (cp >= 0x2028 && cp <= 0x202e) ||
	       (cp >= 0x2066 && cp <= 0x2069) || cp == 0xfeff;
}

static uint32_t
text_decode(const uint8_t *s, int len)
{
	static const uint8_t mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t cp = s[0] & mask[len];

	for (int i = 1; i < len; i++)
		cp = cp << 6 | (s[i] & 0x3fU);
	return cp;
}

size_t
text_escape_json(const char *s, size_t n, char *out, size_t size)
{
	struct text_out o = { .p = out, .size = size };

	for (size_t i = 0; i < n && !o.is_full;) {
		const uint8_t *p = (const uint8_t *)s + i;
		int len = text_utf8_len(p, n - i);
		const char *esc = len == 1 ? text_short_escape(*p) : NULL;
		char hex[8];

		if (len <= 0) {
			text_put(&o, "\\ufffd", 6);
			len = 1;
		} else if (esc) {
			text_put(&o, esc, 2);
		} else if (text_is_unsafe(text_decode(p, len))) {
			snprintf(hex, sizeof(hex), "\\u%04x",
			    text_decode(p, len) & 0xffffU);
			text_put(&o, hex, 6);
		} else {
			text_put(&o, (const char *)p, (size_t)len);
		}
		i += (size_t)len;
	}
	return text_end(&o);
}

/* Reads the leading digits of S; *REST_OUT points behind them. */
static int
text_digits(const char *s, uint64_t *out, const char **rest_out)
{
	uint64_t v = 0;
	const char *p = s;

	for (; *p >= '0' && *p <= '9'; p++) {
		if (__builtin_mul_overflow(v, 10U, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return -ERANGE;
	}
	if (p == s)
		return -EINVAL;
	*out = v;
	*rest_out = p;
	return 0;
}

int
text_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *rest;
	uint64_t v;
	int rc = text_digits(s, &v, &rest);

	if (rc < 0)
		return rc;
	if (*rest)
		return -EINVAL;
	if (v < min || v > max)
		return -ERANGE;
	*out = v;
	return 0;
}

static int
text_parse_unit(
    const char *s, const struct text_unit *units, size_t n, uint64_t *out)
{
	const char *rest;
	uint64_t v;
	int rc = text_digits(s, &v, &rest);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(rest, units[i].suffix) != 0)
			continue;
		if (__builtin_mul_overflow(v, units[i].factor, &v) ||
		    v > INT64_MAX)
			return -ERANGE;
		*out = v;
		return 0;
	}
	if (*rest == '\0' && v == 0) {
		*out = 0;
		return 0;
	}
	return -EINVAL;
}

int
text_parse_size(const char *s, uint64_t *bytes_out)
{
	return text_parse_unit(s, text_sizes, ARRAY_LEN(text_sizes), bytes_out);
}

int
text_parse_duration(const char *s, uint64_t *ms_out)
{
	return text_parse_unit(
	    s, text_durations, ARRAY_LEN(text_durations), ms_out);
}

static void
text_format_unit(
    uint64_t v, const struct text_unit *units, size_t n, char *out, size_t size)
{
	size_t i = n - 1;

	while (i > 0 && (v == 0 || v % units[i].factor != 0))
		i--;
	snprintf(out, size, "%llu%s", (unsigned long long)(v / units[i].factor),
	    units[i].suffix);
}

void
text_format_size(uint64_t bytes, char *out, size_t size)
{
	text_format_unit(bytes, text_sizes, ARRAY_LEN(text_sizes), out, size);
}

void
text_format_duration(uint64_t ms, char *out, size_t size)
{
	if (ms == 0)
		snprintf(out, size, "0");
	else
		text_format_unit(
		    ms, text_durations, ARRAY_LEN(text_durations), out, size);
}

int
text_parse_size2d(const char *s, unsigned *cols_out, unsigned *rows_out)
{
	uint64_t cols, rows;
	const char *rest;
	int rc = text_digits(s, &cols, &rest);

	if (rc < 0 || *rest != 'x')
		return -EINVAL;
	rc = text_parse_u64(rest + 1, 1, 65535, &rows);
	if (rc < 0 || cols < 1 || cols > 65535)
		return rc < 0 ? rc : -ERANGE;
	*cols_out = (unsigned)cols;
	*rows_out = (unsigned)rows;
	return 0;
}

/* Globs with `*` and `?` only: a bracket or backslash is an ordinary byte. */
static bool
text_glob(const char *g, size_t n, const char *name)
{
	const char *end = g + n, *star = NULL, *back = NULL;

	for (;;) {
		if (g < end && *g == '*') {
			star = ++g;
			back = name;
		} else if (*name && g < end && (*g == '?' || *g == *name)) {
			g++;
			name++;
		} else if (!*name && g == end) {
			return true;
		} else if (star && *back) {
			g = star;
			name = ++back;
		} else {
			return false;
		}
	}
}

bool
text_glob_list(const char *list, const char *name)
{
	bool is_match = false;

	while (*list) {
		size_t n = strcspn(list, ",");
		bool is_negated = n > 0 && *list == '!';
		size_t skip = is_negated ? 1 : 0;

		if (text_glob(list + skip, n - skip, name)) {
			if (is_negated)
				return false;
			is_match = true;
		}
		list += n;
		if (*list)
			list++;
	}
	return is_match;
}

void
text_random_id(const char *prefix, size_t n_bytes, char *out, size_t size)
{
	uint8_t raw[32];
	size_t len;

	if (n_bytes > sizeof(raw))
		n_bytes = sizeof(raw);
	if (getrandom(raw, n_bytes, 0) != (ssize_t)n_bytes)
		abort();
	len = (size_t)snprintf(out, size, "%s", prefix);
	for (size_t i = 0; i < n_bytes && len + 3 <= size; i++, len += 2)
		snprintf(out + len, size - len, "%02x", raw[i]);
}

bool
text_equal_ct(const void *a, const void *b, size_t n)
{
	const volatile uint8_t *x = a, *y = b;
	uint8_t diff = 0;

	for (size_t i = 0; i < n; i++)
		diff |= (uint8_t)(x[i] ^ y[i]);
	return diff == 0;
}
