/*
 * Tells SSH-2 clients from everything else by their first bytes; see ident.h.
 * Runs in berth-sshd before libssh reads, and takes no byte away from it.
 */
#include "sshd/connection/ident.h"

#include <errno.h>
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

enum ident_verdict
ident_peek(int fd)
{
	char line[IDENT_MAX];
	enum ident_verdict v;
	ssize_t n = recv(fd, line, sizeof(line), MSG_PEEK | MSG_DONTWAIT);
	int low = 1;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return IDENT_MORE;
	if (n <= 0)
		return IDENT_GARBAGE;
	v = ident_judge(line, (size_t)n);
	if (v == IDENT_MORE)
		low = (int)n + 1;
	setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof(low));
	return v;
}

void
ident_refuse(int fd, enum ident_verdict v)
{
	const char *line = v == IDENT_OLD
			       ? "Protocol major versions differ.\r\n"
			       : "Invalid SSH identification string.\r\n";

	/* A peer that does not read gets no second chance. */
	if (send(fd, line, strlen(line), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
	shutdown(fd, SHUT_WR);
}
