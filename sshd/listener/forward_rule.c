/* Permissions of forwarded ports; see forward_rule.h. */
#include "sshd/listener/forward_rule.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "base/endpoint.h"
#include "conf/conf.h"
#include "sshd/listener/access.h"

static const char *
forward_rule_person(const struct access_grant *g)
{
	if (g->who.role == ROLE_VIEWER)
		return "this key may only watch, not forward ports";
	if (!g->may_forward)
		return "this key may not forward ports";
	return NULL;
}

/* A name or an address, nothing that a log or a resolver could trip over. */
static bool
forward_rule_is_host(const char *s)
{
	static const char alphabet[] =
	    "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:";
	size_t n = strlen(s);

	return n > 0 && n < ENDPOINT_HOST_MAX && strspn(s, alphabet) == n;
}

const char *
forward_rule_open(const struct access_grant *g, const struct conf *c,
    const char *host, uint16_t port)
{
	const char *why = forward_rule_person(g);

	if (why)
		return why;
	if (!forward_rule_is_host(host) || port == 0)
		return "that is not a host and a port";
	if (g->permit_open &&
	    !endpoint_list_permits(g->permit_open, host, port))
		return "permitopen of this key does not name it";
	if (!endpoint_list_allows(c->forward.allow, host, port))
		return "forward.allow does not name it";
	return NULL;
}

const char *
forward_rule_reached(const struct conf *c, const char *address, uint16_t port)
{
	return endpoint_list_denies(c->forward.allow, address, port)
		   ? "forward.allow forbids its address"
		   : NULL;
}

static bool
forward_rule_is_address(const char *s)
{
	unsigned char a[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, s, a) == 1 || inet_pton(AF_INET6, s, a) == 1;
}

static bool
forward_rule_is_any(const char *s)
{
	return *s == '\0' || strcmp(s, "*") == 0;
}

/* The loopback addresses that ADDRESS stands for. */
static size_t
forward_rule_loopback(const char *address, const char *binds[FORWARD_BINDS_MAX])
{
	if (strcmp(address, "127.0.0.1") == 0 || strcmp(address, "::1") == 0) {
		binds[0] = address;
		return 1;
	}
	binds[0] = "127.0.0.1";
	binds[1] = "::1";
	return 2;
}

const char *
forward_rule_listen(const struct access_grant *g, const struct conf *c,
    const char *address, uint16_t port, const char *binds[FORWARD_BINDS_MAX],
    size_t *n_out)
{
	const char *why = forward_rule_person(g);
	bool is_any = forward_rule_is_any(address);

	if (why)
		return why;
	if (!is_any && !forward_rule_is_host(address))
		return "that is not an address";
	if (g->permit_listen &&
	    !endpoint_list_allows(g->permit_listen, address, port))
		return "permitlisten of this key does not name it";
	if (is_any && endpoint_list_allows(c->forward.listen, "*", port)) {
		binds[0] = "0.0.0.0";
		binds[1] = "::";
		*n_out = 2;
		return NULL;
	}
	if (forward_rule_is_address(address) &&
	    endpoint_list_allows(c->forward.listen, address, port)) {
		binds[0] = address;
		*n_out = 1;
		return NULL;
	}
	if (!endpoint_list_allows(c->forward.listen, "localhost", port))
		return "forward.listen does not name it";
	*n_out = forward_rule_loopback(address, binds);
	return NULL;
}
