/*
 * Copying files between a sandbox and whoever asks (berth sandbox cp): a tar
 * in the sandbox, as its user, on the pipes of a private process. So nothing of
 * this host reads or writes the workspace by path. The scripts tell in a first
 * line what is at the path; the rest is the stream.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "conf/conf.h"
#include "sessions/manager/session.h"

/* $1 path, $2 the directory above it: "d", "f" or "n" for nothing there. */
#define COPY_IN                                                          \
	"d=$2; if [ -d \"$1\" ]; then k=d d=$1; "                        \
	"elif [ -e \"$1\" ] || [ -L \"$1\" ]; then k=f; else k=n; fi; "  \
	"cd \"$d\" || exit 1; "                                          \
	"[ -w . ] || { echo \"nobody may write to $d\" >&2; exit 1; }; " \
	"echo $k && exec tar -xpof -"

/* $3 the name in it, $4 not empty: how much it is, roughly for directories. */
#define COPY_OUT                                                        \
	"n=-1; if [ -L \"$1\" ]; then k=f; elif [ -d \"$1\" ]; then "   \
	"k=d; [ -z \"$4\" ] || { n=$(du -sk \"$1/\" 2>/dev/null) || :;" \
	" n=${n%%[!0-9]*}; n=$((${n:-0} * 1024)); }; "                  \
	"elif [ -e \"$1\" ]; then k=f; "                                \
	"[ -z \"$4\" ] || n=$(stat -c %s \"$1\" 2>/dev/null) || n=-1; " \
	"else echo \"there is no $1\" >&2; exit 1; fi; "                \
	"cd \"$2\" && echo $k $n && exec tar -cf - \"$3\""

/* The path as the scripts are told it: never one that looks like an option. */
static char *
copy_path(const char *path)
{
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	if (n == 0)
		return xstrdup(".");
	return xasprintf("%s%.*s", path[0] == '/' ? "" : "./", (int)n, path);
}

/*
 * Splits PATH, of copy_path(), into the directory and "./NAME". A name that is
 * none of its own, `.` and `..`, stands for what is in it.
 */
static void
copy_split(const char *path, char **dir_out, char **name_out)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0) {
		*dir_out = xstrdup(path);
		*name_out = xstrdup(".");
		return;
	}
	*dir_out = slash == path ? xstrdup("/")
				 : xstrndup(path, (size_t)(slash - path));
	*name_out = xasprintf("./%s", name);
}

static void
copy_fill(struct request *r)
{
	autofree char *path = copy_path(r->copy_path);
	char *dir, *name;
	char *argv[] = { (char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
		(char *)(uintptr_t)(r->copies_in ? COPY_IN : COPY_OUT),
		(char *)(uintptr_t) "berth-cp", path, NULL, NULL,
		(char *)(uintptr_t)(r->wants_total ? "y" : ""), NULL };

	copy_split(path, &dir, &name);
	argv[5] = dir;
	argv[6] = name;
	r->spec.argv = strv_copy(argv);
	free(dir);
	free(name);
}

static void
copy_begin(struct request *r)
{
	struct launch_spec spec = {
		.sandbox = r->sandbox,
		.name = "",
		.flags = LAUNCH_BOUND,
		.argv = r->spec.argv,
		.copy_path = r->copy_path,
		.copies_in = r->copies_in,
	};

	if (!box_find(r->m, r->sandbox))
		request_fail(
		    r, MANAGER_NOT_FOUND, "there is no sandbox %s", r->sandbox);
	else if (attach_box(r, copy_begin) && attach_may_transfer(r))
		attach_launch(r, &spec);
}

/* The rules of sftp hold here too. */
static const char *
copy_refusal(const struct request *r)
{
	const struct conf *c = r->m->conf;

	if (!attach_may_type(r))
		return "this key may only watch, not copy files";
	if (c->sftp.mode == CONF_SFTP_OFF)
		return "file transfer is switched off here";
	if (c->sftp.mode == CONF_SFTP_RO && r->copies_in)
		return "files may be read here, not written";
	return NULL;
}

struct request *
manager_copy(struct manager *m, const struct principal *who,
    const struct manager_copy *c, manager_answer_fn fn, void *arg)
{
	struct request *r = request_new(m, who, fn, arg);
	const char *why;

	r->wants_link = r->tells_exec = true;
	r->viewer.flags = VIEWER_MAY_TYPE | VIEWER_REPLAY | VIEWER_FOLLOW;
	r->copies_in = c->is_in;
	r->wants_total = c->wants_total;
	r->copy_path = xstrdup(c->path);
	copy_fill(r);
	if (!attach_may(r, c->sandbox, NULL))
		return r;
	why = copy_refusal(r);
	if (why)
		request_fail(r, MANAGER_REFUSED, "%s", why);
	else
		copy_begin(r);
	return r;
}

void
copy_started(struct session *s, const struct launch_spec *spec)
{
	struct store_transfer row = {
		.session_id = s->id,
		.path = spec->copy_path,
		.is_in = spec->copies_in,
		.started_ms = s->created_ms,
		.status = "open",
	};

	if (!spec->copy_path)
		return;
	s->transfer.is_possible = true;
	s->transfer.copy_path = xstrdup(spec->copy_path);
	s->transfer.copies_in = spec->copies_in;
	store_transfer_insert(s->m->store, &row);
}

void
copy_ended(struct session *s, const struct store_session_end *end)
{
	const struct transfer *t = &s->transfer;
	struct store_transfer row = {
		.session_id = s->id,
		.path = t->copy_path,
		.is_in = t->copies_in,
		.bytes = t->copies_in ? s->stats.bytes_in : s->stats.bytes_out,
		.finished_ms = end->exited_ms,
		.status = end->status != SESSION_EXITED ? "cut"
			  : end->exit_code == 0         ? "done"
							: "failed",
	};

	if (!t->copy_path)
		return;
	store_transfer_finish(s->m->store, &row);
	transfer_audit_copy(s, row.status, row.is_in, row.bytes);
}
