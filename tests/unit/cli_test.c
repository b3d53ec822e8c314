/*
 * The command line's pure parts: options of verbs, the table of verbs, tables
 * for people, base64, whole lines of a recording.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/base64.h"
#include "cli/cli.h"
#include "cli/lines.h"
#include "cli/table.h"
#include "tests/unit/unit.h"

#define WORDS_MAX 16

/* Cuts TEXT at blanks into OUT; "''" is an empty word. */
static int
words(char *text, char **out)
{
	char *save = NULL;
	int n = 0;

	for (char *w = strtok_r(text, " ", &save); w;
	     w = strtok_r(NULL, " ", &save))
		out[n++] = strcmp(w, "''") == 0 ? w + 2 : w;
	return n;
}

static void
args_are_options_and_words_in_any_order(void **state)
{
	static const struct {
		const char *line;
		bool stops;
		int rc;
		const char *text, *rest, *message;
		bool a, b;
		size_t n_list;
	} rows[] = {
		{ "x y", false, 2, NULL, "x y", "", false, false, 0 },
		{ "-a x --beta", false, 1, NULL, "x", "", true, true, 0 },
		{ "-ab x", false, 1, NULL, "x", "", true, true, 0 },
		{ "x -t v", false, 1, "v", "x", "", false, false, 0 },
		{ "-tv x", false, 1, "v", "x", "", false, false, 0 },
		{ "-atv", false, 0, "v", "", "", true, false, 0 },
		{ "--text=v=w", false, 0, "v=w", "", "", false, false, 0 },
		{ "--text -a", false, 0, "-a", "", "", false, false, 0 },
		{ "-l 1 -l2 --list 3", false, 0, NULL, "", "", false, false,
		    3 },
		{ "x -a", true, 2, NULL, "x -a", "", false, false, 0 },
		{ "-a -- -b", false, 1, NULL, "-b", "", true, false, 0 },
		{ "-", false, 1, NULL, "-", "", false, false, 0 },
		{ "-t ''", false, 0, "", "", "", false, false, 0 },
		{ "-z", false, -EINVAL, NULL, "", "there is no option -z",
		    false, false, 0 },
		{ "--alp", false, -EINVAL, NULL, "", "there is no option --alp",
		    false, false, 0 },
		{ "--alpha=1", false, -EINVAL, NULL, "",
		    "--alpha takes no value", false, false, 0 },
		{ "-t", false, -EINVAL, NULL, "", "-t wants a value", false,
		    false, 0 },
		{ "--text", false, -EINVAL, NULL, "", "--text wants a value",
		    false, false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		autofree char *line = xstrdup(rows[i].line);
		autofree char *want = xstrdup(rows[i].rest);
		char *argv[WORDS_MAX], *rest[WORDS_MAX];
		int argc = words(line, argv), n_rest = words(want, rest), rc;
		const char *text = NULL;
		struct arg_list list = { .n = 0 };
		bool a = false, b = false;
		const struct arg_option options[] = {
			{ 'a', ARG_FLAG, "alpha", &a },
			{ 'b', ARG_FLAG, "beta", &b },
			{ 't', ARG_TEXT, "text", &text },
			{ 'l', ARG_LIST, "list", &list },
		};
		struct err e = { 0 };

		rc = args_parse(
		    argc, argv, options, ARRAY_LEN(options), rows[i].stops, &e);
		assert_int_equal(rc, rows[i].rc);
		assert_string_equal(e.msg, rows[i].message);
		if (rc < 0)
			continue;
		assert_int_equal(rc, n_rest);
		for (int k = 0; k < rc; k++)
			assert_string_equal(argv[k], rest[k]);
		assert_true(a == rows[i].a && b == rows[i].b);
		assert_int_equal(list.n, rows[i].n_list);
		if (rows[i].text)
			assert_string_equal(text, rows[i].text);
		else
			assert_null(text);
	}
}

static void
args_list_is_bounded(void **state)
{
	char *argv[ARG_LIST_MAX + 1];
	char word[] = "-lx";
	struct arg_list list = { .n = 0 };
	const struct arg_option options[] = {
		{ 'l', ARG_LIST, NULL, &list },
	};
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(argv); i++)
		argv[i] = word;
	assert_int_equal(
	    args_parse(ARG_LIST_MAX + 1, argv, options, 1, false, &e), -EINVAL);
	assert_string_equal(e.msg, "-l is given more than 64 times");
}

static void
verbs_are_found_by_one_word_or_two(void **state)
{
	static const struct {
		const char *line, *name;
		int n_words;
	} rows[] = {
		{ "ls", "ls", 1 },
		{ "ls -a", "ls", 1 },
		{ "rec ls --json", "rec ls", 2 },
		{ "rec cat x", "rec cat", 2 },
		{ "rec", NULL, 0 },
		{ "rec nope", NULL, 0 },
		{ "l", NULL, 0 },
		{ "lss", NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		autofree char *line = xstrdup(rows[i].line);
		char *argv[WORDS_MAX];
		int argc = words(line, argv), n_words = 0;
		const struct verb *v = verb_find(argc, argv, &n_words);

		assert_int_equal(n_words, rows[i].n_words);
		if (rows[i].name)
			assert_string_equal(v->name, rows[i].name);
		else
			assert_null(v);
	}
}

static void
every_verb_has_a_handler_and_a_sentence(void **state)
{
	size_t n;
	const struct verb *verbs = verbs_all(&n);

	(void)state;
	assert_true(n >= 25);
	for (size_t i = 0; i < n; i++) {
		assert_non_null(verbs[i].handler);
		assert_true(strlen(verbs[i].help) > 0);
		assert_true(verbs[i].help[strlen(verbs[i].help) - 1] != '.');
	}
}

static void
table_cells_are_for_people(void **state)
{
	static const struct {
		const char *json;
		enum column_kind kind;
		const char *text;
	} rows[] = {
		{ "null", COLUMN_TEXT, "-" },
		{ "\"\"", COLUMN_TEXT, "-" },
		{ "\"a b\"", COLUMN_TEXT, "a b" },
		{ "\"\\u001b[31m\\u0007\\n\"", COLUMN_TEXT, "\\e[31m\\x07\\n" },
		{ "\"\\u202e\"", COLUMN_TEXT, "\\xe2\\x80\\xae" },
		{ "true", COLUMN_TEXT, "yes" },
		{ "12", COLUMN_NUMBER, "12" },
		{ "null", COLUMN_NUMBER, "-" },
		{ "0", COLUMN_TIME, "1970-01-01T00:00:00Z" },
		{ "1700000000999", COLUMN_TIME, "2023-11-14T22:13:20Z" },
		{ "1500", COLUMN_DURATION, "1.5s" },
		{ "61000", COLUMN_DURATION, "1m01s" },
		{ "3723000", COLUMN_DURATION, "1h02m03s" },
		{ "1023", COLUMN_BYTES, "1023" },
		{ "1536", COLUMN_BYTES, "1.5k" },
		{ "1073741824", COLUMN_BYTES, "1.0G" },
		{ "[]", COLUMN_TEXT, "-" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *v = json_loads(rows[i].json, JSON_DECODE_ANY, NULL);
		char text[64];

		assert_non_null(v);
		table_format(v, rows[i].kind, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
		json_decref(v);
	}
}

static void
table_columns_are_as_wide_as_their_widest(void **state)
{
	static const struct column columns[] = {
		{ "ID", "id", COLUMN_TEXT },
		{ "COUNT", "n", COLUMN_NUMBER },
		{ "NAME", "name", COLUMN_TEXT },
	};
	json_t *rows = json_pack("[{s:s, s:i, s:s}, {s:s, s:s}]", "id",
	    "longer", "n", 123456, "name", "x", "id", "s", "name", "last one");
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	table_print(rows, columns, 3, f);
	table_print(json_object_get(rows, "none"), columns, 3, f);
	fclose(f);
	assert_string_equal(text, "ID       COUNT  NAME\n"
				  "longer  123456  x\n"
				  "s            -  last one\n");
	free(text);
	json_decref(rows);
}

static void
json_is_ascii(void **state)
{
	json_t *v = json_pack("[s]", "\xe2\x80\xae\x1b");
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	table_print_json(v, f);
	fclose(f);
	assert_string_equal(text, "[\n  \"\\u202E\\u001B\"\n]\n");
	free(text);
	json_decref(v);
}

static void
base64_is_that_of_rfc_4648(void **state)
{
	static const char *const rows[][2] = {
		{ "", "" },
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foobar", "Zm9vYmFy" },
		{ "\xff\xfe\xfd", "//79" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		autofree char *text =
		    base64_encode(rows[i][0], strlen(rows[i][0]));

		assert_string_equal(text, rows[i][1]);
	}
}

static void
only_whole_lines_of_a_recording_count(void **state)
{
	static const struct {
		const char *text;
		size_t n, whole;
		bool is_bad;
	} rows[] = {
		{ "", 0, 0, false },
		{ "{}\n[1]\n", 7, 7, false },
		{ "{}\n[1", 5, 3, false },
		{ "{}\n[1]", 6, 3, false },
		{ "{}\n[1\n[2]\n", 10, 3, true },
		{ "{}\n\0\0\0\0\n", 8, 3, true },
		{ "{}\n[\0]\n", 7, 3, true },
		{ "{}\n\n[1]\n", 8, 3, true },
		{ "nonsense\n", 9, 0, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool is_bad = false;

		assert_int_equal(lines_whole(rows[i].text, rows[i].n, &is_bad),
		    rows[i].whole);
		assert_int_equal(is_bad, rows[i].is_bad);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(args_are_options_and_words_in_any_order),
		cmocka_unit_test(args_list_is_bounded),
		cmocka_unit_test(verbs_are_found_by_one_word_or_two),
		cmocka_unit_test(every_verb_has_a_handler_and_a_sentence),
		cmocka_unit_test(table_cells_are_for_people),
		cmocka_unit_test(table_columns_are_as_wide_as_their_widest),
		cmocka_unit_test(json_is_ascii),
		cmocka_unit_test(base64_is_that_of_rfc_4648),
		cmocka_unit_test(only_whole_lines_of_a_recording_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
