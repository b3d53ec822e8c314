/*
 * berth-sandbox as the leader of a session that an engine's client reaches: it
 * stands between the keeper, which signals processes of this host, and the
 * process in the sandbox, which only the engine can signal.
 */
#ifndef SANDBOX_CLIENT_H
#define SANDBOX_CLIENT_H

#include <stdint.h>

/* The first argument that makes berth-sandbox one. */
#define CLIENT_FLAG "--client"

/*
 * The arguments of berth-sandbox for: run CLIENT, pass signals on by SIGNAL with
 * their names behind it, which has TIMEOUT_MS; SIGNAL may be empty, then signals
 * end the client. The caller frees with strv_free().
 */
char **client_argv(
    char *const *client, char *const *signal, uint32_t timeout_ms);

/*
 * With those arguments, after CLIENT_FLAG: descriptors 0 to 2 are the client's
 * alone. Returns the exit code, or ends by the signal that ended the process in
 * the sandbox.
 */
int client_main(int argc, char **argv);

#endif
