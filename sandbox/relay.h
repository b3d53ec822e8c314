/*
 * Connections through a program that is started for each: an engine's client
 * with a relay in the sandbox behind it. In berthd.
 */
#ifndef SANDBOX_RELAY_H
#define SANDBOX_RELAY_H

#include "sandbox/provider.h"

/*
 * Starts ARGV, which is copied, in ENV; the socket that FN gets is its input and
 * output: a nonblocking AF_UNIX stream. Nobody says when such a program has
 * connected: it has when it sends something or is still there after a moment,
 * and has not when it ends before.
 */
struct sandbox_call *relay_start(const struct sandbox_socket *s,
    char *const *argv, char *const *env, sandbox_socket_fn fn, void *arg);

#endif
