/*
 * The control socket's client; see client.h. Blocking: a person or a script
 * waits for the answer anyway. Never believes a length or a code unchecked.
 */
#include "cli/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/cli.h"

#define CLIENT_LINE_MAX (64U << 10)
#define CLIENT_READ_MAX 8192

static int
client_explain(int rc, const char *path, struct err *e)
{
	switch (rc) {
	case -ENOENT:
		return err_set(e, rc,
		    "no berthd at %s: it is not running, or "
		    "its socket is elsewhere (-S, -c)",
		    path);
	case -ECONNREFUSED:
		return err_set(
		    e, rc, "berthd at %s is gone; start it again", path);
	case -EACCES:
	case -EPERM:
		return err_set(
		    e, rc, "you may not use the control socket %s", path);
	default:
		return err_sys(e, rc, "cannot reach berthd at %s", path);
	}
}

int
client_open(struct client *c, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t n = slash ? (size_t)(slash - path) : 0;
	autofree char *dir = !slash   ? xstrdup(".")
			     : n == 0 ? xstrdup("/")
				      : xstrndup(path, n);
	autoclose int dir_fd = -1;

	*c = (struct client){ .fd = -1 };
	dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return client_explain(-errno, path, e);
	c->fd = fd_connect_unix(dir_fd, name);
	return c->fd < 0 ? client_explain(c->fd, path, e) : 0;
}

void
client_close(struct client *c)
{
	for (unsigned i = 0; i < c->n_fds; i++)
		close(c->fds[i]);
	c->n_fds = 0;
	if (c->fd >= 0)
		close(take_fd(&c->fd));
	buf_release(&c->in);
}

int
client_take_fd(struct client *c)
{
	int fd = -1;

	if (c->n_fds > 0) {
		fd = c->fds[0];
		c->n_fds--;
		memmove(c->fds, c->fds + 1, c->n_fds * sizeof(int));
	}
	return fd;
}

static int
client_keep_fds(struct client *c, struct msghdr *msg)
{
	int rc = msg->msg_flags & MSG_CTRUNC ? -EPROTO : 0;

	for (struct cmsghdr *m = CMSG_FIRSTHDR(msg); m;
	     m = CMSG_NXTHDR(msg, m)) {
		size_t n;

		if (m->cmsg_level != SOL_SOCKET || m->cmsg_type != SCM_RIGHTS)
			continue;
		n = (m->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(m) + i * sizeof(int), sizeof(fd));
			if (c->n_fds < CLIENT_FDS_MAX) {
				c->fds[c->n_fds++] = fd;
			} else {
				close(fd);
				rc = -EPROTO;
			}
		}
	}
	return rc;
}

/* Reads once; 0 at the end of the stream, else the bytes or an errno. */
static int
client_fill(struct client *c)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(CLIENT_FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = {
		.iov_base = buf_reserve(&c->in, CLIENT_READ_MAX),
		.iov_len = CLIENT_READ_MAX,
	};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	ssize_t n;
	int rc;

	do
		n = recvmsg(c->fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	buf_commit(&c->in, (size_t)n);
	rc = client_keep_fds(c, &msg);
	return rc < 0 ? rc : (int)n;
}

/* Reads one line of an answer as a JSON object. */
static int
client_read(struct client *c, json_t **out, struct err *e)
{
	const uint8_t *nl;
	json_t *line;

	while (buf_len(&c->in) == 0 ||
	       !(nl = memchr(buf_head(&c->in), '\n', buf_len(&c->in)))) {
		int rc = buf_len(&c->in) > CLIENT_LINE_MAX ? -EMSGSIZE
							   : client_fill(c);

		if (rc == 0)
			return err_set(e, -EPIPE,
			    "berthd closed the connection before it "
			    "answered");
		if (rc < 0)
			return err_sys(e, rc, "cannot read berthd's answer");
	}
	line = json_loadb((const char *)buf_head(&c->in),
	    (size_t)(nl - buf_head(&c->in)), JSON_REJECT_DUPLICATES, NULL);
	buf_consume(&c->in, (size_t)(nl - buf_head(&c->in)) + 1);
	if (!json_is_object(line)) {
		json_decref(line);
		return err_set(e, -EPROTO, "berthd's answer is not JSON");
	}
	*out = line;
	return 0;
}

/* The exit code of an answer that is not ok, its sentence made harmless. */
static int
client_refusal(const json_t *answer, struct err *e)
{
	const char *why = json_string_value(json_object_get(answer, "error"));
	json_int_t code = json_integer_value(json_object_get(answer, "code"));
	char text[ERR_MSG_MAX];

	text_escape(why ? why : "no reason given",
	    why ? strlen(why) : strlen("no reason given"), text, sizeof(text));
	err_set(e, -EREMOTEIO, "%s", text);
	if (code == CLI_NOT_RUNNABLE || code == CLI_NO_PROGRAM)
		return (int)code;
	return code > CLI_DONE && code <= CLI_REFUSED ? (int)code : CLI_FAILED;
}

static int
client_send(struct client *c, json_t *request, struct err *e)
{
	char *text = json_dumps(request, JSON_COMPACT);
	size_t n = text ? strlen(text) : 0;
	int rc;

	json_decref(request);
	if (!text)
		return err_set(e, -EINVAL, "an argument is not valid UTF-8");
	text[n] = '\n';
	if (n + 1 > CLIENT_LINE_MAX)
		rc = err_set(e, -E2BIG,
		    "the arguments are longer than %u bytes", CLIENT_LINE_MAX);
	else
		rc = send(c->fd, text, n + 1, MSG_NOSIGNAL) == (ssize_t)(n + 1)
			 ? 0
			 : err_sys(
			       e, errno ? -errno : -EPIPE, "cannot ask berthd");
	free(text);
	return rc;
}

/* A line of what the answer waits for is shown. */
static bool
client_is_progress(const json_t *line)
{
	const char *text = json_string_value(json_object_get(line, "progress"));
	char shown[512];

	if (!text)
		return false;
	text_escape(text, strlen(text), shown, sizeof(shown));
	fprintf(stderr, "berth: %s\n", shown);
	return true;
}

int
client_ask(
    struct client *c, json_t *request, json_t **answer_out, struct err *e)
{
	json_t *first = NULL;

	if (isatty(STDERR_FILENO))
		json_object_set_new(request, "progress", json_true());
	if (client_send(c, request, e) < 0)
		return CLI_FAILED;
	for (;;) {
		json_t *line = NULL;
		bool has_more;

		if (client_read(c, &line, e) < 0) {
			json_decref(first);
			return CLI_FAILED;
		}
		if (client_is_progress(line)) {
			json_decref(line);
			continue;
		}
		if (!json_is_true(json_object_get(line, "ok"))) {
			int code = client_refusal(line, e);

			json_decref(line);
			json_decref(first);
			return code;
		}
		has_more = json_is_true(json_object_get(line, "more"));
		if (!first) {
			first = line;
		} else {
			json_array_extend(json_object_get(first, "rows"),
			    json_object_get(line, "rows"));
			json_decref(line);
		}
		if (!has_more)
			break;
	}
	*answer_out = first;
	return CLI_DONE;
}

int
client_ask_once(const char *path, json_t *request, json_t **answer_out,
    int *fd_out, struct err *e)
{
	struct client c;
	int code;

	if (client_open(&c, path, e) < 0) {
		json_decref(request);
		return CLI_FAILED;
	}
	code = client_ask(&c, request, answer_out, e);
	if (code == CLI_DONE && fd_out) {
		*fd_out = client_take_fd(&c);
		if (*fd_out < 0) {
			json_decref(*answer_out);
			*answer_out = NULL;
			err_set(
			    e, -EPROTO, "berthd's answer lacks its descriptor");
			code = CLI_FAILED;
		}
	}
	client_close(&c);
	return code;
}

int
client_order(const struct cli *c, json_t *request)
{
	struct err e = { 0 };
	json_t *answer = NULL;
	int code;

	if (!request)
		return cli_usage(c, "an argument is not valid UTF-8");
	code = client_ask_once(c->socket, request, &answer, NULL, &e);
	json_decref(answer);
	return code == CLI_DONE ? code : cli_fail(code, "%s", e.msg);
}
