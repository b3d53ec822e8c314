/*
 * What a sandbox is to the rest of berth: a provider is one struct with a name,
 * a mask of capabilities and functions. `local` is the only one so far; the
 * registry refuses duplicates and an unknown name is an error that lists what
 * there is. Called by the manager only; nothing here blocks.
 */
#ifndef SANDBOX_PROVIDER_H
#define SANDBOX_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct conf;
struct err;
struct event_base;

enum sandbox_phase {
	SANDBOX_PENDING,
	SANDBOX_RUNNING,
	SANDBOX_SUSPENDED,
	SANDBOX_FAILED,
	SANDBOX_GONE
};

/* "pending", "running", ...: as in sandbox.state. */
const char *sandbox_phase_name(enum sandbox_phase p);

enum sandbox_capability {
	SANDBOX_CAP_EXEC = 1u << 0,
	SANDBOX_CAP_PORT_FORWARD = 1u << 1
};

/* A connection or a listener that a provider is making. */
struct sandbox_call {
	/* Gives it up and frees it: its function is not called any more. */
	void (*cancel)(struct sandbox_call *call);
};

/*
 * The end of a call, once and from the loop, unless it was cancelled: FD is a
 * nonblocking, close-on-exec TCP socket that the callee owns, or a negative errno
 * and then WHY says what failed. The call is gone.
 */
typedef void (*sandbox_socket_fn)(int fd, const char *why, void *arg);

/* No call takes longer, whatever names and networks do. */
#define SANDBOX_CALL_MS 10000

/* Where a socket of the sandbox NAME leads to, or listens. */
struct sandbox_socket {
	struct event_base *base;
	const char *name;
	const char *host; /* a name or an address; for listen an address */
	uint16_t port;    /* for listen: 0 = any */
};

/* Where and as whom a process of the sandbox runs. */
struct sandbox_place {
	char workspace[1024]; /* absolute; cwd and HOME */
	char user[64], shell[256];
	char sftp_server[256]; /* absolute path; it may be missing */
	bool has_sftp_server;
	uid_t uid;
	gid_t gid;
	bool must_setuid; /* the keeper becomes uid/gid before exec */
};

struct sandbox_provider {
	const char *name;
	const char *description;
	unsigned
	    capabilities; /* SANDBOX_CAP_*; each equals a non-NULL function */

	/* Reads what it needs of C once; 0 or a negative errno. */
	int (*init)(const struct conf *c, struct err *e);

	/* Makes the sandbox NAME if it is not there. Idempotent. */
	int (*provision)(const char *name, struct err *e);

	/* Removes it. Idempotent: already gone is success. */
	int (*teardown)(const char *name, struct err *e);

	/* The phase now; never an error for an unknown one (SANDBOX_GONE). */
	enum sandbox_phase (*status)(const char *name);

	/* SANDBOX_CAP_EXEC: how to run a process there. */
	int (*exec)(const char *name, struct sandbox_place *out, struct err *e);

	/*
	 * SANDBOX_CAP_PORT_FORWARD: a socket inside the network of the sandbox,
	 * connected or listening, as a process of it would get one. What S
	 * points at is copied. Never NULL, never blocks, never calls FN before
	 * it returns.
	 */
	struct sandbox_call *(*dial)(
	    const struct sandbox_socket *s, sandbox_socket_fn fn, void *arg);
	struct sandbox_call *(*listen)(
	    const struct sandbox_socket *s, sandbox_socket_fn fn, void *arg);
};

/* -EEXIST for a duplicate name, -EINVAL if mask and functions disagree. */
int sandbox_register(const struct sandbox_provider *p, struct err *e);

/*
 * The provider NAME, or NULL with a sentence that lists the registered names.
 */
const struct sandbox_provider *sandbox_find(const char *name, struct err *e);

/* Registers what is built in and initialises each; once at start. */
int sandbox_init(const struct conf *c, struct err *e);

/* `[A-Za-z0-9][A-Za-z0-9._-]{0,62}`, and not `admin` or `exec`. */
bool sandbox_name_is_valid(const char *name);

#endif
