/*
 * What one berthd leaves to the next: a memory file that is accepted is sealed
 * again to the same bytes, an identity that is accepted is told on as it was
 * understood, and the loaders of single sections neither run over nor out of
 * memory. No descriptor that an input names is touched. The first byte chooses.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "sessions/manager/manager.h"
#include "sessions/wire/handoff.h"
#include "sshd/listener/server.h"
#include "sshd/listener/upgrade.h"
#include "tests/fuzz/fuzz.h"

static void
handoff_fuzz_file(const uint8_t *p, size_t n)
{
	autoclose int fd = memfd_create("handoff", MFD_CLOEXEC);
	autoclose int again = -1;
	struct handoff h = { 0 };
	struct buf b = { 0 };
	struct err e = { 0 };

	FUZZ_CHECK(fd >= 0 && fd_write_all(fd, p, n) == 0);
	if (handoff_open(fd, &h, &e) < 0) {
		FUZZ_CHECK(e.msg[0]);
		FUZZ_CHECK(!h.fds && !h.n_fds && !h.sections[0].data);
		return;
	}
	again = handoff_seal(&h);
	FUZZ_CHECK(again >= 0 && fd_read_all(again, 1U << 20, &b) == 0);
	/* but for the version, behind the magic: it is always the newest */
	FUZZ_CHECK(buf_len(&b) == n && memcmp(buf_head(&b), p, 4) == 0);
	FUZZ_CHECK(memcmp(buf_head(&b) + 8, p + 8, n - 8) == 0);
	buf_release(&b);
	handoff_release(&h);
}

/* P as the section WHICH of a handoff without any other. */
static struct handoff
handoff_fuzz_section(enum handoff_section which, const uint8_t *p, size_t n)
{
	struct handoff h = { 0 };

	buf_reserve(&h.sections[which], n + 1);
	if (n)
		buf_put(&h.sections[which], p, n);
	return h;
}

static void
handoff_fuzz_past(const uint8_t *p, size_t n)
{
	struct handoff h = handoff_fuzz_section(HANDOFF_DAEMON, p, n);
	struct upgrade_past past;
	struct err e = { 0 };

	if (upgrade_load_past(&h, &past, &e) < 0)
		FUZZ_CHECK(e.msg[0]);
	FUZZ_CHECK(memchr(past.version, 0, sizeof(past.version)));
	FUZZ_CHECK(memchr(past.who, 0, sizeof(past.who)));
	handoff_release(&h);
}

static void
handoff_fuzz_listeners(const uint8_t *p, size_t n)
{
	struct handoff h = handoff_fuzz_section(HANDOFF_SERVER, p, n);
	struct server s = { 0 };

	if (server_load_listeners(&s, &h) == 0)
		FUZZ_CHECK(s.n_fds <= ARRAY_LEN(s.fds) && n >= 4 * s.n_fds);
	handoff_release(&h);
}

/* Loads an identity from P and saves it into OUT; false when it is none. */
static bool
handoff_fuzz_tell(const uint8_t *p, size_t n, struct buf *out)
{
	struct reader r = reader_over(p, n);
	struct principal who;

	principal_load(&r, &who);
	if (r.failed) {
		FUZZ_CHECK(!who.forced_command && !who.sandbox_globs);
		return false;
	}
	FUZZ_CHECK(role_name(who.role));
	principal_save(&who, out);
	principal_release(&who);
	return true;
}

static void
handoff_fuzz_principal(const uint8_t *p, size_t n)
{
	struct buf first = { 0 }, second = { 0 };

	if (!handoff_fuzz_tell(p, n, &first))
		return;
	FUZZ_CHECK(
	    handoff_fuzz_tell(buf_head(&first), buf_len(&first), &second));
	FUZZ_CHECK(buf_len(&first) == buf_len(&second));
	FUZZ_CHECK(
	    memcmp(buf_head(&first), buf_head(&second), buf_len(&first)) == 0);
	buf_release(&first);
	buf_release(&second);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static void (*const parts[])(const uint8_t *p, size_t n) = {
		handoff_fuzz_file,
		handoff_fuzz_past,
		handoff_fuzz_listeners,
		handoff_fuzz_principal,
	};

	if (n)
		parts[p[0] % ARRAY_LEN(parts)](p + 1, n - 1);
	return 0;
}
