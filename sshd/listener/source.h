/*
 * The pattern lists of from= in authorized_keys: globs, addresses and CIDR
 * blocks, any of them negated by `!`. Pure; names are never looked up, so a
 * host name pattern matches nothing.
 */
#ifndef SSHD_LISTENER_SOURCE_H
#define SSHD_LISTENER_SOURCE_H

#include <stdbool.h>

struct err;

/*
 * Checks the comma-separated LIST: -EINVAL with a sentence for an empty entry,
 * a CIDR block that does not parse or one with bits behind its mask.
 */
int source_check(const char *list, struct err *e);

/*
 * True if the numeric address ADDR (no port, no brackets) matches an entry of
 * LIST and no negated one. A v4-mapped IPv6 address is its IPv4 address.
 */
bool source_match(const char *list, const char *addr);

#endif
