/*
 * Tar streams as a sandbox may send them: an archive is read to its end or
 * refused, no entry has more bytes than it says, and what is read comes back
 * the same when it is written and read again. The input is the stream.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "cli/tar.h"
#include "tests/fuzz/fuzz.h"

static int
tar_file(const void *p, size_t n)
{
	int fd = memfd_create("tar", MFD_CLOEXEC);

	FUZZ_CHECK(fd >= 0);
	FUZZ_CHECK(write(fd, p, n) == (ssize_t)n);
	FUZZ_CHECK(lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

/* Fractions of a second are only read. */
static void
tar_again(const struct tar_entry *entry)
{
	static struct tar_entry again;
	struct tar_reader r = { .fd = -1 };
	struct buf b = { 0 };
	struct err e;

	if (entry->type < TAR_FILE || entry->type > '6' || entry->mtime_s < 0)
		return;
	tar_encode(&b, entry);
	r.fd = tar_file(buf_head(&b), buf_len(&b));
	FUZZ_CHECK(tar_next(&r, &again, &e) == 1);
	FUZZ_CHECK(strcmp(entry->path, again.path) == 0);
	FUZZ_CHECK(strcmp(entry->link, again.link) == 0);
	FUZZ_CHECK(entry->type == again.type && entry->mode == again.mode);
	FUZZ_CHECK(entry->mtime_s == again.mtime_s);
	FUZZ_CHECK(again.size == (entry->type == TAR_FILE ? entry->size : 0));
	close(r.fd);
	buf_release(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static struct tar_entry entry;
	struct tar_reader r = { .fd = tar_file(p, n) };
	struct err e = { .msg = "" };
	int rc;

	while ((rc = tar_next(&r, &entry, &e)) == 1) {
		uint64_t got = 0;
		char space[700];
		ssize_t k;

		FUZZ_CHECK(strlen(entry.path) < TAR_PATH_MAX);
		FUZZ_CHECK(strlen(entry.link) < TAR_PATH_MAX);
		FUZZ_CHECK((entry.mode & ~07777U) == 0);
		tar_again(&entry);
		while ((k = tar_data(&r, space, sizeof(space), &e)) > 0)
			got += (uint64_t)k;
		FUZZ_CHECK(got <= entry.size && got <= n);
		FUZZ_CHECK(k == 0 ? got == entry.size : *e.msg != '\0');
	}
	FUZZ_CHECK(rc == 0 || (rc < 0 && *e.msg));
	FUZZ_CHECK(r.n_bytes <= n);
	close(r.fd);
	return 0;
}
