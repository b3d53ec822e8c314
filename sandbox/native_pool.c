/*
 * Native sandboxes that wait for a name. A member's files are in a directory
 * beside the workspaces, named by its id: the record, a lock while somebody
 * works on it, and instead of the record one named `taken` while it is claimed.
 * A claim ends with the rename of that to the record of the sandbox, so that a
 * process is always one's or the other's, whoever is killed in between; what has
 * no record yet dies with its maker. Both programs.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "sandbox/native.h"
#include "sandbox/native_record.h"
#include "sandbox/provider.h"
#include "sandbox/workspace.h"

/* No name of a sandbox begins with a dot. */
#define POOL_DIR   "/.pool"
#define POOL_TAKEN ".%s.taken"
#define POOL_FRESH NATIVE_RECORD ".new"

/* The spec of the member ID: that of a sandbox in another directory. */
static int
pool_member(const struct sandbox_spec *s, const char *id,
    struct sandbox_spec *out, struct err *e)
{
	if (strlen(s->dir) + sizeof(POOL_DIR) > sizeof(out->dir))
		return err_set(e, -ENAMETOOLONG, "sandbox.dir is too long");
	if (!sandbox_name_is_valid(id))
		return err_set(e, -EINVAL, "that is no member of a pool");
	*out = *s;
	snprintf(out->dir, sizeof(out->dir), "%s" POOL_DIR, s->dir);
	snprintf(out->name, sizeof(out->name), "%s", id);
	return 0;
}

/* The path of a file of S, whose name is made by the format FILE. */
#define POOL_PATH(s, file) xasprintf("%s/" file, (s)->dir, (s)->name)

int
native_fill(
    const struct sandbox_spec *s, struct sandbox_made *out, struct err *e)
{
	struct sandbox_spec m;
	int rc = pool_member(s, s->name, &m, e), lock_fd;

	if (rc < 0)
		return rc;
	/* The lock makes its directory, which may be in one to be made. */
	rc = workspace_open_dir(s, e);
	if (rc < 0)
		return rc;
	close(rc);
	lock_fd = native_record_lock(&m, e);
	if (lock_fd < 0)
		return lock_fd;
	rc = native_make(&m, -1, out, e);
	native_record_unlock(&m, lock_fd);
	return rc;
}

/* ---- claiming -------------------------------------------------------------- */

static int
pool_claim_locked(const struct sandbox_spec *s, const struct sandbox_spec *m,
    int workspace_fd, struct sandbox_made *out, struct err *e)
{
	struct native_record r;
	autoclose int pidfd = native_open(m, &r);
	autofree char *idle = POOL_PATH(m, NATIVE_RECORD);
	autofree char *taken = POOL_PATH(m, POOL_TAKEN);
	autofree char *own = POOL_PATH(s, NATIVE_RECORD);
	int rc;

	if (pidfd < 0)
		return err_set(e, pidfd, "it does not run");
	if (rename(idle, taken) < 0)
		return err_sys(e, -errno, "cannot take %s", idle);
	rc = native_claim(s, pidfd, workspace_fd, e);
	if (rc == 0 && rename(taken, own) < 0)
		rc = err_sys(e, -errno, "cannot write %s", own);
	if (rc < 0)
		return rc;
	snprintf(out->missing, sizeof(out->missing), "%s", r.missing);
	out->is_claimed = true;
	return 0;
}

bool
native_pool_claim(
    const struct sandbox_spec *s, int workspace_fd, struct sandbox_made *out)
{
	struct err e = { .code = 0 };
	struct sandbox_spec m;
	int rc, lock_fd;

	if (!s->member[0])
		return false;
	rc = pool_member(s, s->member, &m, &e);
	lock_fd = rc < 0 ? rc : native_record_lock(&m, &e);
	if (lock_fd >= 0) {
		(void)pool_claim_locked(s, &m, workspace_fd, out, &e);
		native_record_unlock(&m, lock_fd);
	}
	if (!out->is_claimed)
		log_warn("member_not_claimed", "sandbox", s->name, "member",
		    s->member, "why", e.msg, NULL);
	return out->is_claimed;
}

/* ---- removing -------------------------------------------------------------- */

/*
 * Without a record it was killed while it was made, or is a sandbox's by now:
 * only that one has somebody in the groups.
 */
static int
pool_drain_locked(const struct sandbox_spec *m, struct err *e)
{
	autofree char *idle = POOL_PATH(m, NATIVE_RECORD);
	autofree char *taken = POOL_PATH(m, POOL_TAKEN);
	autofree char *fresh = POOL_PATH(m, POOL_FRESH);
	int rc;

	if (rename(taken, idle) < 0 && errno != ENOENT)
		return err_sys(e, -errno, "cannot rename %s", taken);
	rc = native_end(m, e);
	if (rc < 0)
		return rc;
	unlink(fresh);
	native_forget_groups(m);
	return 0;
}

static int
pool_drain(const struct sandbox_spec *s, const char *id, struct err *e)
{
	struct sandbox_spec m;
	int rc = pool_member(s, id, &m, e), lock_fd;

	if (rc < 0)
		return rc;
	lock_fd = native_record_lock(&m, e);
	if (lock_fd < 0)
		return lock_fd;
	rc = pool_drain_locked(&m, e);
	native_record_unlock(&m, lock_fd);
	return rc;
}

int
native_drain(const struct sandbox_spec *s, const char *ids, struct err *e)
{
	autofree char *copy = xstrdup(ids);
	char *id, *rest = copy;
	int rc = 0;

	while ((id = strsep(&rest, " "))) {
		struct err one = { .code = 0 };

		if (*id && pool_drain(s, id, &one) < 0 && rc == 0)
			rc = err_set(e, one.code, "member %s: %s", id, one.msg);
	}
	return rc;
}

/* ---- looking --------------------------------------------------------------- */

void
native_members(const struct sandbox_spec *s,
    void (*fn)(const char *id, void *arg), void *arg)
{
	autofree char *path = xasprintf("%s" POOL_DIR, s->dir);
	char id[SANDBOX_NAME_SIZE];
	const struct dirent *entry;
	DIR *d = opendir(path);

	if (!d)
		return;
	while ((entry = readdir(d))) { /* NOLINT(concurrency-mt-unsafe) */
		const char *name = entry->d_name;
		size_t n = name[0] == '.' ? strcspn(name + 1, ".") : 0;

		if (n == 0 || n >= sizeof(id))
			continue;
		snprintf(id, sizeof(id), "%.*s", (int)n, name + 1);
		fn(id, arg);
	}
	closedir(d);
}

/* Whoever left a lock did not get done. */
int
native_watch_member(const struct sandbox_spec *s)
{
	autofree char *lock = NULL;
	struct native_record r;
	struct sandbox_spec m;

	if (pool_member(s, s->name, &m, NULL) < 0)
		return -1;
	lock = POOL_PATH(&m, NATIVE_LOCK);
	if (access(lock, F_OK) == 0)
		return -1;
	return native_open(&m, &r);
}

bool
native_was_member(const struct sandbox_spec *s)
{
	struct native_record r;
	autoclose int pidfd = native_open(s, &r);

	return pidfd >= 0 && r.member[0];
}
