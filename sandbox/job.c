/* Starts berth-sandbox and listens to it; see job.h. */
#include "sandbox/job.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"

#define JOB_PATH "PATH=/usr/sbin:/usr/bin:/sbin:/bin"

struct job {
	struct list node; /* of job_all */
	enum task_op op;
	char name[SANDBOX_NAME_SIZE];
	int fd, pidfd;
	struct event *read_ev, *timer, *reap_ev;
	job_fn fn;
	void *arg;
};

/* Every job whose process was not reaped yet. */
static struct list job_all = { &job_all, &job_all };

static void
job_free(struct job *j)
{
	list_remove(&j->node);
	if (j->read_ev)
		event_free(j->read_ev);
	if (j->timer)
		event_free(j->timer);
	if (j->reap_ev)
		event_free(j->reap_ev);
	if (j->fd >= 0)
		close(j->fd);
	if (j->pidfd >= 0)
		close(j->pidfd);
	free(j);
}

/* Tells the result and stays until the process is reaped. */
static void
job_end(struct job *j, const struct task_report *r)
{
	job_fn fn = j->fn;

	event_del(j->read_ev);
	event_del(j->timer);
	j->fn = NULL;
	if (fn)
		fn(r, j->arg);
}

static void
job_fail(struct job *j, int code, const char *why)
{
	struct task_report r = { .kind = TASK_RESULT, .code = code };

	snprintf(r.line, sizeof(r.line), "%s", why);
	job_end(j, &r);
}

/* One packet, or its end. False if there is nothing yet. */
static bool
job_read(struct job *j)
{
	char packet[TASK_REPORT_MAX];
	struct task_report r;
	ssize_t n = recv(j->fd, packet, sizeof(packet), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		job_fail(j, -ECHILD, "berth-sandbox ended without a word");
		return true;
	}
	if (task_report_decode(packet, (size_t)n, &r) < 0) {
		proc_signal(j->pidfd, SIGKILL);
		job_fail(j, -EPROTO, "berth-sandbox is of another version");
		return true;
	}
	if (r.kind == TASK_RESULT)
		job_end(j, &r);
	else if (j->fn)
		j->fn(&r, j->arg);
	return true;
}

static void
job_on_read(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)job_read(arg);
}

static void
job_on_reap(evutil_socket_t fd, short what, void *arg)
{
	struct job *j = arg;
	int status;

	(void)what;
	if (proc_reap((int)fd, &status) == 0)
		return;
	/* Its end may be seen before its last words, which are there by now. */
	while (j->fn && job_read(j))
		;
	if (j->fn)
		job_fail(j, -ECHILD, "berth-sandbox ended without a word");
	job_free(j);
}

static void
job_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct job *j = arg;

	(void)fd;
	(void)what;
	log_err("sandbox_job_killed", "sandbox", j->name, "operation",
	    task_op_name(j->op), "why", "it took too long", NULL);
	proc_signal(j->pidfd, SIGKILL);
	job_fail(j, -ETIMEDOUT, "it took too long");
}

static int
job_spawn(
    struct job *j, const char *helper, const struct task *t, struct err *e)
{
	const char *argv[] = { "berth-sandbox", task_op_name(t->op),
		t->spec.name, NULL };
	const char *asan = getenv("ASAN_OPTIONS");
	char *env[] = { (char *)(uintptr_t)JOB_PATH, NULL, NULL };
	struct buf b = { 0 };
	int pair[2];
	pid_t pid;
	ssize_t n;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, -errno, "no descriptor for berth-sandbox");
	if (asan)
		env[1] = xasprintf("ASAN_OPTIONS=%s", asan);
	pid = proc_spawn(
	    helper, (char **)(uintptr_t)argv, env, &pair[1], 1, &j->pidfd);
	free(env[1]);
	close(pair[1]);
	j->fd = pair[0];
	if (pid < 0) {
		j->pidfd = -1;
		return err_sys(e, pid, "cannot run %s", helper);
	}
	task_encode(&b, t);
	n = send(j->fd, buf_head(&b), buf_len(&b), MSG_NOSIGNAL | MSG_DONTWAIT);
	buf_release(&b);
	/* It ends when it finds nothing to read, and that is the answer. */
	if (n < 0)
		shutdown(j->fd, SHUT_WR);
	return 0;
}

struct job *
job_start(struct event_base *base, const char *helper, const struct task *t,
    int timeout_ms, job_fn fn, void *arg, struct err *e)
{
	struct timeval tv = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };
	struct job *j = xcalloc(1, sizeof(*j));

	list_append(&job_all, &j->node);
	j->op = t->op;
	j->fd = j->pidfd = -1;
	j->fn = fn;
	j->arg = arg;
	snprintf(j->name, sizeof(j->name), "%s", t->spec.name);
	if (job_spawn(j, helper, t, e) < 0) {
		job_free(j);
		return NULL;
	}
	j->read_ev =
	    event_new(base, j->fd, EV_READ | EV_PERSIST, job_on_read, j);
	j->reap_ev =
	    event_new(base, j->pidfd, EV_READ | EV_PERSIST, job_on_reap, j);
	j->timer = evtimer_new(base, job_on_timer, j);
	if (!j->read_ev || !j->reap_ev || !j->timer)
		abort();
	event_add(j->read_ev, NULL);
	event_add(j->reap_ev, NULL);
	evtimer_add(j->timer, &tv);
	return j;
}

void
job_forget(struct job *j)
{
	j->fn = NULL;
}

void
job_release_all(void)
{
	/* Whoever becomes their parent reaps them. */
	while (!list_empty(&job_all))
		job_free(list_entry(job_all.next, struct job, node));
}
