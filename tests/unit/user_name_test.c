/* The grammar of user names: CONTRACT's table and CASES E6, E7, E8. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "sshd/listener/user_name.h"
#include "tests/unit/unit.h"

#define A62 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

struct row {
	const char *user, *sandbox, *session;
	bool is_exec;
};

static const struct row good[] = {
	{ "box", "box", "default", false },
	{ "box+", "box", "default", false },
	{ "box+name", "box", "name", false },
	{ "box+exec", "box", "exec", true },
	{ "box+a+b", "box", "a+b", false },
	{ "box+exec+a", "box", "exec+a", false },
	{ "box+a+", "box", "a+", false },
	{ "a.b_c-d+e.f_g-h+i", "a.b_c-d", "e.f_g-h+i", false },
	{ "9", "9", "default", false },
	{ "BOX+Name", "BOX", "Name", false },
	{ "con+x.cast", "con", "x.cast", false },
	{ "box+EXEC", "box", "EXEC", false },
	{ "alice+work", "alice", "work", false },
	{ "a" A62 "+b" A62, "a" A62, "b" A62, false },
};

static const char *const bad[] = {
	"",
	"+",
	"+x",
	"++",
	"admin",
	"exec",
	"admin+x",
	"exec+x",
	"box+admin",
	"box++x",
	"box+-x",
	"box+.x",
	"box+..",
	/* E6: options and shell syntax */
	"-oProxyCommand=touch /tmp/p",
	"-la",
	"--help",
	"$(id)",
	"a;b",
	"`id`",
	"%h%r",
	"root --",
	"box+$(id)",
	"box+a;b",
	"box+-la",
	/* E7: paths and look-alikes */
	"../../etc/x",
	"/tmp/x",
	".",
	"..",
	"a/b",
	"a\\b",
	"box+../../etc/x",
	"box+/tmp/x",
	"box+.",
	"box+a/b",
	"box+a\\b",
	"box+a%2f..",
	"box+trailing ",
	" box",
	"box\n",
	"box+a\nb",
	"box+a\xe2\x80\xae",
	"box+a\xe2\x80\xa8",
	"box+\xc3\xa9",
	"box+e\xcc\x81",
	/* E8: what counts as a split elsewhere */
	"alice@corp.example",
	"a:b",
	"a@b@c",
	"DOM\\alice",
	"\xc3\xa4lice",
	/* one too long */
	"aa" A62,
	"box+aa" A62,
};

static void
user_name_gives_sandbox_and_session(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct user_name u;

		assert_int_equal(user_name_parse(good[i].user, &u), 0);
		assert_string_equal(u.sandbox, good[i].sandbox);
		assert_string_equal(u.session, good[i].session);
		assert_int_equal(u.is_exec, good[i].is_exec);
	}
}

static void
user_name_outside_the_grammar_is_refused(void **state)
{
	struct user_name u = { .sandbox = "kept" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (user_name_parse(bad[i], &u) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
		assert_string_equal(u.sandbox, "kept");
	}
}

static void
user_name_of_ten_thousand_bytes_is_refused(void **state)
{
	autofree char *name = xmalloc(10001);
	struct user_name u;

	(void)state;
	memset(name, 'a', 10000);
	name[10000] = '\0';
	assert_int_equal(user_name_parse(name, &u), -EINVAL);
	name[3] = '+';
	assert_int_equal(user_name_parse(name, &u), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(user_name_gives_sandbox_and_session),
		cmocka_unit_test(user_name_outside_the_grammar_is_refused),
		cmocka_unit_test(user_name_of_ten_thousand_bytes_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
