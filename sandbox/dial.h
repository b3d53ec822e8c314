/*
 * TCP sockets in the network that berthd itself is in, or in one of a sandbox:
 * connected without ever waiting, or listening. What providers offer as their
 * dial and listen. Used in berthd.
 */
#ifndef SANDBOX_DIAL_H
#define SANDBOX_DIAL_H

#include "sandbox/inside.h"
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

/*
 * The same in the network of P, whose pidfd is the call's, for AS. There are no
 * names in it but localhost.
 */
struct sandbox_call *dial_connect_inside(const struct sandbox_socket *s,
    const struct resolve_as *as, const struct inside_place *p,
    sandbox_socket_fn fn, void *arg);
struct sandbox_call *dial_listen_inside(const struct sandbox_socket *s,
    const struct resolve_as *as, const struct inside_place *p,
    sandbox_socket_fn fn, void *arg);

/* A call that fails with RC and WHY, as calls do: from the loop. */
struct sandbox_call *dial_fail_later(const struct sandbox_socket *s, int rc,
    const char *why, sandbox_socket_fn fn, void *arg);

/*
 * The same as a table, for providers and the user of SPEC: their code is in berth-sandbox too, which
 * has no loop to wait in and is not to carry one around. berthd sets it before
 * any provider is asked; it is NULL in berth-sandbox.
 */
struct dial_calls {
	struct sandbox_call *(*connect)(const struct sandbox_spec *spec,
	    const struct sandbox_socket *s, sandbox_socket_fn fn, void *arg);
	struct sandbox_call *(*listen)(const struct sandbox_spec *spec,
	    const struct sandbox_socket *s, sandbox_socket_fn fn, void *arg);
	struct sandbox_call *(*connect_inside)(const struct sandbox_spec *spec,
	    const struct sandbox_socket *s, const struct inside_place *p,
	    sandbox_socket_fn fn, void *arg);
	struct sandbox_call *(*listen_inside)(const struct sandbox_spec *spec,
	    const struct sandbox_socket *s, const struct inside_place *p,
	    sandbox_socket_fn fn, void *arg);
	/* See relay.h. */
	struct sandbox_call *(*relay)(const struct sandbox_socket *s,
	    char *const *argv, char *const *env, sandbox_socket_fn fn,
	    void *arg);
	struct sandbox_call *(*fail)(const struct sandbox_socket *s, int rc,
	    const char *why, sandbox_socket_fn fn, void *arg);
};
extern const struct dial_calls *sandbox_dial;

/* In berthd, once: sets it to what is above. */
void dial_provide(void);

#endif
