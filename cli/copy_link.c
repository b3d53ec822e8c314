/* The process at the other end of a copy; see copy_link.h. */
#include "cli/copy_link.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/attach.h"
#include "cli/copy.h"
#include "cli/viewer.h"

/* What a sandbox writes there is bounded: more of it ends the copy. */
#define COPY_ERRORS_MAX (256 << 10)

/* A file of fixed size; what is written beyond it fails. */
static int
copy_link_open_errors(void)
{
	int fd = memfd_create("errors", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, COPY_ERRORS_MAX) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK) < 0) {
		int rc = -errno;

		close(fd);
		return rc;
	}
	return fd;
}

/* The child: ends when its parent does, with the process's code. */
__attribute__((noreturn)) static void
copy_link_run(int link_fd, pid_t parent)
{
	const struct viewer_options options = { .reads_stdin = true,
		.is_bound = true };
	struct viewer_outcome outcome;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(125);
	viewer_run(link_fd, &options, &outcome);
	_exit(attach_report(&outcome));
}

int
copy_link_start(struct copy_link *l, int fd, struct err *e)
{
	int to[2] = { -1, -1 }, from[2] = { -1, -1 };
	pid_t parent = getpid();

	*l = (struct copy_link){ .to_fd = -1, .from_fd = -1, .child = -1 };
	l->errors_fd = copy_link_open_errors();
	if (l->errors_fd >= 0 && pipe2(to, O_CLOEXEC) == 0 &&
	    pipe2(from, O_CLOEXEC) == 0) {
		(void)fflush(NULL);
		l->child = fork();
	}
	if (l->child == 0) {
		dup2(to[0], STDIN_FILENO);
		dup2(from[1], STDOUT_FILENO);
		dup2(l->errors_fd, STDERR_FILENO);
		close(to[0]);
		close(to[1]);
		close(from[0]);
		close(from[1]);
		copy_link_run(fd, parent);
	}
	close(fd);
	if (l->child < 0)
		return err_sys(e, -errno, "cannot start to copy");
	close(to[0]);
	close(from[1]);
	l->to_fd = to[1];
	l->from_fd = from[0];
	return 0;
}

int
copy_link_begin(
    struct copy_link *l, char *kind_out, int64_t *total_out, struct err *e)
{
	char line[64];
	size_t n = 0;

	while (n + 1 < sizeof(line)) {
		ssize_t k = read(l->from_fd, line + n, 1);

		if (k < 0)
			return err_sys(e, -errno, "cannot read the stream");
		if (k == 0)
			return err_set(e, -EPIPE, "the sandbox ended the copy");
		if (line[n] == '\n')
			break;
		n++;
	}
	line[n] = '\0';
	if (n == 0 || !strchr("dfn", line[0]) || (line[1] && line[1] != ' '))
		return err_set(e, -EPROTO, "the sandbox sent something else");
	*kind_out = line[0];
	*total_out = line[1] ? strtoll(line + 2, NULL, 10) : 0;
	return 0;
}

/* The last line that is not blank, made harmless. */
static void
copy_link_read_errors(struct copy_link *l)
{
	off_t len = lseek(l->errors_fd, 0, SEEK_CUR);
	char tail[1024];
	off_t from = len > (off_t)sizeof(tail) ? len - (off_t)sizeof(tail) : 0;
	ssize_t n = pread(l->errors_fd, tail, (size_t)(len - from), from);
	ssize_t at;

	while (n > 0 && strchr(" \r\n\t", tail[n - 1]))
		n--;
	for (at = n; at > 0 && tail[at - 1] != '\n'; at--)
		;
	if (n > at)
		text_escape(
		    tail + at, (size_t)(n - at), l->why, sizeof(l->why));
}

int
copy_link_end(struct copy_link *l, bool is_cut)
{
	int status = 0;

	/* Killed, its link breaks, and the process there is ended. */
	if (is_cut)
		kill(l->child, SIGKILL);
	close(l->to_fd);
	while (waitpid(l->child, &status, 0) < 0 && errno == EINTR) {
		if (copy_is_stopped())
			kill(l->child, SIGKILL);
	}
	close(l->from_fd);
	copy_link_read_errors(l);
	close(l->errors_fd);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
