/*
 * What is said about a file of an archive; see settle.h. In berth-archive.
 */
#include "sandbox/archive/settle.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/mem.h"

/* Attributes that processes of a sandbox may set, and no others. */
static const char *const settle_attributes[] = { "user.",
	"system.posix_acl_access", "system.posix_acl_default" };

static uid_t
settle_uid(const struct settle *s, struct archive_entry *entry)
{
	uid_t uid = (uid_t)archive_entry_uid(entry);

	return uid == s->former_uid ? s->owner.uid : uid;
}

static gid_t
settle_gid(const struct settle *s, struct archive_entry *entry)
{
	gid_t gid = (gid_t)archive_entry_gid(entry);

	return gid == s->former_gid ? s->owner.gid : gid;
}

/* Nobody but root can give away; then all is its own. */
static int
settle_own(const struct settle *s, int dir_fd, const char *name,
    struct archive_entry *entry)
{
	if (fchownat(dir_fd, name, settle_uid(s, entry), settle_gid(s, entry),
		AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH) < 0 &&
	    geteuid() == 0)
		return -errno;
	return 0;
}

static int
settle_mode(
    const struct settle *s, const char *proc, struct archive_entry *entry)
{
	mode_t mode = archive_entry_mode(entry) & 07777;

	if (settle_uid(s, entry) != s->owner.uid)
		mode &= ~(mode_t)(S_ISUID | S_ISGID);
	if (settle_gid(s, entry) != s->owner.gid)
		mode &= ~(mode_t)S_ISGID;
	return chmod(proc, mode) < 0 ? -errno : 0;
}

static bool
settle_may_set(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(settle_attributes); i++) {
		const char *s = settle_attributes[i];
		size_t n = strlen(s);

		if (s[n - 1] == '.' ? strncmp(name, s, n) == 0
				    : strcmp(name, s) == 0)
			return true;
	}
	return false;
}

/* A file system without them has lost nothing that it could hold. */
static int
settle_set_attributes(const char *proc, struct archive_entry *entry)
{
	const char *name;
	const void *value;
	size_t n;

	archive_entry_xattr_reset(entry);
	while (
	    archive_entry_xattr_next(entry, &name, &value, &n) == ARCHIVE_OK) {
		if (settle_may_set(name) &&
		    setxattr(proc, name, value, n, 0) < 0 &&
		    errno != EOPNOTSUPP)
			return -errno;
	}
	return 0;
}

static int
settle_time(
    int dir_fd, const char *name, int flags, struct archive_entry *entry)
{
	struct timespec t[2] = {
		{ .tv_nsec = UTIME_OMIT },
		{ archive_entry_mtime(entry), archive_entry_mtime_nsec(entry) },
	};

	return utimensat(dir_fd, name, t, flags) < 0 ? -errno : 0;
}

/* The time is last. */
int
settle_fd(const struct settle *s, int fd, struct archive_entry *entry)
{
	char proc[32];
	int rc;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	rc = settle_own(s, fd, "", entry);
	if (rc == 0)
		rc = settle_mode(s, proc, entry);
	if (rc == 0)
		rc = settle_set_attributes(proc, entry);
	return rc < 0 ? rc : settle_time(AT_FDCWD, proc, 0, entry);
}

int
settle_link(const struct settle *s, int dir_fd, const char *name,
    struct archive_entry *entry)
{
	int rc = settle_own(s, dir_fd, name, entry);

	return rc < 0 ? rc
		      : settle_time(dir_fd, name, AT_SYMLINK_NOFOLLOW, entry);
}
