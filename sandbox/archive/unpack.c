/*
 * From an archive to a directory; see archive.h. In berth-archive. The kernel
 * resolves every path below the directory and refuses whatever leads through a
 * link or out of it; nothing that is there is ever written again, so that an
 * entry cannot change what a former one made.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"
#include "sandbox/archive.h"
#include "sandbox/archive/hash.h"
#include "sandbox/archive/settle.h"
#include "sandbox/provider.h"
#include "sandbox/task.h"
#include "sandbox/workspace.h"

#define UNPACK_READ      (256U << 10)
#define UNPACK_SHOWN_MAX 100

struct unpack {
	crypto_generichash_state hash;
	struct archive *a;
	int top_fd, in_fd;
	struct settle settle;
	uint64_t left_bytes; /* that contents may still have */
	bool has_top;
	struct list dirs; /* struct unpack_dir, in their order */
	char *buffer;
	struct sandbox_copied count;
	struct err *e;
};

/* What is said about a directory is done when all is in it. */
struct unpack_dir {
	struct list node;
	struct archive_entry *entry;
	char *path;
};

static la_ssize_t
unpack_read(struct archive *a, void *arg, const void **out)
{
	struct unpack *u = arg;
	ssize_t n;

	do
		n = read(u->in_fd, u->buffer, UNPACK_READ);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		archive_set_error(a, errno, "read failed");
	if (n > 0) {
		crypto_generichash_update(
		    &u->hash, (const uint8_t *)u->buffer, (size_t)n);
		u->count.bytes += (uint64_t)n;
	}
	*out = u->buffer;
	return n;
}

static int
unpack_bad(struct unpack *u, const char *path, const char *why)
{
	return err_set(u->e, -EBADMSG, "the snapshot holds \"%.*s\", which %s",
	    UNPACK_SHOWN_MAX, path, why);
}

static int
unpack_failed(struct unpack *u, int code, const char *path)
{
	if (code == -ELOOP || code == -EXDEV || code == -ENOTDIR ||
	    code == -EEXIST || code == -ENOENT)
		return unpack_bad(u, path, "has no place of its own");
	return err_sys(
	    u->e, code, "cannot restore \"%.*s\"", UNPACK_SHOWN_MAX, path);
}

static int
unpack_damaged(struct unpack *u)
{
	return err_set(u->e, -EBADMSG, "the snapshot is damaged: %s",
	    archive_error_string(u->a));
}

/* ---- paths ------------------------------------------------------------------ */

/* "./a//b/" as "a/b", the top as ""; NULL for what has no such form. */
static char *
unpack_path(const char *name)
{
	size_t n = 0;
	char *path;

	if (!name || !*name || *name == '/')
		return NULL;
	path = xcalloc(1, strlen(name) + 1);
	while (*name) {
		size_t len = strcspn(name, "/");

		if (len == 2 && memcmp(name, "..", 2) == 0) {
			free(path);
			return NULL;
		}
		if (len > 0 && !(len == 1 && *name == '.')) {
			if (n)
				path[n++] = '/';
			memcpy(path + n, name, len);
			n += len;
		}
		name += len;
		name += *name == '/';
	}
	return path;
}

/* Opens PATH below the top, through no link; "" is the top. */
static int
unpack_open(const struct unpack *u, const char *path, uint64_t flags)
{
	struct open_how how = { .flags = flags | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			   RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV };
	int fd = (int)syscall(
	    SYS_openat2, u->top_fd, *path ? path : ".", &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/* How many directories PATH is below the top. */
static int
unpack_depth(const char *path)
{
	int n = 0;

	while ((path = strchr(path, '/'))) {
		path++;
		n++;
	}
	return n;
}

/* Opens the directory of PATH and leaves the last name in *NAME_OUT. */
static int
unpack_parent(const struct unpack *u, const char *path, const char **name_out)
{
	const char *slash = strrchr(path, '/');
	autofree char *dir =
	    slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup("");

	*name_out = slash ? slash + 1 : path;
	return unpack_open(u, dir, O_PATH | O_DIRECTORY);
}

/* ---- kinds ------------------------------------------------------------------ */

static int
unpack_write(struct unpack *u, int fd, const char *data, size_t n, off_t at)
{
	if (n > u->left_bytes)
		return err_set(u->e, -EFBIG,
		    "the snapshot holds more than the workspace may "
		    "(workspace_size)");
	u->left_bytes -= n;
	while (n > 0) {
		ssize_t did = pwrite(fd, data, n, at);

		if (did < 0 && errno == EINTR)
			continue;
		if (did < 0)
			return -errno;
		data += did;
		n -= (size_t)did;
		at += did;
	}
	return task_check(u->e);
}

/* Where there is nothing in the archive there is a hole. */
static int
unpack_contents(struct unpack *u, int fd, struct archive_entry *entry)
{
	const void *data;
	la_int64_t at;
	size_t n;
	int rc;

	for (;;) {
		rc = archive_read_data_block(u->a, &data, &n, &at);
		if (rc == ARCHIVE_EOF)
			break;
		if (rc != ARCHIVE_OK)
			return unpack_damaged(u);
		rc = unpack_write(u, fd, data, n, at);
		if (rc < 0)
			return rc;
	}
	return ftruncate(fd, archive_entry_size(entry)) < 0 ? -errno : 0;
}

static int
unpack_file(
    struct unpack *u, int dir_fd, const char *name, struct archive_entry *entry)
{
	autoclose int fd = openat(dir_fd, name,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int rc = fd < 0 ? -errno : unpack_contents(u, fd, entry);

	return rc < 0 ? rc : settle_fd(&u->settle, fd, entry);
}

static int
unpack_fifo(
    struct unpack *u, int dir_fd, const char *name, struct archive_entry *entry)
{
	autoclose int fd = -1;

	if (mkfifoat(dir_fd, name, 0600) < 0)
		return -errno;
	fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : settle_fd(&u->settle, fd, entry);
}

static int
unpack_symlink(
    struct unpack *u, int dir_fd, const char *name, struct archive_entry *entry)
{
	const char *target = archive_entry_symlink(entry);

	if (!target || !*target)
		return -EEXIST;
	if (symlinkat(target, dir_fd, name) < 0)
		return -errno;
	return settle_link(&u->settle, dir_fd, name, entry);
}

static int
unpack_hardlink(
    struct unpack *u, int dir_fd, const char *name, const char *target)
{
	autofree char *path = unpack_path(target);
	autoclose int from_fd = -1;
	const char *from;

	if (!path || !*path)
		return -EEXIST;
	from_fd = unpack_parent(u, path, &from);
	if (from_fd < 0)
		return from_fd;
	return linkat(from_fd, from, dir_fd, name, 0) < 0 ? -errno : 0;
}

static int
unpack_directory(struct unpack *u, int dir_fd, const char *name,
    const char *path, struct archive_entry *entry)
{
	struct unpack_dir *d;

	if (*path && mkdirat(dir_fd, name, 0700) < 0)
		return -errno;
	d = xcalloc(1, sizeof(*d));
	d->entry = archive_entry_clone(entry);
	d->path = xstrdup(path);
	list_append(&u->dirs, &d->node);
	return d->entry ? 0 : -ENOMEM;
}

/* ---- the archive ------------------------------------------------------------ */

static int
unpack_make(struct unpack *u, const char *path, struct archive_entry *entry)
{
	const char *name, *target = archive_entry_hardlink(entry);
	autoclose int dir_fd = unpack_parent(u, path, &name);

	if (dir_fd < 0)
		return dir_fd;
	if (target)
		return unpack_hardlink(u, dir_fd, name, target);
	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		return unpack_file(u, dir_fd, name, entry);
	case AE_IFDIR:
		return unpack_directory(u, dir_fd, name, path, entry);
	case AE_IFLNK:
		return unpack_symlink(u, dir_fd, name, entry);
	case AE_IFIFO:
		return unpack_fifo(u, dir_fd, name, entry);
	default:
		return unpack_bad(u, path, "is a device");
	}
}

/* The first is the top, which says who owned it all. */
static int
unpack_top(struct unpack *u, const char *path, struct archive_entry *entry)
{
	if (*path || archive_entry_filetype(entry) != AE_IFDIR ||
	    archive_entry_hardlink(entry))
		return err_set(
		    u->e, -EBADMSG, "the snapshot is not one of a workspace");
	u->has_top = true;
	u->settle.former_uid = (uid_t)archive_entry_uid(entry);
	u->settle.former_gid = (gid_t)archive_entry_gid(entry);
	return unpack_directory(u, -1, "", "", entry);
}

static int
unpack_entry(struct unpack *u, struct archive_entry *entry)
{
	const char *name = archive_entry_pathname(entry);
	autofree char *path = unpack_path(name);
	int rc;

	if (!path)
		return unpack_bad(
		    u, name ? name : "", "leads out of the workspace");
	u->count.files++;
	if (!u->has_top)
		return unpack_top(u, path, entry);
	if (!*path)
		return unpack_bad(u, name, "is there already");
	/* Nobody could remove it. */
	if (unpack_depth(path) >= WORKSPACE_DEPTH_MAX)
		return unpack_bad(u, path, "is nested too deep");
	rc = unpack_make(u, path, entry);
	if (rc == 0)
		rc = task_check(u->e);
	if (rc == 0 || (u->e && u->e->code == rc))
		return rc;
	return unpack_failed(u, rc, path);
}

static int
unpack_entries(struct unpack *u)
{
	struct archive_entry *entry;
	int rc = 0;

	while (rc == 0) {
		int code = archive_read_next_header(u->a, &entry);

		if (code == ARCHIVE_EOF)
			break;
		if (code != ARCHIVE_OK && code != ARCHIVE_WARN)
			return unpack_damaged(u);
		rc = unpack_entry(u, entry);
		task_progress_files(u->count.files, u->count.bytes);
	}
	if (rc == 0 && !u->has_top)
		rc = err_set(u->e, -EBADMSG, "the snapshot is empty");
	return rc;
}

/* Directories, those within others first; at last the top. */
static int
unpack_directories(struct unpack *u)
{
	int rc = 0;

	while (rc == 0 && !list_empty(&u->dirs)) {
		struct unpack_dir *d =
		    list_entry(u->dirs.prev, struct unpack_dir, node);
		autoclose int fd =
		    unpack_open(u, d->path, O_RDONLY | O_DIRECTORY);

		rc = fd < 0 ? fd : settle_fd(&u->settle, fd, d->entry);
		if (rc < 0)
			unpack_failed(u, rc, *d->path ? d->path : ".");
		list_remove(&d->node);
		archive_entry_free(d->entry);
		free(d->path);
		free(d);
	}
	return rc;
}

static void
unpack_release(struct unpack *u)
{
	while (!list_empty(&u->dirs)) {
		struct unpack_dir *d =
		    list_entry(u->dirs.next, struct unpack_dir, node);

		list_remove(&d->node);
		archive_entry_free(d->entry);
		free(d->path);
		free(d);
	}
	archive_read_free(u->a);
	free(u->buffer);
}

/* What the library had no need to see is a part of the file too. */
static void
unpack_rest(struct unpack *u)
{
	const void *data;

	while (u->a && unpack_read(u->a, u, &data) > 0)
		;
}

int
archive_unpack(int dir_fd, int in_fd, const struct archive_owner *owner,
    struct sandbox_copied *out, struct err *e)
{
	struct err mine = { .code = 0 };
	struct unpack u = {
		.top_fd = dir_fd,
		.in_fd = in_fd,
		.settle = { .owner = *owner },
		.left_bytes = owner->max_bytes ? owner->max_bytes : UINT64_MAX,
		.buffer = xmalloc(UNPACK_READ),
		.e = e ? e : &mine,
	};
	int rc;

	list_init(&u.dirs);
	crypto_generichash_init(&u.hash, NULL, 0, ARCHIVE_HASH);
	u.e->code = 0;
	u.a = archive_read_new();
	if (!u.a)
		rc = err_set(e, -ENOMEM, "no memory for an archive");
	else if (archive_read_support_format_tar(u.a) != ARCHIVE_OK ||
		 archive_read_support_filter_zstd(u.a) != ARCHIVE_OK ||
		 archive_read_open(u.a, &u, NULL, unpack_read, NULL) !=
		     ARCHIVE_OK)
		rc = unpack_damaged(&u);
	else
		rc = unpack_entries(&u);
	if (rc == 0)
		rc = unpack_directories(&u);
	unpack_rest(&u);
	archive_hash(&u.hash, u.count.hash);
	if (rc == 0)
		*out = u.count;
	unpack_release(&u);
	return rc;
}
