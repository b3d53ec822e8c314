/*
 * Children of fork(); see helper.h. Runs in berthd. A child keeps no descriptor
 * of ours but what it is given: a lock that it held on to would outlive us.
 */
#include "sandbox/helper.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/proc.h"

#define HELPER_CHILDREN_MAX 16
#define HELPER_CHILD_S      30 /* its own end, should nobody end it */
#define HELPER_FD           (STDERR_FILENO + 1)
#define HELPER_KEEP_FD      (STDERR_FILENO + 2)

struct helper {
	struct list node; /* of helper_waiting, or unlinked */
	struct event_base *base;
	helper_work_fn work;
	helper_end_fn end;
	void *arg;
	int keep_fd;
	int pidfd, fd;    /* -1 while it waits */
	struct event *ev; /* of the pidfd */
};

static struct list helper_waiting = { &helper_waiting, &helper_waiting };
static unsigned helper_children;

static void helper_next(void);

/* ---- the child --------------------------------------------------------------- */

static _Noreturn void
helper_child(const struct helper *h, int fd)
{
	int keep = h->keep_fd;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	/* Out of the way of the two numbers first. */
	fd = fcntl(fd, F_DUPFD, HELPER_KEEP_FD + 1);
	if (keep >= 0)
		keep = fcntl(keep, F_DUPFD, HELPER_KEEP_FD + 1);
	dup2(fd, HELPER_FD);
	if (keep >= 0)
		keep = dup2(keep, HELPER_KEEP_FD);
	close_range(keep >= 0 ? HELPER_KEEP_FD + 1 : HELPER_KEEP_FD, ~0U, 0);
	alarm(HELPER_CHILD_S);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	_exit(h->work(HELPER_FD, keep, h->arg));
}

/* ---- the parent --------------------------------------------------------------- */

/* Takes the child's end for its own: it is dead, or is killed. */
static int
helper_bury(struct helper *h)
{
	siginfo_t si = { 0 };

	if (h->ev)
		event_free(take_ptr(h->ev));
	if (h->pidfd < 0)
		return -1;
	proc_signal(h->pidfd, SIGKILL);
	waitid(P_PIDFD, (id_t)h->pidfd, &si, WEXITED);
	close(take_fd(&h->pidfd));
	helper_children--;
	return si.si_code == CLD_EXITED ? si.si_status : -1;
}

static void
helper_free(struct helper *h)
{
	list_remove(&h->node);
	helper_bury(h);
	if (h->fd >= 0)
		close(h->fd);
	free(h);
	helper_next();
}

void
helper_cancel(struct helper *h)
{
	if (h)
		helper_free(h);
}

/* The child ended; what it found is in the socket, which holds it all. */
static void
helper_on_end(evutil_socket_t fd, short what, void *arg)
{
	struct helper *h = arg;
	int status = helper_bury(h);

	(void)fd;
	(void)what;
	h->end(h->fd, status, h->arg);
	helper_free(h);
}

/* False when there is no process or descriptor left. */
static bool
helper_fork(struct helper *h)
{
	int pair[2];
	pid_t pid;

	if (fd_socketpair(pair, true) < 0)
		return false;
	pid = fork();
	if (pid == 0)
		helper_child(h, pair[1]);
	close(pair[1]);
	h->fd = pair[0];
	if (pid < 0)
		return false;
	h->pidfd = pidfd_open(pid, 0);
	/* Out of descriptors: nobody could tell when it ends. */
	if (h->pidfd < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return false;
	}
	helper_children++;
	h->ev = event_new(h->base, h->pidfd, EV_READ, helper_on_end, h);
	if (!h->ev)
		abort();
	event_add(h->ev, NULL);
	return true;
}

static void
helper_begin(struct helper *h)
{
	struct timeval now = { 0, 0 };

	list_remove(&h->node);
	if (helper_fork(h))
		return;
	/* The end follows from the loop, as always. */
	h->ev = evtimer_new(h->base, helper_on_end, h);
	if (!h->ev)
		abort();
	evtimer_add(h->ev, &now);
}

static void
helper_next(void)
{
	if (!list_empty(&helper_waiting) &&
	    helper_children < HELPER_CHILDREN_MAX)
		helper_begin(
		    list_entry(helper_waiting.next, struct helper, node));
}

struct helper *
helper_start(struct event_base *base, helper_work_fn work, helper_end_fn end,
    int keep_fd, void *arg)
{
	struct helper *h = xcalloc(1, sizeof(*h));

	list_init(&h->node);
	h->base = base;
	h->work = work;
	h->end = end;
	h->arg = arg;
	h->keep_fd = keep_fd;
	h->pidfd = h->fd = -1;
	list_append(&helper_waiting, &h->node);
	helper_next();
	return h;
}
