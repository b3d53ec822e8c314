/* Calls of an engine's client; see engine.h. */
#include "sandbox/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

#define ENGINE_CHUNK     4096
#define ENGINE_LINE_MAX  180
#define ENGINE_ERROR_MAX 8192
#define ENGINE_NO_EXEC   127

struct engine {
	pid_t pid;
	int pidfd;
	int in_fd, out_fd, err_fd; /* ours, or -1 */
	const char *input;
	size_t input_left;
	struct buf *out; /* or NULL */
	struct buf said; /* the last of stderr */
	void (*tell)(const char *line);
	char line[ENGINE_LINE_MAX]; /* of stderr, unfinished */
	size_t n_line;
};

_Noreturn void
engine_exec(char *const *argv, char *const *env, pid_t parent)
{
	setsid();
	if (parent)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* It may have died before anybody could tell. */
	if (parent && getppid() != parent)
		_exit(ENGINE_NO_EXEC);
	environ = (char **)(uintptr_t)env;
	execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "cannot run %s: %s\n", argv[0],
	    strerrordesc_np(errno));
	_exit(ENGINE_NO_EXEC);
}

static _Noreturn void
engine_child(
    const struct engine_call *c, int in, int out, int err, pid_t parent)
{
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	engine_exec(c->argv, c->env, parent);
}

static void
engine_close(int *fd)
{
	if (*fd >= 0)
		close(take_fd(fd));
}

static int
engine_pipe(int p[2], int *ours, int ours_at)
{
	if (pipe2(p, O_CLOEXEC) < 0)
		return -errno;
	*ours = p[ours_at];
	return fd_set_nonblock(*ours, true);
}

static int
engine_start(struct engine *n, const struct engine_call *c)
{
	int in[2] = { -1, -1 }, out[2] = { -1, -1 }, err[2] = { -1, -1 };
	pid_t parent = getpid();
	int rc = engine_pipe(in, &n->in_fd, 1);

	if (rc == 0)
		rc = engine_pipe(out, &n->out_fd, 0);
	if (rc == 0)
		rc = engine_pipe(err, &n->err_fd, 0);
	if (rc == 0) {
		n->pid = fork();
		if (n->pid == 0)
			engine_child(c, in[0], out[1], err[1], parent);
		rc = n->pid < 0 ? -errno : 0;
	}
	engine_close(&in[0]);
	engine_close(&out[1]);
	engine_close(&err[1]);
	if (rc < 0)
		return rc;
	n->pidfd = pidfd_open(n->pid, 0);
	return n->pidfd < 0 ? -errno : 0;
}

/* It is reaped; with IS_LATE it is killed before, with what it started. */
static int
engine_end(struct engine *n, bool is_late)
{
	int status = 0;

	if (n->pid > 0) {
		if (is_late) {
			kill(-n->pid, SIGKILL);
			kill(n->pid, SIGKILL);
		}
		waitpid(n->pid, &status, 0);
	}
	engine_close(&n->pidfd);
	engine_close(&n->in_fd);
	engine_close(&n->out_fd);
	engine_close(&n->err_fd);
	return status;
}

static void
engine_write(struct engine *n)
{
	ssize_t w = write(n->in_fd, n->input, n->input_left);

	if (w < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (w > 0) {
		n->input += w;
		n->input_left -= (size_t)w;
	}
	if (w <= 0 || n->input_left == 0)
		engine_close(&n->in_fd);
}

/* What there is: bytes, 0 at the end, or a negative errno. B may be NULL. */
static ssize_t
engine_read(int fd, struct buf *b, size_t max, bool keeps_last)
{
	char chunk[ENGINE_CHUNK];
	ssize_t r = read(fd, chunk, sizeof(chunk));

	if (r < 0 && errno != EAGAIN && errno != EINTR)
		return 0;
	if (r <= 0)
		return r;
	if (b && (keeps_last || buf_len(b) + (size_t)r <= max))
		buf_put(b, chunk, (size_t)r);
	if (b && buf_len(b) > max)
		buf_consume(b, buf_len(b) - max);
	return r;
}

/* The lines that end in the last N bytes that were said, as far as they go. */
static void
engine_tell(struct engine *n, size_t n_new)
{
	const char *p = (const char *)buf_head(&n->said) + buf_len(&n->said);

	for (p -= n_new; n_new; p++, n_new--) {
		if (*p != '\n' && *p != '\r') {
			if (n->n_line + 1 < sizeof(n->line))
				n->line[n->n_line++] = *p;
			continue;
		}
		n->line[n->n_line] = '\0';
		if (n->n_line)
			n->tell(n->line);
		n->n_line = 0;
	}
}

static void
engine_drain(struct engine *n)
{
	ssize_t said;

	if (n->out_fd >= 0 &&
	    engine_read(n->out_fd, n->out, ENGINE_OUTPUT_MAX, false) == 0)
		engine_close(&n->out_fd);
	if (n->err_fd < 0)
		return;
	said = engine_read(n->err_fd, &n->said, ENGINE_ERROR_MAX, true);
	if (said == 0)
		engine_close(&n->err_fd);
	else if (said > 0 && n->tell)
		engine_tell(n, (size_t)said);
}

/* Until it has ended: 0, or -ETIMEDOUT. */
static int
engine_wait(struct engine *n, uint32_t timeout_ms)
{
	int64_t deadline = clock_mono_ms() + timeout_ms;

	for (;;) {
		int64_t left = deadline - clock_mono_ms();
		struct pollfd p[] = {
			{ .fd = n->pidfd, .events = POLLIN },
			{ .fd = n->out_fd, .events = POLLIN },
			{ .fd = n->err_fd, .events = POLLIN },
			{ .fd = n->in_fd, .events = POLLOUT },
		};

		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(p, ARRAY_LEN(p), (int)left) < 0 && errno != EINTR)
			return -errno;
		if (p[3].revents)
			engine_write(n);
		engine_drain(n);
		if (!p[0].revents)
			continue;
		/* What it left in the pipes; others may hold them open. */
		for (int i = 0; i < ENGINE_OUTPUT_MAX / ENGINE_CHUNK; i++)
			engine_drain(n);
		return 0;
	}
}

/* The line before END, without blanks and full stops at its end. */
static size_t
engine_line_before(const char *s, size_t end, size_t *len_out)
{
	size_t start;

	while (end > 0 && strchr("\r\n\t .", s[end - 1]))
		end--;
	start = end;
	while (start > 0 && s[start - 1] != '\n' && s[start - 1] != '\r')
		start--;
	*len_out = end - start;
	return start;
}

/*
 * The last line of what it said that is not empty, for a sentence; but the last
 * one that begins with "Error", if there is one: advice may follow it.
 */
static void
engine_last_line(const struct buf *said, char *out, size_t size)
{
	const char *s = (const char *)buf_head(said);
	size_t at = buf_len(said), len = 0, start;

	*out = '\0';
	while (at > 0) {
		at = start = engine_line_before(s, at, &len);
		if (len > ENGINE_LINE_MAX)
			len = ENGINE_LINE_MAX;
		if (len > 0 && (!*out || strncmp(s + start, "Error", 5) == 0))
			text_escape(s + start, len, out, size);
		if (len > 5 && strncmp(s + start, "Error", 5) == 0)
			return;
	}
}

static int
engine_result(
    const struct buf *said, const char *name, int status, struct err *e)
{
	char line[ENGINE_LINE_MAX + 40];
	int code =
	    WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

	if (code == 0)
		return 0;
	engine_last_line(said, line, sizeof(line));
	if (*line)
		err_set(e, -EIO, "%s", line);
	else if (WIFSIGNALED(status))
		err_set(e, -EIO, "%s was ended by signal %d", name,
		    WTERMSIG(status));
	else
		err_set(e, -EIO, "%s ended with %d", name, code);
	return code;
}

int
engine_run(const struct engine_call *c, struct buf *out, struct err *e)
{
	struct engine n = {
		.pidfd = -1,
		.in_fd = -1,
		.out_fd = -1,
		.err_fd = -1,
		.input = c->input,
		.input_left = c->input ? strlen(c->input) : 0,
		.out = out,
		.tell = c->tell,
	};
	int rc, status;

	if (!c->argv[0])
		return err_set(e, -EINVAL, "there is no command");
	rc = engine_start(&n, c);
	if (rc == 0 && !n.input_left)
		engine_close(&n.in_fd);
	if (rc == 0)
		rc = engine_wait(&n, c->timeout_ms);
	status = engine_end(&n, rc < 0);
	if (rc == -ETIMEDOUT)
		err_set(e, rc, "%s does not answer within %u s", c->argv[0],
		    (c->timeout_ms + 999) / 1000);
	else if (rc < 0)
		err_sys(e, rc, "cannot run %s", c->argv[0]);
	else
		rc = engine_result(&n.said, c->argv[0], status, e);
	buf_release(&n.said);
	return rc;
}

/* ---- while something is copied ------------------------------------------------ */

int
engine_flow_start(const struct engine_call *c, bool is_input,
    struct engine_flow *out, struct err *e)
{
	struct engine_flow f = { .name = c->argv[0], .pidfd = -1, .fd = -1 };
	autoclose int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	autoclose int said_fd = memfd_create("said", MFD_CLOEXEC);
	pid_t parent = getpid();
	int p[2];

	if (!c->argv[0])
		return err_set(e, -EINVAL, "there is no command");
	if (null_fd < 0 || said_fd < 0 || pipe2(p, O_CLOEXEC) < 0)
		return err_sys(e, -errno, "no descriptors for %s", f.name);
	f.pid = fork();
	if (f.pid == 0)
		engine_child(c, is_input ? p[0] : null_fd,
		    is_input ? null_fd : p[1], said_fd, parent);
	close(p[is_input ? 0 : 1]);
	f.fd = p[is_input ? 1 : 0];
	if (f.pid > 0)
		f.pidfd = pidfd_open(f.pid, 0);
	f.said_fd = take_fd(&said_fd);
	*out = f;
	if (f.pidfd >= 0)
		return 0;
	engine_flow_end(out, 0, NULL);
	return err_set(e, -EAGAIN, "cannot start %s", f.name);
}

/* The last bytes of what it said on stderr. */
static void
engine_flow_said(const struct engine_flow *f, struct buf *out)
{
	char chunk[ENGINE_ERROR_MAX];
	off_t n = lseek(f->said_fd, 0, SEEK_END);
	off_t from = n > ENGINE_ERROR_MAX ? n - ENGINE_ERROR_MAX : 0;
	ssize_t got = pread(f->said_fd, chunk, sizeof(chunk), from);

	if (got > 0)
		buf_put(out, chunk, (size_t)got);
}

int
engine_flow_end(struct engine_flow *f, uint32_t timeout_ms, struct err *e)
{
	struct engine n = { .pid = f->pid,
		.pidfd = f->pidfd,
		.in_fd = -1,
		.out_fd = f->fd,
		.err_fd = -1 };
	struct pollfd p = { .fd = f->pidfd, .events = POLLIN };
	struct buf said = { 0 };
	bool is_late;
	int rc, status;

	engine_close(&n.out_fd);
	is_late = f->pidfd < 0 || poll(&p, 1, (int)timeout_ms) <= 0;
	status = engine_end(&n, is_late);
	engine_flow_said(f, &said);
	close(f->said_fd);
	if (is_late)
		rc = err_set(e, -ETIMEDOUT, "%s does not end", f->name);
	else
		rc = engine_result(&said, f->name, status, e);
	buf_release(&said);
	return rc;
}
