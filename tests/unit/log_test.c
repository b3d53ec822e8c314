/* The log: one line an event, values from outside cannot forge another. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "tests/unit/unit.h"

static int saved_stderr = -1, pipe_fds[2] = { -1, -1 };

static void
capture_start(void)
{
	fflush(stderr);
	saved_stderr = dup(STDERR_FILENO);
	assert_int_equal(pipe2(pipe_fds, O_NONBLOCK), 0);
	dup2(pipe_fds[1], STDERR_FILENO);
}

static size_t
capture_end(char *out, size_t size)
{
	ssize_t n;

	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	close(pipe_fds[1]);
	n = read(pipe_fds[0], out, size - 1);
	close(pipe_fds[0]);
	out[n < 0 ? 0 : n] = '\0';
	return n < 0 ? 0 : (size_t)n;
}

static void
text_line_has_time_level_event_and_pairs(void **state)
{
	char line[5000];

	(void)state;
	log_open("berthd", LOG_INFO, false);
	capture_start();
	log_info("attached", "sid", "ses-1", "why", "a b", "none", NULL, "q",
	    "say \"x\"=\n\x1b[m", "empty", "", NULL);
	capture_end(line, sizeof(line));
	assert_int_equal(strspn(line, "0123456789-T:.Z"), 24);
	assert_non_null(strstr(line, " info berthd["));
	assert_non_null(
	    strstr(line, "] attached sid=ses-1 why=\"a b\" none=- "
			 "q=\"say \\\"x\\\"=\\n\\e[m\" empty=\"\"\n"));
	assert_int_equal(strcspn(line, "\n"), strlen(line) - 1);
}

static void
json_line_is_escaped(void **state)
{
	char line[5000];

	(void)state;
	log_open("berthd", LOG_INFO, true);
	capture_start();
	log_warn("login", "user", "a\"b\n\xff\xc3\xa9", NULL);
	capture_end(line, sizeof(line));
	assert_memory_equal(line, "{\"time\":\"", 9);
	assert_non_null(strstr(line, "\"level\":\"warn\""));
	assert_non_null(strstr(line,
	    "\"event\":\"login\",\"user\":\"a\\\"b\\n\\ufffd\xc3\xa9\"}\n"));
}

static void
long_lines_stay_whole_lines(void **state)
{
	char value[3000], line[5000];

	memset(value, 'x', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	(void)state;
	for (int json = 0; json < 2; json++) {
		size_t n;

		log_open("berthd", LOG_INFO, json);
		capture_start();
		log_info("e", "a", value, "b", value, "c", value, "d", value,
		    "last", "z", NULL);
		n = capture_end(line, sizeof(line));
		assert_true(n <= 4096);
		assert_int_equal(line[n - 1], '\n');
		assert_non_null(strstr(line, json ? "\"c\":\"x" : " c=\"x"));
		assert_null(strstr(line, json ? "\"d\"" : " d="));
		if (json)
			assert_string_equal(line + n - 4, "x\"}\n");
	}
}

static void
levels_filter_and_parse(void **state)
{
	enum log_level level = LOG_ERR;
	char line[5000];

	(void)state;
	log_open("berthd", LOG_WARN, false);
	capture_start();
	log_info("hidden", NULL);
	log_debug("hidden", NULL);
	log_warn("shown", NULL);
	log_set_level(LOG_DEBUG);
	log_debug("deep", NULL);
	capture_end(line, sizeof(line));
	assert_null(strstr(line, "hidden"));
	assert_non_null(strstr(line, "shown\n"));
	assert_non_null(strstr(line, "deep\n"));
	assert_int_equal(log_get_level(), LOG_DEBUG);
	assert_int_equal(log_level_parse("info", &level), 0);
	assert_int_equal(level, LOG_INFO);
	assert_int_equal(log_level_parse("INFO", &level), -EINVAL);
	assert_int_equal(log_level_parse("", &level), -EINVAL);
	assert_string_equal(log_level_name(LOG_ERR), "err");
}

static void
ids_stand_on_every_later_line(void **state)
{
	char line[5000];

	(void)state;
	log_open("berth-sshd", LOG_INFO, false);
	log_set_id("conn", "con-1");
	log_set_id("sid", "ses 2");
	log_set_id("third", "is refused");
	capture_start();
	log_info("e", "k", "v", NULL);
	capture_end(line, sizeof(line));
	assert_non_null(strstr(line, "] e conn=con-1 sid=\"ses 2\" k=v\n"));
	assert_null(strstr(line, "third"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_line_has_time_level_event_and_pairs),
		cmocka_unit_test(json_line_is_escaped),
		cmocka_unit_test(long_lines_stay_whole_lines),
		cmocka_unit_test(levels_filter_and_parse),
		cmocka_unit_test(ids_stand_on_every_later_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
