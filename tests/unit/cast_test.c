/* The asciicast encoder: header, escapes, UTF-8 over cuts. CASES D1, D2, D4. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "sessions/keeper/cast.h"
#include "tests/unit/unit.h"

#define FFFD "\357\277\275"

struct cast_row {
	const char *in, *out;
};

static const struct cast_row cast_rows[] = {
	{ "plain", "plain" },
	{ "\r\n\t\b\f", "\\r\\n\\t\\b\\f" },
	{ "\033[m\007\001\037\177", "\\u001b[m\\u0007\\u0001\\u001f\\u007f" },
	{ "\"\\/", "\\\"\\\\/" },
	{ "\303\251\343\201\202\360\237\231\202",
	    "\303\251\343\201\202\360\237\231\202" },
	{ "\302\233\302\237\302\240", "\\u009b\\u009f\302\240" },
	{ "A\377\376\300\200B", "A" FFFD FFFD FFFD FFFD "B" }, /* D1 */
	{ "\343\201x", FFFD "x" }, /* one for a maximal subpart */
	{ "\360\237\231x", FFFD "x" },
	{ "\360\237\360\237\231\202", FFFD "\360\237\231\202" },
	{ "\355\240\200", FFFD FFFD FFFD }, /* a surrogate */
	{ "\340\200\200", FFFD FFFD FFFD }, /* overlong */
	{ "\364\220\200\200", FFFD FFFD FFFD FFFD },
	{ "\343\201\"", FFFD "\\\"" },
	{ "\343", FFFD }, /* D2: the tail at the end */
	{ "\360\237\231", FFFD },
};

/* Plain text goes in words; each byte by itself goes the plain way. */
static void
text_is_escaped_alike_in_words_and_in_bytes(void **state)
{
	char whole[6 * 32], single[6 * 32];

	(void)state;
	for (unsigned c = 0; c < 256; c++) {
		for (size_t at = 0; at < 20; at++) {
			struct cast_text t = { .n_held = 0 };
			uint8_t in[20];
			size_t n, len = 0;

			for (size_t i = 0; i < sizeof(in); i++)
				in[i] = (uint8_t)('a' + i);
			in[at] = (uint8_t)c;
			n = cast_text_put(&t, in, sizeof(in), whole);
			n += cast_text_end(&t, whole + n);
			for (size_t i = 0; i < sizeof(in); i++)
				len +=
				    cast_text_put(&t, in + i, 1, single + len);
			len += cast_text_end(&t, single + len);
			assert_int_equal(n, len);
			assert_memory_equal(whole, single, n);
		}
	}
}

static void
text_is_escaped_alike_wherever_it_is_cut(void **state)
{
	char out[6 * 64];

	(void)state;
	for (size_t r = 0; r < ARRAY_LEN(cast_rows); r++) {
		const uint8_t *in = (const uint8_t *)cast_rows[r].in;
		size_t n = strlen(cast_rows[r].in);

		for (size_t a = 0; a <= n; a++) {
			for (size_t b = a; b <= n; b++) {
				struct cast_text t = { .n_held = 0 };
				size_t len = cast_text_put(&t, in, a, out);

				len +=
				    cast_text_put(&t, in + a, b - a, out + len);
				len +=
				    cast_text_put(&t, in + b, n - b, out + len);
				len += cast_text_end(&t, out + len);
				out[len] = '\0';
				assert_string_equal(out, cast_rows[r].out);
			}
		}
	}
}

static void
a_character_in_four_calls_is_one_character(void **state)
{
	static const char smile[] = "\360\237\231\202";
	struct cast_text t = { .n_held = 0 };
	char out[64];

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(
		    cast_text_put(&t, (const uint8_t *)smile + i, 1, out), 0);
	assert_int_equal(
	    cast_text_put(&t, (const uint8_t *)smile + 3, 1, out), 4);
	assert_memory_equal(out, smile, 4);
	assert_int_equal(cast_text_end(&t, out), 0);
}

static void
the_worst_bytes_fit_the_promised_line(void **state)
{
	uint8_t *in = xcalloc(CAST_EVENT_MAX, 1);
	char *out = xmalloc(CAST_LINE_MAX);
	struct cast_text t = { .held = { 0343, 0201 }, .n_held = 2 };
	size_t len = cast_event_open(UINT64_MAX, 'o', out);

	(void)state;
	len += cast_text_put(&t, in, CAST_EVENT_MAX, out + len);
	len += cast_event_close(out + len);
	assert_true(len <= CAST_LINE_MAX);
	free(in);
	free(out);
}

static void
an_event_has_six_decimals_and_absolute_time(void **state)
{
	static const struct {
		uint64_t t_us;
		const char *line;
	} rows[] = {
		{ 0, "[0.000000, \"o\", \"\"]\n" },
		{ 1, "[0.000001, \"o\", \"\"]\n" },
		{ 1500000, "[1.500000, \"o\", \"\"]\n" },
		{ 86400000000ULL, "[86400.000000, \"o\", \"\"]\n" },
	};
	char out[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = cast_event_open(rows[i].t_us, 'o', out);

		n += cast_event_close(out + n);
		out[n] = '\0';
		assert_string_equal(out, rows[i].line);
	}
}

static void
the_header_leaves_out_what_is_not_known(void **state)
{
	static const struct {
		struct cast_header h;
		const char *line;
	} rows[] = {
		{ { 80, 24, 1700000000, "t", "/bin/sh", "xterm" },
		    "{\"version\": 2, \"width\": 80, \"height\": 24, "
		    "\"timestamp\": 1700000000, \"title\": \"t\", \"env\": "
		    "{\"SHELL\": \"/bin/sh\", \"TERM\": \"xterm\"}}\n" },
		{ { 0, 0, 0, NULL, NULL, NULL }, /* D4 */
		    "{\"version\": 2, \"width\": 80, \"height\": 24, "
		    "\"timestamp\": 0, \"env\": {}}\n" },
		{ { 1, 65535, 5, "a\"\n\377", NULL, "x" },
		    "{\"version\": 2, \"width\": 1, \"height\": 65535, "
		    "\"timestamp\": 5, \"title\": \"a\\\"\\n" FFFD
		    "\", \"env\": {\"TERM\": \"x\"}}\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf b = { 0 };

		cast_put_header(&b, &rows[i].h);
		buf_put_u8(&b, 0);
		assert_string_equal((const char *)buf_head(&b), rows[i].line);
		buf_release(&b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_escaped_alike_in_words_and_in_bytes),
		cmocka_unit_test(text_is_escaped_alike_wherever_it_is_cut),
		cmocka_unit_test(a_character_in_four_calls_is_one_character),
		cmocka_unit_test(the_worst_bytes_fit_the_promised_line),
		cmocka_unit_test(an_event_has_six_decimals_and_absolute_time),
		cmocka_unit_test(the_header_leaves_out_what_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
