/* Starting berth-sshd; see spawn.h. Runs in berthd. */
#include "sshd/listener/spawn.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/proc.h"
#include "sessions/wire/messages.h"
#include "sshd/listener/host_key.h"

#define SPAWN_CHECK_MS 5000

/* Sanitizer builds are told where to report; a release has none of these. */
static const char *const spawn_env_kept[] = {
	"ASAN_OPTIONS",
	"UBSAN_OPTIONS",
	"LSAN_OPTIONS",
};

/* The caller frees the vector with strv_free(). */
static char **
spawn_env(void)
{
	char **env = xcalloc(ARRAY_LEN(spawn_env_kept) + 3, sizeof(*env));
	size_t n = 0;

	env[n++] = xstrdup("PATH=/usr/sbin:/usr/bin:/sbin:/bin");
	env[n++] = xstrdup("LANG=C.UTF-8");
	for (size_t i = 0; i < ARRAY_LEN(spawn_env_kept); i++) {
		const char *v = getenv(spawn_env_kept[i]);

		if (v)
			env[n++] = xasprintf("%s=%s", spawn_env_kept[i], v);
	}
	return env;
}

/* Room for everything at once, so that growing leaves no copy of a key. */
static size_t
spawn_settings_room(const struct wire_settings *s)
{
	size_t n = 4096;

	for (char **k = s->host_keys; *k; k++)
		n += strlen(*k) + 4;
	return n;
}

static int
spawn_settings_fd(const struct wire_settings *s)
{
	struct buf b = { 0 };
	int fd;

	buf_reserve(&b, spawn_settings_room(s));
	wire_settings_encode(&b, s);
	fd = fd_sealed_memfd("berth-settings", buf_head(&b), buf_len(&b));
	sodium_memzero(b.data, b.cap);
	buf_release(&b);
	return fd;
}

static pid_t
spawn_run(const char *path, const char *arg, const int fds[2],
    const struct wire_settings *s, int *pidfd_out)
{
	autoclose int settings_fd = spawn_settings_fd(s);
	int all[3] = { fds[0], fds[1], settings_fd };
	autofree char *name = xstrdup("berth-sshd");
	autofree char *copy = arg ? xstrdup(arg) : NULL;
	char *argv[] = { name, copy, NULL };
	char **env;
	pid_t pid;

	if (settings_fd < 0)
		return settings_fd;
	env = spawn_env();
	pid = proc_spawn(path, argv, env, all, ARRAY_LEN(all), pidfd_out);
	strv_free(env);
	return pid;
}

pid_t
spawn_connection(const char *path, int client_fd, int link_fd,
    const struct wire_settings *s, int *pidfd_out)
{
	const int fds[2] = { client_fd, link_fd };

	return spawn_run(path, NULL, fds, s, pidfd_out);
}

/* The exit status of the child behind PIDFD, or -ETIMEDOUT after killing it. */
static int
spawn_wait(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int n, status = 0;

	do
		n = poll(&p, 1, SPAWN_CHECK_MS);
	while (n < 0 && errno == EINTR);
	if (n <= 0) {
		proc_signal(pidfd, SIGKILL);
		poll(&p, 1, SPAWN_CHECK_MS);
	}
	proc_reap(pidfd, &status);
	if (n <= 0)
		return -ETIMEDOUT;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EIO;
}

static int
spawn_check_one(const char *path, char *pem, const char *file, struct err *e)
{
	const int none[2] = { -1, -1 };
	char *pems[] = { pem, NULL };
	struct wire_settings s = { .version = FRAME_VERSION,
		.host_keys = pems };
	autoclose int pidfd = -1;
	int rc = (int)spawn_run(path, "--check-host-keys", none, &s, &pidfd);

	if (rc < 0)
		return err_sys(e, rc, "cannot run %s", path);
	rc = spawn_wait(pidfd);
	if (rc == -ETIMEDOUT)
		return err_set(
		    e, rc, "host key %s: its check takes too long", file);
	return rc == 0 ? 0
		       : err_set(e, -EINVAL,
			     "host key %s: berth-sshd cannot use it", file);
}

int
spawn_check_host_keys(
    const char *path, const struct host_keys *keys, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < keys->count && rc == 0; i++)
		rc = spawn_check_one(path, keys->pems[i], keys->paths[i], e);
	return rc;
}
