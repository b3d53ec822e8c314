/*
 * What a key, the configuration and a role let be forwarded. Pure: nothing is
 * looked up or opened. Lives in berthd.
 */
#ifndef SSHD_LISTENER_FORWARD_RULE_H
#define SSHD_LISTENER_FORWARD_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct access_grant;
struct conf;

#define FORWARD_BINDS_MAX 2

/* Why G may not reach HOST and PORT of its sandbox, or NULL if it may. */
const char *forward_rule_open(const struct access_grant *g,
    const struct conf *c, const char *host, uint16_t port);

/*
 * Why G may not be connected to the ADDRESS that a name of it turned out to be,
 * or NULL if it may.
 */
const char *forward_rule_reached(
    const struct conf *c, const char *address, uint16_t port);

/*
 * Why G may not listen on ADDRESS and PORT, or NULL, and the addresses that are
 * bound in *N_OUT of BINDS; static strings, or ADDRESS itself. As with
 * OpenSSH's GatewayPorts=no that is the loopback, whatever ADDRESS says, unless
 * forward.listen allows another.
 */
const char *forward_rule_listen(const struct access_grant *g,
    const struct conf *c, const char *address, uint16_t port,
    const char *binds[FORWARD_BINDS_MAX], size_t *n_out);

#endif
