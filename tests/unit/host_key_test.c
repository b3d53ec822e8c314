/* Host keys: made once, whole, and never written over. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sshd/listener/host_key.h"
#include "tests/unit/unit.h"

static char dir[] = "/tmp/host_key_test_XXXXXX";
static char path[64], pub_path[64];

static int
setup(void **state)
{
	(void)state;
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/key", dir);
	snprintf(pub_path, sizeof(pub_path), "%s/key.pub", dir);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(pub_path);
	/* Fails, and with it the test, when a temporary file was left. */
	return rmdir(dir);
}

static void
write_file(const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static char *
read_file(const char *p)
{
	struct buf b = { 0 };

	assert_int_equal(fd_read_file(p, 65536, &b, NULL), 0);
	buf_put_u8(&b, 0);
	return (char *)b.data;
}

/* The output of `ssh-keygen -y -f path`; the caller frees. */
static char *
keygen_public(void)
{
	struct buf b = { 0 };
	int p[2], status;
	pid_t pid;

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		dup2(p[1], STDOUT_FILENO);
		execlp(
		    "ssh-keygen", "ssh-keygen", "-y", "-f", path, (char *)NULL);
		_exit(127);
	}
	close(p[1]);
	assert_int_equal(fd_read_all(p[0], 65536, &b), 0);
	close(p[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	buf_put_u8(&b, 0);
	return (char *)b.data;
}

static void
host_key_is_made_private_and_openssh_reads_it(void **state)
{
	struct host_keys keys = { 0 };
	struct err e = { 0 };
	struct stat st;
	autofree char *pub = NULL, *want = NULL;

	(void)state;
	assert_int_equal(host_keys_load(path, &keys, &e), 0);
	assert_int_equal(keys.count, 1);
	assert_string_equal(keys.paths[0], path);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	pub = read_file(pub_path);
	want = keygen_public();
	assert_string_equal(pub, want);
	host_keys_free(&keys);
}

static void
host_key_is_the_same_the_second_time(void **state)
{
	struct host_keys a = { 0 }, b = { 0 };

	(void)state;
	assert_int_equal(host_keys_load(path, &a, NULL), 0);
	assert_int_equal(host_keys_load(path, &b, NULL), 0);
	assert_string_equal(a.pems[0], b.pems[0]);
	host_keys_free(&a);
	host_keys_free(&b);
}

static void
host_key_that_is_bad_is_refused_and_untouched(void **state)
{
	static const struct {
		const char *text, *why;
		mode_t mode;
	} rows[] = {
		{ "", "not a private key", 0600 },
		{ "garbage\n", "not a private key", 0600 },
		{ "ssh-ed25519 AAAA comment\n", "not a private key", 0600 },
		{ "-----BEGIN OPENSSH PRIVATE KEY-----\n", "open to others",
		    0640 },
		{ "-----BEGIN OPENSSH PRIVATE KEY-----\n", "open to others",
		    0604 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct host_keys keys = { 0 };
		struct err e = { 0 };
		autofree char *after = NULL;

		write_file(rows[i].text, rows[i].mode);
		assert_true(host_keys_load(path, &keys, &e) < 0);
		assert_non_null(strstr(e.msg, path));
		if (!strstr(e.msg, rows[i].why))
			fail_msg("%s", e.msg);
		after = read_file(path);
		assert_string_equal(after, rows[i].text);
		assert_int_equal(keys.count, 0);
		unlink(path);
	}
	assert_int_equal(access(pub_path, F_OK), -1);
}

static void
host_key_that_is_a_dangling_link_is_not_followed(void **state)
{
	struct host_keys keys = { 0 };
	struct err e = { 0 };
	char target[80];

	(void)state;
	snprintf(target, sizeof(target), "%s/elsewhere", dir);
	assert_int_equal(symlink(target, path), 0);
	assert_true(host_keys_load(path, &keys, &e) < 0);
	assert_int_equal(access(target, F_OK), -1);
}

static void
host_keys_come_in_the_order_of_the_list(void **state)
{
	autofree char *list = xasprintf("%s/b, %s/a", dir, dir);
	struct host_keys keys = { 0 };

	(void)state;
	assert_int_equal(host_keys_load(list, &keys, NULL), 0);
	assert_int_equal(keys.count, 2);
	assert_null(keys.pems[2]);
	assert_true(strcmp(keys.pems[0], keys.pems[1]) != 0);
	assert_true(strlen(keys.paths[0]) > 2);
	assert_int_equal(keys.paths[0][strlen(keys.paths[0]) - 1], 'b');
	for (size_t i = 0; i < 2; i++) {
		autofree char *pub = xasprintf("%s.pub", keys.paths[i]);

		assert_int_equal(unlink(keys.paths[i]), 0);
		assert_int_equal(unlink(pub), 0);
	}
	host_keys_free(&keys);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(host_key_is_made_private_and_openssh_reads_it),
		TEST(host_key_is_the_same_the_second_time),
		TEST(host_key_that_is_bad_is_refused_and_untouched),
		TEST(host_key_that_is_a_dangling_link_is_not_followed),
		TEST(host_keys_come_in_the_order_of_the_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
