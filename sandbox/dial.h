/*
 * TCP sockets in the network that berthd itself is in: connected without ever
 * waiting, or listening. What a provider without a network of its own offers as
 * its dial and listen. Used in berthd.
 */
#ifndef SANDBOX_DIAL_H
#define SANDBOX_DIAL_H

#include "sandbox/provider.h"
#include "sandbox/resolve.h"

/*
 * Connects to S->host, whose addresses are tried in turn, for AS, so that rules
 * of the kernel for that user hold for the socket. Names go through a child.
 */
struct sandbox_call *dial_connect(const struct sandbox_socket *s,
    const struct resolve_as *as, sandbox_socket_fn fn, void *arg);

/*
 * Listens on the numeric address S->host for AS. Ports that AS could not bind by
 * itself are -EACCES, whoever berthd is.
 */
struct sandbox_call *dial_listen(const struct sandbox_socket *s,
    const struct resolve_as *as, sandbox_socket_fn fn, void *arg);

#endif
