/*
 * berth-sandbox, and berth-archive for what needs archives: one slow operation on one sandbox; or what stands before an
 * engine's client, see client.h. For the first it is started by berthd with
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
#include "sandbox/archive.h"
#include "sandbox/client.h"
#include "sandbox/command.h"
#include "sandbox/provider.h"
#include "sandbox/snapshot.h"
#include "sandbox/task.h"

static int
main_read_task(struct task *out)
{
	static char packet[TASK_PACKET_MAX];
	ssize_t n = recv(TASK_FD, packet, sizeof(packet), 0);

	return n <= 0 ? -EPIPE : task_decode(packet, (size_t)n, out);
}

/* What the functions of a provider found out, for the report. */
struct main_found {
	struct sandbox_made made;
	struct sandbox_metrics metrics;
	struct sandbox_copied copied;
};

static int
main_operate(const struct sandbox_provider *p, const struct task *t,
    struct main_found *out, struct err *e)
{
	const struct sandbox_spec *s = &t->spec;

	switch (t->op) {
	case TASK_PROVISION:
		return p->provision(s, &out->made, e);
	case TASK_TEARDOWN:
		return p->teardown(s, e);
	case TASK_HALT:
		return p->halt(s, e);
	case TASK_PROBE:
		return p->probe ? p->probe(s, &out->made, e) : -ENOSYS;
	case TASK_REAP:
		return p->reap ? p->reap(s, t->arg, e) : 0;
	case TASK_SUSPEND:
		return p->suspend ? p->suspend(s, e) : -ENOSYS;
	case TASK_RESUME:
		return p->resume ? p->resume(s, e) : -ENOSYS;
	case TASK_MEASURE:
		return p->measure ? p->measure(s, t->arg, &out->metrics, e)
				  : -ENOSYS;
	case TASK_FILL:
		return p->fill ? p->fill(s, &out->made, e) : -ENOSYS;
	case TASK_DRAIN:
		return p->drain ? p->drain(s, t->arg, e) : -ENOSYS;
	default:
		return snapshot_operate(p, t, &out->copied, e);
	}
}

static int
main_do(struct task *t, struct main_found *out, struct err *e)
{
	const struct sandbox_provider *p;
	int rc = sandbox_init(e);

	if (rc == 0 && t->command)
		rc = command_register(take_ptr(t->command), e);
	if (rc < 0)
		return rc;
	p = sandbox_find(t->spec.provider, e);
	return p ? main_operate(p, t, out, e) : -ENOENT;
}

static void
main_report(int rc, const struct main_found *found, const struct err *e)
{
	struct task_report r = {
		.kind = TASK_RESULT,
		.code = rc,
		.made = found->made,
		.metrics = found->metrics,
		.copied = found->copied,
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
	struct main_found found = { .made = { .missing = "" } };
	struct err e = { .code = 0 };
	struct task t;
	int rc;

	log_open("berth-sandbox", LOG_INFO, false);
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("%s " BERTH_VERSION "\n", program_invocation_short_name);
		return 0;
	}
	if (argc > 2 && strcmp(argv[1], CLIENT_FLAG) == 0)
		return client_main(argc - 2, argv + 2);
	if (main_read_task(&t) < 0) {
		fputs("berth-sandbox is started by berthd, not by hand\n",
		    stderr);
		return 2;
	}
	fd_set_cloexec(TASK_FD, true);
	signal(SIGPIPE, SIG_IGN);
	umask(022);
	task_progress_to(TASK_FD);
	archive_use();
	rc = main_do(&t, &found, &e);
	main_report(rc, &found, &e);
	return rc < 0;
}
