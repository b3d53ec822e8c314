/*
 * The provider `local`: a workspace per sandbox under sandbox.dir, run by
 * sandbox.user when berthd is root, else by berthd's own user. Separates
 * nothing but files by uid. Invariants: no path is built from a name that was
 * not validated, no symbolic link is ever followed below sandbox.dir, nothing
 * runs as uid 0. Lives in berthd.
 */
#include "sandbox/local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "conf/conf.h"
#include "sandbox/dial.h"
#include "sandbox/provider.h"

#define LOCAL_DIR_MODE       0711
#define LOCAL_WORKSPACE_MODE 0700
#define LOCAL_DEPTH_MAX      128 /* one descriptor a level */
#define LOCAL_PASSES_MAX     8

static struct {
	char dir[900];
	char user[64], shell[256], sftp_server[256];
	uid_t uid;
	gid_t gid;
	bool must_setuid;
} local;

/* ---- who ------------------------------------------------------------------ */

static int
local_find_user(const char *name, struct err *e)
{
	char space[4096];
	struct passwd pw, *found = NULL;
	int rc = name
		     ? getpwnam_r(name, &pw, space, sizeof(space), &found)
		     : getpwuid_r(geteuid(), &pw, space, sizeof(space), &found);

	if (rc)
		return err_sys(e, -rc, "cannot look up user %s",
		    name ? name : "of this process");
	local.must_setuid = name != NULL;
	if (!found && !name) {
		/* A container's uid without a name is no reason to refuse. */
		snprintf(local.user, sizeof(local.user), "uid%u", geteuid());
		local.uid = geteuid();
		local.gid = getegid();
		return 0;
	}
	if (!found)
		return err_set(e, -ENOENT,
		    "sandbox.user: there is no user %s; make it with "
		    "`useradd --system --user-group --no-create-home "
		    "--shell /usr/sbin/nologin %s`",
		    name, name);
	if (pw.pw_uid == 0)
		return err_set(e, -EPERM,
		    "sandbox.user: %s is uid 0; sandboxes never run as "
		    "root, name another user",
		    name ? name : "this user");
	snprintf(local.user, sizeof(local.user), "%s", pw.pw_name);
	local.uid = pw.pw_uid;
	local.gid = name ? pw.pw_gid : getegid();
	return 0;
}

/* True if the sandboxes' user may pass through directory ST. */
static bool
local_may_enter(const struct stat *st)
{
	if (st->st_uid == local.uid)
		return st->st_mode & S_IXUSR;
	if (st->st_gid == local.gid)
		return st->st_mode & S_IXGRP;
	return st->st_mode & S_IXOTH;
}

/* Says early which directory will keep the sandboxes' user out. */
static void
local_warn_closed_parent(void)
{
	char path[sizeof(local.dir)];
	char *slash;
	struct stat st;

	snprintf(path, sizeof(path), "%s", local.dir);
	while ((slash = strrchr(path, '/')) && slash != path) {
		*slash = '\0';
		if (stat(path, &st) == 0 && !local_may_enter(&st))
			log_warn("sandbox_dir_closed", "user", local.user,
			    "dir", local.dir, "closed", path, NULL);
	}
}

static int
local_init(const struct conf *c, struct err *e)
{
	int rc;

	if (c->sandbox.dir[0] != '/')
		return err_set(e, -EINVAL,
		    "sandbox.dir: %s is not an absolute path", c->sandbox.dir);
	if (strlen(c->sandbox.dir) >= sizeof(local.dir) ||
	    strlen(c->session.shell) >= sizeof(local.shell) ||
	    strlen(c->sandbox.sftp_server) >= sizeof(local.sftp_server))
		return err_set(e, -ENAMETOOLONG,
		    "sandbox.dir, sandbox.sftp_server or session.shell is too "
		    "long");
	snprintf(local.dir, sizeof(local.dir), "%s", c->sandbox.dir);
	snprintf(local.shell, sizeof(local.shell), "%s", c->session.shell);
	snprintf(local.sftp_server, sizeof(local.sftp_server), "%s",
	    c->sandbox.sftp_server);
	rc = local_find_user(geteuid() == 0 ? c->sandbox.user : NULL, e);
	if (rc == 0 && local.must_setuid)
		local_warn_closed_parent();
	return rc;
}

/* ---- workspaces ----------------------------------------------------------- */

static int
local_check_name(const char *name, struct err *e)
{
	char shown[160];

	if (sandbox_name_is_valid(name))
		return 0;
	text_escape(name, strlen(name), shown, sizeof(shown));
	return err_set(e, -EINVAL, "\"%s\" is not a name for a sandbox", shown);
}

/* Opens sandbox.dir, made when absent; refuses one that is not ours alone. */
static int
local_open_dir(struct err *e)
{
	autofree char *parent = xstrdup(local.dir);
	char *slash = strrchr(parent, '/');
	autoclose int fd = -1;
	struct stat st;
	int rc;

	if (slash != parent) {
		*slash = '\0';
		rc = fd_make_dirs(parent, e);
		if (rc < 0)
			return rc;
	}
	fd = fd_open_dir(local.dir, LOCAL_DIR_MODE, e);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_sys(e, -errno, "cannot look at %s", local.dir);
	if ((st.st_mode & 07777) != LOCAL_DIR_MODE &&
	    fchmod(fd, LOCAL_DIR_MODE) < 0)
		return err_sys(e, -errno, "cannot chmod %s", local.dir);
	return take_fd(&fd);
}

/* Opens the workspace NAME below DIR_FD, never through a link. */
static int
local_open_workspace(int dir_fd, const char *name, struct err *e)
{
	int fd = openat(
	    dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int code = -errno;

	if (fd >= 0)
		return fd;
	if (code == -ELOOP || code == -ENOTDIR)
		return err_set(e, -ENOTDIR,
		    "workspace %s/%s is not a directory (a link or file "
		    "stands in its place)",
		    local.dir, name);
	return err_sys(e, code, "cannot open workspace %s/%s", local.dir, name);
}

/*
 * Gives the workspace to its user. One of berthd's own is left from a start
 * that was cut short: nobody else can make entries in sandbox.dir.
 */
static int
local_settle(int fd, const char *name, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, -errno, "cannot look at workspace %s", name);
	if (st.st_uid != local.uid && st.st_uid != geteuid())
		return err_set(e, -EPERM,
		    "workspace %s/%s belongs to uid %u, not to %s (uid %u)",
		    local.dir, name, st.st_uid, local.user, local.uid);
	if ((st.st_mode & 07777) != LOCAL_WORKSPACE_MODE &&
	    fchmod(fd, LOCAL_WORKSPACE_MODE) < 0)
		return err_sys(e, -errno, "cannot chmod workspace %s", name);
	if (st.st_uid != local.uid && fchown(fd, local.uid, local.gid) < 0)
		return err_sys(e, -errno, "cannot chown workspace %s", name);
	return 0;
}

static int
local_provision(const char *name, struct err *e)
{
	autoclose int dir_fd = -1, fd = -1;
	int rc = local_check_name(name, e);

	if (rc < 0)
		return rc;
	dir_fd = local_open_dir(e);
	if (dir_fd < 0)
		return dir_fd;
	if (mkdirat(dir_fd, name, LOCAL_WORKSPACE_MODE) < 0 && errno != EEXIST)
		return err_sys(
		    e, -errno, "cannot make workspace %s/%s", local.dir, name);
	fd = local_open_workspace(dir_fd, name, e);
	return fd < 0 ? fd : local_settle(fd, name, e);
}

static enum sandbox_phase
local_status(const char *name)
{
	autoclose int dir_fd = -1;
	struct stat st;

	if (!sandbox_name_is_valid(name))
		return SANDBOX_GONE;
	dir_fd = open(local.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0 || fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return SANDBOX_GONE;
	return S_ISDIR(st.st_mode) && st.st_uid == local.uid ? SANDBOX_RUNNING
							     : SANDBOX_FAILED;
}

static int
local_exec(const char *name, struct sandbox_place *out, struct err *e)
{
	autoclose int dir_fd = -1, fd = -1;
	struct sandbox_place place = {
		.uid = local.uid,
		.gid = local.gid,
		.must_setuid = local.must_setuid,
	};
	struct stat st;
	int rc = local_check_name(name, e);

	if (rc < 0)
		return rc;
	dir_fd = local_open_dir(e);
	if (dir_fd < 0)
		return dir_fd;
	fd = local_open_workspace(dir_fd, name, e);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || st.st_uid != local.uid)
		return err_set(e, -EPERM,
		    "workspace %s/%s does not belong to %s", local.dir, name,
		    local.user);
	snprintf(
	    place.workspace, sizeof(place.workspace), "%s/%s", local.dir, name);
	snprintf(place.user, sizeof(place.user), "%s", local.user);
	snprintf(place.shell, sizeof(place.shell), "%s", local.shell);
	snprintf(place.sftp_server, sizeof(place.sftp_server), "%s",
	    local.sftp_server);
	place.has_sftp_server = access(local.sftp_server, X_OK) == 0;
	*out = place;
	return 0;
}

/* ---- network ------------------------------------------------------------- */

static struct resolve_as
local_as(void)
{
	return (struct resolve_as){ local.uid, local.gid, local.must_setuid };
}

/* The network is this machine's own, so the sandbox need not be there. */
static struct sandbox_call *
local_dial(const struct sandbox_socket *s, sandbox_socket_fn fn, void *arg)
{
	struct resolve_as as = local_as();

	return dial_connect(s, &as, fn, arg);
}

static struct sandbox_call *
local_listen(const struct sandbox_socket *s, sandbox_socket_fn fn, void *arg)
{
	struct resolve_as as = local_as();

	return dial_listen(s, &as, fn, arg);
}

/* ---- teardown ------------------------------------------------------------- */

static int local_remove_tree(int parent_fd, const char *name, int depth);

/* Opens directory NAME so that its entries can be removed. */
static int
local_open_for_removal(int parent_fd, const char *name, dev_t dev)
{
	autoclose int path_fd = openat(
	    parent_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char proc[64];
	struct stat st;
	int fd;

	if (path_fd < 0 || fstat(path_fd, &st) < 0)
		return -errno;
	/* A mounted file system is not ours to empty. */
	if (st.st_dev != dev)
		return -EXDEV;
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", path_fd);
	if ((st.st_mode & S_IRWXU) != S_IRWXU && chmod(proc, 0700) < 0)
		return -errno;
	fd = openat(path_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Removes the entry NAME of DIR_FD, a tree if it is a directory. */
static int
local_remove_entry(int dir_fd, const char *name, int depth)
{
	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	/* Linux says EISDIR for a directory, POSIX EPERM. */
	if (errno != EISDIR && errno != EPERM)
		return -errno;
	return local_remove_tree(dir_fd, name, depth);
}

static int
local_empty(DIR *d, int depth)
{
	struct dirent *entry;

	for (;;) {
		int rc;

		errno = 0;
		entry = readdir(d); /* NOLINT(concurrency-mt-unsafe) */
		if (!entry)
			return -errno;
		if (strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0)
			continue;
		rc = local_remove_entry(dirfd(d), entry->d_name, depth + 1);
		if (rc < 0)
			return rc;
	}
}

static int
local_remove_tree(int parent_fd, const char *name, int depth)
{
	struct stat st;
	int rc = 0, fd;
	DIR *d;

	if (depth > LOCAL_DEPTH_MAX)
		return -ELOOP;
	if (fstat(parent_fd, &st) < 0)
		return -errno;
	fd = local_open_for_removal(parent_fd, name, st.st_dev);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	d = fdopendir(fd);
	if (!d) {
		rc = -errno;
		close(fd);
		return rc;
	}
	/* Again while something writes into it or readdir missed an entry. */
	for (int pass = 0; pass < LOCAL_PASSES_MAX; pass++) {
		rewinddir(d);
		rc = local_empty(d, depth);
		if (rc < 0)
			break;
		rc = unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 ? -errno : 0;
		if (rc != -ENOTEMPTY && rc != -EEXIST)
			break;
	}
	closedir(d);
	return rc == -ENOENT ? 0 : rc;
}

static int
local_teardown(const char *name, struct err *e)
{
	autoclose int dir_fd = -1;
	int rc = local_check_name(name, e);

	if (rc < 0)
		return rc;
	dir_fd = local_open_dir(e);
	if (dir_fd < 0)
		return dir_fd;
	rc = local_remove_entry(dir_fd, name, 0);
	if (rc == -ELOOP)
		return err_set(e, rc,
		    "workspace %s/%s: a directory is nested deeper than %d",
		    local.dir, name, LOCAL_DEPTH_MAX);
	return rc < 0 ? err_sys(e, rc, "cannot remove workspace %s/%s",
			    local.dir, name)
		      : 0;
}

static const struct sandbox_provider local_provider = {
	.name = "local",
	.description = "a directory of this machine; separates nothing",
	.capabilities = SANDBOX_CAP_EXEC | SANDBOX_CAP_PORT_FORWARD,
	.init = local_init,
	.provision = local_provision,
	.teardown = local_teardown,
	.status = local_status,
	.exec = local_exec,
	.dial = local_dial,
	.listen = local_listen,
};

const struct sandbox_provider *
sandbox_local(void)
{
	return &local_provider;
}
