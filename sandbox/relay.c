/*
 * Programs that relay a connection; see relay.h. A program outlives its call,
 * until its socket is closed at the other end, and is reaped then.
 */
#include "sandbox/relay.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/proc.h"
#include "sandbox/engine.h"

#define RELAY_MOMENT_MS 250

struct relay {
	struct sandbox_call call;
	struct list node; /* of relay_all, until its program is reaped */
	struct event_base *base;
	sandbox_socket_fn fn; /* NULL: answered or cancelled */
	void *arg;
	int fd, pidfd, rc;
	struct event *read_ev, *timer, *end_ev;
};

static struct list relay_all = { &relay_all, &relay_all };

static void
relay_free_event(struct event **ev)
{
	if (*ev)
		event_free(take_ptr(*ev));
}

static void
relay_free(struct relay *r)
{
	list_remove(&r->node);
	relay_free_event(&r->read_ev);
	relay_free_event(&r->timer);
	relay_free_event(&r->end_ev);
	if (r->fd >= 0)
		close(r->fd);
	if (r->pidfd >= 0)
		close(r->pidfd);
	free(r);
}

/* The answer; what is left waits for the program's end. */
static void
relay_answer(struct relay *r, int rc, const char *why)
{
	sandbox_socket_fn fn = r->fn;

	relay_free_event(&r->read_ev);
	relay_free_event(&r->timer);
	r->fn = NULL;
	if (fn)
		fn(rc < 0 ? rc : take_fd(&r->fd), why, r->arg);
	if (r->pidfd < 0)
		relay_free(r);
}

static void
relay_on_moment(evutil_socket_t fd, short what, void *arg)
{
	struct relay *r = arg;

	(void)fd;
	(void)what;
	if (r->rc < 0)
		relay_answer(r, r->rc, "cannot start the relay");
	else
		relay_answer(r, 0, "");
}

/* It has something to say, or has gone, which its end will tell. */
static void
relay_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct relay *r = arg;
	char byte;
	ssize_t n = recv((int)fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	(void)what;
	if (n > 0)
		relay_answer(r, 0, "");
	else if (n == 0 || errno != EAGAIN)
		relay_free_event(&r->read_ev);
}

static void
relay_on_end(evutil_socket_t fd, short what, void *arg)
{
	struct relay *r = arg;
	int status;

	(void)what;
	if (proc_reap((int)fd, &status) == 0)
		return;
	relay_free_event(&r->end_ev);
	close(take_fd(&r->pidfd));
	if (r->fn)
		relay_answer(
		    r, -ECONNREFUSED, "nothing in the sandbox answers there");
	else
		relay_free(r);
}

static void
relay_cancel(struct sandbox_call *call)
{
	struct relay *r = container_of(call, struct relay, call);

	r->fn = NULL;
	if (r->fd >= 0)
		close(take_fd(&r->fd));
	if (r->pidfd >= 0)
		proc_signal(r->pidfd, SIGKILL);
	relay_answer(r, 0, "");
}

static _Noreturn void
relay_child(int fd, char *const *argv, char *const *env)
{
	int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null_fd < 0 || dup2(fd, STDIN_FILENO) < 0 ||
	    dup2(fd, STDOUT_FILENO) < 0 || dup2(null_fd, STDERR_FILENO) < 0)
		_exit(127);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	/* A berthd that is upgraded is another process to it. */
	engine_exec(argv, env, 0);
}

static int
relay_fork(struct relay *r, char *const *argv, char *const *env)
{
	int pair[2], rc = fd_socketpair(pair, false);
	pid_t pid;

	if (rc < 0)
		return rc;
	r->fd = pair[0];
	rc = fd_set_nonblock(r->fd, true);
	pid = rc < 0 ? -1 : fork();
	if (pid == 0)
		relay_child(pair[1], argv, env);
	close(pair[1]);
	if (pid < 0)
		return rc < 0 ? rc : -errno;
	r->pidfd = pidfd_open(pid, 0);
	if (r->pidfd < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return -EMFILE;
	}
	return 0;
}

static struct event *
relay_event(struct relay *r, int fd, event_callback_fn fn, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };
	short what = (short)(fd < 0 ? 0 : EV_READ | EV_PERSIST);
	struct event *ev = event_new(r->base, fd, what, fn, r);

	if (!ev)
		abort();
	event_add(ev, fd < 0 ? &tv : NULL);
	return ev;
}

struct sandbox_call *
relay_start(const struct sandbox_socket *s, char *const *argv, char *const *env,
    sandbox_socket_fn fn, void *arg)
{
	struct relay *r = xcalloc(1, sizeof(*r));

	r->call.cancel = relay_cancel;
	r->base = s->base;
	r->fn = fn;
	r->arg = arg;
	r->fd = r->pidfd = -1;
	list_append(&relay_all, &r->node);
	r->rc = relay_fork(r, argv, env);
	r->timer = relay_event(
	    r, -1, relay_on_moment, r->rc < 0 ? 0 : RELAY_MOMENT_MS);
	if (r->rc == 0) {
		r->read_ev = relay_event(r, r->fd, relay_on_read, 0);
		r->end_ev = relay_event(r, r->pidfd, relay_on_end, 0);
	}
	return &r->call;
}
