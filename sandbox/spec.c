/*
 * What the configuration says about every sandbox alike; see provider.h. Lives
 * in berthd: accounts are looked up here and nowhere else.
 */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "conf/conf.h"
#include "sandbox/provider.h"

static int
spec_find_user(struct sandbox_spec *s, const char *name, struct err *e)
{
	char space[4096];
	struct passwd pw, *found = NULL;
	int rc = name
		     ? getpwnam_r(name, &pw, space, sizeof(space), &found)
		     : getpwuid_r(geteuid(), &pw, space, sizeof(space), &found);

	if (rc)
		return err_sys(e, -rc, "cannot look up user %s",
		    name ? name : "of this process");
	s->must_setuid = name != NULL;
	if (!found && !name) {
		/* A container's uid without a name is no reason to refuse. */
		snprintf(s->user, sizeof(s->user), "uid%u", geteuid());
		s->uid = geteuid();
		s->gid = getegid();
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
	snprintf(s->user, sizeof(s->user), "%s", pw.pw_name);
	s->uid = pw.pw_uid;
	s->gid = name ? pw.pw_gid : getegid();
	return 0;
}

/* True if the sandboxes' user may pass through directory ST. */
static bool
spec_may_enter(const struct sandbox_spec *s, const struct stat *st)
{
	if (st->st_uid == s->uid)
		return st->st_mode & S_IXUSR;
	if (st->st_gid == s->gid)
		return st->st_mode & S_IXGRP;
	return st->st_mode & S_IXOTH;
}

/* Says early which directory will keep the sandboxes' user out. */
static void
spec_warn_closed_parent(const struct sandbox_spec *s)
{
	char path[sizeof(s->dir)];
	char *slash;
	struct stat st;

	snprintf(path, sizeof(path), "%s", s->dir);
	while ((slash = strrchr(path, '/')) && slash != path) {
		*slash = '\0';
		if (stat(path, &st) == 0 && !spec_may_enter(s, &st))
			log_warn("sandbox_dir_closed", "user", s->user, "dir",
			    s->dir, "closed", path, NULL);
	}
}

/* What sandboxes have of their own must not be anybody else's. */
static int
spec_check_uids(
    const struct sandbox_spec *s, const struct conf_uids *range, struct err *e)
{
	if (s->uid < range->first || s->uid > range->last)
		return 0;
	return err_set(e, -EINVAL,
	    "sandbox.uid_range: %s (sandbox.user) has the uid %u out of it",
	    s->user, s->uid);
}

int
sandbox_spec_init(struct sandbox_spec *out, const struct conf *c, struct err *e)
{
	struct sandbox_spec s = { .uid = 0 };
	int rc;

	if (c->sandbox.dir[0] != '/')
		return err_set(e, -EINVAL,
		    "sandbox.dir: %s is not an absolute path", c->sandbox.dir);
	if (strlen(c->sandbox.dir) >= sizeof(s.dir) ||
	    strlen(c->session.shell) >= sizeof(s.shell) ||
	    strlen(c->sandbox.sftp_server) >= sizeof(s.sftp_server))
		return err_set(e, -ENAMETOOLONG,
		    "sandbox.dir, sandbox.sftp_server or session.shell is too "
		    "long");
	snprintf(s.dir, sizeof(s.dir), "%s", c->sandbox.dir);
	snprintf(s.shell, sizeof(s.shell), "%s", c->session.shell);
	snprintf(
	    s.sftp_server, sizeof(s.sftp_server), "%s", c->sandbox.sftp_server);
	rc = spec_find_user(&s, geteuid() == 0 ? c->sandbox.user : NULL, e);
	if (rc == 0 && s.must_setuid) {
		spec_warn_closed_parent(&s);
		rc = spec_check_uids(&s, &c->sandbox.uids, e);
	}
	if (rc == 0)
		*out = s;
	return rc;
}
