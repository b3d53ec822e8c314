/*
 * The one table of options (berthd, and the command line when it is given a
 * configuration file). Rows whose default is computed stand below the rows
 * that it is computed from.
 */
#include "conf/options.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "conf/answer.h"
#include "conf/conf.h"
#include "conf/defaults.h"

#define SECOND 1000ULL
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
#define KIB    1024ULL
#define GIB    (KIB * KIB * KIB)
#define HUGE   (1ULL << 50) /* bytes: more than any disk here */

#define STATE_PREFIX "STATE/"

static char *
option_default_state(const struct option *o, const struct conf *c)
{
	struct defaults_user u = defaults_user();

	(void)o;
	(void)c;
	return defaults_state_dir(&u);
}

static char *
option_default_runtime(const struct option *o, const struct conf *c)
{
	struct defaults_user u = defaults_user();

	(void)o;
	return defaults_runtime_dir(&u, c->server.state_dir);
}

/* The default "STATE/x" of the row, below the state directory in force. */
static char *
option_default_below_state(const struct option *o, const struct conf *c)
{
	return xasprintf(
	    "%s/%s", c->server.state_dir, o->def + strlen(STATE_PREFIX));
}

static char *
option_default_sandboxes(const struct option *o, const struct conf *c)
{
	struct defaults_user u = defaults_user();

	(void)o;
	return defaults_sandbox_dir(&u, c->server.state_dir);
}

static char *
option_default_shell(const struct option *o, const struct conf *c)
{
	(void)o;
	(void)c;
	return xstrdup(
	    access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh");
}

/* Where distributions put it; the first one when it is not installed. */
static char *
option_default_sftp_server(const struct option *o, const struct conf *c)
{
	static const char *const usual[] = {
		"/usr/lib/openssh/sftp-server",
		"/usr/libexec/openssh/sftp-server",
		"/usr/lib/ssh/sftp-server",
	};

	(void)o;
	(void)c;
	for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
		if (access(usual[i], X_OK) == 0)
			return xstrdup(usual[i]);
	}
	return xstrdup(usual[0]);
}

#define FIELD(f) offsetof(struct conf, f)

/* clang-format off */
static const struct option options_table[] = {
{ "server", "listen", OPTION_LISTEN, FIELD(server.listen), 0, 0,
	"127.0.0.1:2222", NULL, "host:port, [v6]:port",
	"Addresses that accept SSH connections. Port 0 takes any free one." },
{ "server", "state_dir", OPTION_PATH, FIELD(server.state_dir), 0, 0,
	"/var/lib/berth for root, else $XDG_STATE_HOME/berth",
	option_default_state, "path",
	"Where the database, the host key and the recordings live." },
{ "server", "runtime_dir", OPTION_PATH, FIELD(server.runtime_dir), 0, 0,
	"/run/berth for root, else $XDG_RUNTIME_DIR/berth or STATE/run",
	option_default_runtime, "path",
	"Where the control socket and the sockets of sessions live." },
{ "server", "host_key", OPTION_PATHS, FIELD(server.host_key), 0, 0,
	"STATE/ssh_host_ed25519_key", option_default_below_state, "paths",
	"Private host keys, in order of preference. An absent one is made, "
	"a bad one is never overwritten." },
{ "server", "login_grace", OPTION_TIME, FIELD(server.login_grace_ms),
	100, HOUR, "30s", NULL, "time",
	"Whole time allowed before authentication succeeds." },
{ "server", "max_auth_tries", OPTION_COUNT, FIELD(server.max_auth_tries),
	1, 100, "6", NULL, "count",
	"Failed tries before the connection ends. Asking for \"none\" and "
	"signatures of an accepted key do not count." },
{ "server", "max_connections", OPTION_COUNT, FIELD(server.max_connections),
	1, 1000000, "1000", NULL, "count", "Connections at one time." },
{ "server", "max_startups", OPTION_COUNT, FIELD(server.max_startups),
	1, 1000000, "100", NULL, "count",
	"Unauthenticated connections at one time. Above half of it new ones "
	"are dropped at random, more the nearer it comes." },
{ "server", "max_per_source", OPTION_COUNT, FIELD(server.max_per_source),
	1, 1000000, "16", NULL, "count",
	"Unauthenticated connections of one address." },
{ "server", "admin_group", OPTION_GROUP, FIELD(server.admin_group), 0, 0,
	"none", NULL, "group or none",
	"Its members may use the control socket beside root and berth's own "
	"user." },
{ "server", "keepalive", OPTION_TIME, FIELD(server.keepalive_ms), 0, DAY,
	"30s", NULL, "time", "Interval of probes to a silent client, 0 for none." },
{ "server", "keepalive_count", OPTION_COUNT, FIELD(server.keepalive_count),
	1, 1000, "3", NULL, "count",
	"Unanswered probes before the connection is dropped." },
{ "server", "max_channels", OPTION_COUNT, FIELD(server.max_channels),
	1, 1024, "64", NULL, "count", "Channels at one time on one connection." },
{ "server", "rekey_limit", OPTION_SIZE, FIELD(server.rekey_bytes),
	0, HUGE, "0", NULL, "size",
	"Data that goes over a connection before its keys are changed, 0 for what "
	"the cipher's specification advises. A client may ask for it earlier." },
{ "server", "log_level", OPTION_WORD, FIELD(server.log_level), 0, 0,
	"info", NULL, "err, warn, info, debug", "Least important event to log." },
{ "server", "log_format", OPTION_BOOL, FIELD(server.log_json), 0, 0,
	"text", NULL, "text, json", "Lines of key=value, or of JSON objects." },

{ "access", "authorized_keys", OPTION_PATHS, FIELD(access.authorized_keys),
	0, 0, "STATE/authorized_keys", option_default_below_state, "paths",
	"Keys that may log in, in OpenSSH's format. Read again when changed." },
{ "access", "autocreate", OPTION_BOOL, FIELD(access.autocreate), 0, 0,
	"yes", NULL, "no, yes", "Make an unknown sandbox when it is first used." },
{ "access", "default_role", OPTION_TEXT, FIELD(access.default_role),
	0, 0, "writer", NULL, "owner, writer, viewer",
	"The role of keys that name none." },
{ "access", "allow_sk", OPTION_BOOL, FIELD(access.allow_sk), 0, 0,
	"no", NULL, "no, yes",
	"Accept FIDO keys although the presence of their user is not checked." },
{ "access", "default_template", OPTION_TEMPLATE,
	FIELD(access.default_template), 0, 0, "auto", NULL,
	"auto, native, local or a template",
	"What a new sandbox is made from: auto is native where that works and "
	"else refuses, local separates nothing; more by [template NAME]." },

{ "sandbox", "dir", OPTION_PATH, FIELD(sandbox.dir), 0, 0,
	"/var/lib/berth-sandboxes for root, else STATE/sandboxes",
	option_default_sandboxes, "path",
	"Where the workspaces of sandboxes live." },
{ "sandbox", "snapshots", OPTION_PATH, FIELD(sandbox.snapshots), 0, 0,
	"STATE/snapshots", option_default_below_state, "path",
	"Where snapshots of sandboxes are kept, each a zstd tar. One berthd's own." },
{ "sandbox", "user", OPTION_NAME, FIELD(sandbox.user), 0, 0,
	"berth-box", NULL, "user",
	"Who runs what is in sandboxes when berthd is root." },
{ "sandbox", "uid_range", OPTION_UIDS, FIELD(sandbox.uids), 1000, 4294967293,
	"none", NULL, "first-last or none",
	"For a berthd of root: each new native or local sandbox gets a uid of its "
	"own out of these, and the group of the same number, instead of those of "
	"sandbox.user. Nothing else on the host may use them." },
{ "sandbox", "sftp_server", OPTION_PATH, FIELD(sandbox.sftp_server), 0, 0,
	"/usr/lib/openssh/sftp-server or where else it is",
	option_default_sftp_server, "path",
	"OpenSSH's sftp-server, as the sandbox sees it." },
{ "sandbox", "providers", OPTION_PATHS, FIELD(sandbox.providers), 0, 0,
	"none", NULL, "paths or none",
	"Files with sections [provider NAME] and [template NAME], such as "
	"providers/docker.conf. What this file says of a provider wins." },

{ "sftp", "mode", OPTION_WORD, FIELD(sftp.mode), 0, 0,
	"rw", NULL, "rw, ro, off",
	"File transfer by sftp, and by scp over it: to read and write, only to "
	"read, or not at all. Commands (scp -O, rsync, git) are not meant." },

{ "session", "shell", OPTION_PATH, FIELD(session.shell), 0, 0,
	"/bin/bash, else /bin/sh", option_default_shell, "path",
	"The shell of sessions." },
{ "session", "buffer", OPTION_SIZE, FIELD(session.buffer_bytes),
	16 * KIB, GIB, "1M", NULL, "size",
	"Output that a session keeps for those who attach later." },
{ "session", "replay", OPTION_WORD, FIELD(session.replay), 0, 0,
	"screen", NULL, "screen, raw, none",
	"What a terminal that attaches gets first: the screen as it is now with "
	"its scrollback, the last output as it was, or nothing." },
{ "session", "scrollback", OPTION_COUNT, FIELD(session.scrollback),
	0, 1000000, "10000", NULL, "count",
	"Lines above the screen that a session keeps for those who attach." },
{ "session", "scrollback_bytes", OPTION_SIZE,
	FIELD(session.scrollback_bytes), 0, GIB, "8M", NULL, "size",
	"Memory that those lines may take; the oldest go first." },
{ "session", "answer", OPTION_ANSWER, FIELD(session.answer), 0, 0,
	ANSWER_DEFAULT, NULL,
	"NAME[,fg=#rrggbb][,bg=#rrggbb][,cursor=#rrggbb]",
	"What a program in a session is told when it asks for the name and the "
	"colours of its terminal. The cursor has the foreground's colour unless "
	"said." },
{ "session", "resize", OPTION_RESIZE, FIELD(session.resize), 0, 0,
	"latest", NULL, "latest, smallest, largest, first, fixed COLSxROWS",
	"Whose window decides the size of a shared terminal." },
{ "session", "detach_key", OPTION_DETACH_KEY, FIELD(session.detach_key),
	0, 0, "none", NULL, "none, ctrl-KEY, ctrl-KEY KEY",
	"Key that detaches a client from its session, like ctrl-], or two keys "
	"one after the other, like ctrl-a d: the second is ctrl-KEY, a character "
	"or esc, and the first one typed twice is sent once." },
{ "session", "env_accept", OPTION_GLOBS, FIELD(session.env_accept), 0, 0,
	"TERM,LANG,LC_*,COLORTERM", NULL, "patterns",
	"Variables that a client may set for the session it creates." },
{ "session", "stop_grace", OPTION_TIME, FIELD(session.stop_grace_ms),
	0, HOUR, "5s", NULL, "time",
	"Between HUP, CONT, TERM and KILL, to all processes of a session that "
	"is stopped." },
{ "session", "on_shutdown", OPTION_WORD, FIELD(session.on_shutdown), 0, 0,
	"keep", NULL, "keep, kill", "What becomes of sessions when berthd stops." },
{ "session", "notice", OPTION_WORD, FIELD(session.notice), 0, 0,
	"lost", NULL, "no, lost, yes",
	"Tell who attaches in one line what he got: only when the session is "
	"fresh because the former one of that name was lost, or also that it is "
	"new or who joins a running one." },
{ "session", "max_per_sandbox", OPTION_COUNT,
	FIELD(session.max_per_sandbox), 1, 100000, "100", NULL, "count",
	"Live sessions of one sandbox." },

{ "forward", "allow", OPTION_ENDPOINTS, FIELD(forward.allow), 0, 0,
	"localhost:*,127.0.0.1:*,[::1]:*", NULL, "host:port patterns or none",
	"Where forwarded connections (ssh -L, -D, -W) may go in the network of "
	"the sandbox. * and ? are wildcards; a pattern that begins with ! "
	"forbids, by name and by the address that a name turned out to be." },
{ "forward", "listen", OPTION_ENDPOINTS, FIELD(forward.listen), 0, 0,
	"localhost:*", NULL, "host:port patterns or none",
	"Where clients may listen (ssh -R) in the network of the sandbox. What "
	"is asked for another address than the loopback's is bound to it only "
	"if a pattern says so, to the loopback else; *:8080 lets any address "
	"be bound at that port. Ports that only root may bind stay refused." },

{ "recording", "enabled", OPTION_BOOL, FIELD(recording.enabled), 0, 0,
	"yes", NULL, "no, yes", "Record sessions that have a terminal." },
{ "recording", "exec", OPTION_BOOL, FIELD(recording.exec), 0, 0,
	"no", NULL, "no, yes", "Also record commands without a terminal." },
{ "recording", "input", OPTION_BOOL, FIELD(recording.input), 0, 0,
	"off", NULL, "off, on",
	"Also record what is typed, masked while the terminal does not echo." },
{ "recording", "dir", OPTION_PATH, FIELD(recording.dir), 0, 0,
	"STATE/recordings", option_default_below_state, "path",
	"Where recordings are written." },
{ "recording", "retention", OPTION_TIME, FIELD(recording.retention_ms),
	0, 36500 * DAY, "168h", NULL, "time",
	"Age at which recordings are deleted, 0 to keep them for ever. Those of "
	"live sessions stay." },
{ "recording", "sweep_interval", OPTION_TIME,
	FIELD(recording.sweep_interval_ms), 100, 30 * DAY, "1h", NULL, "time",
	"How often to look for recordings to delete." },
{ "recording", "flush", OPTION_TIME, FIELD(recording.flush_ms),
	1, MINUTE, "1s", NULL, "time",
	"Longest time that output waits before it is written." },
{ "recording", "min_free", OPTION_SIZE, FIELD(recording.min_free_bytes),
	0, HUGE, "256M", NULL, "size",
	"Free space below which on_error applies." },
{ "recording", "max_bytes", OPTION_SIZE, FIELD(recording.max_bytes),
	0, HUGE, "0", NULL, "size", "Limit of one recording, 0 for none." },
{ "recording", "on_error", OPTION_WORD, FIELD(recording.on_error), 0, 0,
	"continue", NULL, "continue, stop",
	"When a recording cannot be written: go on with a marked gap, or stop "
	"the session." },
};
/* clang-format on */

const struct option *
options_all(size_t *n_out)
{
	*n_out = ARRAY_LEN(options_table);
	return options_table;
}

const struct option *
option_find(const char *section, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(options_table); i++) {
		const struct option *o = &options_table[i];

		if (strcmp(o->section, section) == 0 &&
		    strcmp(o->name, name) == 0)
			return o;
	}
	return NULL;
}

bool
option_section_exists(const char *section)
{
	for (size_t i = 0; i < ARRAY_LEN(options_table); i++) {
		if (strcmp(options_table[i].section, section) == 0)
			return true;
	}
	return false;
}

int
option_check_line(const char *text, struct err *e)
{
	size_t n = strlen(text);

	if (n > OPTION_VALUE_MAX)
		return err_set(
		    e, -E2BIG, "longer than %d bytes", OPTION_VALUE_MAX);
	if (n == 0)
		return err_set(
		    e, -EINVAL, "no value; leave the line out for the default");
	for (size_t i = 0; i < n; i++) {
		unsigned char ch = (unsigned char)text[i];

		if (ch < ' ' || ch == 0x7f)
			return err_set(
			    e, -EINVAL, "has a control character in it");
		/* It would begin a comment in the file. */
		if (ch == ';' && i > 0 && text[i - 1] == ' ')
			return err_set(e, -EINVAL, "has \" ;\" in it");
	}
	return 0;
}

int
option_set(const struct option *o, const char *text, const char *dir,
    struct conf *c, struct err *e)
{
	int rc = option_check_line(text, e);

	return rc < 0 ? rc : option_type(o->kind)->parse(o, text, dir, c, e);
}

void
options_set_fixed(struct conf *c)
{
	for (size_t i = 0; i < ARRAY_LEN(options_table); i++) {
		const struct option *o = &options_table[i];

		/* A default that does not parse is our own mistake. */
		if (!o->compute && option_set(o, o->def, "/", c, NULL) < 0)
			abort();
	}
}

int
options_set_computed(struct conf *c, const bool *is_set, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(options_table); i++) {
		const struct option *o = &options_table[i];
		autofree char *text = NULL;
		int rc;

		if (!o->compute || is_set[i])
			continue;
		text = o->compute(o, c);
		rc = option_set(o, text, "/", c, e);
		if (rc < 0)
			return err_wrap(
			    e, rc, "default of %s.%s", o->section, o->name);
	}
	return 0;
}
