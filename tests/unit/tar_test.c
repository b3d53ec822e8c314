/*
 * Tar streams: what is written is read again whatever its names are like, and
 * is what other programs read; what is none is refused with a sentence.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/tar.h"
#include "tests/unit/unit.h"

static int
file_of(const void *p, size_t n)
{
	int fd = memfd_create("tar", MFD_CLOEXEC);

	assert_int_equal(write(fd, p, n), n);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void
fill(char *out, size_t n, char c)
{
	memset(out, c, n);
	out[n] = '\0';
}

static void
names_and_sizes_come_back(void **state)
{
	static const struct {
		char type;
		size_t path, link;
		uint64_t size;
	} rows[] = {
		{ TAR_FILE, 1, 0, 0 },
		{ TAR_FILE, 99, 0, 1 },
		{ TAR_FILE, 100, 0, 511 },
		{ TAR_FILE, 101, 0, 512 },
		{ TAR_FILE, 4095, 0, 077777777777 },
		{ TAR_FILE, 5, 0, 0100000000000 },
		{ TAR_FILE, 5, 0, 1ULL << 50 },
		{ TAR_DIRECTORY, 511, 0, 0 },
		{ TAR_SYMLINK, 5, 100, 0 },
		{ TAR_SYMLINK, 200, 101, 0 },
		{ TAR_HARD_LINK, 3, 4095, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		static struct tar_entry in, out;
		struct tar_reader r = { .fd = -1 };
		struct buf b = { 0 };
		struct err e;

		in = (struct tar_entry){
			.type = rows[i].type,
			.mode = 04751,
			.size = rows[i].size,
			.mtime_s = 981173106,
		};
		fill(in.path, rows[i].path, 'p');
		fill(in.link, rows[i].link, 'l');
		tar_encode(&b, &in);
		assert_int_equal(buf_len(&b) % TAR_BLOCK, 0);
		r.fd = file_of(buf_head(&b), buf_len(&b));
		assert_int_equal(tar_next(&r, &out, &e), 1);
		assert_string_equal(in.path, out.path);
		assert_string_equal(in.link, out.link);
		assert_int_equal(in.type, out.type);
		assert_int_equal(in.mode, out.mode);
		assert_int_equal(in.size, out.size);
		assert_int_equal(in.mtime_s, out.mtime_s);
		close(r.fd);
		buf_release(&b);
	}
}

static void
an_archive_that_is_cut_is_no_whole_one(void **state)
{
	static const uint8_t end[2 * TAR_BLOCK];
	static struct tar_entry entry;
	struct tar_entry in = { .path = "f", .type = TAR_FILE, .size = 700 };
	struct buf b = { 0 };
	struct err e;

	(void)state;
	tar_encode(&b, &in);
	buf_put(&b, end, 700);
	buf_put(&b, end, tar_padding(700));
	buf_put(&b, end, sizeof(end));
	for (size_t n = 0; n <= buf_len(&b); n += 100) {
		struct tar_reader r = { .fd = file_of(buf_head(&b), n) };
		char space[1000];
		int rc;

		while ((rc = tar_next(&r, &entry, &e)) == 1 &&
		       (rc = (int)tar_data(&r, space, sizeof(space), &e)) > 0)
			assert_int_equal(rc, 700);
		/* One block of zeros is the end for everybody. */
		if (n < TAR_BLOCK + 1024 + TAR_BLOCK)
			assert_int_equal(rc, -EPIPE);
		else
			assert_int_equal(rc, 0);
		close(r.fd);
	}
	buf_release(&b);
}

static void
what_is_no_archive_is_refused(void **state)
{
	static struct tar_entry entry;
	struct tar_entry in = { .path = "f", .type = TAR_FILE, .mode = 0644 };
	struct buf b = { 0 };
	struct err e;

	(void)state;
	tar_encode(&b, &in);
	for (size_t i = 0; i < TAR_BLOCK; i += 7) {
		autofree uint8_t *bad = xmemdup(buf_head(&b), TAR_BLOCK);
		struct tar_reader r = { .fd = -1 };

		bad[i] ^= 0x41;
		r.fd = file_of(bad, TAR_BLOCK);
		assert_int_equal(tar_next(&r, &entry, &e), -EPROTO);
		close(r.fd);
	}
	buf_release(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_sizes_come_back),
		cmocka_unit_test(an_archive_that_is_cut_is_no_whole_one),
		cmocka_unit_test(what_is_no_archive_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
