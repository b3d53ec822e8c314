/* Patterns of hosts with ports; see endpoint.h. */
#include "base/endpoint.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum endpoint_kind {
	ENDPOINT_GLOB,
	ENDPOINT_LITERAL
};

/* A pattern cut at its last colon. */
struct endpoint {
	char host[ENDPOINT_HOST_MAX], port[8];
	bool is_negated;
};

void
endpoint_canonical(const char *host, char out[ENDPOINT_HOST_MAX])
{
	unsigned char address[sizeof(struct in6_addr)];
	size_t n;

	if (inet_pton(AF_INET6, host, address) == 1) {
		inet_ntop(AF_INET6, address, out, ENDPOINT_HOST_MAX);
		return;
	}
	snprintf(out, ENDPOINT_HOST_MAX, "%s", host);
	for (char *p = out; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	n = strlen(out);
	if (n > 1 && out[n - 1] == '.')
		out[n - 1] = '\0';
}

void
endpoint_text(const char *host, uint16_t port, char out[ENDPOINT_TEXT_MAX])
{
	bool is_v6 = strchr(host, ':') != NULL;

	snprintf(out, ENDPOINT_TEXT_MAX, "%s%.*s%s:%u", is_v6 ? "[" : "",
	    ENDPOINT_HOST_MAX - 1, host, is_v6 ? "]" : "", port);
}

/* The N bytes of PATTERN; false if they are none. */
static bool
endpoint_split(const char *pattern, size_t n, struct endpoint *out)
{
	const char *colon = memrchr(pattern, ':', n);
	const char *host = pattern;
	size_t n_host, n_port;
	char text[ENDPOINT_HOST_MAX];

	if (!colon)
		return false;
	out->is_negated = *host == '!';
	host += out->is_negated;
	if (host > colon)
		return false;
	n_host = (size_t)(colon - host);
	n_port = n - (size_t)(colon + 1 - pattern);
	if (n_host >= 2 && host[0] == '[' && host[n_host - 1] == ']') {
		host++;
		n_host -= 2;
	} else if (memchr(host, ':', n_host)) {
		return false;
	}
	if (n_host == 0 || n_host >= sizeof(text) || n_port == 0 ||
	    n_port >= sizeof(out->port))
		return false;
	snprintf(text, sizeof(text), "%.*s", (int)n_host, host);
	endpoint_canonical(text, out->host);
	snprintf(out->port, sizeof(out->port), "%.*s", (int)n_port, colon + 1);
	return true;
}

bool
endpoint_is_pattern(const char *text)
{
	static const char hosts[] = "abcdefghijklmnopqrstuvwxyz"
				    "0123456789.-_:*?";
	struct endpoint p;

	return endpoint_split(text, strlen(text), &p) &&
	       p.host[strspn(p.host, hosts)] == '\0' &&
	       p.port[strspn(p.port, "0123456789*?")] == '\0';
}

static bool
endpoint_matches(const struct endpoint *p, const char *host, uint16_t port,
    enum endpoint_kind kind)
{
	char number[8];

	snprintf(number, sizeof(number), "%u", port);
	if (kind == ENDPOINT_GLOB)
		return text_glob_list(p->host, host) &&
		       text_glob_list(p->port, number);
	return (strcmp(p->host, "*") == 0 || strcmp(p->host, host) == 0) &&
	       (strcmp(p->port, "*") == 0 || strcmp(p->port, number) == 0);
}

/* Whether a pattern of LIST, negated or not, matches. */
static bool
endpoint_list_has(const char *list, const char *host, uint16_t port,
    enum endpoint_kind kind, bool is_negated)
{
	char canonical[ENDPOINT_HOST_MAX];

	endpoint_canonical(host, canonical);
	while (*list) {
		size_t n = strcspn(list, ",");
		struct endpoint p;

		if (endpoint_split(list, n, &p) && p.is_negated == is_negated &&
		    endpoint_matches(&p, canonical, port, kind))
			return true;
		list += n;
		list += *list == ',';
	}
	return false;
}

bool
endpoint_list_denies(const char *list, const char *host, uint16_t port)
{
	return endpoint_list_has(list, host, port, ENDPOINT_GLOB, true);
}

bool
endpoint_list_allows(const char *list, const char *host, uint16_t port)
{
	return endpoint_list_has(list, host, port, ENDPOINT_GLOB, false) &&
	       !endpoint_list_denies(list, host, port);
}

bool
endpoint_list_permits(const char *list, const char *host, uint16_t port)
{
	return endpoint_list_has(list, host, port, ENDPOINT_LITERAL, false);
}
