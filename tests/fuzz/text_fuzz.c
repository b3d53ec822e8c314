/*
 * Text: escapes are printable, whole and reversible, numbers survive being
 * written and read again, globs agree with a slow matcher. Input: u8 size of
 * the output, then strings separated by NUL.
 */
#include <errno.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/text.h"
#include "tests/fuzz/fuzz.h"

/* ---- escapes --------------------------------------------------------------- */

static int
text_hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
				      : -1;
}

/* One escape at S as the byte that it stands for; *LEN_OUT characters. */
static uint8_t
text_unescape(const char *s, size_t *len_out)
{
	static const char short_ones[][2] = { { 'n', '\n' }, { 'r', '\r' },
		{ 't', '\t' }, { 'e', 033 }, { '"', '"' }, { '\\', '\\' } };

	*len_out = 1;
	if (s[0] != '\\')
		return (uint8_t)s[0];
	*len_out = 2;
	for (size_t i = 0; i < ARRAY_LEN(short_ones); i++) {
		if (s[1] == short_ones[i][0])
			return (uint8_t)short_ones[i][1];
	}
	FUZZ_CHECK(s[1] == 'x' && text_hex(s[2]) >= 0 && text_hex(s[3]) >= 0);
	*len_out = 4;
	return (uint8_t)(text_hex(s[2]) * 16 + text_hex(s[3]));
}

/* The escape of P reads back as P, or as its beginning when it was cut. */
static void
text_check_escape(const uint8_t *p, size_t n, size_t size)
{
	char *out = xmalloc(size ? size : 1);
	size_t len = text_escape((const char *)p, n, out, size);
	size_t at = 0, i = 0, step;

	FUZZ_CHECK(len < size || (size == 0 && len == 0));
	FUZZ_CHECK(size == 0 || out[len] == '\0');
	for (; at < len; at += step, i++) {
		FUZZ_CHECK(out[at] >= ' ' && out[at] < 0x7f);
		FUZZ_CHECK(i < n && text_unescape(out + at, &step) == p[i]);
	}
	FUZZ_CHECK(at == len && (i == n || len + 4 >= size));
	free(out);
}

/* Inside of JSON: valid UTF-8, nothing that ends the string or hides. */
static void
text_check_json(const uint8_t *p, size_t n, size_t size)
{
	char *out = xmalloc(size ? size : 1);
	size_t len = text_escape_json((const char *)p, n, out, size);

	FUZZ_CHECK(len < size || (size == 0 && len == 0));
	FUZZ_CHECK(size == 0 || out[len] == '\0');
	for (size_t i = 0; i < len;) {
		int k = text_utf8_len((const uint8_t *)out + i, len - i);

		FUZZ_CHECK(k > 0 && out[i] != '"');
		FUZZ_CHECK(k > 1 || (out[i] >= ' ' && out[i] < 0x7f));
		FUZZ_CHECK(k != 2 || (uint8_t)out[i] != 0xc2 ||
			   (uint8_t)out[i + 1] >= 0xa0);
		if (out[i] == '\\') {
			FUZZ_CHECK(i + 1 < len);
			FUZZ_CHECK(strchr("nrt\"\\u", out[i + 1]));
			k = out[i + 1] == 'u' ? 6 : 2;
			FUZZ_CHECK(i + (size_t)k <= len);
		}
		i += (size_t)k;
	}
	free(out);
}

/* A character by its definition: the shortest form of a code point. */
static void
text_check_utf8(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int len = text_utf8_len(p + i, n - i);
		uint32_t cp = p[i];

		FUZZ_CHECK(len >= -3 && len <= 4);
		if (len < 0) /* more bytes must be able to complete it */
			FUZZ_CHECK((size_t)-len < 4 && n - i < 4);
		if (len < 2)
			continue;
		cp &= 0xffU >> (len + 1);
		for (int k = 1; k < len; k++) {
			FUZZ_CHECK((p[i + (size_t)k] & 0xc0) == 0x80);
			cp = cp << 6 | (p[i + (size_t)k] & 0x3fU);
		}
		FUZZ_CHECK(cp >= (len == 2      ? 0x80U
				     : len == 3 ? 0x800U
						: 0x10000U));
		FUZZ_CHECK(cp <= 0x10ffff && (cp < 0xd800 || cp > 0xdfff));
	}
}

/* ---- numbers ------------------------------------------------------------- */

static void
text_check_numbers(const char *s)
{
	uint64_t v = 0, again = 0;
	unsigned cols, rows;
	char out[32];
	int rc;

	rc = text_parse_u64(s, 10, 1000, &v);
	FUZZ_CHECK(rc == 0 || rc == -EINVAL || rc == -ERANGE);
	FUZZ_CHECK(rc < 0 || (v >= 10 && v <= 1000));
	if (text_parse_u64(s, 0, UINT64_MAX, &v) == 0)
		FUZZ_CHECK(v == strtoull(s, NULL, 10));
	if (text_parse_size(s, &v) == 0) {
		text_format_size(v, out, sizeof(out));
		FUZZ_CHECK(v <= INT64_MAX);
		FUZZ_CHECK(text_parse_size(out, &again) == 0 && again == v);
	}
	if (text_parse_duration(s, &v) == 0) {
		text_format_duration(v, out, sizeof(out));
		FUZZ_CHECK(v <= INT64_MAX);
		FUZZ_CHECK(text_parse_duration(out, &again) == 0);
		FUZZ_CHECK(again == v);
	}
	if (text_parse_size2d(s, &cols, &rows) == 0) {
		FUZZ_CHECK(cols >= 1 && cols <= 65535);
		FUZZ_CHECK(rows >= 1 && rows <= 65535);
	}
}

/* ---- globs --------------------------------------------------------------- */

static bool
text_glob_slow(const char *g, const char *end, const char *s)
{
	if (g == end)
		return !*s;
	if (*g == '*')
		return text_glob_slow(g + 1, end, s) ||
		       (*s && text_glob_slow(g, end, s + 1));
	return *s && (*g == '?' || *g == *s) &&
	       text_glob_slow(g + 1, end, s + 1);
}

static void
text_check_globs(const char *list, const char *name)
{
	bool is_yes = false, is_no = false;

	if (strlen(list) > 12 || strlen(name) > 12)
		return; /* the slow one is slow */
	for (const char *p = list; *p;) {
		const char *end = p + strcspn(p, ",");
		bool is_negated = *p == '!' && p < end;
		bool hit = text_glob_slow(p + is_negated, end, name);

		is_yes |= hit && !is_negated;
		is_no |= hit && is_negated;
		p = *end ? end + 1 : end;
	}
	FUZZ_CHECK(text_glob_list(list, name) == (is_yes && !is_no));
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct fuzz_input in = { p, n };
	size_t size = fuzz_u8(&in);
	char *a, *b;

	text_check_utf8(in.p, in.n);
	text_check_escape(in.p, in.n, size);
	text_check_escape(in.p, in.n, 4 * in.n + 1);
	text_check_json(in.p, in.n, size);
	text_check_json(in.p, in.n, 6 * in.n + 1);
	a = fuzz_str(&in);
	b = fuzz_str(&in);
	text_check_numbers(a);
	text_check_numbers(b);
	text_check_globs(a, b);
	free(a);
	free(b);
	return 0;
}
