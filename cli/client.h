/*
 * One connection to the control socket: a request, its answer, and the
 * descriptor that may ride with it (PROTOCOL.md, "Control socket").
 */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include <jansson.h>

#include "base/buf.h"

struct cli;
struct err;

#define CLIENT_FDS_MAX 4

struct client {
	int fd;
	struct buf in;
	int fds[CLIENT_FDS_MAX]; /* received, not yet fetched */
	unsigned n_fds;
};

/*
 * Connects to the socket at PATH; only the right to pass its directory is
 * needed. 0, or a negative errno with a sentence that says what to do. The
 * caller ends it with client_close(), also after a failure.
 */
int client_open(struct client *c, const char *path, struct err *e);
void client_close(struct client *c);

/*
 * Sends REQUEST (a reference that is taken over) and waits for the whole
 * answer; the "rows" of several lines become one array. Returns CLI_DONE and
 * the answer, which the caller releases with json_decref(); else an exit code
 * with the sentence in E.
 */
int client_ask(
    struct client *c, json_t *request, json_t **answer_out, struct err *e);

/* The descriptor that came with the answer, now the caller's; -1 for none. */
int client_take_fd(struct client *c);

/*
 * All of it for one request: connects to PATH, asks, closes. *FD_OUT, unless
 * FD_OUT is NULL, is a descriptor that the caller closes; an answer without one
 * is then a failure.
 */
int client_ask_once(const char *path, json_t *request, json_t **answer_out,
    int *fd_out, struct err *e);

/*
 * For a verb whose answer holds nothing to print: asks REQUEST (taken over;
 * NULL: an argument is no UTF-8) and says on stderr why not. The exit code.
 */
int client_order(const struct cli *c, json_t *request);

#endif
