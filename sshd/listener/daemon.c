/* The life of berthd; see daemon.h. */
#include "sshd/listener/daemon.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "sandbox/dial.h"
#include "sandbox/provider.h"
#include "sandbox/providers.h"
#include "sessions/manager/control.h"
#include "sessions/manager/manager.h"
#include "sshd/listener/access.h"
#include "sshd/listener/host_key.h"
#include "sshd/listener/notify.h"
#include "sshd/listener/server.h"
#include "sshd/listener/spawn.h"
#include "sshd/listener/state_dir.h"
#include "sshd/listener/upgrade.h"
#include "store/store.h"

#define DAEMON_STOP_MS  10000 /* the longest an orderly end may take */
#define DAEMON_STOP_WHY "berthd is stopping; sessions go on"
#define DAEMON_KILL_WHY "berthd is stopping and ends its sessions"

static const char daemon_no_separation[] =
    "berthd runs as an ordinary user: the provider local separates nothing,"
    " sandboxes can reach each other and berth's own files";

/* For an ordinary user whose sandboxes are none, unless it asks for others. */
static const char *
daemon_warning(const struct conf *c)
{
	struct conf_template t;

	if (geteuid() == 0 ||
	    conf_template_find(c, c->access.default_template, &t, NULL) < 0)
		return NULL;
	return strcmp(t.provider, "local") == 0 ? daemon_no_separation : NULL;
}

struct daemon {
	const struct daemon_args *args;
	struct conf *conf;  /* in force */
	struct conf *first; /* of the start: others may still point at it */
	struct event_base *base;
	struct state_dir dirs;
	struct store *store;
	struct manager *manager;
	struct control *control;
	struct access *access;
	struct host_keys host_keys;
	struct server server;
	struct upgrade upgrade;
	struct handoff handoff; /* if has_past */
	struct upgrade_past past;
	bool has_past;
	int64_t started_ms;
	char *sshd_path, *keeper_path, *sandbox_path;
	struct sandbox_spec spec; /* what all sandboxes have in common */
	struct event *hup_ev, *term_ev, *int_ev, *usr2_ev, *stop_ev;
	bool is_stopping, is_server_empty, is_manager_done;
};

/*
 * The program NAME beside ours (a build directory), in ../libexec/berth, or
 * where it was configured to be installed. The caller frees.
 */
static char *
daemon_find_program(
    const struct daemon_args *args, const char *name, struct err *e)
{
	autofree char *self = xstrdup(args->self);
	char *slash = strrchr(self, '/');

	if (slash)
		*slash = '\0';
	for (int i = 0; i < 3; i++) {
		autofree char *path =
		    i == 0   ? xasprintf("%s/%s", self, name)
		    : i == 1 ? xasprintf("%s/../libexec/berth/%s", self, name)
			     : xasprintf("%s/%s", BERTH_LIBEXECDIR, name);

		if (access(path, X_OK) == 0)
			return take_ptr(path);
	}
	err_set(e, -ENOENT, "%s is neither beside berthd nor in %s", name,
	    BERTH_LIBEXECDIR);
	return NULL;
}

/* A descriptor for each connection's link and process, and some to spare. */
static void
daemon_raise_files(const struct conf *c)
{
	rlim_t want = 4 * c->server.max_connections + 1024;
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) < 0 || rl.rlim_cur >= want)
		return;
	rl.rlim_cur = want < rl.rlim_max ? want : rl.rlim_max;
	setrlimit(RLIMIT_NOFILE, &rl);
}

static void
daemon_check_end(struct daemon *d)
{
	if (d->is_server_empty && d->is_manager_done)
		event_base_loopbreak(d->base);
}

static void
daemon_on_server_empty(void *arg)
{
	struct daemon *d = arg;

	d->is_server_empty = true;
	daemon_check_end(d);
}

static void
daemon_on_manager_done(void *arg)
{
	struct daemon *d = arg;

	d->is_manager_done = true;
	daemon_check_end(d);
}

static void
daemon_on_stop_timer(evutil_socket_t fd, short what, void *arg)
{
	struct daemon *d = arg;

	(void)fd;
	(void)what;
	log_warn("shutdown", "why", "took too long, leaving the rest", NULL);
	event_base_loopbreak(d->base);
}

/* The second signal is from somebody in a hurry. */
static void
daemon_on_term(evutil_socket_t sig, short what, void *arg)
{
	struct daemon *d = arg;
	struct timeval tv = { DAEMON_STOP_MS / 1000, 0 };
	bool kill_all = d->conf->session.on_shutdown == CONF_SHUTDOWN_KILL;

	(void)what;
	if (d->is_stopping) {
		server_kill_all(&d->server);
		return;
	}
	d->is_stopping = true;
	upgrade_release(&d->upgrade);
	log_info("shutdown", "signal", sig == SIGTERM ? "TERM" : "INT",
	    "sessions", kill_all ? "kill" : "keep", NULL);
	notify_send("STOPPING=1");
	evtimer_add(d->stop_ev, &tv);
	server_stop(&d->server, kill_all ? DAEMON_KILL_WHY : DAEMON_STOP_WHY);
	manager_close(d->manager, kill_all, daemon_on_manager_done, d);
}

/* Keys, limits, log level: what can change while running. */
static void
daemon_on_hup(evutil_socket_t sig, short what, void *arg)
{
	struct daemon *d = arg;
	struct conf *fresh = NULL;
	struct err e = { 0 };

	(void)sig;
	(void)what;
	if (conf_load(d->args->conf_file, d->args->overrides,
		d->args->n_overrides, &fresh, &e) < 0) {
		log_err("reload", "why", e.msg, NULL);
		return;
	}
	log_set_level(fresh->server.log_level);
	access_reconfigure(d->access, fresh);
	access_refresh(d->access);
	server_reconfigure(&d->server, fresh);
	manager_reconfigure(d->manager, fresh);
	control_set_mode(fresh, d->dirs.runtime_fd);
	if (d->conf != d->first)
		conf_free(d->conf);
	d->conf = fresh;
	d->upgrade.conf = fresh;
	log_info("reload", NULL);
}

static void
daemon_on_usr2(evutil_socket_t sig, short what, void *arg)
{
	struct daemon *d = arg;
	struct err e = { 0 };

	(void)sig;
	(void)what;
	if (upgrade_begin(&d->upgrade, "SIGUSR2", &e) < 0)
		log_warn("upgrade_refused", "why", e.msg, NULL);
}

static int
daemon_upgrade(void *arg, const char *who, struct err *e)
{
	struct daemon *d = arg;

	return upgrade_begin(&d->upgrade, who, e);
}

static struct event *
daemon_signal(struct daemon *d, int sig, event_callback_fn fn)
{
	struct event *ev = evsignal_new(d->base, sig, fn, d);

	if (!ev || event_add(ev, NULL) < 0)
		abort();
	return ev;
}

static int
daemon_open_manager(struct daemon *d, struct err *e)
{
	struct manager_paths paths = {
		.runtime_fd = d->dirs.runtime_fd,
		.recordings_dir = d->conf->recording.dir,
		.keeper_path = d->keeper_path,
		.sandbox_path = d->sandbox_path,
		.spec = &d->spec,
		.handoff = d->has_past ? &d->handoff : NULL,
	};
	int rc = store_open(d->conf->server.state_dir, &d->store, e);

	if (rc < 0)
		return rc;
	return manager_new(d->base, d->conf, d->store, &paths, &d->manager, e);
}

static int
daemon_open_keys(struct daemon *d, struct err *e)
{
	int rc = host_keys_load(d->conf->server.host_key, &d->host_keys, e);

	if (rc < 0)
		return rc;
	rc = spawn_check_host_keys(d->sshd_path, &d->host_keys, e);
	if (rc < 0)
		return rc;
	d->access = access_new(d->conf);
	access_refresh(d->access);
	return 0;
}

static int
daemon_open_control(struct daemon *d, const char *listen, struct err *e)
{
	struct control_status status = {
		.listen = listen,
		.state_dir = d->conf->server.state_dir,
		.started_ms = d->started_ms,
		.warning = daemon_warning(d->conf),
		.upgrade = daemon_upgrade,
		.arg = d,
		.handoff = d->has_past ? &d->handoff : NULL,
	};

	return control_new(
	    d->base, d->conf, d->dirs.runtime_fd, &status, &d->control, e);
}

static int
daemon_find_programs(struct daemon *d, struct err *e)
{
	d->sshd_path = daemon_find_program(d->args, "berth-sshd", e);
	if (d->sshd_path)
		d->keeper_path =
		    daemon_find_program(d->args, "berth-session", e);
	if (d->keeper_path)
		d->sandbox_path =
		    daemon_find_program(d->args, "berth-sandbox", e);
	return d->sandbox_path ? 0 : -ENOENT;
}

static int
daemon_open_sandboxes(struct daemon *d, struct err *e)
{
	int rc = sandbox_init(e);

	dial_provide();
	if (rc == 0)
		rc = sandbox_register_commands(d->conf, e);
	return rc < 0 ? rc : sandbox_spec_init(&d->spec, d->conf, e);
}

static int
daemon_open_listeners(struct daemon *d, struct err *e)
{
	if (!d->has_past)
		return server_bind(&d->server, d->conf, e);
	return server_load_listeners(&d->server, &d->handoff) < 0
		   ? err_set(e, -EPROTO,
			 "what the former berthd left of its listeners cannot"
			 " be read")
		   : 0;
}

/*
 * Everything that can fail, in an order in which a refusal changes nothing; the
 * store, which may be brought to a new schema, last.
 */
static int
daemon_open(struct daemon *d, struct err *e)
{
	autofree char *addresses = NULL;
	int rc = daemon_find_programs(d, e);

	if (rc == 0)
		rc = state_dir_open(
		    d->conf, d->has_past ? d->past.lock_fd : -1, &d->dirs, e);
	if (rc == 0)
		rc = daemon_open_listeners(d, e);
	if (rc == 0)
		rc = daemon_open_keys(d, e);
	if (rc == 0)
		rc = daemon_open_sandboxes(d, e);
	if (rc < 0)
		return rc;
	addresses = server_addresses(&d->server);
	rc = daemon_open_control(d, addresses, e);
	if (rc == 0)
		rc = daemon_open_manager(d, e);
	if (rc == 0)
		control_start(d->control, d->manager);
	return rc;
}

static void
daemon_prepare_upgrade(struct daemon *d)
{
	struct upgrade *u = &d->upgrade;

	u->base = d->base;
	u->args = d->args;
	u->server = &d->server;
	u->manager = d->manager;
	u->control = d->control;
	u->store = d->store;
	u->conf = d->first;
	u->lock_fd = d->dirs.lock_fd;
	u->started_ms = d->started_ms;
	d->usr2_ev = daemon_signal(d, SIGUSR2, daemon_on_usr2);
}

/* This program was executed in place of another berthd: who waits for it hears. */
static void
daemon_tell_upgrade(struct daemon *d)
{
	const char *why_not = d->args->call->why_not;
	const char *why = why_not[0] ? why_not : NULL;

	if (why)
		log_err("upgrade_undone", "why", why, "version", BERTH_VERSION,
		    NULL);
	else
		log_info("upgraded", "from", d->past.version, "to",
		    BERTH_VERSION, "who", d->past.who, NULL);
	store_audit(d->store, why ? "upgrade_failed" : "upgrade", d->past.who,
	    NULL, NULL, NULL, why ? why : BERTH_VERSION);
	control_upgraded(d->control, d->past.version, why);
	handoff_release(&d->handoff);
}

static void
daemon_start(struct daemon *d)
{
	autofree char *addresses = server_addresses(&d->server);

	d->server.base = d->base;
	d->server.conf = d->conf;
	d->server.manager = d->manager;
	d->server.store = d->store;
	d->server.access = d->access;
	d->server.host_keys = &d->host_keys;
	d->server.sshd_path = d->sshd_path;
	d->server.on_empty = daemon_on_server_empty;
	d->server.arg = d;
	if (server_start(&d->server, d->has_past ? &d->handoff : NULL) < 0)
		log_err("connections_lost", "why",
		    "what the former berthd left of them cannot be read", NULL);
	d->hup_ev = daemon_signal(d, SIGHUP, daemon_on_hup);
	d->term_ev = daemon_signal(d, SIGTERM, daemon_on_term);
	d->int_ev = daemon_signal(d, SIGINT, daemon_on_term);
	d->stop_ev = evtimer_new(d->base, daemon_on_stop_timer, d);
	if (!d->stop_ev)
		abort();
	if (daemon_warning(d->conf))
		log_warn("separation", "why", daemon_warning(d->conf), NULL);
	daemon_prepare_upgrade(d);
	upgrade_let_signals();
	if (d->has_past)
		daemon_tell_upgrade(d);
	log_info("ready", "addr", addresses, "state", d->conf->server.state_dir,
	    NULL);
	notify_send("READY=1");
}

/* Backwards: requests point into the manager, the manager into the store. */
static void
daemon_close(struct daemon *d)
{
	struct event *events[] = { d->hup_ev, d->term_ev, d->int_ev, d->usr2_ev,
		d->stop_ev };

	upgrade_release(&d->upgrade);
	control_free(d->control);
	server_release(&d->server);
	manager_free(d->manager);
	if (d->store)
		store_close(d->store);
	access_free(d->access);
	host_keys_free(&d->host_keys);
	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		if (events[i])
			event_free(events[i]);
	}
	event_base_free(d->base);
	state_dir_close(&d->dirs);
	free(d->sshd_path);
	free(d->keeper_path);
	free(d->sandbox_path);
	if (d->conf != d->first)
		conf_free(d->conf);
	conf_free(d->first);
}

/* From here there is no way back: the former program and its memory may go. */
static void
daemon_leave_past(struct daemon *d, int *handoff_fd)
{
	int *fds[] = { handoff_fd, &d->past.program_fd, &d->past.conf_fd };

	if (!d->has_past)
		return;
	handoff_inherit(&d->handoff, false);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		if (*fds[i] >= 0)
			close(take_fd(fds[i]));
	}
}

/* Takes over what the environment names; nothing when there is nothing. */
static int
daemon_open_past(struct daemon *d, int fd, struct err *e)
{
	int rc;

	d->started_ms = clock_wall_ms();
	if (fd < 0)
		return 0;
	rc = handoff_open(fd, &d->handoff, e);
	if (rc == 0)
		rc = upgrade_load_past(&d->handoff, &d->past, e);
	if (rc < 0)
		return rc;
	d->has_past = true;
	d->started_ms = d->past.started_ms;
	return 0;
}

int
daemon_run(const struct daemon_args *args, struct conf *conf, struct err *e)
{
	struct daemon d = {
		.args = args,
		.conf = conf,
		.first = conf,
		.dirs = { -1, -1, -1, -1 },
	};
	autoclose int handoff_fd = args->call->handoff_fd;
	int rc;

	signal(SIGPIPE, SIG_IGN);
	daemon_raise_files(conf);
	upgrade_init(&d.upgrade);
	d.base = event_base_new();
	if (!d.base)
		abort();
	rc = daemon_open_past(&d, handoff_fd, e);
	if (rc == 0)
		rc = daemon_open(&d, e);
	/* The former one tries again, unless that is what we are. */
	if (rc < 0 && d.has_past && !args->call->why_not[0])
		upgrade_fall_back(
		    args, handoff_fd, &d.handoff, &d.past, e->msg);
	if (rc == 0) {
		daemon_leave_past(&d, &handoff_fd);
		daemon_start(&d);
		event_base_dispatch(d.base);
		log_info("stopped", NULL);
	}
	handoff_release(&d.handoff);
	daemon_close(&d);
	return rc;
}

int
daemon_rehearse(
    const struct daemon_args *args, struct conf *conf, struct err *e)
{
	struct daemon d = { .args = args, .conf = conf };
	int rc = daemon_find_programs(&d, e);

	if (rc == 0)
		rc = daemon_open_keys(&d, e);
	if (rc == 0)
		rc = daemon_open_sandboxes(&d, e);
	if (rc == 0)
		rc = store_check(conf->server.state_dir, e);
	access_free(d.access);
	host_keys_free(&d.host_keys);
	free(d.sshd_path);
	free(d.keeper_path);
	free(d.sandbox_path);
	return rc;
}
