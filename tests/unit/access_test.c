/*
 * authorized_keys: OpenSSH's format and quoting, berth's options, and that a
 * file that changed acts on the next question.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "sshd/listener/access.h"
#include "sshd/listener/key_line.h"
#include "sshd/listener/source.h"
#include "tests/unit/unit.h"

#define KEY_A \
	"AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
#define KEY_B \
	"AAAAC3NzaC1lZDI1NTE5AAAAIP/+/fz7+vn49/b19PPy8fDv7u3s6+rp6Ofm5eTj4uHg"
#define KEY_SK                                                                 \
	"AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIAABAgMEBQYHCAkKCwwNDg8Q" \
	"ERITFBUWFxgZGhscHR4fAAAABHNzaDo="
#define ED   "ssh-ed25519 "
#define A    ED KEY_A
#define B    ED KEY_B
#define NOW  1700000000000LL /* 2023-11-14 22:13:20 UTC */
#define HOME "192.0.2.7"

static char path[] = "/tmp/access_test_XXXXXX";
static struct conf conf;
static struct access *a;

static void
write_keys(const char *text)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static int
setup(void **state)
{
	int fd;

	(void)state;
	memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	log_open("test", LOG_ERR, false);
	conf.access.authorized_keys = path;
	conf.access.default_role = xstrdup("writer");
	conf.access.allow_sk = false;
	a = access_new(&conf);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	access_free(a);
	free(conf.access.default_role);
	return unlink(path);
}

/* Asks for KEY as USER from HOME; G may be NULL. */
static int
ask(const char *user, const char *key, struct access_grant *g, struct err *e)
{
	struct access_query q = {
		.user = user,
		.key_type = "ssh-ed25519",
		.key_base64 = key,
		.address = HOME,
		.now_ms = NOW,
	};
	struct access_grant own = { 0 };
	char fingerprint[KEY_FINGERPRINT_MAX];
	int rc = access_check(a, &q, g ? g : &own, fingerprint, e);

	if (!g)
		access_grant_release(&own);
	return rc;
}

static void
access_key_gets_its_comment_as_identity(void **state)
{
	struct access_grant g = { 0 };

	(void)state;
	write_keys("# people\n\n" A " alice at home \r\n" B "\r\n");
	assert_int_equal(ask("box+x", KEY_A, &g, NULL), 0);
	assert_string_equal(g.who.identity, "alice at home");
	assert_string_equal(g.name.sandbox, "box");
	assert_string_equal(g.name.session, "x");
	assert_int_equal(g.who.role, ROLE_WRITER);
	assert_true(g.who.may_pty && g.may_forward && !g.who.is_admin);
	assert_null(g.who.forced_command);
	access_grant_release(&g);
	assert_int_equal(ask("box", KEY_B, &g, NULL), 0);
	assert_string_equal(g.who.identity, g.who.fingerprint);
	assert_int_equal(strncmp(g.who.fingerprint, "SHA256:", 7), 0);
	assert_int_equal(strlen(g.who.fingerprint), 7 + 43);
	access_grant_release(&g);
}

/* Lines that give KEY_A, as user box+dev from 192.0.2.7 at NOW, or do not. */
static const struct {
	const char *options;
	bool is_in;
} rows[] = {
	{ "restrict", true },
	{ "RESTRICT,Pty", true },
	{ "no-pty,no-port-forwarding,no-X11-forwarding,no-agent-forwarding",
	    true },
	{ "permitopen=\"localhost:80\",permitopen=\"[::1]:*\"", true },
	{ "permitopen=\"localhost\"", false },
	{ "permitopen=\"localhost:0\"", false },
	{ "permitopen=\"a:1,b:2\"", false },
	{ "permitopen=\"!a:1\"", false },
	{ "permitopen=\"::1:80\"", false },
	{ "permitlisten=\"8080\",permitlisten=\"local*:*\"", true },
	{ "permitlisten=\"*\"", true },
	{ "permitlisten=\"localhost:x\"", false },
	{ "permitlisten=\"\"", false },
	{ "sandbox=\"box\"", true },
	{ "sandbox=\"b*,!bad\"", true },
	{ "sandbox=\"*,!box\"", false },
	{ "sandbox=\"other\"", false },
	{ "sandbox=\"\"", false },
	{ "session=\"d?v\"", true },
	{ "session=\"main\"", false },
	{ "sandbox=\"box\",sandbox=\"*\"", false },
	{ "role=\"viewer\"", true },
	{ "role=\"king\"", false },
	{ "role=\"owner\",role=\"viewer\"", false },
	{ "role=owner", false },
	{ "role=\"owner", false },
	{ "template=\"small\"", true },
	{ "template=\"\"", false },
	{ "template=small", false },
	{ "template=\"a\",template=\"a\"", false },
	{ "admin", true },
	{ "admin=\"yes\"", false },
	{ "restrict=\"\"", false },
	{ "cert-authority", false },
	{ "environment=\"A=b\"", false },
	{ "frobnicate", false },
	{ "restrict,", false },
	{ ",restrict", false },
	{ "restrict,,pty", false },
	{ "restrict;pty", false },
	{ "command=\"a\",command=\"b\"", false },
	{ "from=\"192.0.2.7\"", true },
	{ "from=\"192.0.2.*\"", true },
	{ "from=\"192.0.2.0/24\"", true },
	{ "from=\"10.0.0.0/8,192.0.0.0/13\"", true },
	{ "from=\"192.0.2.0/24,!192.0.2.7\"", false },
	{ "from=\"!192.0.2.7,*\"", false },
	{ "from=\"!10.0.0.1\"", false },
	{ "from=\"192.0.3.0/24\"", false },
	{ "from=\"192.0.2.7/24\"", false },
	{ "from=\"192.0.2.0/33\"", false },
	{ "from=\"::/0\"", false },
	{ "from=\"0.0.0.0/0\"", true },
	{ "from=\"host.example.com\"", false },
	{ "from=\"\"", false },
	{ "expiry-time=\"20991231\"", true },
	{ "expiry-time=\"20231114221321Z\"", true },
	{ "expiry-time=\"20231114221319Z\"", false },
	{ "expiry-time=\"202311142214Z\"", true },
	{ "expiry-time=\"20231114Z\"", false },
	{ "expiry-time=\"20991231\",expiry-time=\"20200101\"", false },
	{ "expiry-time=\"20990230\"", false },
	{ "expiry-time=\"2099123\"", false },
	{ "expiry-time=\"209912312500\"", false },
	{ "expiry-time=\"soon\"", false },
};

static void
access_options_hold_or_refuse_the_key(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		autofree char *text =
		    xasprintf("%s %s x\n%s y\n", rows[i].options, A, B);

		write_keys(text);
		if ((ask("box+dev", KEY_A, NULL, NULL) == 0) != rows[i].is_in)
			fail_msg("%s: not as it should", rows[i].options);
		/* A bad line costs only itself. */
		assert_int_equal(ask("box+dev", KEY_B, NULL, NULL), 0);
	}
}

static void
access_options_set_what_the_key_may(void **state)
{
	struct access_grant g = { 0 };

	(void)state;
	write_keys("restrict,pty,role=\"owner\",admin " A "\n"
		   "restrict,permitopen=\"a:1\",permitopen=\"[::1]:*\","
		   "permitlisten=\"80\" " B "\n");
	assert_int_equal(ask("box", KEY_A, &g, NULL), 0);
	assert_true(g.who.may_pty && !g.may_forward && g.who.is_admin);
	assert_int_equal(g.who.role, ROLE_OWNER);
	access_grant_release(&g);
	assert_int_equal(ask("box", KEY_B, &g, NULL), 0);
	assert_false(g.who.may_pty || g.may_forward || g.who.is_admin);
	assert_string_equal(g.permit_open, "a:1,[::1]:*");
	assert_string_equal(g.permit_listen, "*:80");
	access_grant_release(&g);
}

/* sshd(8): `\"` is a quote, every other backslash stays. */
static void
access_command_is_dequoted_as_openssh_does(void **state)
{
	struct access_grant g = { 0 };

	(void)state;
	write_keys("command=\"echo \\\"a, b\\\" \\n c\",no-pty " A " me\n");
	assert_int_equal(ask("box", KEY_A, &g, NULL), 0);
	assert_string_equal(g.who.forced_command, "echo \"a, b\" \\n c");
	assert_string_equal(g.who.identity, "me");
	assert_false(g.who.may_pty);
	access_grant_release(&g);
}

static void
access_of_one_key_on_two_lines_is_the_first_that_fits(void **state)
{
	struct access_grant g = { 0 };

	(void)state;
	write_keys("sandbox=\"one\",role=\"owner\" " A " a\n"
		   "sandbox=\"two\",role=\"viewer\" " A " b\n");
	assert_int_equal(ask("two", KEY_A, &g, NULL), 0);
	assert_string_equal(g.who.identity, "b");
	assert_int_equal(g.who.role, ROLE_VIEWER);
	access_grant_release(&g);
	assert_int_equal(ask("three", KEY_A, NULL, NULL), -EACCES);
}

static void
access_refuses_with_a_reason_for_the_log(void **state)
{
	struct err e = { 0 };

	(void)state;
	write_keys(A " alice\n" ED "not-base64 x\n" B "\n");
	assert_int_equal(ask("../x", KEY_A, NULL, &e), -EACCES);
	assert_string_equal(e.msg, "the user name is not valid");
	assert_int_equal(ask("admin", KEY_A, NULL, &e), -EACCES);
	assert_int_equal(ask("box", KEY_SK, NULL, &e), -EACCES);
	assert_string_equal(e.msg, "unknown key");
	assert_int_equal(ask("box", "", NULL, &e), -EACCES);
	assert_int_equal(ask("box", "%%%%", NULL, &e), -EACCES);
	assert_int_equal(ask("box", KEY_B, NULL, &e), 0);
}

static void
access_certificates_are_refused_by_type(void **state)
{
	static const char *const types[] = { "ssh-ed25519-cert-v01@openssh.com",
		"SSH_KEYTYPE_ED25519_CERT01" };

	(void)state;
	write_keys(A " alice\n");
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		struct access_query q = { "box", types[i], KEY_A, HOME, NOW };
		struct access_grant g = { 0 };
		char fingerprint[KEY_FINGERPRINT_MAX];

		assert_int_equal(
		    access_check(a, &q, &g, fingerprint, NULL), -EACCES);
	}
}

static void
access_security_keys_need_allow_sk(void **state)
{
	struct err e = { 0 };

	(void)state;
	write_keys("sk-ssh-ed25519@openssh.com " KEY_SK " token\n");
	assert_int_equal(ask("box", KEY_SK, NULL, &e), -EACCES);
	assert_string_equal(e.msg, "security keys are not allowed");
	conf.access.allow_sk = true;
	access_reconfigure(a, &conf);
	assert_int_equal(ask("box", KEY_SK, NULL, &e), 0);
}

static void
access_default_role_is_for_keys_without_one(void **state)
{
	struct access_grant g = { 0 };

	(void)state;
	write_keys(A " alice\n");
	free(conf.access.default_role);
	conf.access.default_role = xstrdup("viewer");
	access_reconfigure(a, &conf);
	assert_int_equal(ask("box", KEY_A, &g, NULL), 0);
	assert_int_equal(g.who.role, ROLE_VIEWER);
	access_grant_release(&g);
}

/* Same size, same second: only the content differs. */
static void
access_rewritten_file_acts_on_the_next_question(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		write_keys(A " alice\n");
		assert_int_equal(ask("box", KEY_A, NULL, NULL), 0);
		assert_int_equal(ask("box", KEY_B, NULL, NULL), -EACCES);
		write_keys(B " alice\n");
		assert_int_equal(ask("box", KEY_A, NULL, NULL), -EACCES);
		assert_int_equal(ask("box", KEY_B, NULL, NULL), 0);
	}
}

static void
access_file_that_others_may_write_has_no_keys(void **state)
{
	static const mode_t modes[] = { 0620, 0602, 0666 };

	(void)state;
	write_keys(A " alice\n");
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		assert_int_equal(chmod(path, modes[i]), 0);
		assert_int_equal(ask("box", KEY_A, NULL, NULL), -EACCES);
		assert_int_equal(chmod(path, 0644), 0);
		assert_int_equal(ask("box", KEY_A, NULL, NULL), 0);
	}
}

static void
access_file_that_vanishes_takes_its_keys_along(void **state)
{
	char away[64];

	(void)state;
	write_keys(A " alice\n");
	assert_int_equal(ask("box", KEY_A, NULL, NULL), 0);
	snprintf(away, sizeof(away), "%s.away", path);
	assert_int_equal(rename(path, away), 0);
	assert_int_equal(ask("box", KEY_A, NULL, NULL), -EACCES);
	assert_int_equal(rename(away, path), 0);
	assert_int_equal(ask("box", KEY_A, NULL, NULL), 0);
}

static void
access_line_over_the_limit_costs_only_itself(void **state)
{
	autofree char *filler = xmalloc(KEY_LINE_MAX + 1);
	autofree char *text = NULL;

	(void)state;
	memset(filler, 'x', KEY_LINE_MAX);
	filler[KEY_LINE_MAX] = '\0';
	text = xasprintf("%s %s\n%s\n", A, filler, B);
	write_keys(text);
	assert_int_equal(ask("box", KEY_A, NULL, NULL), -EACCES);
	assert_int_equal(ask("box", KEY_B, NULL, NULL), 0);
}

/* A comment that does not fit is not cut to what may be another's name. */
static void
access_long_comment_gives_way_to_the_fingerprint(void **state)
{
	char comment[400];
	autofree char *text = NULL;
	struct access_grant g = { 0 };

	(void)state;
	memset(comment, 'c', sizeof(comment));
	comment[sizeof(comment) - 1] = '\0';
	text = xasprintf("%s %s\n", A, comment);
	write_keys(text);
	assert_int_equal(ask("box", KEY_A, &g, NULL), 0);
	assert_string_equal(g.who.identity, g.who.fingerprint);
	access_grant_release(&g);
}

static void
source_lists_match_addresses_of_both_kinds(void **state)
{
	static const struct {
		const char *list, *addr;
		bool is_match;
	} sources[] = {
		{ "2001:db8::/32", "2001:db8:1::5", true },
		{ "2001:db8::/33", "2001:db8:8000::5", false },
		{ "2001:DB8:0:0::1", "2001:db8::1", true },
		{ "10.1.2.3", "::ffff:10.1.2.3", true },
		{ "10.0.0.0/8", "::ffff:10.1.2.3", true },
		{ "10.1.2.3/32", "10.1.2.3", true },
		{ "10.1.2.2/31", "10.1.2.3", true },
		{ "10.1.2.2/31", "10.1.2.4", false },
		{ "::/0", "10.1.2.3", false },
		{ "10.?.2.3", "10.1.2.3", true },
		{ "10.1.2.3", "10.1.2.33", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
		assert_int_equal(source_check(sources[i].list, NULL), 0);
		if (source_match(sources[i].list, sources[i].addr) !=
		    sources[i].is_match)
			fail_msg("%s %s", sources[i].list, sources[i].addr);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(access_key_gets_its_comment_as_identity),
		TEST(access_options_hold_or_refuse_the_key),
		TEST(access_options_set_what_the_key_may),
		TEST(access_command_is_dequoted_as_openssh_does),
		TEST(access_of_one_key_on_two_lines_is_the_first_that_fits),
		TEST(access_refuses_with_a_reason_for_the_log),
		TEST(access_certificates_are_refused_by_type),
		TEST(access_security_keys_need_allow_sk),
		TEST(access_default_role_is_for_keys_without_one),
		TEST(access_rewritten_file_acts_on_the_next_question),
		TEST(access_file_that_others_may_write_has_no_keys),
		TEST(access_file_that_vanishes_takes_its_keys_along),
		TEST(access_line_over_the_limit_costs_only_itself),
		TEST(access_long_comment_gives_way_to_the_fingerprint),
		cmocka_unit_test(source_lists_match_addresses_of_both_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
