/* What a key, a role and the configuration let be forwarded. */
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "conf/conf.h"
#include "sshd/listener/access.h"
#include "sshd/listener/forward_rule.h"
#include "tests/unit/unit.h"

static char s_loopback[] = "localhost:*,127.0.0.1:*,[::1]:*";
static char s_localhost[] = "localhost:*";
static char s_world[] = "localhost:*,*:8080,!10.0.0.9:8080";
static char s_none[] = "";
static char s_open[] = "localhost:80,[::1]:*";
static char s_listen[] = "*:8080,local*:9000";

static struct conf
rules(char *allow, char *listen)
{
	return (struct conf){ .forward = { allow, listen } };
}

static struct access_grant
person(enum role role, bool may_forward)
{
	return (struct access_grant){ .who = { .role = role },
		.may_forward = may_forward };
}

static void
forward_needs_a_role_and_the_option(void **state)
{
	struct conf c = rules(s_loopback, s_localhost);
	const char *binds[FORWARD_BINDS_MAX];
	struct access_grant g;
	size_t n;

	(void)state;
	for (enum role r = ROLE_VIEWER; r <= ROLE_OWNER; r++) {
		bool may = r != ROLE_VIEWER;

		g = person(r, true);
		assert_int_equal(
		    !forward_rule_open(&g, &c, "localhost", 80), may);
		assert_int_equal(
		    !forward_rule_listen(&g, &c, "", 0, binds, &n), may);
		g = person(r, false);
		assert_non_null(forward_rule_open(&g, &c, "localhost", 80));
		assert_non_null(forward_rule_listen(&g, &c, "", 0, binds, &n));
	}
	/* What an admin may over others does not make a viewer's key forward. */
	g = person(ROLE_VIEWER, true);
	g.who.is_admin = true;
	assert_non_null(forward_rule_open(&g, &c, "localhost", 80));
}

static void
forward_goes_where_key_and_configuration_agree(void **state)
{
	struct conf c = rules(s_loopback, s_none);
	struct access_grant g = person(ROLE_WRITER, true);

	(void)state;
	assert_null(forward_rule_open(&g, &c, "127.0.0.1", 81));
	assert_non_null(forward_rule_open(&g, &c, "127.0.0.2", 81));
	assert_non_null(forward_rule_open(&g, &c, "example.com", 81));
	g.permit_open = s_open;
	assert_null(forward_rule_open(&g, &c, "localhost", 80));
	assert_null(forward_rule_open(&g, &c, "::1", 22));
	assert_non_null(forward_rule_open(&g, &c, "localhost", 81));
	assert_non_null(forward_rule_open(&g, &c, "127.0.0.1", 80));
	c.forward.allow = s_none;
	assert_non_null(forward_rule_open(&g, &c, "localhost", 80));
}

static void
forward_hosts_are_names_or_addresses(void **state)
{
	static const char *const bad[] = { "", "a b", "a\n", "[::1]", "%lo",
		"a,b", "a/b", "\xc3\xa9" };
	char everything[] = "*:*";
	struct conf c = rules(everything, everything);
	struct access_grant g = person(ROLE_OWNER, true);
	const char *binds[FORWARD_BINDS_MAX];
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_non_null(forward_rule_open(&g, &c, bad[i], 80));
		if (*bad[i])
			assert_non_null(
			    forward_rule_listen(&g, &c, bad[i], 80, binds, &n));
	}
	assert_non_null(forward_rule_open(&g, &c, "localhost", 0));
}

static void
forward_address_behind_a_name_may_be_forbidden(void **state)
{
	char list[] = "*:*,!169.254.*:*";
	struct conf c = rules(list, s_none);

	(void)state;
	assert_non_null(forward_rule_reached(&c, "169.254.169.254", 80));
	assert_null(forward_rule_reached(&c, "127.0.0.1", 80));
}

static const struct {
	char *listen, *permit;
	const char *address;
	uint16_t port;
	const char *first, *second; /* NULL: refused, no second */
} binds_rows[] = {
	/* The loopback, whatever is asked, as with GatewayPorts=no. */
	{ s_localhost, NULL, "", 0, "127.0.0.1", "::1" },
	{ s_localhost, NULL, "localhost", 80, "127.0.0.1", "::1" },
	{ s_localhost, NULL, "*", 80, "127.0.0.1", "::1" },
	{ s_localhost, NULL, "0.0.0.0", 80, "127.0.0.1", "::1" },
	{ s_localhost, NULL, "::", 80, "127.0.0.1", "::1" },
	{ s_localhost, NULL, "192.0.2.1", 80, "127.0.0.1", "::1" },
	{ s_localhost, NULL, "some.host", 80, "127.0.0.1", "::1" },
	{ s_localhost, NULL, "127.0.0.1", 80, "127.0.0.1", NULL },
	{ s_localhost, NULL, "::1", 80, "::1", NULL },
	{ s_none, NULL, "localhost", 80, NULL, NULL },
	/* More, where the configuration says so. */
	{ s_world, NULL, "", 8080, "0.0.0.0", "::" },
	{ s_world, NULL, "*", 8080, "0.0.0.0", "::" },
	{ s_world, NULL, "192.0.2.1", 8080, "192.0.2.1", NULL },
	{ s_world, NULL, "10.0.0.9", 8080, "127.0.0.1", "::1" },
	{ s_world, NULL, "*", 8081, "127.0.0.1", "::1" },
	{ s_world, NULL, "localhost", 8080, "127.0.0.1", "::1" },
	/* And only what the key names. */
	{ s_localhost, s_listen, "", 8080, "127.0.0.1", "::1" },
	{ s_localhost, s_listen, "localhost", 9000, "127.0.0.1", "::1" },
	{ s_localhost, s_listen, "", 9000, NULL, NULL },
	{ s_localhost, s_listen, "localhost", 0, NULL, NULL },
};

static void
forward_listens_where_it_may(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(binds_rows); i++) {
		struct conf c = rules(s_none, binds_rows[i].listen);
		struct access_grant g = person(ROLE_WRITER, true);
		const char *binds[FORWARD_BINDS_MAX] = { NULL, NULL };
		const char *why;
		size_t n = 0;

		g.permit_listen = binds_rows[i].permit;
		why = forward_rule_listen(&g, &c, binds_rows[i].address,
		    binds_rows[i].port, binds, &n);
		if (!binds_rows[i].first) {
			assert_non_null(why);
			continue;
		}
		assert_null(why);
		assert_int_equal(n, binds_rows[i].second ? 2 : 1);
		assert_string_equal(binds[0], binds_rows[i].first);
		if (n == 2)
			assert_string_equal(binds[1], binds_rows[i].second);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forward_needs_a_role_and_the_option),
		cmocka_unit_test(
		    forward_goes_where_key_and_configuration_agree),
		cmocka_unit_test(forward_hosts_are_names_or_addresses),
		cmocka_unit_test(
		    forward_address_behind_a_name_may_be_forbidden),
		cmocka_unit_test(forward_listens_where_it_may),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
