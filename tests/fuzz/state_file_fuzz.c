/*
 * The lock file of a dead keeper: what is read is written again to the same
 * bytes, one changed byte is seen, and a refusal leaves the caller's struct
 * alone. The first byte says whether the checksum is in the input or made here.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "sessions/wire/state_file.h"
#include "tests/fuzz/fuzz.h"

/* A memory file with the bytes of B. */
static int
state_file_with(const struct buf *b)
{
	int fd = memfd_create("state", MFD_CLOEXEC);

	FUZZ_CHECK(fd >= 0);
	FUZZ_CHECK(fd_write_all(fd, buf_head(b), buf_len(b)) == 0);
	return fd;
}

static uint32_t
state_file_checksum(const uint8_t *p, size_t n)
{
	uint32_t h = 2166136261U;

	while (n--)
		h = (h ^ *p++) * 16777619U;
	return h;
}

/* What was accepted is the only spelling of itself. */
static void
state_file_check_same(const struct state_file *s, const struct buf *b)
{
	autoclose int fd = memfd_create("again", MFD_CLOEXEC);
	struct buf again = { 0 };

	FUZZ_CHECK(memchr(s->sid, 0, sizeof(s->sid)));
	FUZZ_CHECK(memchr(s->boot, 0, sizeof(s->boot)));
	FUZZ_CHECK(s->n_left <= STATE_FILE_LEFT_MAX && s->has_exited <= 1);
	FUZZ_CHECK(fd >= 0 && state_file_write(fd, s) == 0);
	FUZZ_CHECK(lseek(fd, 0, SEEK_SET) == 0);
	FUZZ_CHECK(fd_read_all(fd, 1U << 20, &again) == 0);
	FUZZ_CHECK(buf_len(&again) == buf_len(b));
	FUZZ_CHECK(memcmp(buf_head(&again), buf_head(b), buf_len(b)) == 0);
	buf_release(&again);
}

/* The byte at AT of the file FD changes: it is no state any more. */
static void
state_file_check_damage(int fd, const struct buf *b, size_t at)
{
	uint8_t c = (uint8_t)(buf_head(b)[at] ^ 1);
	struct state_file s;

	FUZZ_CHECK(pwrite(fd, &c, 1, (off_t)at) == 1);
	FUZZ_CHECK(state_file_read(fd, &s) == -EPROTO);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct fuzz_input in = { p, n };
	bool has_sum = fuzz_u8(&in) & 1;
	struct state_file s, before;
	struct buf b = { 0 };
	int fd, rc;

	/* So that there are bytes to point at, even without an input. */
	buf_reserve(&b, in.n + 4);
	if (in.n)
		buf_put(&b, in.p, in.n);
	if (!has_sum)
		buf_put_u32(&b, state_file_checksum(buf_head(&b), buf_len(&b)));
	fd = state_file_with(&b);
	memset(&s, 0xa5, sizeof(s));
	memcpy(&before, &s, sizeof(s));
	rc = state_file_read(fd, &s);
	if (rc == 0) {
		state_file_check_same(&s, &b);
		state_file_check_damage(fd, &b, n % buf_len(&b));
	} else {
		FUZZ_CHECK(rc == (buf_len(&b) ? -EPROTO : -ENODATA));
		FUZZ_CHECK(memcmp(&before, &s, sizeof(s)) == 0);
	}
	close(fd);
	buf_release(&b);
	return 0;
}
