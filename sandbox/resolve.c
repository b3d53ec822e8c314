/*
 * Lookups in children; see resolve.h. Runs in berthd, which has one thread, so
 * that a child of fork() may use the C library. It keeps no descriptor of
 * ours but its pipe: a lock that it held on to would outlive us.
 */
#include "sandbox/resolve.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/endpoint.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/privilege.h"
#include "base/proc.h"

#define RESOLVE_CHILDREN_MAX 16
#define RESOLVE_CHILD_S      30 /* its own end, should nobody end it */

struct resolve {
	struct list node; /* of resolve_waiting, or unlinked */
	struct event_base *base;
	char host[ENDPOINT_HOST_MAX];
	struct resolve_as as;
	resolve_fn fn;
	void *arg;
	int pidfd, pipe_fd; /* -1 while it waits */
	struct event *ev;   /* of the pidfd */
};

static struct list resolve_waiting = { &resolve_waiting, &resolve_waiting };
static unsigned resolve_children;

static void resolve_next(void);

/* ---- the child --------------------------------------------------------------- */

/* Only what a child of fork() needs: no buffer, no loop, no log. */
static void __attribute__((noreturn))
resolve_child(const struct resolve *r, int fd)
{
	struct privilege_account a = { r->as.uid, r->as.gid };
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
		.ai_flags = AI_ADDRCONFIG };
	struct addrinfo *list = NULL;
	int rc;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	dup2(fd, STDERR_FILENO + 1);
	close_range(STDERR_FILENO + 2, ~0U, 0);
	alarm(RESOLVE_CHILD_S);
	if (r->as.must_become && privilege_become(&a) < 0)
		_exit(EXIT_FAILURE);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rc = getaddrinfo(r->host, NULL, &hints, &list);
	if (rc)
		_exit(rc == EAI_AGAIN ? 3 : 2);
	for (int i = 0; list && i < RESOLVE_ADDRESSES_MAX;
	     list = list->ai_next, i++) {
		struct sockaddr_storage sa = { 0 };

		if (list->ai_addrlen > sizeof(sa))
			continue;
		memcpy(&sa, list->ai_addr, list->ai_addrlen);
		if (write(STDERR_FILENO + 1, &sa, sizeof(sa)) != sizeof(sa))
			break;
	}
	_exit(EXIT_SUCCESS);
}

/* ---- the parent --------------------------------------------------------------- */

/* Takes the child's end for its own: it is dead, or is killed. */
static int
resolve_bury(struct resolve *r)
{
	int status = 0;

	if (r->ev)
		event_free(take_ptr(r->ev));
	if (r->pidfd >= 0) {
		siginfo_t si = { 0 };

		proc_signal(r->pidfd, SIGKILL);
		waitid(P_PIDFD, (id_t)r->pidfd, &si, WEXITED);
		status = si.si_code == CLD_EXITED ? si.si_status : -1;
		close(take_fd(&r->pidfd));
		resolve_children--;
	}
	if (r->pipe_fd >= 0)
		close(take_fd(&r->pipe_fd));
	return status;
}

static void
resolve_free(struct resolve *r)
{
	list_remove(&r->node);
	resolve_bury(r);
	free(r);
	resolve_next();
}

void
resolve_cancel(struct resolve *r)
{
	if (r)
		resolve_free(r);
}

/* The child ended; what it found is in the pipe, which holds it all. */
static void
resolve_on_end(evutil_socket_t fd, short what, void *arg)
{
	struct resolve *r = arg;
	struct sockaddr_storage sa[RESOLVE_ADDRESSES_MAX] = { 0 };
	ssize_t n = r->pipe_fd < 0 ? 0 : read(r->pipe_fd, sa, sizeof(sa));
	size_t found = n > 0 ? (size_t)n / sizeof(*sa) : 0;
	int status = resolve_bury(r);
	char why[160];

	(void)fd;
	(void)what;
	snprintf(why, sizeof(why), "%s",
	    status == 3 ? "Temporary failure in name resolution"
	    : status    ? "Name or service not known"
			: "the name has no address");
	r->fn(sa, found, why, r->arg);
	resolve_free(r);
}

/* False when there is no process or descriptor left. */
static bool
resolve_fork(struct resolve *r)
{
	int p[2];
	pid_t pid;

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	pid = fork();
	if (pid == 0)
		resolve_child(r, p[1]);
	close(p[1]);
	r->pipe_fd = p[0];
	if (pid < 0)
		return false;
	r->pidfd = pidfd_open(pid, 0);
	/* Out of descriptors: nobody could tell when it ends. */
	if (r->pidfd < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return false;
	}
	resolve_children++;
	r->ev = event_new(r->base, r->pidfd, EV_READ, resolve_on_end, r);
	if (!r->ev)
		abort();
	event_add(r->ev, NULL);
	return true;
}

static void
resolve_begin(struct resolve *r)
{
	struct timeval now = { 0, 0 };

	list_remove(&r->node);
	if (resolve_fork(r))
		return;
	/* The end follows from the loop, as always. */
	r->ev = evtimer_new(r->base, resolve_on_end, r);
	if (!r->ev)
		abort();
	evtimer_add(r->ev, &now);
}

static void
resolve_next(void)
{
	if (!list_empty(&resolve_waiting) &&
	    resolve_children < RESOLVE_CHILDREN_MAX)
		resolve_begin(
		    list_entry(resolve_waiting.next, struct resolve, node));
}

struct resolve *
resolve_start(struct event_base *base, const char *host,
    const struct resolve_as *as, resolve_fn fn, void *arg)
{
	struct resolve *r = xcalloc(1, sizeof(*r));

	list_init(&r->node);
	r->base = base;
	snprintf(r->host, sizeof(r->host), "%s", host);
	r->as = *as;
	r->fn = fn;
	r->arg = arg;
	r->pidfd = r->pipe_fd = -1;
	list_append(&resolve_waiting, &r->node);
	resolve_next();
	return r;
}
