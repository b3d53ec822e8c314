/*
 * The leader of a session in an engine's sandbox; see client.h. Invariants: the
 * client is in a session of its own, so that no signal for the terminal's
 * foreground group hits it, and dies with this process; signals go inside in the
 * order in which they came, those that came together by one call.
 */
#include "sandbox/client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/text.h"
#include "sandbox/engine.h"

#define CLIENT_WAITING_MAX 16
#define CLIENT_ARGS_MAX    1000000

/* What is passed on; everything else does what it does. */
static const int client_passed[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1,
	SIGUSR2, SIGCONT, SIGALRM };

struct client {
	char **argv, **signal; /* borrowed; NULL-terminated */
	size_t n_signal;
	uint32_t timeout_ms;
	pid_t pid;      /* of the engine's client */
	pid_t call_pid; /* of a call that passes signals on, or 0 */
	int64_t call_deadline_ms;
	int waiting[CLIENT_WAITING_MAX];
	size_t n_waiting;
	sigset_t passed; /* bits of signals that were passed on */
	int ended_by; /* there is no way to pass it on: it ended the client */
};

char **
client_argv(char *const *client, char *const *signal, uint32_t timeout_ms)
{
	size_t n = 0, n_signal = 0, n_client = 0;
	char **v;

	while (signal && signal[n_signal])
		n_signal++;
	while (client[n_client])
		n_client++;
	v = xcalloc(n_signal + n_client + 5, sizeof(*v));
	v[n++] = xstrdup("berth-sandbox");
	v[n++] = xstrdup(CLIENT_FLAG);
	v[n++] = xasprintf("%u", timeout_ms);
	v[n++] = xasprintf("%zu", n_signal);
	for (size_t i = 0; i < n_signal; i++)
		v[n++] = xstrdup(signal[i]);
	for (size_t i = 0; i < n_client; i++)
		v[n++] = xstrdup(client[i]);
	return v;
}

static void
client_to_null(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; fd >= 0 && i <= STDERR_FILENO; i++)
		dup2(fd, i);
	if (fd > STDERR_FILENO)
		close(fd);
}

/* The signals of client_passed, and none else. */
static void
client_mask(sigset_t *out)
{
	sigemptyset(out);
	for (size_t i = 0; i < ARRAY_LEN(client_passed); i++)
		sigaddset(out, client_passed[i]);
}

/* The client has our descriptors and, still blocked, what is passed on. */
static pid_t
client_start(char **argv, bool is_quiet)
{
	pid_t parent = getpid(), pid = fork();
	sigset_t mask;

	if (pid != 0)
		return pid;
	client_mask(&mask);
	if (is_quiet) {
		sigemptyset(&mask);
		client_to_null();
	}
	sigprocmask(SIG_SETMASK, &mask, NULL);
	close_range(STDERR_FILENO + 1, ~0U, 0);
	engine_exec(argv, environ, parent);
}

/* ---- signals ----------------------------------------------------------------- */

/* One call for all that wait, unless one is under way. */
static void
client_pass(struct client *c)
{
	char **v;
	size_t n = 0;

	if (c->call_pid || c->n_waiting == 0)
		return;
	v = xcalloc(c->n_signal + c->n_waiting + 1, sizeof(*v));
	for (; n < c->n_signal; n++)
		v[n] = c->signal[n];
	for (size_t i = 0; i < c->n_waiting; i++)
		v[n++] = (char *)(uintptr_t)proc_signal_name(c->waiting[i]);
	c->n_waiting = 0;
	c->call_pid = client_start(v, true);
	if (c->call_pid < 0)
		c->call_pid = 0;
	c->call_deadline_ms = clock_mono_ms() + c->timeout_ms;
	free(v);
}

static void
client_on_signal(struct client *c, int sig)
{
	if (sig == SIGWINCH) {
		kill(c->pid, sig);
		return;
	}
	sigaddset(&c->passed, sig);
	if (c->n_signal == 0) {
		/* Blocked there, and it is nobody's but ours to end it. */
		if (sig == SIGCONT)
			return;
		c->ended_by = sig;
		kill(c->pid, SIGKILL);
		return;
	}
	if (c->n_waiting < ARRAY_LEN(c->waiting))
		c->waiting[c->n_waiting++] = sig;
}

/* Reaps; true when the client is among them, with its status. */
static bool
client_reap(struct client *c, int *status_out)
{
	bool has_ended = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == c->call_pid)
			c->call_pid = 0;
		if (pid != c->pid)
			continue;
		*status_out = status;
		has_ended = true;
	}
	return has_ended;
}

static void
client_end_late_call(struct client *c)
{
	if (c->call_pid && clock_mono_ms() >= c->call_deadline_ms)
		kill(c->call_pid, SIGKILL);
}

/* Until the client has ended: its status. */
static int
client_wait(struct client *c, int fd)
{
	struct signalfd_siginfo si;
	int status = 0;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t ms = c->call_deadline_ms - clock_mono_ms();

		if (client_reap(c, &status))
			return status;
		client_end_late_call(c);
		client_pass(c);
		ms = !c->call_pid ? -1 : ms < 100 ? 100 : ms;
		if (poll(&p, 1, (int)ms) <= 0)
			continue;
		while (read(fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
			if (si.ssi_signo != SIGCHLD)
				client_on_signal(c, (int)si.ssi_signo);
		}
	}
}

/* ---- the end ----------------------------------------------------------------- */

static _Noreturn void
client_die(int sig)
{
	struct rlimit none = { 0, 0 };
	sigset_t set;

	setrlimit(RLIMIT_CORE, &none);
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	raise(sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	_exit(128 + sig);
}

/*
 * Engines say 128+n of a process that signal n ended, and so do programs of
 * their own accord: it was the signal if it was passed on.
 */
static int
client_result(const struct client *c, int status)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;

	if (WIFSIGNALED(status))
		client_die(c->ended_by ? c->ended_by : WTERMSIG(status));
	if (code > 128 && code < 128 + NSIG &&
	    sigismember(&c->passed, code - 128) == 1)
		client_die(code - 128);
	return code;
}

int
client_main(int argc, char **argv)
{
	struct client c = { .pid = 0 };
	sigset_t mask;
	uint64_t ms, n;
	int fd, status;

	if (argc < 3 || text_parse_u64(argv[0], 1, UINT32_MAX, &ms) < 0 ||
	    text_parse_u64(argv[1], 0, CLIENT_ARGS_MAX, &n) < 0 ||
	    n + 2 >= (uint64_t)argc)
		return 2;
	c.timeout_ms = (uint32_t)ms;
	c.n_signal = n;
	c.signal = argv + 2;
	c.argv = argv + 2 + n;
	sigemptyset(&c.passed);
	client_mask(&mask);
	sigaddset(&mask, SIGWINCH);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	c.pid = client_start(c.argv, false);
	if (c.pid < 0) {
		dprintf(STDERR_FILENO, "cannot start %s: %s\n", c.argv[0],
		    strerrordesc_np(errno));
		return 126;
	}
	/* The ends of its pipes are its alone. */
	client_to_null();
	fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return 126;
	status = client_wait(&c, fd);
	return client_result(&c, status);
}
