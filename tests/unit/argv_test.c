/*
 * Command lines from templates: which text is which words, and that no value
 * ever becomes more than a part of its word.
 */
#include <errno.h>
#include <string.h>

#include "base/argv.h"
#include "base/err.h"
#include "base/mem.h"
#include "tests/unit/unit.h"

static const char *const list[] = { "one", "two words", "", NULL };
static const char *const nothing[] = { NULL };

static int
lookup(const char *name, void *arg, struct argv_value *out)
{
	(void)arg;
	out->list = NULL;
	if (strcmp(name, "name") == 0)
		out->text = "box";
	else if (strcmp(name, "evil") == 0)
		out->text = "a b'\"\\{name};$(id)";
	else if (strcmp(name, "empty") == 0)
		out->text = "";
	else if (strcmp(name, "list") == 0)
		out->list = (char *const *)(uintptr_t)list;
	else if (strcmp(name, "nothing") == 0)
		out->list = (char *const *)(uintptr_t)nothing;
	else
		return -ENOENT;
	return 0;
}

static void
words_are_those_that_are_meant(void **state)
{
	static const struct {
		const char *text;
		const char *words; /* each in brackets */
	} rows[] = {
		{ "", "" },
		{ "  \t ", "" },
		{ "a b\tc\n d ", "[a][b][c][d]" },
		{ "x-{name}-y", "[x-box-y]" },
		{ "{name}{name}", "[boxbox]" },
		{ "'a b' \"c d\" e' 'f", "[a b][c d][e f]" },
		{ "'' \"\"", "[][]" },
		{ "'{name} \\ \"' \"{name}'s\"", "[{name} \\ \"][box's]" },
		{ "\\{name} \\\\ \\\" \\' a\\ b", "[{name}][\\][\"]['][a b]" },
		{ "\"a\\\"b\\{name}\"", "[a\"b{name}]" },
		{ "{{.State}} {.a} } {} {A}",
		    "[{{.State}}][{.a}][}][{}][{A}]" },
		{ "{evil} x", "[a b'\"\\{name};$(id)][x]" },
		{ "{empty}", "[]" },
		{ "-m={empty?} -n={name?} {empty?}", "[-n=box]" },
		{ "a {list} b", "[a][one][two words][][b]" },
		{ "a {nothing} {nothing?} b", "[a][b]" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char got[256] = "";
		char **v = NULL;
		struct err e = { .code = 0 };

		if (argv_expand(rows[i].text, lookup, NULL, &v, &e) < 0)
			fail_msg("%s: %s", rows[i].text, e.msg);
		for (char **w = v; *w; w++) {
			strncat(got, "[", sizeof(got) - strlen(got) - 1);
			strncat(got, *w, sizeof(got) - strlen(got) - 1);
			strncat(got, "]", sizeof(got) - strlen(got) - 1);
		}
		assert_string_equal(got, rows[i].words);
		strv_free(v);
	}
}

static void
what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "{nme}", "{nme} is not a placeholder here" },
		{ "{name", "\"{name\" is not closed; write \\{ for a brace" },
		{ "{na me}", "\"{na\" is not closed; write \\{ for a brace" },
		{ "{name?x}",
		    "\"{name\" is not closed; write \\{ for a brace" },
		{ "'a", "a quote is not closed" },
		{ "\"a", "a quote is not closed" },
		{ "a\\", "ends in a backslash" },
		{ "a{list}", "{list} is several words and stands alone" },
		{ "{list}a", "a placeholder for several words stands alone" },
		{ "\"{list}\"", "{list} is several words and stands alone" },
		{ "{abcdefghijklmnopqrstuvwxyzabcdefghijk}",
		    "\"{abcdefghijklmnopqrstuvwxyzabcdefghijk\" is not closed; "
		    "write \\{ for a brace" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err e = { .code = 0 };
		char **v = NULL;

		assert_int_equal(
		    argv_expand(rows[i].text, lookup, NULL, &v, &e), -EINVAL);
		assert_null(v);
		assert_string_equal(e.msg, rows[i].why);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_those_that_are_meant),
		cmocka_unit_test(what_is_wrong_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
