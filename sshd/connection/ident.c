/*
 * Tells SSH-2 clients from everything else by their first bytes; see ident.h.
 * Runs in berth-sshd before libssh reads, and takes no byte away from it.
 */
#include "sshd/connection/ident.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#define IDENT_MAX 255 /* with CR and LF, RFC 4253 4.2 */

enum ident_verdict
ident_judge(const char *p, size_t n)
{
	static const char prefix[] = "SSH-";
	size_t len = n < IDENT_MAX ? n : IDENT_MAX;
	size_t head = n < sizeof(prefix) - 1 ? n : sizeof(prefix) - 1;

	if (memcmp(p, prefix, head) != 0)
		return IDENT_GARBAGE;
	if (!memchr(p, '\n', len))
		return n < IDENT_MAX ? IDENT_MORE : IDENT_GARBAGE;
	if (len > 8 && memcmp(p, "SSH-2.0-", 8) == 0)
		return IDENT_OK;
	if (len > 9 && memcmp(p, "SSH-1.99-", 9) == 0)
		return IDENT_OK;
	return IDENT_OLD;
}

static void
ident_wait_for(int fd, int bytes)
{
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

static bool
ident_is_closed(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) == 1;
}

enum ident_verdict
ident_peek(int fd)
{
	char line[IDENT_MAX];
	enum ident_verdict v;
	ssize_t n = recv(fd, line, sizeof(line), MSG_PEEK | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return IDENT_MORE;
	if (n <= 0)
		return IDENT_GONE;
	v = ident_judge(line, (size_t)n);
	/* After the peer's end the bytes stay, and so does the readiness. */
	if (v == IDENT_MORE && ident_is_closed(fd))
		return IDENT_GONE;
	if (v == IDENT_MORE)
		ident_wait_for(fd, (int)n + 1);
	return v;
}

void
ident_finish(int fd)
{
	ident_wait_for(fd, 1);
}

const char *
ident_refuse(int fd, enum ident_verdict v)
{
	static const struct {
		const char *line, *reason;
	} rows[] = {
		[IDENT_MORE] = { "", "" },
		[IDENT_OK] = { "", "" },
		[IDENT_GARBAGE] = { "Invalid SSH identification string.\r\n",
		    "not SSH" },
		[IDENT_OLD] = { "Protocol major versions differ.\r\n",
		    "an SSH version before 2" },
		[IDENT_GONE] = { "", "closed before its identification" },
	};

	/* A peer that does not read gets no second chance. */
	send(fd, rows[v].line, strlen(rows[v].line),
	    MSG_NOSIGNAL | MSG_DONTWAIT);
	return rows[v].reason;
}
