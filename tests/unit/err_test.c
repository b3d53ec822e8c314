/* Errors: the code comes back, sentences are cut and never overrun. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "tests/unit/unit.h"

static void
set_stores_code_and_sentence(void **state)
{
	struct err e = { 0 };

	(void)state;
	assert_int_equal(err_set(&e, -EACCES, "key %s: %d", "a", 7), -EACCES);
	assert_int_equal(e.code, -EACCES);
	assert_string_equal(e.msg, "key a: 7");
}

static void
null_error_only_returns_the_code(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, -EIO, "x"), -EIO);
	assert_int_equal(err_sys(NULL, -EIO, "x"), -EIO);
	assert_int_equal(err_wrap(NULL, -EIO, "x"), -EIO);
}

static void
sys_appends_what_the_system_says(void **state)
{
	struct err e = { 0 };

	(void)state;
	assert_int_equal(err_sys(&e, -ENOENT, "open %s", "f"), -ENOENT);
	assert_string_equal(e.msg, "open f: No such file or directory");
	err_sys(&e, -100000, "open");
	assert_string_equal(e.msg, "open: unknown error");
}

static void
wrap_puts_context_in_front(void **state)
{
	struct err e = { 0 };

	(void)state;
	err_set(&e, -EINVAL, "inner");
	assert_int_equal(err_wrap(&e, -EPERM, "outer %d", 1), -EPERM);
	assert_int_equal(e.code, -EPERM);
	assert_string_equal(e.msg, "outer 1: inner");
}

static void
long_sentences_are_cut(void **state)
{
	struct {
		struct err e;
		char guard[8];
	} s = { .guard = "guarded" };
	char text[2 * ERR_MSG_MAX];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	err_set(&s.e, -EIO, "%s", text);
	assert_int_equal(strlen(s.e.msg), ERR_MSG_MAX - 1);
	err_sys(&s.e, -EIO, "%s", text);
	assert_int_equal(strlen(s.e.msg), ERR_MSG_MAX - 1);
	for (int i = 0; i < 3; i++)
		err_wrap(&s.e, -EIO, "context");
	assert_int_equal(strlen(s.e.msg), ERR_MSG_MAX - 1);
	assert_string_equal(s.guard, "guarded");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_stores_code_and_sentence),
		cmocka_unit_test(null_error_only_returns_the_code),
		cmocka_unit_test(sys_appends_what_the_system_says),
		cmocka_unit_test(wrap_puts_context_in_front),
		cmocka_unit_test(long_sentences_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
