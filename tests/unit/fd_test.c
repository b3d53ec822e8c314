/* Descriptors: close-on-exec, owners and modes, sealed files, sockets. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "tests/unit/unit.h"

static char top[64];

static int
setup(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "/tmp/berth-fd-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	return rmdir(top);
}

static bool
is_cloexec(int fd)
{
	return fcntl(fd, F_GETFD) & FD_CLOEXEC;
}

static void
flags_are_set_and_cleared(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(fd_socketpair(fds, false), 0);
	assert_true(is_cloexec(fds[0]) && is_cloexec(fds[1]));
	assert_false(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
	assert_int_equal(fd_set_nonblock(fds[0], true), 0);
	assert_true(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
	assert_int_equal(fd_set_nonblock(fds[0], false), 0);
	assert_false(fcntl(fds[0], F_GETFL) & O_NONBLOCK);
	assert_int_equal(fd_set_cloexec(fds[0], false), 0);
	assert_false(is_cloexec(fds[0]));
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(fd_set_nonblock(fds[0], true), -EBADF);
	assert_int_equal(fd_socketpair(fds, true), 0);
	assert_true(fcntl(fds[1], F_GETFL) & O_NONBLOCK);
	close(fds[0]);
	close(fds[1]);
}

static void
directory_is_made_and_a_foreign_one_refused(void **state)
{
	autofree char *dir = xasprintf("%s/d", top);
	struct err e = { 0 };
	struct stat st;
	int fd;

	(void)state;
	fd = fd_open_dir(dir, 0700, &e);
	assert_true(fd >= 0);
	assert_true(is_cloexec(fd));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	close(fd);
	assert_int_equal(chmod(dir, 0770), 0);
	assert_int_equal(fd_open_dir(dir, 0700, &e), -EPERM);
	assert_non_null(strstr(e.msg, "writable by others"));
	assert_int_equal(chmod(dir, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(dir, 12345, 12345), 0);
		assert_int_equal(fd_open_dir(dir, 0700, &e), -EPERM);
		assert_non_null(strstr(e.msg, "uid 12345"));
	}
	rmdir(dir);
	fd = open(dir, O_CREAT | O_WRONLY, 0600);
	close(fd);
	assert_int_equal(fd_open_dir(dir, 0700, &e), -ENOTDIR);
	unlink(dir);
	assert_int_equal(fd_open_dir("/nonexistent/x", 0700, &e), -ENOENT);
}

static void
directory_below_another_is_never_a_link(void **state)
{
	autofree char *dir = xasprintf("%s/d", top);
	autofree char *link = xasprintf("%s/l", top);
	int at = open(top, O_RDONLY | O_DIRECTORY), fd;
	struct err e = { 0 };

	(void)state;
	fd = fd_open_dir_at(at, "d", 0700, &e);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(symlink(dir, link), 0);
	assert_true(fd_open_dir_at(at, "l", 0700, &e) < 0);
	unlink(link);
	rmdir(dir);
	close(at);
}

static void
missing_parents_are_made(void **state)
{
	static const char *const parts[] = { "a/b/c", "a/b", "a" };
	autofree char *path = xasprintf("%s/a//b/c/", top);
	struct err e = { 0 };

	(void)state;
	assert_int_equal(fd_make_dirs(path, &e), 0);
	assert_int_equal(fd_make_dirs(path, &e), 0);
	assert_int_equal(fd_make_dirs("/", &e), 0);
	assert_int_equal(fd_make_dirs("", &e), -ENOENT);
	assert_true(fd_make_dirs("/proc/nothing/here", &e) < 0);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		autofree char *p = xasprintf("%s/%s", top, parts[i]);

		assert_int_equal(rmdir(p), 0);
	}
}

static void
files_are_read_whole_up_to_a_limit(void **state)
{
	autofree char *path = xasprintf("%s/f", top);
	int fd = open(path, O_CREAT | O_RDWR, 0600);
	struct buf b = { 0 };
	struct err e = { 0 };
	char text[10000];

	(void)state;
	memset(text, 'y', sizeof(text));
	assert_int_equal(fd_write_all(fd, text, sizeof(text)), 0);
	close(fd);
	assert_int_equal(fd_read_file(path, sizeof(text), &b, &e), 0);
	assert_int_equal(buf_len(&b), sizeof(text));
	buf_clear(&b);
	assert_int_equal(fd_read_file(path, sizeof(text) - 1, &b, &e), -EFBIG);
	assert_int_equal(fd_read_file(top, 10, &b, &e), -EISDIR);
	unlink(path);
	assert_int_equal(fd_read_file(path, 10, &b, &e), -ENOENT);
	/* A FIFO in the place of a file does not hang the reader. */
	assert_int_equal(mkfifo(path, 0600), 0);
	buf_clear(&b);
	assert_int_equal(fd_read_file(path, 10, &b, &e), 0);
	assert_int_equal(buf_len(&b), 0);
	unlink(path);
	buf_release(&b);
}

static void
memory_file_is_sealed(void **state)
{
	int fd = fd_sealed_memfd("t", "secret", 6);
	char got[8];

	(void)state;
	assert_true(fd >= 0);
	assert_true(is_cloexec(fd));
	assert_int_equal(read(fd, got, sizeof(got)), 6);
	assert_memory_equal(got, "secret", 6);
	assert_int_equal(pwrite(fd, "x", 1, 0), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, 100), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	close(fd);
}

/* In the child: the exit code says which claim failed. */
static int
arrange_child(void)
{
	int fds[3] = { memfd_create("a", MFD_CLOEXEC),
		memfd_create("b", MFD_CLOEXEC),
		memfd_create("c", MFD_CLOEXEC) };
	int sources[3];
	char c;

	for (int i = 0; i < 3; i++) {
		if (pwrite(fds[i],
			i == 0   ? "a"
			: i == 1 ? "b"
				 : "c",
			1, 0) != 1)
			return 1;
	}
	/* Sources that are each other's targets. */
	sources[0] = dup2(fds[2], 5);
	sources[1] = dup2(fds[1], 3);
	sources[2] = dup2(fds[0], 4);
	if (fd_arrange(sources, 3) < 0)
		return 2;
	for (int i = 0; i < 3; i++) {
		if (pread(3 + i, &c, 1, 0) != 1)
			return 3;
		if (is_cloexec(3 + i))
			return 4;
	}
	if (fcntl(6, F_GETFD) >= 0 || fcntl(20, F_GETFD) >= 0)
		return 5;
	return 0;
}

static void
arranged_descriptors_are_the_only_ones(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(arrange_child());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
unix_sockets_replace_stale_ones_and_spare_live_ones(void **state)
{
	autofree char *path = xasprintf("%s/sock", top);
	int dir = open(top, O_RDONLY | O_DIRECTORY);
	int listener, client;
	struct stat st;
	char name[200];

	(void)state;
	listener = fd_listen_unix(dir, "sock");
	assert_true(listener >= 0);
	assert_true(is_cloexec(listener));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	client = fd_connect_unix(dir, "sock");
	assert_true(client >= 0);
	assert_int_equal(fd_listen_unix(dir, "sock"), -EADDRINUSE);
	close(client);
	close(listener);
	assert_int_equal(fd_connect_unix(dir, "sock"), -ECONNREFUSED);
	listener = fd_listen_unix(dir, "sock");
	assert_true(listener >= 0);
	close(listener);
	unlink(path);
	assert_int_equal(fd_connect_unix(dir, "sock"), -ENOENT);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(fd_listen_unix(dir, name), -ENAMETOOLONG);
	close(dir);
}

#define CASE(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

/* ---- descriptors in messages ---- */

static size_t
open_descriptors(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void
descriptors_ride_with_a_message(void **state)
{
	int pair[2], p[2], got[FD_PASS_MAX];
	char text[8];

	(void)state;
	assert_int_equal(fd_socketpair(pair, true), 0);
	assert_int_equal(pipe(p), 0);
	assert_int_equal(fd_send(pair[0], "abc", 3, p, 2), 3);
	assert_int_equal(
	    fd_receive(pair[1], text, sizeof(text), got, FD_PASS_MAX), 3);
	assert_memory_equal(text, "abc", 3);
	assert_int_equal(got[2], -1);
	assert_int_equal(got[3], -1);
	assert_int_equal(fcntl(got[0], F_GETFD), FD_CLOEXEC);
	assert_int_equal(write(got[1], "x", 1), 1);
	assert_int_equal(read(p[0], text, 1), 1);
	close(got[0]);
	close(got[1]);
	assert_int_equal(
	    fd_receive(pair[1], text, sizeof(text), got, 1), -EAGAIN);
	assert_int_equal(got[0], -1);
	assert_int_equal(fd_send(pair[0], "d", 1, NULL, 0), 1);
	assert_int_equal(fd_receive(pair[1], text, sizeof(text), got, 1), 1);
	assert_int_equal(got[0], -1);
	close(pair[0]);
	assert_int_equal(fd_receive(pair[1], text, sizeof(text), got, 1), 0);
	close(pair[1]);
	close(p[0]);
	close(p[1]);
}

static void
more_descriptors_than_wanted_are_closed(void **state)
{
	int pair[2], p[2], got[FD_PASS_MAX];
	char text[8];
	size_t before;

	(void)state;
	assert_int_equal(fd_socketpair(pair, true), 0);
	assert_int_equal(pipe(p), 0);
	before = open_descriptors();
	for (size_t max = 1; max < FD_PASS_MAX; max++) {
		const int four[FD_PASS_MAX] = { p[0], p[1], p[0], p[1] };

		assert_int_equal(fd_send(pair[0], "e", 1, four, max + 1), 1);
		assert_int_equal(
		    fd_receive(pair[1], text, sizeof(text), got, max), -EPROTO);
		for (size_t i = 0; i < max; i++)
			assert_int_equal(got[i], -1);
		assert_int_equal(open_descriptors(), before);
	}
	close(pair[0]);
	close(pair[1]);
	close(p[0]);
	close(p[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flags_are_set_and_cleared),
		CASE(directory_is_made_and_a_foreign_one_refused),
		CASE(directory_below_another_is_never_a_link),
		CASE(missing_parents_are_made),
		CASE(files_are_read_whole_up_to_a_limit),
		cmocka_unit_test(memory_file_is_sealed),
		cmocka_unit_test(arranged_descriptors_are_the_only_ones),
		CASE(unix_sockets_replace_stale_ones_and_spare_live_ones),
		cmocka_unit_test(descriptors_ride_with_a_message),
		cmocka_unit_test(more_descriptors_than_wanted_are_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
