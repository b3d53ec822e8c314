/*
 * A terminal's stream as lines: what is for the terminal alone is gone, however
 * the stream is cut into pieces.
 */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "cli/log_text.h"
#include "tests/unit/unit.h"

static void
collect(int64_t ms, const char *line, void *arg)
{
	char text[32];

	snprintf(text, sizeof(text), "%d:", (int)ms);
	buf_put(arg, text, strlen(text));
	buf_put(arg, line, strlen(line));
	buf_put(arg, "|", 1);
}

static const struct {
	const char *in, *out;
} rows[] = {
	{ "", "" },
	{ "a\nb", "1:a|1:b|" },
	{ "\n\n", "1:|1:|" },
	{ "a\r\n", "1:a|" },
	{ "10%\r50%\rdone\n", "1:done|" },
	{ "over\rwritten\r\r\n", "1:written|" },
	{ "ab\bc\303\251\b\bd\n", "1:ad|" },
	{ "\033[1;31mred\033[m\033(B\n", "1:red|" },
	{ "\033]0;title\007x\033]8;;http://h\033\\y\n", "1:xy|" },
	{ "\033P1$r0m\033\\z\033_apc\033\\\n", "1:z|" },
	{ "\302\23331mc1\n", "1:c1|" },
	{ "\a\v\f\177tab\there\n", "1:tab\there|" },
	{ "\377\303\n", "1:|" },
	{ "caf\303\251\n", "1:caf\303\251|" },
	{ "a\033[?1049hhidden\n\033[?1049lb\n", "1:ab|" },
	{ "a\033[?47hhidden\n\033[?47lb\n", "1:ab|" },
	{ "\033[?25lshown\033[?25h\n", "1:shown|" },
	{ "\033[?1049", "" },
};

static void
lines_are_what_a_person_reads_in_any_pieces(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = strlen(rows[i].in);

		for (size_t step = 1; step <= n + 1; step++) {
			struct buf out = { 0 };
			struct log_text t = { .fn = collect, .arg = &out };

			for (size_t at = 0; at < n; at += step)
				log_text_feed(&t, rows[i].in + at,
				    n - at < step ? n - at : step, 1);
			log_text_end(&t);
			log_text_release(&t);
			buf_put_u8(&out, '\0');
			assert_string_equal(
			    (const char *)buf_head(&out), rows[i].out);
			buf_release(&out);
		}
	}
}

static void
a_line_has_the_time_of_its_first_byte(void **state)
{
	struct buf out = { 0 };
	struct log_text t = { .fn = collect, .arg = &out };

	(void)state;
	log_text_feed(&t, "a", 1, 5);
	log_text_feed(&t, "b\nc", 3, 6);
	log_text_feed(&t, "\n", 1, 7);
	log_text_end(&t);
	log_text_release(&t);
	buf_put_u8(&out, '\0');
	assert_string_equal((const char *)buf_head(&out), "5:ab|6:c|");
	buf_release(&out);
}

static void
a_line_without_an_end_is_broken(void **state)
{
	struct buf out = { 0 };
	struct log_text t = { .fn = collect, .arg = &out };

	(void)state;
	for (int i = 0; i < 3 * LOG_TEXT_LINE_MAX; i++)
		log_text_feed(&t, "x", 1, 1);
	assert_true(buf_len(&t.line) < LOG_TEXT_LINE_MAX);
	assert_int_equal(buf_len(&out), 3 * (LOG_TEXT_LINE_MAX + 3));
	log_text_release(&t);
	buf_release(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_what_a_person_reads_in_any_pieces),
		cmocka_unit_test(a_line_has_the_time_of_its_first_byte),
		cmocka_unit_test(a_line_without_an_end_is_broken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
