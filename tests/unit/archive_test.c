/*
 * Archives of workspaces: what goes in comes out the same, and whatever an
 * archive holds, nothing outside of the directory is made, changed or read.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "sandbox/archive.h"
#include "sandbox/provider.h"
#include "sandbox/workspace.h"
#include "tests/unit/unit.h"

#define ENTRIES_MAX 6

struct fixture {
	char top[64];
	int top_fd, from_fd, to_fd, file_fd;
	struct archive_owner owner;
	struct sandbox_copied copied;
	char hash[SANDBOX_HASH_SIZE];
	struct err e;
};

/* A directory "from" with what is packed, "to" for what is unpacked. */
static int
setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	snprintf(f->top, sizeof(f->top), "/tmp/berth-archive-XXXXXX");
	assert_non_null(mkdtemp(f->top));
	f->top_fd = open(f->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(f->top_fd, "from", 0700), 0);
	assert_int_equal(mkdirat(f->top_fd, "to", 0700), 0);
	f->from_fd = openat(f->top_fd, "from", O_RDONLY | O_CLOEXEC);
	f->to_fd = openat(f->top_fd, "to", O_RDONLY | O_CLOEXEC);
	f->file_fd = openat(f->top_fd, "file", O_RDWR | O_CREAT, 0600);
	f->owner = (struct archive_owner){ geteuid(), getegid(), 0 };
	*state = f;
	return 0;
}

static int
tear_down(void **state)
{
	struct fixture *f = *state;

	autoclose int tmp_fd = open("/tmp", O_RDONLY | O_DIRECTORY);

	assert_int_equal(
	    workspace_remove_at(tmp_fd, f->top + strlen("/tmp/")), 0);
	close(f->top_fd);
	close(f->from_fd);
	close(f->to_fd);
	close(f->file_fd);
	free(f);
	return 0;
}

static void
put_file(int dir_fd, const char *name, const char *text)
{
	int fd = openat(dir_fd, name, O_CREAT | O_WRONLY | O_EXCL, 0640);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void
check_file(int dir_fd, const char *name, const char *text)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW);
	char got[64] = "";

	assert_true(fd >= 0);
	assert_int_equal(read(fd, got, sizeof(got) - 1), strlen(text));
	assert_string_equal(got, text);
	close(fd);
}

static int
pack(struct fixture *f)
{
	int rc = archive_pack(f->from_fd, f->file_fd, &f->copied, &f->e);

	snprintf(f->hash, sizeof(f->hash), "%s", f->copied.hash);

	lseek(f->file_fd, 0, SEEK_SET);
	return rc;
}

static int
unpack(struct fixture *f)
{
	lseek(f->file_fd, 0, SEEK_SET);
	return archive_unpack(
	    f->to_fd, f->file_fd, &f->owner, &f->copied, &f->e);
}

static void
round_trip(struct fixture *f)
{
	if (pack(f) < 0 || unpack(f) < 0)
		fail_msg("%s", f->e.msg);
	assert_int_equal(strlen(f->hash), SANDBOX_HASH_SIZE - 1);
	assert_string_equal(f->hash, f->copied.hash);
}

/* ---- the way there and back ------------------------------------------------- */

static void
names_are_bytes(void **state)
{
	struct fixture *f = *state;
	static const char *const names[] = { "\xff\xfe", "a\nb", " ", "\\",
		"\xc3\xa4", "..a", "-rf" };
	char longest[256];

	memset(longest, 'x', 255);
	longest[255] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		put_file(f->from_fd, names[i], names[i]);
	put_file(f->from_fd, longest, "long");
	round_trip(f);
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		check_file(f->to_fd, names[i], names[i]);
	check_file(f->to_fd, longest, "long");
	assert_int_equal(f->copied.files, ARRAY_LEN(names) + 2);
}

static void
links_stay_links(void **state)
{
	struct fixture *f = *state;
	struct stat a, b;
	char target[64] = "";

	put_file(f->from_fd, "a", "same");
	assert_int_equal(linkat(f->from_fd, "a", f->from_fd, "b", 0), 0);
	assert_int_equal(symlinkat("/nowhere/../x", f->from_fd, "s"), 0);
	assert_int_equal(linkat(f->from_fd, "s", f->from_fd, "t", 0), 0);
	round_trip(f);
	assert_int_equal(fstatat(f->to_fd, "a", &a, 0), 0);
	assert_int_equal(fstatat(f->to_fd, "b", &b, 0), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(a.st_nlink, 2);
	assert_int_equal(fstatat(f->to_fd, "s", &a, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(fstatat(f->to_fd, "t", &b, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_true(readlinkat(f->to_fd, "s", target, sizeof(target) - 1) > 0);
	assert_string_equal(target, "/nowhere/../x");
}

static void
holes_stay_holes(void **state)
{
	struct fixture *f = *state;
	const off_t size = (off_t)1 << 33;
	const struct {
		const char *name;
		off_t at; /* of one byte; -1: none */
	} rows[] = { { "begin", 0 }, { "middle", size / 2 }, { "none", -1 },
		{ "end", size - 1 } };
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int fd =
		    openat(f->from_fd, rows[i].name, O_CREAT | O_WRONLY, 0600);

		assert_int_equal(ftruncate(fd, size), 0);
		if (rows[i].at >= 0)
			assert_int_equal(pwrite(fd, "!", 1, rows[i].at), 1);
		close(fd);
	}
	round_trip(f);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int fd = openat(f->to_fd, rows[i].name, O_RDONLY);
		char got = '\0';

		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_size, size);
		assert_true(st.st_blocks < 1024);
		if (rows[i].at >= 0)
			assert_int_equal(pread(fd, &got, 1, rows[i].at), 1);
		assert_int_equal(got, rows[i].at >= 0 ? '!' : '\0');
		close(fd);
	}
}

static void
modes_times_and_attributes_stay(void **state)
{
	struct fixture *f = *state;
	const struct timespec t[2] = { { .tv_nsec = UTIME_OMIT },
		{ 981173106, 123456789 } };
	struct stat st;
	char got[8] = "", path[128];
	bool has_attributes;

	put_file(f->from_fd, "f", "");
	assert_int_equal(mkdirat(f->from_fd, "d", 0700), 0);
	put_file(f->from_fd, "d/inner", "x");
	assert_int_equal(mkfifoat(f->from_fd, "p", 0622), 0);
	snprintf(path, sizeof(path), "%s/from/f", f->top);
	has_attributes = setxattr(path, "user.note", "yes", 3, 0) == 0;
	assert_int_equal(fchmodat(f->from_fd, "f", 04711, 0), 0);
	assert_int_equal(fchmodat(f->from_fd, "d", 01555, 0), 0);
	for (const char *s = "fdp"; *s; s++) {
		char name[2] = { *s, '\0' };

		assert_int_equal(utimensat(f->from_fd, name, t, 0), 0);
	}
	round_trip(f);
	assert_int_equal(fstatat(f->to_fd, "f", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFREG | 04711);
	assert_int_equal(st.st_mtim.tv_nsec, t[1].tv_nsec);
	assert_int_equal(fstatat(f->to_fd, "d", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 01555);
	assert_int_equal(st.st_mtim.tv_sec, t[1].tv_sec);
	assert_int_equal(fstatat(f->to_fd, "p", &st, 0), 0);
	assert_true(S_ISFIFO(st.st_mode));
	snprintf(path, sizeof(path), "%s/to/f", f->top);
	if (has_attributes)
		assert_int_equal(
		    getxattr(path, "user.note", got, sizeof(got)), 3);
}

static void
sockets_are_left_out_and_counted(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/from/s", f->top);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	close(fd);
	assert_int_equal(pack(f), 0);
	assert_int_equal(f->copied.skipped, 1);
	assert_int_equal(f->copied.files, 1);
}

/* ---- archives of somebody else ------------------------------------------------ */

struct entry {
	mode_t type; /* 0 ends; with a link and no type: a hard link */
	const char *path, *link;
};

#define OUTSIDE "../secret"

static const struct entry hostile[][ENTRIES_MAX] = {
	{ { S_IFREG, "/tmp/berth-archive-out", NULL } },
	{ { S_IFREG, OUTSIDE, NULL } },
	{ { S_IFREG, "a/../../secret", NULL } },
	{ { S_IFDIR, "..", NULL } },
	{ { S_IFLNK, "a", ".." }, { S_IFREG, "a/secret", NULL } },
	{ { S_IFLNK, "a", ".." }, { S_IFDIR, "a/new", NULL } },
	{ { S_IFLNK, "a", ".." }, { S_IFLNK, "a/new", "x" } },
	{ { S_IFLNK, "a", ".." }, { S_IFIFO, "a/new", NULL } },
	{ { S_IFLNK, "a", OUTSIDE }, { S_IFREG, "a", NULL } },
	{ { S_IFLNK, "a", "../new" }, { S_IFREG, "a", NULL } },
	{ { S_IFLNK, "a", ".." }, { S_IFDIR, "a", NULL } },
	{ { S_IFDIR, "a", NULL }, { S_IFLNK, "a", ".." } },
	{ { S_IFLNK, "a", "." }, { S_IFREG, "a/b", NULL } },
	{ { S_IFLNK, "a", "/proc/self/cwd" }, { S_IFREG, "a/b", NULL } },
	{ { S_IFREG, "h", OUTSIDE } },
	{ { S_IFREG, "h", "/etc/passwd" } },
	{ { S_IFREG, "h", "." } },
	{ { S_IFREG, "h", "missing" } },
	{ { S_IFLNK, "a", ".." }, { S_IFREG, "h", "a/secret" } },
	{ { S_IFLNK, "a", OUTSIDE }, { S_IFREG, "h", "a" },
	    { S_IFREG, "h", NULL } },
	{ { S_IFCHR, "null", NULL } },
	{ { S_IFBLK, "disk", NULL } },
	{ { S_IFREG, "twice", NULL }, { S_IFREG, "twice", NULL } },
	{ { S_IFREG, "f", NULL }, { S_IFREG, "f/below", NULL } },
	{ { S_IFREG, "no/parent", NULL } },
	{ { S_IFDIR, ".", NULL } },
};

static void
write_entry(struct archive *a, const struct entry *x)
{
	struct archive_entry *entry = archive_entry_new();
	bool is_hardlink = x->link && x->type != S_IFLNK;

	archive_entry_set_pathname(entry, x->path);
	archive_entry_set_mode(entry, x->type | 0777);
	archive_entry_set_uid(entry, geteuid());
	archive_entry_set_gid(entry, getegid());
	archive_entry_set_size(
	    entry, x->type == S_IFREG && !is_hardlink ? 4 : 0);
	if (is_hardlink)
		archive_entry_set_hardlink(entry, x->link);
	else if (x->link)
		archive_entry_set_symlink(entry, x->link);
	assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
	if (x->type == S_IFREG && !is_hardlink)
		assert_int_equal(archive_write_data(a, "evil", 4), 4);
	archive_entry_free(entry);
}

static void
write_archive(struct fixture *f, const struct entry *list, bool has_top)
{
	static const struct entry top = { S_IFDIR, ".", NULL };
	struct archive *a = archive_write_new();

	assert_int_equal(archive_write_set_format_pax(a), ARCHIVE_OK);
	assert_int_equal(archive_write_add_filter_zstd(a), ARCHIVE_OK);
	assert_int_equal(ftruncate(f->file_fd, 0), 0);
	lseek(f->file_fd, 0, SEEK_SET);
	assert_int_equal(archive_write_open_fd(a, f->file_fd), ARCHIVE_OK);
	if (has_top)
		write_entry(a, &top);
	for (size_t i = 0; list[i].type; i++)
		write_entry(a, &list[i]);
	assert_int_equal(archive_write_close(a), ARCHIVE_OK);
	archive_write_free(a);
}

static void
nothing_outside_is_touched(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	put_file(f->top_fd, "secret", "mine");
	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		write_archive(f, hostile[i], true);
		if (unpack(f) != -EBADMSG)
			fail_msg("row %zu: %d %s", i, f->e.code, f->e.msg);
		check_file(f->top_fd, "secret", "mine");
		assert_int_equal(fstatat(f->top_fd, "secret", &st, 0), 0);
		assert_int_equal(st.st_nlink, 1);
		assert_int_equal(st.st_mode & 07777, 0640);
		assert_int_equal(fstatat(f->top_fd, "new", &st, 0), -1);
		assert_int_equal(access("/tmp/berth-archive-out", F_OK), -1);
		close(f->to_fd);
		assert_int_equal(workspace_remove_at(f->top_fd, "to"), 0);
		assert_int_equal(mkdirat(f->top_fd, "to", 0700), 0);
		f->to_fd = openat(f->top_fd, "to", O_RDONLY | O_CLOEXEC);
	}
}

static void
what_is_no_archive_of_a_workspace_is_refused(void **state)
{
	struct fixture *f = *state;
	static const struct entry list[] = { { S_IFREG, "a", NULL },
		{ 0, NULL, NULL } };
	struct stat st;

	assert_int_equal(unpack(f), -EBADMSG); /* an empty file */
	write_archive(f, list, false);
	assert_int_equal(unpack(f), -EBADMSG);
	write_archive(f, list, true);
	assert_int_equal(fstat(f->file_fd, &st), 0);
	assert_int_equal(ftruncate(f->file_fd, st.st_size - 8), 0);
	assert_int_equal(unpack(f), -EBADMSG); /* cut */
	assert_int_equal(pwrite(f->file_fd, "not zstd", 8, 0), 8);
	assert_int_equal(unpack(f), -EBADMSG);
}

/* Files of others do not become programs that run as others. */
static void
set_id_bits_stay_with_the_owner(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	if (geteuid() != 0)
		return;
	put_file(f->from_fd, "theirs", "");
	put_file(f->from_fd, "own", "");
	put_file(f->from_fd, "group", "");
	assert_int_equal(fchownat(f->from_fd, "theirs", 1, 1, 0), 0);
	assert_int_equal(fchownat(f->from_fd, "group", 4242, 0, 0), 0);
	assert_int_equal(fchmodat(f->from_fd, "group", 06755, 0), 0);
	assert_int_equal(fchownat(f->from_fd, "own", 4242, 4242, 0), 0);
	assert_int_equal(fchown(f->from_fd, 4242, 4242), 0);
	assert_int_equal(fchmodat(f->from_fd, "theirs", 06755, 0), 0);
	assert_int_equal(fchmodat(f->from_fd, "own", 06755, 0), 0);
	f->owner = (struct archive_owner){ 4243, 4244, 0 };
	round_trip(f);
	assert_int_equal(fstatat(f->to_fd, "theirs", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(st.st_uid, 1);
	assert_int_equal(fstatat(f->to_fd, "group", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 04755);
	assert_int_equal(st.st_gid, 0);
	assert_int_equal(fstatat(f->to_fd, "own", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 06755);
	assert_int_equal(st.st_uid, 4243);
	assert_int_equal(st.st_gid, 4244);
}

static void
contents_beyond_the_limit_are_refused(void **state)
{
	struct fixture *f = *state;
	struct sandbox_copied copied;

	put_file(f->from_fd, "one", "1234567890");
	put_file(f->from_fd, "two", "1234567890");
	f->owner.max_bytes = 20;
	round_trip(f);
	f->owner.max_bytes = 19;
	close(f->to_fd);
	assert_int_equal(workspace_remove_at(f->top_fd, "to"), 0);
	assert_int_equal(mkdirat(f->top_fd, "to", 0700), 0);
	f->to_fd = openat(f->top_fd, "to", O_RDONLY | O_CLOEXEC);
	assert_int_equal(lseek(f->file_fd, 0, SEEK_SET), 0);
	assert_int_equal(
	    archive_unpack(f->to_fd, f->file_fd, &f->owner, &copied, &f->e),
	    -EFBIG);
	assert_non_null(strstr(f->e.msg, "workspace_size"));
}

/* What is too deep for whoever removes workspaces is not made. */
static void
directories_nested_too_deep_are_refused(void **state)
{
	static char path[WORKSPACE_DEPTH_MAX + 1][2 * WORKSPACE_DEPTH_MAX + 3];
	struct entry list[WORKSPACE_DEPTH_MAX + 2] = { { 0, NULL, NULL } };
	struct fixture *f = *state;

	for (size_t i = 0; i <= WORKSPACE_DEPTH_MAX; i++) {
		for (size_t k = 0; k <= i; k++)
			memcpy(path[i] + 2 * k, "d/", 2);
		list[i] = (struct entry){ S_IFDIR, path[i], NULL };
	}
	write_archive(f, list, true);
	assert_int_equal(unpack(f), -EBADMSG);
	assert_non_null(strstr(f->e.msg, "nested too deep"));
	assert_int_equal(workspace_remove_at(f->top_fd, "to"), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    names_are_bytes, setup, tear_down),
		cmocka_unit_test_setup_teardown(
		    links_stay_links, setup, tear_down),
		cmocka_unit_test_setup_teardown(
		    holes_stay_holes, setup, tear_down),
		cmocka_unit_test_setup_teardown(
		    modes_times_and_attributes_stay, setup, tear_down),
		cmocka_unit_test_setup_teardown(
		    sockets_are_left_out_and_counted, setup, tear_down),
		cmocka_unit_test_setup_teardown(
		    nothing_outside_is_touched, setup, tear_down),
		cmocka_unit_test_setup_teardown(
		    what_is_no_archive_of_a_workspace_is_refused, setup,
		    tear_down),
		cmocka_unit_test_setup_teardown(
		    contents_beyond_the_limit_are_refused, setup, tear_down),
		cmocka_unit_test_setup_teardown(
		    directories_nested_too_deep_are_refused, setup, tear_down),
		cmocka_unit_test_setup_teardown(
		    set_id_bits_stay_with_the_owner, setup, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
