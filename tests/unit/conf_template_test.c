/*
 * Sections [template NAME]: read, shown so that they load again, and found
 * beside those that are built in.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "tests/unit/unit.h"

static int
load_text(const char *text, struct conf **out, struct err *e)
{
	autoclose int fd = memfd_create("conf", MFD_CLOEXEC);
	char path[64];

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return conf_load(path, NULL, 0, out, e);
}

static void
templates_are_read_shown_and_found(void **state)
{
	static const char text[] =
	    "[access]\ndefault_template = small\n"
	    "[template small]\nmemory = 64M\ncpu = 50\npids = 20\n"
	    "network = host\nrootfs = /srv/x\nidle_suspend = 90s\n"
	    "idle_teardown = 2h\nlifetime = 7d\nviewers_wake = yes\n"
	    "pool_size = 3\n"
	    "[template auto]\nprovider = local\n";
	struct conf_template t;
	struct conf *c = NULL;
	struct err e = { 0 };
	char *shown = NULL;
	size_t n;
	FILE *out = open_memstream(&shown, &n);

	(void)state;
	assert_int_equal(load_text(text, &c, &e), 0);
	assert_int_equal(conf_template_find(c, "small", &t, &e), 0);
	assert_string_equal(t.provider, "native");
	assert_string_equal(t.rootfs, "/srv/x");
	assert_int_equal(t.memory_bytes, 64 << 20);
	assert_int_equal(t.cpu_percent, 50);
	assert_int_equal(t.pids_max, 20);
	assert_int_equal(t.network, CONF_NETWORK_HOST);
	assert_int_equal(t.idle_suspend_ms, 90000);
	assert_int_equal(t.pool_size, 3);
	assert_int_equal(t.idle_teardown_ms, 7200000);
	assert_int_equal(t.lifetime_ms, 604800000);
	assert_true(t.viewers_wake);
	/* A section takes the place of what is built in. */
	assert_int_equal(conf_template_find(c, "auto", &t, &e), 0);
	assert_string_equal(t.provider, "local");
	assert_int_equal(conf_template_find(c, "native", &t, &e), 0);
	assert_string_equal(t.provider, "native");
	assert_string_equal(t.rootfs, "");
	assert_int_equal(t.pids_max, 4096);
	assert_int_equal(t.pool_size, 0);
	assert_int_equal(
	    t.idle_suspend_ms + t.idle_teardown_ms + t.lifetime_ms, 0);
	assert_false(t.viewers_wake);
	assert_int_equal(conf_template_find(c, "Small", &t, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "Small; there is: auto, native"));
	assert_non_null(strstr(e.msg, ", small"));
	conf_show(c, out);
	fclose(out);
	assert_non_null(
	    strstr(shown, "\n[template small]\nprovider = native\n"
			  "rootfs = /srv/x\nimage = none\nnetwork = host\n"
			  "cpu = 50\nmemory = 64M\n"
			  "pids = 20\n"));
	assert_non_null(strstr(shown, "\npool_size = 3\nidle_suspend = 90s\n"
				      "idle_teardown = 2h\nlifetime = 7d\n"
				      "viewers_wake = yes\n"));
	conf_free(c);
	/* What is shown loads again. */
	assert_int_equal(load_text(shown, &c, &e), 0);
	assert_int_equal(conf_template_find(c, "small", &t, &e), 0);
	assert_int_equal(t.pids_max, 20);
	conf_free(c);
	free(shown);
}

static void
templates_have_variables_and_a_script(void **state)
{
	static const char text[] =
	    "[template t]\n"
	    "env = A=1 \"B=two words\"\n"
	    "    'C={x} \\\\' D={y} E=\\\\{ F=\n"
	    "init = set -e\n"
	    "    echo one\n"
	    "    echo two\n"
	    "sftp = no\nforward = no\nworkspace_size = 64M\n"
	    "[template plain]\n";
	static const char *const want[] = { "A=1", "B=two words", "C={x} \\\\",
		"D={y}", "E=\\{", "F=" };
	struct conf_template t;
	struct conf *c = NULL;
	struct err e = { 0 };

	(void)state;
	/* What is shown means the same. */
	for (int i = 0; i < 2; i++) {
		char *shown = NULL, **v = NULL;
		size_t n;
		FILE *out = open_memstream(&shown, &n);

		if (i == 0)
			assert_int_equal(load_text(text, &c, &e), 0);
		assert_int_equal(conf_template_find(c, "t", &t, &e), 0);
		assert_int_equal(conf_variables(t.env, &v, &e), 0);
		for (n = 0; n < ARRAY_LEN(want); n++)
			assert_string_equal(v[n], want[n]);
		assert_null(v[n]);
		strv_free(v);
		assert_string_equal(t.init, "set -e\necho one\necho two");
		assert_false(t.sftp || t.forward);
		assert_int_equal(t.workspace_bytes, 64 << 20);
		assert_int_equal(t.init_timeout_ms, 60000);
		conf_show(c, out);
		fclose(out);
		conf_free(c);
		assert_int_equal(load_text(shown, &c, &e), 0);
		free(shown);
	}
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
		    conf_template_find(c, i ? "plain" : "native", &t, &e), 0);
		assert_true(t.sftp && t.forward);
		assert_string_equal(t.env, "");
		assert_string_equal(t.init, "");
		assert_int_equal(t.init_timeout_ms, 60000);
	}
	conf_free(c);
}

static void
pools_are_of_providers_that_can_and_of_a_size(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "[template x]\nprovider = local\npool_size = 1\n",
		    "template x.pool_size: provider local cannot keep a pool" },
		{ "[template local]\npool_size = 1\n",
		    "provider local cannot keep a pool of sandboxes" },
		{ "[template x]\npool_size = 1001\n", "pool_size" },
		{ "[template x]\npool_size = -1\n", "pool_size" },
		{ "[template x]\nprovider = local\npool_size = 0\n", NULL },
		{ "[template auto]\npool_size = 1000\n", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct conf *c = NULL;
		struct err e = { 0 };
		int rc = load_text(rows[i].text, &c, &e);

		assert_int_equal(rc < 0, rows[i].why != NULL);
		if (rows[i].why)
			assert_non_null(strstr(e.msg, rows[i].why));
		conf_free(c);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(templates_are_read_shown_and_found),
		cmocka_unit_test(templates_have_variables_and_a_script),
		cmocka_unit_test(pools_are_of_providers_that_can_and_of_a_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
