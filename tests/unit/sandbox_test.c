/*
 * Sandboxes: which names are names (CASES E7), what stands in the place of a
 * workspace (E15), the registry, and that removing never leaves the workspace.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "sandbox/local.h"
#include "sandbox/native.h"
#include "sandbox/provider.h"
#include "tests/unit/unit.h"

struct fixture {
	char top[64], dir[80];
	struct conf conf;
	struct sandbox_spec spec;
	const struct sandbox_provider *local;
};

/* Somebody who is not root on every Debian. */
#define SOME_USER "nobody"

static int
setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	struct err e = { 0 };

	snprintf(f->top, sizeof(f->top), "/tmp/berth-sandbox-XXXXXX");
	assert_non_null(mkdtemp(f->top));
	assert_int_equal(chmod(f->top, 0755), 0);
	snprintf(f->dir, sizeof(f->dir), "%s/boxes", f->top);
	f->conf.sandbox.dir = f->dir;
	f->conf.sandbox.user = xstrdup(SOME_USER);
	f->conf.session.shell = xstrdup("/bin/sh");
	f->conf.sandbox.sftp_server = xstrdup("/bin/false");
	if (sandbox_init(&e) < 0 ||
	    sandbox_spec_init(&f->spec, &f->conf, &e) < 0)
		fail_msg("sandbox_init: %s", e.msg);
	f->local = sandbox_find("local", &e);
	assert_non_null(f->local);
	*state = f;
	return 0;
}

static int
tear_down(void **state)
{
	struct fixture *f = *state;

	rmdir(f->dir);
	assert_int_equal(rmdir(f->top), 0);
	free(f->conf.sandbox.user);
	free(f->conf.session.shell);
	free(f->conf.sandbox.sftp_server);
	free(f);
	return 0;
}

static char *
in_dir(struct fixture *f, const char *name)
{
	return xasprintf("%s/%s", f->dir, name);
}

static void
make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	close(fd);
}

/* The spec of NAME; a name that does not fit is judged alone. */
static int
name_it(struct fixture *f, const char *name, struct err *e)
{
	if (strlen(name) >= sizeof(f->spec.name))
		return sandbox_check_name(name, e);
	snprintf(f->spec.name, sizeof(f->spec.name), "%s", name);
	return 0;
}

static int
provision(struct fixture *f, const char *name, struct err *e)
{
	struct sandbox_made made = { .missing = "" };
	int rc = name_it(f, name, e);

	return rc < 0 ? rc : f->local->provision(&f->spec, &made, e);
}

static int
teardown(struct fixture *f, const char *name, struct err *e)
{
	int rc = name_it(f, name, e);

	return rc < 0 ? rc : f->local->teardown(&f->spec, e);
}

static int
exec(struct fixture *f, const char *name, struct sandbox_place *out,
    struct err *e)
{
	int rc = name_it(f, name, e);

	return rc < 0 ? rc : f->local->exec(&f->spec, out, e);
}

static enum sandbox_phase
status(struct fixture *f, const char *name)
{
	return name_it(f, name, NULL) < 0 ? SANDBOX_GONE
					  : f->local->status(&f->spec);
}

/* ---- names ---------------------------------------------------------------- */

static void
names_outside_the_alphabet_are_refused_e7(void **state)
{
	static const char *const bad[] = { "", ".", "..", "../../etc/x",
		"/tmp/x", "a/b", "a\\b", "a%2f..", ".hidden", "-x", "_x",
		"trailing ", " leading", "a b", "new\nline", "a\tb", "a\x1b[m",
		"\xe2\x80\xae"
		"evil",
		"a\xe2\x80\xa8"
		"b",
		"\xc3\xa9", "e\xcc\x81", "a+b", "a:b", "~", "$HOME", "*",
		"admin", "exec" };
	struct fixture *f = *state;
	char longer[10001];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct sandbox_place place;
		struct err e = { 0 };

		assert_false(sandbox_name_is_valid(bad[i]));
		assert_int_equal(provision(f, bad[i], &e), -EINVAL);
		for (const char *p = e.msg; *p; p++)
			assert_in_range(*p, ' ', '~');
		assert_int_equal(exec(f, bad[i], &place, &e), -EINVAL);
		assert_int_equal(teardown(f, bad[i], &e), -EINVAL);
		assert_int_equal(status(f, bad[i]), SANDBOX_GONE);
	}
	memset(longer, 'a', sizeof(longer));
	for (size_t n = 64; n < sizeof(longer); n *= 3) {
		longer[n] = '\0';
		assert_false(sandbox_name_is_valid(longer));
		longer[n] = 'a';
	}
	/* Nothing was made, not even the directory. */
	assert_int_equal(access(f->dir, F_OK), -1);
}

static void
names_of_the_alphabet_are_taken_and_kept_apart_e7(void **state)
{
	static const char *const good[] = { "a", "A", "con", "x.cast", "1",
		"a..b", "a-b_c.d", "Admin", "exec1", "default" };
	struct fixture *f = *state;
	char longest[64];

	memset(longest, 'z', 63);
	longest[63] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_true(sandbox_name_is_valid(good[i]));
		assert_int_equal(provision(f, good[i], NULL), 0);
	}
	assert_true(sandbox_name_is_valid(longest));
	assert_int_equal(provision(f, longest, NULL), 0);
	assert_int_equal(teardown(f, "a", NULL), 0);
	assert_int_equal(status(f, "A"), SANDBOX_RUNNING);
	for (size_t i = 1; i < ARRAY_LEN(good); i++)
		assert_int_equal(teardown(f, good[i], NULL), 0);
	assert_int_equal(teardown(f, longest, NULL), 0);
}

/* ---- workspaces ----------------------------------------------------------- */

static void
workspace_belongs_to_the_user_that_runs_in_it(void **state)
{
	struct fixture *f = *state;
	autofree char *path = in_dir(f, "box");
	struct sandbox_place place;
	struct stat st;
	mode_t old = umask(0);

	assert_int_equal(status(f, "box"), SANDBOX_GONE);
	assert_int_equal(exec(f, "box", &place, NULL), -ENOENT);
	assert_int_equal(provision(f, "box", NULL), 0);
	assert_int_equal(provision(f, "box", NULL), 0);
	umask(old);
	assert_int_equal(status(f, "box"), SANDBOX_RUNNING);
	assert_int_equal(exec(f, "box", &place, NULL), 0);
	assert_string_equal(place.workspace, path);
	assert_string_equal(place.shell, "/bin/sh");
	assert_int_equal(place.must_setuid, geteuid() == 0);
	assert_int_not_equal(place.uid, 0);
	assert_int_equal(stat(f->dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0711);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(st.st_uid, place.uid);
	/* What the user opened up is closed again. */
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(provision(f, "box", NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(teardown(f, "box", NULL), 0);
	assert_int_equal(teardown(f, "box", NULL), 0);
	assert_int_equal(status(f, "box"), SANDBOX_GONE);
}

static void
symlink_in_place_of_a_workspace_is_refused_e15(void **state)
{
	struct fixture *f = *state;
	autofree char *path = in_dir(f, "box");
	autofree char *target = xasprintf("%s/target", f->top);
	autofree char *inside = xasprintf("%s/precious", target);
	struct sandbox_place place;
	struct stat before, after;
	struct err e = { 0 };

	assert_int_equal(provision(f, "other", NULL), 0);
	assert_int_equal(mkdir(target, 0755), 0);
	make_file(inside);
	assert_int_equal(stat(target, &before), 0);
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(provision(f, "box", &e), -ENOTDIR);
	assert_non_null(strstr(e.msg, "link"));
	assert_int_equal(exec(f, "box", &place, &e), -ENOTDIR);
	assert_int_equal(status(f, "box"), SANDBOX_FAILED);
	assert_int_equal(stat(target, &after), 0);
	assert_int_equal(before.st_mode, after.st_mode);
	assert_int_equal(before.st_uid, after.st_uid);
	/* Teardown takes the link and leaves what it pointed at. */
	assert_int_equal(teardown(f, "box", &e), 0);
	assert_int_equal(access(inside, F_OK), 0);
	assert_int_equal(teardown(f, "other", &e), 0);
	unlink(inside);
	rmdir(target);
}

static void
file_in_place_of_a_workspace_is_refused(void **state)
{
	struct fixture *f = *state;
	autofree char *path = in_dir(f, "box");

	assert_int_equal(provision(f, "other", NULL), 0);
	make_file(path);
	assert_int_equal(provision(f, "box", NULL), -ENOTDIR);
	assert_int_equal(teardown(f, "box", NULL), 0);
	assert_int_equal(teardown(f, "other", NULL), 0);
}

static void
workspace_of_a_third_user_is_refused_e15(void **state)
{
	struct fixture *f = *state;
	autofree char *path = in_dir(f, "box");
	struct err e = { 0 };

	if (geteuid() != 0)
		return; /* only root can give a directory away */
	assert_int_equal(provision(f, "box", NULL), 0);
	assert_int_equal(chown(path, 12345, 12345), 0);
	assert_int_equal(provision(f, "box", &e), -EPERM);
	assert_non_null(strstr(e.msg, "uid 12345"));
	assert_int_equal(status(f, "box"), SANDBOX_FAILED);
	assert_int_equal(teardown(f, "box", NULL), 0);
}

static void
directory_that_others_may_write_is_refused_e15(void **state)
{
	struct fixture *f = *state;
	struct err e = { 0 };

	assert_int_equal(mkdir(f->dir, 0700), 0);
	assert_int_equal(chmod(f->dir, 0777), 0);
	assert_int_equal(provision(f, "box", &e), -EPERM);
	assert_non_null(strstr(e.msg, "writable by others"));
	if (geteuid() != 0)
		return;
	assert_int_equal(chmod(f->dir, 0711), 0);
	assert_int_equal(chown(f->dir, 12345, 12345), 0);
	assert_int_equal(provision(f, "box", &e), -EPERM);
}

static void
teardown_removes_a_hostile_tree_and_nothing_else(void **state)
{
	struct fixture *f = *state;
	autofree char *outside = xasprintf("%s/outside", f->top);
	autofree char *box = in_dir(f, "box");
	autofree char *sub = xasprintf("%s/sub", box);
	autofree char *closed = xasprintf("%s/closed", sub);
	autofree char *file = xasprintf("%s/closed/file", sub);
	autofree char *link = xasprintf("%s/link", sub);
	autofree char *loop = xasprintf("%s/loop", sub);
	autofree char *fifo = xasprintf("%s/fifo", sub);

	make_file(outside);
	assert_int_equal(provision(f, "box", NULL), 0);
	assert_int_equal(mkdir(sub, 0700), 0);
	assert_int_equal(mkdir(closed, 0700), 0);
	make_file(file);
	assert_int_equal(chmod(closed, 0), 0);
	assert_int_equal(symlink(f->top, link), 0);
	assert_int_equal(symlink("..", loop), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	for (int i = 0; i < 2000; i++) {
		autofree char *path = xasprintf("%s/%d", box, i);

		make_file(path);
	}
	assert_int_equal(teardown(f, "box", NULL), 0);
	assert_int_equal(access(box, F_OK), -1);
	assert_int_equal(access(outside, F_OK), 0);
	unlink(outside);
}

static void
teardown_of_a_bottomless_tree_ends(void **state)
{
	struct fixture *f = *state;
	autofree char *box = in_dir(f, "box");
	int at, here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err e = { 0 };

	assert_int_equal(provision(f, "box", NULL), 0);
	assert_int_equal(chdir(box), 0);
	for (at = 0; at < 150; at++) {
		assert_int_equal(mkdir("d", 0700), 0);
		assert_int_equal(chdir("d"), 0);
	}
	assert_int_equal(teardown(f, "box", &e), -ELOOP);
	assert_non_null(strstr(e.msg, "deeper"));
	while (at-- > 0) {
		assert_int_equal(chdir(".."), 0);
		assert_int_equal(rmdir("d"), 0);
	}
	assert_int_equal(fchdir(here), 0);
	close(here);
	assert_int_equal(teardown(f, "box", &e), 0);
}

/* ---- users ---------------------------------------------------------------- */

static void
missing_user_is_a_sentence_that_says_what_to_do(void **state)
{
	struct fixture *f = *state;
	char name[] = "berth-nobody-here";
	struct conf conf = f->conf;
	struct err e = { 0 };

	if (geteuid() != 0)
		return; /* sandbox.user means nothing then */
	conf.sandbox.user = name;
	assert_int_equal(sandbox_spec_init(&f->spec, &conf, &e), -ENOENT);
	assert_non_null(strstr(e.msg, name));
	assert_non_null(strstr(e.msg, "useradd"));
}

static void
uid_0_is_refused(void **state)
{
	struct fixture *f = *state;
	char name[] = "root";
	struct conf conf = f->conf;
	struct err e = { 0 };

	if (geteuid() != 0)
		return;
	conf.sandbox.user = name;
	assert_int_equal(sandbox_spec_init(&f->spec, &conf, &e), -EPERM);
	assert_non_null(strstr(e.msg, "uid 0"));
}

static void
a_range_of_uids_with_that_of_the_user_is_refused(void **state)
{
	struct fixture *f = *state;
	struct conf conf = f->conf;
	struct err e = { 0 };
	uid_t uid = f->spec.uid;

	if (geteuid() != 0)
		return;
	conf.sandbox.uids = (struct conf_uids){ uid + 1, uid + 9 };
	assert_int_equal(sandbox_spec_init(&f->spec, &conf, &e), 0);
	conf.sandbox.uids = (struct conf_uids){ uid - 1, uid };
	assert_int_equal(sandbox_spec_init(&f->spec, &conf, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "sandbox.uid_range"));
	assert_non_null(strstr(e.msg, f->spec.user));
}

/* ---- the registry --------------------------------------------------------- */

static void
unknown_provider_is_an_error_that_lists_names(void **state)
{
	struct err e = { 0 };

	(void)state;
	assert_null(sandbox_find("cloud\n", &e));
	assert_int_equal(e.code, -ENOENT);
	assert_non_null(strstr(e.msg, "cloud\\n"));
	assert_non_null(strstr(e.msg, "local"));
}

static void
duplicate_provider_is_refused(void **state)
{
	struct err e = { 0 };

	(void)state;
	assert_int_equal(sandbox_register(sandbox_local(), &e), -EEXIST);
}

static void
capabilities_must_equal_the_functions(void **state)
{
	struct sandbox_provider p = *sandbox_local();
	struct err e = { 0 };

	(void)state;
	p.name = "liar";
	p.exec = NULL;
	assert_int_equal(sandbox_register(&p, &e), -EINVAL);
	p = *sandbox_local();
	p.name = "liar";
	p.capabilities = 0;
	assert_int_equal(sandbox_register(&p, &e), -EINVAL);
	p.capabilities = SANDBOX_CAP_EXEC | 1u << 20;
	assert_int_equal(sandbox_register(&p, &e), -EINVAL);
	p.capabilities = SANDBOX_CAP_EXEC | SANDBOX_CAP_METRICS;
	assert_int_equal(sandbox_register(&p, &e), -EINVAL);
	p.capabilities = SANDBOX_CAP_EXEC;
	p.halt = NULL;
	assert_int_equal(sandbox_register(&p, &e), -EINVAL);
	p = *sandbox_local();
	p.name = "liar";
	p.status = NULL;
	assert_int_equal(sandbox_register(&p, &e), -EINVAL);
	/* Pools are five functions and one bit, or nothing. */
	p = *sandbox_native();
	p.name = "liar";
	p.capabilities &= ~(unsigned)SANDBOX_CAP_POOLS;
	assert_int_equal(sandbox_register(&p, &e), -EINVAL);
	p.fill = NULL;
	assert_int_equal(sandbox_register(&p, &e), -EINVAL);
	p = *sandbox_native();
	p.name = "liar";
	p.was_member = NULL;
	assert_int_equal(sandbox_register(&p, &e), -EINVAL);
	p = *sandbox_local();
	p.name = "liar";
	p.capabilities |= SANDBOX_CAP_POOLS;
	assert_int_equal(sandbox_register(&p, &e), -EINVAL);
	assert_null(sandbox_find("liar", NULL));
}

static void
what_a_provider_lacks_is_unsupported(void **state)
{
	struct err e = { 0 };
	char names[64];

	(void)state;
	assert_int_equal(
	    sandbox_require(sandbox_local(), SANDBOX_CAP_EXEC, &e), 0);
	assert_int_equal(
	    sandbox_require(sandbox_local(), SANDBOX_CAP_SUSPEND, &e),
	    -EOPNOTSUPP);
	assert_string_equal(
	    e.msg, "unsupported: provider local cannot suspend a sandbox");
	assert_int_equal(
	    sandbox_require(sandbox_local(), SANDBOX_CAP_POOLS, &e),
	    -EOPNOTSUPP);
	assert_string_equal(e.msg,
	    "unsupported: provider local cannot keep a pool of sandboxes");
	assert_int_equal(
	    sandbox_require(sandbox_native(), SANDBOX_CAP_POOLS, &e), 0);
	sandbox_capability_names(
	    SANDBOX_CAP_EXEC | SANDBOX_CAP_METRICS, names, sizeof(names));
	assert_string_equal(names, "exec, metrics");
}

static void
phases_have_the_names_of_the_store(void **state)
{
	enum sandbox_phase p = SANDBOX_PENDING;

	(void)state;
	assert_int_equal(sandbox_phase_parse("failed", &p), 0);
	assert_int_equal(p, SANDBOX_FAILED);
	assert_int_equal(sandbox_phase_parse("Failed", &p), -EINVAL);
	assert_string_equal(sandbox_phase_name(SANDBOX_PENDING), "pending");
	assert_string_equal(sandbox_phase_name(SANDBOX_RUNNING), "running");
	assert_string_equal(sandbox_phase_name(SANDBOX_SUSPENDED), "suspended");
	assert_string_equal(sandbox_phase_name(SANDBOX_FAILED), "failed");
	assert_string_equal(sandbox_phase_name(SANDBOX_GONE), "gone");
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, setup, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(names_outside_the_alphabet_are_refused_e7),
		CASE(names_of_the_alphabet_are_taken_and_kept_apart_e7),
		CASE(workspace_belongs_to_the_user_that_runs_in_it),
		CASE(symlink_in_place_of_a_workspace_is_refused_e15),
		CASE(file_in_place_of_a_workspace_is_refused),
		CASE(workspace_of_a_third_user_is_refused_e15),
		CASE(directory_that_others_may_write_is_refused_e15),
		CASE(teardown_removes_a_hostile_tree_and_nothing_else),
		CASE(teardown_of_a_bottomless_tree_ends),
		CASE(missing_user_is_a_sentence_that_says_what_to_do),
		CASE(uid_0_is_refused),
		CASE(a_range_of_uids_with_that_of_the_user_is_refused),
		CASE(unknown_provider_is_an_error_that_lists_names),
		CASE(duplicate_provider_is_refused),
		CASE(capabilities_must_equal_the_functions),
		CASE(what_a_provider_lacks_is_unsupported),
		CASE(phases_have_the_names_of_the_store),
	};

	log_open("sandbox_test", LOG_ERR, false);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
