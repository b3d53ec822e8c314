/*
 * The control socket: one JSON object a line, see PROTOCOL.md. Every verb is a
 * row of a table; the manager does the work. Lives in berthd.
 */
#ifndef SESSIONS_MANAGER_CONTROL_H
#define SESSIONS_MANAGER_CONTROL_H

#include <stdint.h>

struct conf;
struct control;
struct err;
struct event_base;
struct manager;

/* What the verb `status` tells beyond what the manager knows; copied. */
struct control_status {
	const char *listen; /* the bound addresses, comma-separated */
	const char *state_dir;
	int64_t started_ms;
	const char *warning; /* NULL, or one sentence for doctor */
};

/*
 * Listens on RUNTIME/control.sock (RUNTIME_FD is borrowed). -EADDRINUSE when
 * somebody answers there. The caller frees with control_free().
 */
int control_new(struct event_base *base, struct manager *m,
    const struct conf *conf, int runtime_fd,
    const struct control_status *status, struct control **out, struct err *e);
void control_free(struct control *c);

#endif
