/* Executing another berthd in place; see upgrade.h. */
#include "sshd/listener/upgrade.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"
#include "conf/conf.h"
#include "sessions/manager/control.h"
#include "sessions/manager/manager.h"
#include "sshd/listener/daemon.h"
#include "sshd/listener/server.h"
#include "store/store.h"

#define UPGRADE_ENV      "BERTHD_HANDOFF"
#define UPGRADE_WHY_ENV  "BERTHD_HANDOFF_FAILED"
#define UPGRADE_CONF_ENV "BERTHD_HANDOFF_CONF"
#define UPGRADE_SELF_ENV "BERTHD_HANDOFF_SELF"
#define UPGRADE_REHEARSE "--rehearse="
#define UPGRADE_CONSENT  "ok"

#define UPGRADE_REHEARSE_MS 15000 /* the new program must have answered */
#define UPGRADE_REST_MS     3000  /* requests under way must have ended */
#define UPGRADE_TICK_MS     5
#define UPGRADE_KILL_MS     1000
#define UPGRADE_WHY_MAX     256

#define UPGRADE_INTERRUPTED "berthd is being upgraded; try again"

static void upgrade_on_tick(evutil_socket_t fd, short what, void *arg);
static void upgrade_on_answer(evutil_socket_t fd, short what, void *arg);

void
upgrade_init(struct upgrade *u)
{
	*u = (struct upgrade){ .lock_fd = -1, .pidfd = -1, .answer_fd = -1 };
}

static void
upgrade_end_rehearsal(struct upgrade *u)
{
	if (u->pid_ev)
		event_free(take_ptr(u->pid_ev));
	if (u->pidfd >= 0) {
		struct pollfd p = { .fd = u->pidfd, .events = POLLIN };
		int status;

		proc_signal(u->pidfd, SIGKILL);
		poll(&p, 1, UPGRADE_KILL_MS);
		proc_reap(u->pidfd, &status);
		close(take_fd(&u->pidfd));
	}
	if (u->answer_fd >= 0)
		close(take_fd(&u->answer_fd));
}

void
upgrade_release(struct upgrade *u)
{
	upgrade_end_rehearsal(u);
	if (u->timer)
		event_free(take_ptr(u->timer));
	u->is_running = false;
}

static void
upgrade_arm(struct upgrade *u, int ms)
{
	struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	evtimer_add(u->timer, &tv);
}

/* It stays as it was. */
static void
upgrade_fail(struct upgrade *u, const char *why)
{
	log_err("upgrade_failed", "why", why, "version", BERTH_VERSION, NULL);
	store_audit(u->store, "upgrade_failed", u->who, NULL, NULL, NULL, why);
	upgrade_release(u);
	control_upgraded(u->control, BERTH_VERSION, why);
}

/* ---- asking the new program ---------------------------------------------- */

/* The arguments of this program, and one more; free the vector only. */
static char **
upgrade_argv(const struct daemon_args *args, const char *more)
{
	size_t n = 0;
	char **argv;

	while (args->argv[n])
		n++;
	argv = xcalloc(n + 2, sizeof(*argv));
	memcpy(argv, args->argv, n * sizeof(*argv));
	argv[n] = (char *)(uintptr_t)more;
	return argv;
}

/* The directories where a berthd lives, behind what it would hand over. */
static char *
upgrade_where(const struct conf *conf, unsigned long version)
{
	return xasprintf("%lu:%s:%s", version, conf->server.state_dir,
	    conf->server.runtime_dir);
}

int
upgrade_check_where(const struct conf *conf, const char *where, struct err *e)
{
	unsigned long version = strtoul(where, NULL, 10);
	autofree char *ours = upgrade_where(conf, version);

	if (version < HANDOFF_VERSION_OLDEST || version > HANDOFF_VERSION)
		return err_set(e, -EPROTO,
		    "it cannot go on from what this berthd would leave it"
		    " (version %lu; it reads %u to %u)",
		    version, HANDOFF_VERSION_OLDEST, HANDOFF_VERSION);
	return strcmp(ours, where) == 0
		   ? 0
		   : err_set(e, -EINVAL,
			 "server.state_dir and server.runtime_dir cannot change"
			 " in an upgrade");
}

static int
upgrade_rehearse(struct upgrade *u, struct err *e)
{
	autofree char *where = upgrade_where(u->conf, HANDOFF_VERSION);
	autofree char *option = xasprintf(UPGRADE_REHEARSE "%s", where);
	autofree char **argv = upgrade_argv(u->args, option);
	autoclose int theirs = -1;
	int p[2];
	pid_t pid;

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(e, -errno, "no pipe for the new berthd");
	u->answer_fd = p[0];
	theirs = p[1];
	pid = proc_spawn(u->args->self, argv, environ, &theirs, 1, &u->pidfd);
	if (pid < 0) {
		close(take_fd(&u->answer_fd));
		return err_sys(e, (int)pid, "cannot run %s", u->args->self);
	}
	u->pid_ev = event_new(u->base, u->pidfd, EV_READ, upgrade_on_answer, u);
	u->timer = evtimer_new(u->base, upgrade_on_answer, u);
	if (!u->pid_ev || !u->timer)
		abort();
	event_add(u->pid_ev, NULL);
	upgrade_arm(u, UPGRADE_REHEARSE_MS);
	return 0;
}

int
upgrade_begin(struct upgrade *u, const char *who, struct err *e)
{
	int rc;

	if (u->is_running)
		return err_set(e, -EBUSY, "an upgrade is under way already");
	if (u->server->is_stopping)
		return err_set(e, -EBUSY, "berthd is stopping");
	snprintf(u->who, sizeof(u->who), "%s", who);
	log_info("upgrade", "who", who, "program", u->args->self, NULL);
	rc = upgrade_rehearse(u, e);
	if (rc < 0)
		return rc;
	u->is_running = true;
	return 0;
}

void
upgrade_rehearsed(const char *why_not)
{
	const char *text = why_not ? why_not : UPGRADE_CONSENT;

	if (fd_write_all(STDERR_FILENO + 1, text, strlen(text)) < 0)
		fprintf(stderr, "berthd: %s\n", text);
}

/* Everything comes to rest. */
static void
upgrade_begin_rest(struct upgrade *u)
{
	server_pause(u->server, true);
	control_pause(u->control, true);
	u->deadline_ms = clock_mono_ms() + UPGRADE_REST_MS;
	event_free(u->timer);
	u->timer = evtimer_new(u->base, upgrade_on_tick, u);
	if (!u->timer)
		abort();
	upgrade_arm(u, 0);
}

/* The new program ended, or took too long. */
static void
upgrade_on_answer(evutil_socket_t fd, short what, void *arg)
{
	struct upgrade *u = arg;
	char text[UPGRADE_WHY_MAX], why[2 * UPGRADE_WHY_MAX];
	ssize_t n = read(u->answer_fd, text, sizeof(text) - 1);

	(void)fd;
	text[n > 0 ? n : 0] = '\0';
	upgrade_end_rehearsal(u);
	evtimer_del(u->timer);
	if (what & EV_TIMEOUT) {
		upgrade_fail(u, "the new berthd does not answer");
		return;
	}
	if (strcmp(text, UPGRADE_CONSENT) == 0) {
		upgrade_begin_rest(u);
		return;
	}
	snprintf(why, sizeof(why), "the new berthd would not start: %s",
	    *text ? text : "it says nothing");
	upgrade_fail(u, why);
}

/* ---- becoming it ------------------------------------------------------------ */

/* The configuration in force as a file, for this program to come back with. */
static int
upgrade_conf_file(const struct conf *conf)
{
	autoclose int fd = memfd_create("berthd-conf", MFD_CLOEXEC);
	autoclose int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
	FILE *f = copy < 0 ? NULL : fdopen(copy, "w");

	if (!f)
		return -errno;
	take_fd(&copy);
	conf_show(conf, f);
	return fclose(f) == 0 ? take_fd(&fd) : -errno;
}

static void
upgrade_save(struct upgrade *u, struct handoff *h, int program_fd, int conf_fd)
{
	struct buf *b = &h->sections[HANDOFF_DAEMON];

	buf_put_str(b, BERTH_VERSION);
	buf_put_str(b, u->who);
	buf_put_u64(b, (uint64_t)u->started_ms);
	handoff_put_fd(h, HANDOFF_DAEMON, u->lock_fd);
	handoff_put_fd(h, HANDOFF_DAEMON, program_fd);
	handoff_put_fd(h, HANDOFF_DAEMON, conf_fd);
	server_save(u->server, h);
	control_save(u->control, h);
	manager_save(u->manager, h);
}

int
upgrade_load_past(
    const struct handoff *h, struct upgrade_past *out, struct err *e)
{
	struct reader r = handoff_reader(h, HANDOFF_DAEMON);

	*out = (struct upgrade_past){ 0 };
	reader_str_into(&r, out->version, sizeof(out->version));
	reader_str_into(&r, out->who, sizeof(out->who));
	out->started_ms = (int64_t)reader_u64(&r);
	out->lock_fd = handoff_take_fd(&r);
	out->program_fd = handoff_take_fd(&r);
	out->conf_fd = handoff_take_fd(&r);
	return reader_done(&r) ? 0
			       : err_set(e, -EPROTO,
				     "what the former berthd left of itself"
				     " cannot be read");
}

/* Names a descriptor, by NAME, to whoever is executed next. */
static void
upgrade_name(const char *name, int fd)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", fd);
	setenv(name, number, 1);
}

static int
upgrade_named(const char *name)
{
	const char *number = getenv(name);
	int fd = number ? (int)strtol(number, NULL, 10) : -1;

	unsetenv(name);
	return fd;
}

/*
 * What comes between two programs waits until the next one has its handlers: by
 * default it would end the process, and everybody's connection with it.
 */
static void
upgrade_hold_signals(bool on)
{
	static const int held[] = { SIGHUP, SIGINT, SIGTERM, SIGUSR2 };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		sigaddset(&set, held[i]);
	sigprocmask(on ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

void
upgrade_let_signals(void)
{
	upgrade_hold_signals(false);
}

/* Returns only when it did not work. */
static int
upgrade_execute(struct upgrade *u)
{
	autoclose int program_fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	autoclose int conf_fd = upgrade_conf_file(u->conf);
	struct handoff h = { 0 };
	autoclose int fd = -1;
	int rc;

	upgrade_save(u, &h, program_fd, conf_fd);
	fd = handoff_seal(&h);
	if (fd < 0) {
		handoff_release(&h);
		return fd;
	}
	handoff_inherit(&h, true);
	fd_set_cloexec(fd, false);
	upgrade_name(UPGRADE_ENV, fd);
	upgrade_hold_signals(true);
	execv(u->args->self, u->args->argv);
	rc = -errno;
	upgrade_hold_signals(false);
	unsetenv(UPGRADE_ENV);
	handoff_inherit(&h, false);
	handoff_release(&h);
	return rc;
}

void
upgrade_fall_back(const struct daemon_args *args, int fd,
    const struct handoff *h, const struct upgrade_past *past, const char *why)
{
	log_err("upgrade_failed", "why", why, "version", BERTH_VERSION, NULL);
	handoff_inherit(h, true);
	fd_set_cloexec(fd, false);
	upgrade_name(UPGRADE_ENV, fd);
	upgrade_name(UPGRADE_CONF_ENV, past->conf_fd);
	setenv(UPGRADE_WHY_ENV, why, 1);
	setenv(UPGRADE_SELF_ENV, args->self, 1);
	fexecve(past->program_fd, args->argv, environ);
	log_err("fall_back_failed", "why", strerrordesc_np(errno), NULL);
}

void
upgrade_give_back(const struct daemon_args *args, const char *why)
{
	struct handoff h = { 0 };
	struct upgrade_past past;
	struct err e = { 0 };
	int fd = args->call->handoff_fd;

	/* The former one tries again, unless that is what we are. */
	if (fd < 0 || args->call->why_not[0])
		return;
	if (handoff_open(fd, &h, &e) == 0 &&
	    upgrade_load_past(&h, &past, &e) == 0)
		upgrade_fall_back(args, fd, &h, &past, why);
	handoff_release(&h);
}

void
upgrade_find(struct upgrade_call *out)
{
	const char *why = getenv(UPGRADE_WHY_ENV);
	const char *self = getenv(UPGRADE_SELF_ENV);

	snprintf(out->why_not, sizeof(out->why_not), "%s", why ? why : "");
	unsetenv(UPGRADE_WHY_ENV);
	out->self = self ? xstrdup(self) : NULL;
	unsetenv(UPGRADE_SELF_ENV);
	out->handoff_fd = upgrade_named(UPGRADE_ENV);
	out->conf_fd = upgrade_named(UPGRADE_CONF_ENV);
	if (out->handoff_fd >= 0)
		fd_set_cloexec(out->handoff_fd, true);
}

/*
 * At rest when no request is under way and the store has everything. The one is
 * cut short at the deadline; without the other there is no upgrade.
 */
static void
upgrade_on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct upgrade *u = arg;
	bool is_late = clock_mono_ms() >= u->deadline_ms;
	struct err e = { 0 };
	char why[2 * UPGRADE_WHY_MAX];
	int rc;

	(void)fd;
	(void)what;
	if (is_late) {
		manager_fail_all(u->manager, UPGRADE_INTERRUPTED);
		server_fail_pending(u->server, UPGRADE_INTERRUPTED);
	}
	rc = store_pump(u->store, &e);
	/* What is answered from the loop goes out before anything else. */
	if (!manager_is_quiet(u->manager) ||
	    (!is_late && (rc < 0 || !server_is_quiet(u->server)))) {
		upgrade_arm(u, UPGRADE_TICK_MS);
		return;
	}
	if (rc == 0)
		rc = upgrade_execute(u);
	snprintf(
	    why, sizeof(why), "%s", e.msg[0] ? e.msg : strerrordesc_np(-rc));
	server_pause(u->server, false);
	control_pause(u->control, false);
	upgrade_fail(u, why);
}
