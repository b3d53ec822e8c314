/* Addresses and listening sockets; see address.h. Runs in berthd. */
#include "sshd/listener/address.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"

static socklen_t
address_len(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					 : sizeof(struct sockaddr_in);
}

static int
address_names(
    const struct sockaddr *sa, char host[ADDRESS_TEXT_MAX], char port[8])
{
	if (sa->sa_family != AF_INET && sa->sa_family != AF_INET6)
		return -EINVAL;
	return getnameinfo(sa, address_len(sa), host, ADDRESS_TEXT_MAX, port, 8,
		   NI_NUMERICHOST | NI_NUMERICSERV)
		   ? -EINVAL
		   : 0;
}

void
address_host(const struct sockaddr *sa, char out[ADDRESS_TEXT_MAX])
{
	char port[8];

	if (address_names(sa, out, port) < 0)
		snprintf(out, ADDRESS_TEXT_MAX, "?");
}

void
address_text(const struct sockaddr *sa, char out[ADDRESS_TEXT_MAX])
{
	char host[ADDRESS_TEXT_MAX], port[8];

	if (address_names(sa, host, port) < 0)
		snprintf(out, ADDRESS_TEXT_MAX, "?");
	else if (sa->sa_family == AF_INET6)
		snprintf(out, ADDRESS_TEXT_MAX, "[%.52s]:%s", host, port);
	else
		snprintf(out, ADDRESS_TEXT_MAX, "%.52s:%s", host, port);
}

void
address_ends(int fd, const struct sockaddr *peer, char out[ADDRESS_ENDS_MAX])
{
	struct sockaddr_storage sa = { 0 };
	struct sockaddr *own = (struct sockaddr *)&sa;
	socklen_t len = sizeof(sa);
	char host[2][ADDRESS_TEXT_MAX], port[2][8];

	out[0] = '\0';
	if (getsockname(fd, own, &len) < 0 ||
	    address_names(peer, host[0], port[0]) < 0 ||
	    address_names(own, host[1], port[1]) < 0)
		return;
	snprintf(out, ADDRESS_ENDS_MAX, "%s %s %s %s", host[0], port[0],
	    host[1], port[1]);
}

/* Takes SPEC apart in place; the brackets of an IPv6 address go. */
static int
address_split(char *spec, char **host_out, char **port_out)
{
	char *colon = strrchr(spec, ':');
	uint64_t port;

	if (!colon || colon == spec ||
	    text_parse_u64(colon + 1, 0, 65535, &port) < 0)
		return -EINVAL;
	*colon = '\0';
	*port_out = colon + 1;
	*host_out = spec;
	if (*spec == '[' && colon[-1] == ']') {
		colon[-1] = '\0';
		*host_out = spec + 1;
	} else if (strchr(spec, ':')) {
		return -EINVAL;
	}
	return 0;
}

static int
address_bind(const struct addrinfo *ai, struct err *e)
{
	autoclose int fd = socket(ai->ai_family,
	    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
	char text[ADDRESS_TEXT_MAX];
	int on = 1;

	address_text(ai->ai_addr, text);
	if (fd < 0)
		return err_sys(e, -errno, "cannot make a socket for %s", text);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (ai->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 ||
	    listen(fd, SOMAXCONN) < 0) {
		if (errno == EADDRINUSE)
			return err_set(e, -EADDRINUSE,
			    "%s is in use by another program", text);
		return err_sys(e, -errno, "cannot listen on %s", text);
	}
	return take_fd(&fd);
}

static int
address_bind_all(const struct addrinfo *list, int *fds, size_t max,
    size_t *count, struct err *e)
{
	size_t n = *count;
	int fd = -ENOENT;

	for (const struct addrinfo *ai = list; ai; ai = ai->ai_next) {
		fd = n < max
			 ? address_bind(ai, e)
			 : err_set(e, -E2BIG, "more than %zu addresses", max);
		if (fd < 0)
			break;
		fds[n++] = fd;
	}
	if (fd >= 0) {
		*count = n;
		return 0;
	}
	while (n > *count)
		close(fds[--n]);
	return fd;
}

int
address_listen(
    const char *spec, int *fds, size_t max, size_t *count, struct err *e)
{
	autofree char *copy = xstrdup(spec);
	struct addrinfo hints = {
		.ai_family = AF_UNSPEC,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
	};
	struct addrinfo *list = NULL;
	char *host, *port;
	int rc;

	if (address_split(copy, &host, &port) < 0)
		return err_set(e, -EINVAL,
		    "server.listen: %s is not host:port or [v6]:port", spec);
	rc = getaddrinfo(
	    strcmp(host, "*") == 0 ? NULL : host, port, &hints, &list);
	if (rc)
		return err_set(e, -EADDRNOTAVAIL, "server.listen: %s: %s", spec,
		    gai_strerror(rc));
	rc = address_bind_all(list, fds, max, count, e);
	freeaddrinfo(list);
	return rc;
}
