/*
 * The first line of a peer: the verdict is that of the rule, is never taken
 * back when more bytes come, and is the same when looked at on a socket, which
 * loses no byte. The input is what the peer sends; its first byte cuts it.
 */
#include <sys/socket.h>

#include "base/fd.h"
#include "sshd/connection/ident.h"
#include "tests/fuzz/fuzz.h"

static int
ident_begins(const uint8_t *p, size_t n, const char *with)
{
	size_t len = strlen(with);

	return n >= len && memcmp(p, with, len) == 0;
}

/* RFC 4253 4.2 as a reader would apply it to the whole of P. */
static enum ident_verdict
ident_rule(const uint8_t *p, size_t n)
{
	const uint8_t *nl = n ? memchr(p, '\n', n) : NULL;
	size_t head = n < 4 ? n : 4;

	if (head && memcmp(p, "SSH-", head) != 0)
		return IDENT_GARBAGE;
	if ((nl && nl - p >= 255) || (!nl && n >= 255))
		return IDENT_GARBAGE;
	if (!nl)
		return IDENT_MORE;
	if (ident_begins(p, (size_t)(nl - p), "SSH-2.0-") ||
	    ident_begins(p, (size_t)(nl - p), "SSH-1.99-"))
		return IDENT_OK;
	return IDENT_OLD;
}

static void
ident_check_socket(const uint8_t *p, size_t n, enum ident_verdict want)
{
	char line[512];
	ssize_t len;
	int pair[2];

	FUZZ_CHECK(fd_socketpair(pair, true) == 0);
	FUZZ_CHECK(ident_peek(pair[0]) == IDENT_MORE);
	FUZZ_CHECK(send(pair[1], p, n, 0) == (ssize_t)n);
	FUZZ_CHECK(ident_peek(pair[0]) == want);
	shutdown(pair[1], SHUT_WR);
	FUZZ_CHECK(
	    ident_peek(pair[0]) == (want == IDENT_MORE ? IDENT_GONE : want));
	ident_finish(pair[0]);
	FUZZ_CHECK(recv(pair[0], line, sizeof(line), 0) == (ssize_t)n);
	FUZZ_CHECK(memcmp(line, p, n) == 0);
	FUZZ_CHECK(strlen(ident_refuse(pair[0], want)) ==
		   strlen(ident_refuse(pair[0], want)));
	len = recv(pair[1], line, sizeof(line), 0);
	FUZZ_CHECK(len <= 0 || (line[len - 1] == '\n' && want != IDENT_OK &&
				   want != IDENT_MORE));
	close(pair[0]);
	close(pair[1]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct fuzz_input in = { p, n };
	size_t cut = fuzz_u8(&in);
	enum ident_verdict v, early;

	cut = cut < in.n ? cut : in.n;
	v = ident_judge((const char *)in.p, in.n);
	early = ident_judge((const char *)in.p, cut);
	FUZZ_CHECK(v == ident_rule(in.p, in.n));
	FUZZ_CHECK(early == IDENT_MORE || early == v);
	if (in.n > 0 && in.n < 400)
		ident_check_socket(in.p, in.n, v);
	return 0;
}
