/*
 * Starting a session: sandbox, row, recording, keeper, in this order, so that
 * whatever fails leaves a row that says so and no process without a row.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/text.h"
#include "conf/conf.h"
#include "sessions/manager/launch_env.h"
#include "sessions/manager/session.h"
#include "sessions/manager/sftp.h"

#define LAUNCH_COLS     80
#define LAUNCH_ROWS     24
#define LAUNCH_DIM_MAX  65535
#define LAUNCH_INDEX_MS 10000
#define LAUNCH_ARGV_MAX (SFTP_ARGS_MAX + 4)

static uint32_t
launch_dim(uint32_t v, uint32_t fallback)
{
	if (v == 0)
		return fallback;
	return v > LAUNCH_DIM_MAX ? LAUNCH_DIM_MAX : v;
}

/* What is run, in V (borrowed strings) unless the spec has an argv. */
static char *const *
launch_argv(const struct launch_spec *spec, const struct sandbox_place *place,
    char *v[LAUNCH_ARGV_MAX + 1])
{
	size_t n = 0;

	if (spec->argv)
		return spec->argv;
	if (spec->sftp_args) {
		v[n++] = (char *)(uintptr_t)place->sftp_server;
		for (char *const *a = spec->sftp_args;
		     *a && n < LAUNCH_ARGV_MAX; a++)
			v[n++] = *a;
	} else {
		v[n++] = (char *)(uintptr_t)place->shell;
	}
	if (spec->command) {
		v[n++] = (char *)(uintptr_t) "-c";
		v[n++] = (char *)(uintptr_t)spec->command;
	}
	v[n] = NULL;
	return v;
}

/* What execvp() would run: a name without a slash is looked up in PATH. */
static char *
launch_program(const char *name)
{
	const char *dir = LAUNCH_PATH;

	while (!strchr(name, '/') && *dir) {
		size_t n = strcspn(dir, ":");
		autofree char *path = xasprintf("%.*s/%s", (int)n, dir, name);

		if (access(path, X_OK) == 0)
			return take_ptr(path);
		dir += n + (dir[n] == ':');
	}
	return xstrdup(name);
}

/* Relative directories are below the workspace. */
static char *
launch_cwd(const char *cwd, const char *workspace)
{
	if (!cwd || cwd[0] == '/')
		return xstrdup(cwd ? cwd : workspace);
	return xasprintf("%s/%s", workspace, cwd);
}

/* argv as JSON for the row. */
static char *
launch_argv_json(char *const *argv)
{
	json_t *a = json_array();
	char *text;

	for (; *argv; argv++) {
		json_t *s = json_string(*argv);

		json_array_append_new(a, s ? s : json_string("\xef\xbf\xbd"));
	}
	text = json_dumps(a, JSON_COMPACT);
	json_decref(a);
	return text ? text : xstrdup("[]");
}

/* The lock that tells a later manager that the keeper lives. */
static int
launch_lock(struct session *s, struct err *e)
{
	autoclose int fd = -1;
	char name[STORE_ID_MAX + 8];

	snprintf(name, sizeof(name), "%s.lock", s->id);
	fd = openat(s->m->locks_fd, name,
	    O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(e, -errno, "cannot make the lock %s", name);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return err_sys(e, -errno, "cannot lock %s", name);
	return take_fd(&fd);
}

static int
launch_keeper(struct session *s, struct err *e)
{
	const struct conf *c = s->m->conf;
	/* The level and format of its log; the id is for ps. */
	const char *argv[] = {
		"berth-session",
		log_level_name(c->server.log_level),
		c->server.log_json ? "json" : "text",
		s->id,
		NULL,
	};
	char *env[] = { (char *)(uintptr_t) "PATH=" LAUNCH_PATH, NULL, NULL };
	autoclose int lock_fd = -1, listen_fd = -1, keeper_end = -1;
	char name[STORE_ID_MAX + 8];
	const char *asan;
	int pair[2], pidfd, rc;
	pid_t pid;

	lock_fd = launch_lock(s, e);
	if (lock_fd < 0)
		return lock_fd;
	snprintf(name, sizeof(name), "%s.sock", s->id);
	listen_fd = fd_listen_unix(s->m->locks_fd, name);
	if (listen_fd < 0)
		return err_sys(e, listen_fd, "cannot listen on %s", name);
	rc = fd_socketpair(pair, true);
	if (rc < 0)
		return err_sys(e, rc, "no descriptor for the keeper");
	keeper_end = pair[1];
	asan = getenv("ASAN_OPTIONS");
	if (asan)
		env[1] = xasprintf("ASAN_OPTIONS=%s", asan);
	pid = proc_spawn(s->m->keeper_path, (char **)(uintptr_t)argv, env,
	    (int[]){ keeper_end, lock_fd, listen_fd }, 3, &pidfd);
	free(env[1]);
	if (pid < 0) {
		close(pair[0]);
		return err_sys(e, pid, "cannot run %s", s->m->keeper_path);
	}
	session_watch(s, pidfd);
	session_connect(s, pair[0]);
	s->is_ready = true;
	return 0;
}

/* What the terminal of a session is like. */
static void
launch_terminal(
    const struct conf *c, const struct launch_spec *spec, struct wire_launch *l)
{
	const struct conf_answer *a = &c->session.answer;
	const struct conf_detach_key *k = &c->session.detach_key;

	l->resize_policy = (uint32_t)c->session.resize;
	l->replay = (uint32_t)c->session.replay;
	l->scrollback_lines = (uint32_t)c->session.scrollback;
	l->scrollback_bytes = c->session.scrollback_bytes;
	l->detach_key.n = (uint8_t)k->n;
	for (unsigned i = 0; i < k->n; i++)
		l->detach_key.keys[i] =
		    (struct wire_key){ k->keys[i].ch, k->keys[i].is_ctrl };
	snprintf(l->answer.name, sizeof(l->answer.name), "%s", a->name);
	l->answer.foreground = a->foreground;
	l->answer.background = a->background;
	l->answer.cursor = a->cursor;
	snprintf(l->term, sizeof(l->term), "%s", launch_term(spec));
}

/* The way in comes first; its descriptor is a copy for the link. */
static void
launch_tell_entry(struct session *s, const struct sandbox_entry *entry)
{
	char *groups[SANDBOX_CGROUPS_MAX + 1] = { NULL };
	struct wire_entry w = {
		.ns_flags = entry->ns_flags,
		.pids_max = entry->pids_max,
		.oom_path = (char *)(uintptr_t)entry->oom_path,
		.cgroups = groups,
	};
	struct buf b = { 0 };
	size_t n = 0;

	if (entry->pidfd < 0)
		return;
	for (size_t i = 0; i < SANDBOX_CGROUPS_MAX; i++) {
		if (entry->cgroups[i][0])
			groups[n++] = (char *)(uintptr_t)entry->cgroups[i];
	}
	wire_entry_encode(&b, &w);
	wire_send_fd(&s->wire, FRAME_ENTER, 0, 0, buf_head(&b), buf_len(&b),
	    fcntl(entry->pidfd, F_DUPFD_CLOEXEC, 0));
	buf_release(&b);
}

/*
 * What the keeper runs, of this host, for what R is to be in the sandbox. That
 * is berthd's own user's, as all that talks to an engine.
 */
static int
launch_wrap(struct session *s, const struct sandbox_run *r,
    const struct sandbox_log_query *log, struct sandbox_way *way,
    struct wire_launch *l, struct err *e)
{
	struct box *b = box_find(s->m, s->sandbox);
	int rc = !b    ? err_set(e, -ENOENT, "it is gone")
		 : log ? b->provider->logs(&b->spec, log, way, e)
		       : box_wrap(b, r, way, e);

	if (rc < 0)
		return rc;
	/* the terminal that it is told of is not the one inside */
	l->flags &= ~(uint32_t)(LAUNCH_SETUID | LAUNCH_LOGIN | LAUNCH_SSH_TTY);
	l->flags |= LAUNCH_RAW;
	l->uid = geteuid();
	l->gid = getegid();
	l->path = s->m->sandbox_path;
	l->argv = way->argv;
	l->env = way->env;
	l->cwd = (char *)(uintptr_t) "/";
	return 0;
}

/* Tells the keeper all it must know. */
static int
launch_tell(struct session *s, const struct launch_spec *spec,
    const struct sandbox_place *place, char *const *argv, int rec_fd,
    struct err *e)
{
	const struct conf *c = s->m->conf;
	bool is_inside = place->entry.pidfd >= 0 || place->has_way;
	struct sandbox_way way = { .argv = NULL };
	int rc = 0;
	autofree char *program =
	    is_inside ? xstrdup(argv[0]) : launch_program(argv[0]);
	struct launch_env env = { 0 };
	struct wire_launch l = {
		.version = FRAME_VERSION,
		.generation = s->m->generation,
		.flags = spec->flags,
		.uid = place->uid,
		.gid = place->gid,
		.buffer_bytes = c->session.buffer_bytes,
		.stop_grace_ms = (uint32_t)c->session.stop_grace_ms,
		.max_processes = place->max_processes,
		.max_data = place->max_data,
		.rec_flush_ms = (uint32_t)c->recording.flush_ms,
		.rec_min_free = c->recording.min_free_bytes,
		.rec_max_bytes = c->recording.max_bytes,
		.rec_index_ms = LAUNCH_INDEX_MS,
		.size = { s->stats.cols, s->stats.rows, spec->size.xpixel,
		    spec->size.ypixel },
	};
	struct buf b = { 0 };

	if (rec_fd >= 0)
		l.flags |= LAUNCH_RECORD;
	if (c->recording.on_error == CONF_ON_ERROR_STOP)
		l.flags |= LAUNCH_REC_STOP;
	if (place->must_setuid)
		l.flags |= LAUNCH_SETUID;
	launch_terminal(c, spec, &l);
	snprintf(l.sid, sizeof(l.sid), "%s", s->id);
	snprintf(l.title, sizeof(l.title), "%s+%s", s->sandbox,
	    s->name[0] ? s->name : "exec");
	snprintf(l.user, sizeof(l.user), "%s", place->user);
	launch_env_build(&env, s, spec, place);
	l.path = program;
	l.argv = (char **)(uintptr_t)argv;
	l.env = env.v;
	l.cwd = s->cwd;
	if (place->has_way)
		rc = launch_wrap(s,
		    &(struct sandbox_run){
			.sid = s->id,
			.argv = argv,
			.env = env.v,
			.cwd = s->cwd,
			.has_pty = s->is_pty,
			.is_login = (spec->flags & LAUNCH_LOGIN) != 0,
		    },
		    spec->log, &way, &l, e);
	if (rc == 0) {
		launch_tell_entry(s, &place->entry);
		wire_launch_encode(&b, &l);
		wire_send_fd(&s->wire, FRAME_LAUNCH, 0, 0, buf_head(&b),
		    buf_len(&b), rec_fd);
	}
	buf_release(&b);
	sandbox_way_release(&way);
	launch_env_release(&env);
	return rc;
}

/* Its sandbox was made ready by whoever asks for the session. */
static enum manager_code
launch_sandbox(struct manager *m, const char *name, struct session *s,
    struct sandbox_place *place, struct err *e)
{
	struct box *b = box_find(m, name);

	if (!b) {
		err_set(e, -ENOENT, "there is no sandbox %s", name);
		return MANAGER_NOT_FOUND;
	}
	switch (box_place(b, place, e)) {
	case 0:
		break;
	case -EOPNOTSUPP:
		return MANAGER_REFUSED;
	default:
		return MANAGER_FAILED;
	}
	store_sandbox_touch(m->store, b->id, clock_wall_ms());
	s->sandbox_id = b->id;
	return MANAGER_OK;
}

static enum manager_code
launch_check_sftp(const struct launch_spec *spec,
    const struct sandbox_place *place, struct err *e)
{
	if (!spec->sftp_args || place->has_sftp_server)
		return MANAGER_OK;
	if (place->sftp_server[0] != '/')
		err_set(e, -ENOENT,
		    "no file transfer: the provider of sandbox %s has no "
		    "sftp_server",
		    spec->sandbox);
	else
		err_set(e, -ENOENT,
		    "no file transfer: the sandbox has no %s (package "
		    "openssh-sftp-server, option sandbox.sftp_server)",
		    place->sftp_server);
	return MANAGER_FAILED;
}

static enum manager_code
launch_row(struct session *s, const struct launch_spec *spec, struct err *e)
{
	struct store_session row = {
		.sandbox_id = s->sandbox_id,
		.is_pty = s->is_pty,
		.argv = s->argv_json,
		.cwd = s->cwd,
		.status = SESSION_CREATING,
		.cols = spec->flags & LAUNCH_PTY ? s->stats.cols : 0,
		.rows = spec->flags & LAUNCH_PTY ? s->stats.rows : 0,
		.created_ms = s->created_ms,
	};
	int rc;

	snprintf(row.id, sizeof(row.id), "%s", s->id);
	snprintf(row.name, sizeof(row.name), "%s", s->name);
	rc = store_session_insert(s->m->store, &row);
	if (rc == -EEXIST) {
		err_set(e, rc, "%s+%s is already running", s->sandbox, s->name);
		return MANAGER_CONFLICT;
	}
	if (rc < 0) {
		err_sys(e, rc, "the store cannot take the session");
		return MANAGER_FAILED;
	}
	return MANAGER_OK;
}

static int
launch_recording(struct session *s, bool is_recorded)
{
	struct store_recording row = { .started_ms = clock_wall_ms() };
	struct err e = { 0 };
	int fd;

	if (!is_recorded || !s->m->conf->recording.enabled)
		return -1;
	fd = recordings_create(
	    s->m, s->sandbox, s->id, row.path, sizeof(row.path), &e);
	if (fd < 0) {
		log_err("recording_failed", "sid", s->id, "why", e.msg, NULL);
		return fd == -1 ? -EPERM : fd;
	}
	snprintf(row.session_id, sizeof(row.session_id), "%s", s->id);
	snprintf(row.format, sizeof(row.format), "asciicast-v2");
	snprintf(row.state, sizeof(row.state), "open");
	s->recording_ms = row.started_ms;
	s->recording_id = store_recording_insert(s->m->store, &row);
	return fd;
}

static unsigned
launch_count(struct manager *m, const char *sandbox)
{
	struct list *pos, *tmp;
	unsigned n = 0;

	list_for_each (pos, tmp, &m->sessions) {
		struct session *s = list_entry(pos, struct session, node);

		if (s->phase != PHASE_ENDED && strcmp(s->sandbox, sandbox) == 0)
			n++;
	}
	return n;
}

static void
launch_fill(struct session *s, const struct launch_spec *spec)
{
	const struct conf *c = s->m->conf;

	text_random_id("ses-", 8, s->id, sizeof(s->id));
	snprintf(s->sandbox, sizeof(s->sandbox), "%s", spec->sandbox);
	snprintf(s->name, sizeof(s->name), "%s", spec->name);
	s->is_pty = (spec->flags & LAUNCH_PTY) != 0;
	s->transfer.is_possible = spec->sftp_args != NULL;
	s->created_ms = clock_wall_ms();
	if (c->session.resize == CONF_RESIZE_FIXED) {
		s->stats.cols = c->session.fixed_cols;
		s->stats.rows = c->session.fixed_rows;
		return;
	}
	s->stats.cols = launch_dim(spec->size.cols, LAUNCH_COLS);
	s->stats.rows = launch_dim(spec->size.rows, LAUNCH_ROWS);
}

/* Everything after the row exists; on failure the row is closed as failed. */
static enum manager_code
launch_start(struct session *s, const struct launch_spec *spec,
    const struct sandbox_place *place, char *const *argv, struct err *e)
{
	int rec_fd = launch_recording(s, spec->is_recorded);
	int rc;

	if (rec_fd < -1 &&
	    s->m->conf->recording.on_error == CONF_ON_ERROR_STOP) {
		err_set(e, rec_fd, "the recording cannot be made");
		session_lost(s, e->msg);
		return MANAGER_FAILED;
	}
	rc = launch_keeper(s, e);
	if (rc == 0) {
		rec_fd = rec_fd < 0 ? -1 : rec_fd;
		rc = launch_tell(s, spec, place, argv, rec_fd, e);
		if (rc < 0)
			wire_close(&s->wire, 0);
	}
	if (rc < 0) {
		if (rec_fd >= 0)
			close(rec_fd);
		session_lost(s, e->msg);
		return MANAGER_FAILED;
	}
	return MANAGER_OK;
}

enum manager_code
launch_session(struct manager *m, const struct principal *who,
    const struct launch_spec *spec, struct session **out, char *why)
{
	struct sandbox_place place = { .entry = { .pidfd = -1 } };
	struct err e = { 0 };
	struct session *s;
	enum manager_code code;
	char *v[LAUNCH_ARGV_MAX + 1];
	char *const *argv = NULL;

	if (m->is_closing) {
		snprintf(why, 256, "berth is shutting down");
		return MANAGER_FAILED;
	}
	if (launch_count(m, spec->sandbox) >=
	    m->conf->session.max_per_sandbox) {
		snprintf(why, 256, "sandbox %s has the most sessions allowed",
		    spec->sandbox);
		return MANAGER_REFUSED;
	}
	s = session_new(m);
	launch_fill(s, spec);
	code = launch_sandbox(m, spec->sandbox, s, &place, &e);
	if (code == MANAGER_OK)
		code = launch_check_sftp(spec, &place, &e);
	if (code == MANAGER_OK) {
		argv = launch_argv(spec, &place, v);
		s->argv_json = launch_argv_json(argv);
		s->cwd = launch_cwd(spec->cwd, place.workspace);
		code = launch_row(s, spec, &e);
	}
	if (code == MANAGER_OK)
		code = launch_start(s, spec, &place, argv, &e);
	if (place.entry.pidfd >= 0)
		close(place.entry.pidfd);
	if (code != MANAGER_OK) {
		snprintf(why, 256, "%s", e.msg);
		session_free(s);
		return code;
	}
	log_info("session_created", "sid", s->id, "sandbox", s->sandbox, "name",
	    s->name, "identity", who->identity, NULL);
	store_audit(m->store, "session_create", who->identity, who->remote_addr,
	    s->sandbox, s->id, s->name[0] ? s->name : NULL);
	*out = s;
	return MANAGER_OK;
}
