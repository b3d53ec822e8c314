/*
 * Patterns of hosts with ports: what matches, what forbids, and that no second
 * spelling of an address gets around either.
 */
#include <stdbool.h>
#include <string.h>

#include "base/endpoint.h"
#include "base/mem.h"
#include "tests/unit/unit.h"

static const struct {
	const char *list, *host;
	uint16_t port;
	bool is_allowed;
} rows[] = {
	{ "localhost:*", "localhost", 1, true },
	{ "localhost:*", "LocalHost", 65535, true },
	{ "localhost:*", "localhost.", 80, true },
	{ "LOCALHOST:80", "localhost", 80, true },
	{ "localhost:80", "localhost", 8080, false },
	{ "localhost:80", "localhost", 8, false },
	{ "localhost:*", "localhost.example.com", 80, false },
	{ "localhost:*", "xlocalhost", 80, false },
	{ "localhost:80??", "localhost", 8080, true },
	{ "localhost:80??", "localhost", 808, false },
	{ "a:1,b:2", "b", 2, true },
	{ "a:1,b:2", "a", 2, false },
	{ "*.example.com:443", "www.example.com", 443, true },
	{ "*.example.com:443", "example.com", 443, false },
	{ "*:443", "anything", 443, true },
	{ "*:443", "::1", 443, true },
	{ "[::1]:*", "::1", 9, true },
	{ "[::1]:*", "0:0:0:0:0:0:0:1", 9, true },
	{ "[0:0::0:1]:*", "::1", 9, true },
	{ "[::1]:*", "::2", 9, false },
	{ "[fe80::*]:*", "FE80::1", 9, true },
	{ "[::ffff:127.0.0.1]:*", "127.0.0.1", 9, false },
	{ "127.0.0.*:*", "127.0.0.7", 9, true },
	{ "127.0.0.1:*", "127.1", 9, false },
	{ "*:*,!10.*:*", "10.1.2.3", 80, false },
	{ "!10.*:*,*:*", "10.1.2.3", 80, false },
	{ "*:*,!10.*:22", "10.1.2.3", 80, true },
	{ "*:*,!secret:*", "SECRET.", 80, false },
	{ "!10.*:*", "11.1.2.3", 80, false },
	{ "", "localhost", 80, false },
	{ "localhost", "localhost", 80, false },
	{ ":80", "", 80, false },
	{ "*:80", "", 80, true },
};

static void
endpoint_lists_allow_as_listed(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (endpoint_list_allows(rows[i].list, rows[i].host,
			rows[i].port) != rows[i].is_allowed)
			fail_msg("%s with %s, port %u", rows[i].list,
			    rows[i].host, rows[i].port);
	}
}

static void
endpoint_denial_is_of_negated_patterns_alone(void **state)
{
	(void)state;
	assert_true(endpoint_list_denies("*:*,!10.*:*", "10.0.0.1", 1));
	assert_false(endpoint_list_denies("*:*,!10.*:*", "11.0.0.1", 1));
	assert_false(endpoint_list_denies("a:1", "b", 2));
	assert_false(endpoint_list_denies("", "b", 2));
}

/* sshd(8): permitopen does no pattern matching, but for a lone star. */
static void
endpoint_permits_are_literal(void **state)
{
	(void)state;
	assert_true(endpoint_list_permits("localhost:80", "localhost", 80));
	assert_true(endpoint_list_permits("localhost:*", "localhost", 81));
	assert_true(endpoint_list_permits("*:80", "other", 80));
	assert_true(endpoint_list_permits("[::1]:80", "::1", 80));
	assert_false(endpoint_list_permits("local*:80", "localhost", 80));
	assert_false(endpoint_list_permits("localhost:8?", "localhost", 80));
	assert_false(endpoint_list_permits("!a:1", "b", 1));
	assert_false(endpoint_list_permits("a:1,b:2", "a", 2));
}

static void
endpoint_patterns_are_checked(void **state)
{
	static const char *const good[] = { "a:1", "*:*", "!a:1", "[::1]:80",
		"[*]:1", "a-b_c.d:8?", "1.2.3.4:22" };
	static const char *const bad[] = { "", ":", "a", "a:", ":1", "a:b",
		"::1:80", "[]:80", "a b:1", "a:1,b:2", "[::1:80", "a:123456789",
		"a\n:1", "!", "!:1", "a;b:1" };
	char host[300];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		if (!endpoint_is_pattern(good[i]))
			fail_msg("%s is one", good[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (endpoint_is_pattern(bad[i]))
			fail_msg("%s is none", bad[i]);
	}
	memset(host, 'a', sizeof(host));
	memcpy(host + sizeof(host) - 3, ":1", 3);
	assert_false(endpoint_is_pattern(host));
}

static void
endpoint_text_has_brackets_where_they_belong(void **state)
{
	char text[ENDPOINT_TEXT_MAX], host[ENDPOINT_HOST_MAX];

	(void)state;
	endpoint_text("a.b", 80, text);
	assert_string_equal(text, "a.b:80");
	endpoint_text("::1", 65535, text);
	assert_string_equal(text, "[::1]:65535");
	memset(host, ':', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	endpoint_text(host, 65535, text);
	assert_int_equal(strlen(text), sizeof(host) - 1 + 2 + 6);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endpoint_lists_allow_as_listed),
		cmocka_unit_test(endpoint_denial_is_of_negated_patterns_alone),
		cmocka_unit_test(endpoint_permits_are_literal),
		cmocka_unit_test(endpoint_patterns_are_checked),
		cmocka_unit_test(endpoint_text_has_brackets_where_they_belong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
