/*
 * Messages of sftp-server: what each line of a real log is, names that look
 * like messages, messages that were cut.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sessions/manager/sftp_log.h"
#include "tests/unit/unit.h"

static struct sftp_log_event event;

/* Feeds TEXT cut at its line feeds; the number of events, `event` the last. */
static int
feed(const char *text)
{
	struct sftp_log l = { 0 };
	int n = 0;

	while (*text) {
		size_t len = strcspn(text, "\n");

		if (sftp_log_feed(&l, text, len, &event))
			n++;
		text += len + (text[len] == '\n');
	}
	sftp_log_release(&l);
	return n;
}

static void
messages_are_what_sftp_server_means(void **state)
{
	static const struct {
		const char *text;
		enum sftp_log_kind kind;
		const char *path;
		bool is_write, is_forced;
		uint64_t n_read, n_written;
	} rows[] = {
		{ "open \"/a b\" flags READ mode 0666\r\n", SFTP_LOG_OPEN,
		    "/a b", false, false, 0, 0 },
		{ "open \"x\" flags WRITE,CREATE,TRUNCATE mode 0755\r\n",
		    SFTP_LOG_OPEN, "x", true, false, 0, 0 },
		{ "open \"x\" flags APPEND mode 0755\r\n", SFTP_LOG_OPEN, "x",
		    true, false, 0, 0 },
		{ "close \"x\" bytes read 3 written 9000000000\r\n",
		    SFTP_LOG_CLOSE, "x", false, false, 3, 9000000000 },
		{ "forced close \"x\" bytes read 3 written 0\r\n",
		    SFTP_LOG_CLOSE, "x", false, true, 3, 0 },
		{ "sent status No such file\r\n", SFTP_LOG_STATUS,
		    "No such file", false, false, 0, 0 },
		{ "remove name \"a\"\r\n", SFTP_LOG_CHANGE, "remove name \"a\"",
		    false, false, 0, 0 },
		{ "posix-rename old \"a\" new \"b\"\r\n", SFTP_LOG_CHANGE,
		    "posix-rename old \"a\" new \"b\"", false, false, 0, 0 },
		{ "set \"a\" mode 0600\r\n", SFTP_LOG_CHANGE,
		    "set \"a\" mode 0600", false, false, 0, 0 },
		{ "opendir \"a\"\r\n", SFTP_LOG_OTHER, "", false, false, 0, 0 },
		{ "session opened for local user u from [UNKNOWN]\r\n",
		    SFTP_LOG_OTHER, "", false, false, 0, 0 },
		{ "\r\n", SFTP_LOG_OTHER, "", false, false, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(feed(rows[i].text), 1);
		assert_int_equal(event.kind, rows[i].kind);
		assert_string_equal(event.path, rows[i].path);
		assert_int_equal(event.is_write, rows[i].is_write);
		assert_int_equal(event.is_forced, rows[i].is_forced);
		assert_int_equal(event.n_read, rows[i].n_read);
		assert_int_equal(event.n_written, rows[i].n_written);
		assert_false(event.is_cut);
	}
}

static void
odd_names_become_one_printable_line(void **state)
{
	static const struct {
		const char *logged, *shown;
	} rows[] = {
		{ "new\nline", "new\\nline" },
		{ "cr\r\nlf", "cr\\r\\nlf" },
		{ "\\033[31m", "\\e[31m" },
		{ "\\303\\244", "\xc3\xa4" },
		{ "\\303", "\\xc3" },
		{ "\\302\\233", "\\xc2\\x9b" },
		{ "\\342\\200\\256", "\\xe2\\x80\\xae" },
		{ "q\"x", "q\"x" },
		{ "back\\\\slash", "back\\\\slash" },
		{ "bel\a\b\t", "bel\\x07\\x08\\t" },
		{ "a\" flags WRITE mode 0644", "a\" flags WRITE mode 0644" },
		{ "a\" bytes read 1 written 2", "a\" bytes read 1 written 2" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		autofree char *open = xasprintf(
		    "open \"%s\" flags READ mode 0666\r\n", rows[i].logged);
		autofree char *close = xasprintf(
		    "close \"%s\" bytes read 5 written 0\r\n", rows[i].logged);

		assert_int_equal(feed(open), 1);
		assert_string_equal(event.path, rows[i].shown);
		assert_int_equal(feed(close), 1);
		assert_string_equal(event.path, rows[i].shown);
		assert_int_equal(event.n_read, 5);
	}
}

static void
a_cut_message_has_the_path_of_its_open(void **state)
{
	char name[1100], path[SFTP_LOG_PATH_MAX];
	char text[1200];

	(void)state;
	memset(name, 'x', sizeof(name));
	snprintf(text, sizeof(text), "open \"%.1015s\r\n", name);
	assert_int_equal(feed(text), 1);
	assert_int_equal(event.kind, SFTP_LOG_OPEN);
	assert_int_equal(strlen(event.path), SFTP_LOG_PATH_LOGGED + 3);
	memcpy(path, event.path, sizeof(path));
	snprintf(text, sizeof(text), "forced close \"%.1007s\r\n", name);
	assert_int_equal(feed(text), 1);
	assert_true(event.is_cut && event.is_forced);
	assert_string_equal(event.path, path);
	/* Long, and whole all the same. */
	snprintf(text, sizeof(text),
	    "close \"%.930s\" bytes read 1 written 2\r\n", name);
	assert_int_equal(feed(text), 1);
	assert_false(event.is_cut);
	assert_int_equal(event.n_written, 2);
	assert_string_equal(event.path, path);
}

static void
nonsense_is_no_event_and_ends(void **state)
{
	char text[4096], many[1200];

	(void)state;
	assert_int_equal(feed("no end\n"), 0);
	assert_int_equal(
	    feed("close \"a\" bytes read 1 written 99999999999999999999\r\n"),
	    0);
	assert_int_equal(feed("close \"a\" bytes read -1 written 0\r\n"), 0);
	/* A begun message swallows no more than one could be long. */
	memset(many, 'y', sizeof(many));
	snprintf(text, sizeof(text), "open \"a\r\n%.1190s\r\n%s", many,
	    "remove name \"b\"\r\n");
	assert_true(feed(text) >= 1);
	assert_int_equal(event.kind, SFTP_LOG_CHANGE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_are_what_sftp_server_means),
		cmocka_unit_test(odd_names_become_one_printable_line),
		cmocka_unit_test(a_cut_message_has_the_path_of_its_open),
		cmocka_unit_test(nonsense_is_no_event_and_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
