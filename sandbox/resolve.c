/* Lookups in children; see resolve.h. Runs in berthd. */
#include "sandbox/resolve.h"

#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/endpoint.h"
#include "base/mem.h"
#include "base/privilege.h"
#include "sandbox/helper.h"

enum resolve_exit {
	RESOLVE_FOUND,
	RESOLVE_FAILED,
	RESOLVE_UNKNOWN,
	RESOLVE_AGAIN
};

struct resolve {
	char host[ENDPOINT_HOST_MAX];
	struct resolve_as as;
	resolve_fn fn;
	void *arg;
	struct helper *helper;
};

static int
resolve_work(int fd, int keep_fd, const void *arg)
{
	const struct resolve *r = arg;
	struct privilege_account a = { r->as.uid, r->as.gid };
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_ADDRCONFIG };
	struct addrinfo *list = NULL;
	int rc;

	(void)keep_fd;
	if (r->as.must_become && privilege_become(&a) < 0)
		return RESOLVE_FAILED;
	/* A change of uid took it away. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rc = getaddrinfo(r->host, NULL, &hints, &list);
	if (rc)
		return rc == EAI_AGAIN ? RESOLVE_AGAIN : RESOLVE_UNKNOWN;
	for (int i = 0; list && i < RESOLVE_ADDRESSES_MAX;
	     list = list->ai_next, i++) {
		struct sockaddr_storage sa = { 0 };

		if (list->ai_addrlen > sizeof(sa))
			continue;
		memcpy(&sa, list->ai_addr, list->ai_addrlen);
		if (write(fd, &sa, sizeof(sa)) != sizeof(sa))
			break;
	}
	return RESOLVE_FOUND;
}

void
resolve_cancel(struct resolve *r)
{
	if (!r)
		return;
	helper_cancel(r->helper);
	free(r);
}

static void
resolve_on_end(int fd, int status, void *arg)
{
	struct resolve *r = arg;
	struct sockaddr_storage sa[RESOLVE_ADDRESSES_MAX] = { 0 };
	ssize_t n = fd < 0 ? 0 : read(fd, sa, sizeof(sa));
	size_t found = n > 0 ? (size_t)n / sizeof(*sa) : 0;
	const char *why = "Name or service not known";

	if (status == RESOLVE_AGAIN)
		why = "Temporary failure in name resolution";
	else if (status == RESOLVE_FOUND)
		why = "the name has no address";
	r->fn(sa, found, why, r->arg);
	free(r);
}

struct resolve *
resolve_start(struct event_base *base, const char *host,
    const struct resolve_as *as, resolve_fn fn, void *arg)
{
	struct resolve *r = xcalloc(1, sizeof(*r));

	snprintf(r->host, sizeof(r->host), "%s", host);
	r->as = *as;
	r->fn = fn;
	r->arg = arg;
	r->helper = helper_start(base, resolve_work, resolve_on_end, -1, r);
	return r;
}
