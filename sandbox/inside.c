/* Sockets from another network; see inside.h. Runs in berthd and its children. */
#include "sandbox/inside.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/helper.h"

#define INSIDE_SOCKETS 2

struct inside {
	struct inside_place place;
	inside_fn fn;
	void *arg;
	struct helper *helper;
};

/* What the child says, with the sockets that it could make. */
struct inside_word {
	int rc;
	int has[INSIDE_SOCKETS];
};

/* ---- the child --------------------------------------------------------------- */

static int
inside_work(int fd, int keep_fd, const void *arg)
{
	static const int families[INSIDE_SOCKETS] = { AF_INET, AF_INET6 };
	const struct inside *in = arg;
	struct inside_word w = { 0 };
	int fds[INSIDE_SOCKETS];
	size_t n = 0;

	if (setns(keep_fd, (int)in->place.ns_flags) < 0)
		w.rc = -errno;
	/* Whose a socket is says its maker's id. */
	setfsuid(in->place.uid);
	for (size_t i = 0; i < INSIDE_SOCKETS && w.rc == 0; i++) {
		fds[n] = socket(
		    families[i], SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		w.has[i] = fds[n] >= 0;
		n += (size_t)w.has[i];
	}
	return fd_send(fd, &w, sizeof(w), fds, n) < 0;
}

/* ---- the parent --------------------------------------------------------------- */

static void
inside_free(struct inside *in)
{
	close(in->place.pidfd);
	free(in);
}

void
inside_cancel(struct inside *in)
{
	if (!in)
		return;
	helper_cancel(in->helper);
	inside_free(in);
}

/* The sockets of the word, or a negative errno and no socket. */
static int
inside_take(int fd, int out[INSIDE_SOCKETS])
{
	struct inside_word w = { 0 };
	int fds[INSIDE_SOCKETS];
	size_t n = 0;

	if (fd < 0 ||
	    fd_receive(fd, &w, sizeof(w), fds, INSIDE_SOCKETS) != sizeof(w))
		return -ECHILD;
	for (size_t i = 0; i < INSIDE_SOCKETS; i++) {
		if (w.has[i])
			out[i] = fds[n++];
	}
	return w.rc < 0 ? w.rc : n > 0 ? 0 : -EAFNOSUPPORT;
}

static void
inside_on_end(int fd, int status, void *arg)
{
	struct inside *in = arg;
	int fds[INSIDE_SOCKETS] = { -1, -1 };
	int rc = inside_take(fd, fds);
	const char *why = "the sandbox does not run";

	(void)status;
	if (rc < 0 && rc != -ESRCH)
		why = strerrordesc_np(-rc);
	in->fn(fds[0], fds[1], why, in->arg);
	inside_free(in);
}

struct inside *
inside_start(struct event_base *base, const struct inside_place *p,
    inside_fn fn, void *arg)
{
	struct inside *in = xcalloc(1, sizeof(*in));

	in->place = *p;
	in->fn = fn;
	in->arg = arg;
	in->helper =
	    helper_start(base, inside_work, inside_on_end, p->pidfd, in);
	return in;
}
