/*
 * Archives that a workspace is restored from, as anybody might make them: all
 * that comes of one is below its directory, is a file, directory, link or fifo,
 * has set-id bits only for the owner, holds no more bytes than it may, and can
 * be removed; a refusal is a sentence. And tars of engines, which are kept as they
 * are. The input is the tar, with or without
 * zstd; checksums of headers are put right, so that what is behind them is seen.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "sandbox/archive.h"
#include "sandbox/provider.h"
#include "sandbox/workspace.h"
#include "tests/fuzz/fuzz.h"

#define UNPACK_BLOCK  512
#define UNPACK_MAGIC  257 /* where a header has it, and its checksum */
#define UNPACK_SUM    148
#define UNPACK_SUM_N  8
#define UNPACK_MAX    (256U << 10)
#define UNPACK_OWNER  4711
#define UNPACK_CANARY "not of the workspace"

static void
unpack_put_sums(uint8_t *p, size_t n)
{
	for (; n >= UNPACK_BLOCK; p += UNPACK_BLOCK, n -= UNPACK_BLOCK) {
		unsigned sum = 0;
		char text[UNPACK_SUM_N];

		if (memcmp(p + UNPACK_MAGIC, "ustar", 5) != 0)
			continue;
		memset(p + UNPACK_SUM, ' ', UNPACK_SUM_N);
		for (size_t i = 0; i < UNPACK_BLOCK; i++)
			sum += p[i];
		snprintf(text, sizeof(text), "%06o", sum);
		memcpy(p + UNPACK_SUM, text, UNPACK_SUM_N - 1);
	}
}

static int
unpack_input(const uint8_t *p, size_t n)
{
	int fd = memfd_create("archive", MFD_CLOEXEC);
	uint8_t *copy = n ? xmemdup(p, n) : xmalloc(1);

	unpack_put_sums(copy, n);
	FUZZ_CHECK(fd >= 0 && fd_write_all(fd, copy, n) == 0);
	FUZZ_CHECK(lseek(fd, 0, SEEK_SET) == 0);
	free(copy);
	return fd;
}

/* ---- what came of it ---------------------------------------------------------- */

struct unpack_seen {
	uint64_t bytes;
	unsigned files;
};

static void unpack_check_dir(int dir_fd, struct unpack_seen *seen, int depth);

static void
unpack_check_entry(
    int dir_fd, const char *name, struct unpack_seen *seen, int depth)
{
	struct stat st;

	FUZZ_CHECK(fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0);
	FUZZ_CHECK(S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) ||
		   S_ISLNK(st.st_mode) || S_ISFIFO(st.st_mode));
	if (geteuid() == 0) {
		FUZZ_CHECK(
		    !(st.st_mode & S_ISUID) || st.st_uid == UNPACK_OWNER);
		FUZZ_CHECK(
		    !(st.st_mode & S_ISGID) || st.st_gid == UNPACK_OWNER);
	}
	seen->files++;
	if (S_ISREG(st.st_mode) && st.st_blocks)
		seen->bytes += (uint64_t)st.st_blocks * 512 / st.st_nlink;
	if (S_ISDIR(st.st_mode)) {
		autoclose int fd = openat(dir_fd, name,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		/* What is closed to everybody, a test user too, stays so. */
		FUZZ_CHECK(fd >= 0 || errno == EACCES);
		if (fd >= 0)
			unpack_check_dir(fd, seen, depth + 1);
	}
}

static void
unpack_check_dir(int dir_fd, struct unpack_seen *seen, int depth)
{
	DIR *d = fdopendir(fcntl(dir_fd, F_DUPFD_CLOEXEC, 0));
	const struct dirent *entry;

	FUZZ_CHECK(d && depth <= WORKSPACE_DEPTH_MAX);
	rewinddir(d);
	while ((entry = readdir(d))) {
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			unpack_check_entry(dir_fd, entry->d_name, seen, depth);
	}
	closedir(d);
}

/* Nothing was made beside the directory, and nothing there was changed. */
static void
unpack_check_outside(int top_fd, const struct stat *was)
{
	struct unpack_seen seen = { 0 };
	char text[sizeof(UNPACK_CANARY)] = "";
	autoclose int fd = openat(top_fd, "canary", O_RDONLY | O_CLOEXEC);
	struct stat st;

	unpack_check_dir(top_fd, &seen, 0);
	FUZZ_CHECK(seen.files == 1);
	FUZZ_CHECK(fd >= 0 && fstat(fd, &st) == 0);
	FUZZ_CHECK(st.st_mode == was->st_mode && st.st_uid == was->st_uid);
	FUZZ_CHECK(st.st_nlink == 1 && st.st_size == was->st_size);
	FUZZ_CHECK(st.st_mtim.tv_sec == was->st_mtim.tv_sec &&
		   st.st_mtim.tv_nsec == was->st_mtim.tv_nsec);
	FUZZ_CHECK(read(fd, text, sizeof(text)) == (ssize_t)strlen(text));
	FUZZ_CHECK(strcmp(text, UNPACK_CANARY) == 0);
}

static void
unpack_check(int to_fd, const struct sandbox_copied *c, int rc)
{
	struct unpack_seen seen = { 0 };

	unpack_check_dir(to_fd, &seen, 0);
	/* A page for each file's last bytes. */
	FUZZ_CHECK(seen.bytes <= UNPACK_MAX + 4096ULL * seen.files);
	FUZZ_CHECK(rc < 0 || c->files >= seen.files);
}

/* As an engine's client sends it: what is kept of it comes back the same. */
static void
unpack_check_stream(const uint8_t *p, size_t n)
{
	autoclose int in_fd = unpack_input(p, n);
	autoclose int kept_fd = memfd_create("kept", MFD_CLOEXEC);
	autoclose int again_fd = memfd_create("again", MFD_CLOEXEC);
	struct sandbox_copied kept = { 0 }, given = { 0 };
	struct buf was = { 0 }, is = { 0 };
	struct err e = { .code = 0 };
	int rc = archive_take(in_fd, kept_fd, &kept, &e);

	FUZZ_CHECK(rc == 0 || (rc < 0 && *e.msg));
	if (rc < 0)
		return;
	FUZZ_CHECK(lseek(kept_fd, 0, SEEK_SET) == 0);
	FUZZ_CHECK(archive_give(kept_fd, again_fd, &given, &e) == 0);
	FUZZ_CHECK(strcmp(kept.hash, given.hash) == 0);
	FUZZ_CHECK(kept.files > 0 && kept.bytes == given.bytes);
	FUZZ_CHECK(lseek(in_fd, 0, SEEK_SET) == 0);
	FUZZ_CHECK(lseek(again_fd, 0, SEEK_SET) == 0);
	FUZZ_CHECK(fd_read_all(in_fd, 1U << 20, &was) == 0);
	FUZZ_CHECK(fd_read_all(again_fd, 1U << 20, &is) == 0);
	FUZZ_CHECK(buf_len(&was) == buf_len(&is));
	FUZZ_CHECK(memcmp(buf_head(&was), buf_head(&is), buf_len(&is)) == 0);
	buf_release(&was);
	buf_release(&is);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct archive_owner owner = { UNPACK_OWNER, UNPACK_OWNER, UNPACK_MAX };
	char top[] = "/dev/shm/berth-unpack-XXXXXX";
	autoclose int shm_fd =
	    open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	autoclose int in_fd = unpack_input(p, n);
	autoclose int top_fd = -1, to_fd = -1, canary_fd = -1;
	struct sandbox_copied copied = { 0 };
	struct err e = { .code = 0 };
	struct stat was;
	int rc;

	unpack_check_stream(p, n);
	FUZZ_CHECK(mkdtemp(top));
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	canary_fd =
	    openat(top_fd, "canary", O_CREAT | O_WRONLY | O_CLOEXEC, 0640);
	FUZZ_CHECK(canary_fd >= 0 && fd_write_all(canary_fd, UNPACK_CANARY,
					 strlen(UNPACK_CANARY)) == 0);
	FUZZ_CHECK(fstat(canary_fd, &was) == 0);
	FUZZ_CHECK(mkdirat(top_fd, "to", 0700) == 0);
	to_fd = openat(top_fd, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = archive_unpack(to_fd, in_fd, &owner, &copied, &e);
	FUZZ_CHECK(rc == 0 || (rc < 0 && *e.msg));
	unpack_check(to_fd, &copied, rc);
	FUZZ_CHECK(workspace_remove_at(top_fd, "to") == 0);
	unpack_check_outside(top_fd, &was);
	FUZZ_CHECK(workspace_remove_at(shm_fd, top + strlen("/dev/shm/")) == 0);
	return 0;
}
