/*
 * berth-sandbox: one slow operation on one sandbox. Started by berthd with
 * descriptor 3 = a socket, from which it reads the task and to which it tells
 * progress and result. Reads no configuration; may be killed at any moment:
 * what it leaves has a record, and the same task again puts it right.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "sandbox/provider.h"
#include "sandbox/task.h"

static int
main_read_task(struct task *out)
{
	char packet[TASK_PACKET_MAX];
	ssize_t n = recv(TASK_FD, packet, sizeof(packet), 0);

	return n <= 0 ? -EPIPE : task_decode(packet, (size_t)n, out);
}

static int
main_do(const struct task *t, struct sandbox_made *made, struct err *e)
{
	const struct sandbox_provider *p;
	int rc = sandbox_init(e);

	if (rc < 0)
		return rc;
	p = sandbox_find(t->spec.provider, e);
	if (!p)
		return -ENOENT;
	switch (t->op) {
	case TASK_PROVISION:
		return p->provision(&t->spec, made, e);
	case TASK_TEARDOWN:
		return p->teardown(&t->spec, e);
	default:
		return p->halt(&t->spec, e);
	}
}

static void
main_report(int rc, const struct sandbox_made *made, const struct err *e)
{
	struct task_report r = {
		.kind = TASK_RESULT,
		.code = rc,
		.made = *made,
	};
	struct buf b = { 0 };

	if (rc < 0)
		snprintf(r.line, sizeof(r.line), "%s", e->msg);
	task_report_encode(&b, &r);
	if (send(TASK_FD, buf_head(&b), buf_len(&b), MSG_NOSIGNAL) < 0)
		log_warn("nobody_waits", NULL);
	buf_release(&b);
}

int
main(int argc, char **argv)
{
	struct sandbox_made made = { .missing = "" };
	struct err e = { .code = 0 };
	struct task t;
	int rc;

	log_open("berth-sandbox", LOG_INFO, false);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("berth-sandbox " BERTH_VERSION);
		return 0;
	}
	if (main_read_task(&t) < 0) {
		fputs("berth-sandbox is started by berthd, not by hand\n",
		    stderr);
		return 2;
	}
	fd_set_cloexec(TASK_FD, true);
	signal(SIGPIPE, SIG_IGN);
	umask(022);
	task_progress_to(TASK_FD);
	rc = main_do(&t, &made, &e);
	main_report(rc, &made, &e);
	return rc < 0;
}
