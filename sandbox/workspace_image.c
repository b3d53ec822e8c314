/* Workspaces of a size; see workspace_image.h. */
#include "sandbox/workspace_image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "sandbox/e2fs.h"
#include "sandbox/loop.h"
#include "sandbox/provider.h"
#include "sandbox/task.h"
#include "sandbox/workspace.h"

#define IMAGE_NAME_SIZE (SANDBOX_NAME_SIZE + 16)
/* What a file system may have less than its file: a last, small group. */
#define IMAGE_SLACK   (4U << 20)
#define IMAGE_FREE_MS 5000
#define IMAGE_LOOK_NS 10000000

static void
image_name(
    const struct sandbox_spec *s, const char *suffix, char *out, size_t size)
{
	snprintf(out, size, ".%s.img%s", s->name, suffix);
}

static bool
image_is_mounted(int dir_fd, int fd)
{
	struct stat above, st;

	return fstat(dir_fd, &above) == 0 && fstat(fd, &st) == 0 &&
	       above.st_dev != st.st_dev;
}

static bool
image_is_empty_dir(int fd)
{
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = again < 0 ? NULL : fdopendir(again);
	int n = 0;

	if (!d) {
		if (again >= 0)
			close(again);
		return false;
	}
	while (readdir(d)) /* NOLINT(concurrency-mt-unsafe) */
		n++;
	closedir(d);
	return n <= 2;
}

/* ---- making ---------------------------------------------------------------- */

int
workspace_image_make(
    const struct sandbox_spec *s, int dir_fd, const char *name, uint64_t bytes)
{
	autofree char *path = xasprintf("%s/%s", s->dir, name);
	autoclose int fd = openat(dir_fd, name,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 ||
	    ftruncate(fd, (off_t)bytes) < 0 ||
	    e2fs_make(path, s->uid, s->gid) < 0) {
		unlinkat(dir_fd, name, 0);
		return -EIO;
	}
	return take_fd(&fd);
}

/* Under another name until it is whole. The image's descriptor or an errno. */
static int
image_make(const struct sandbox_spec *s, int dir_fd)
{
	char fresh[IMAGE_NAME_SIZE], name[IMAGE_NAME_SIZE];
	autoclose int fd = -1;

	image_name(s, ".new", fresh, sizeof(fresh));
	image_name(s, "", name, sizeof(name));
	unlinkat(dir_fd, fresh, 0);
	fd = workspace_image_make(s, dir_fd, fresh, s->workspace_bytes);
	if (fd < 0)
		return fd;
	if (renameat(dir_fd, fresh, dir_fd, name) < 0) {
		unlinkat(dir_fd, fresh, 0);
		return -EIO;
	}
	return take_fd(&fd);
}

/* ---- mounting -------------------------------------------------------------- */

/* Over what WORKSPACE_FD names. */
static int
image_mount(int image_fd, int workspace_fd)
{
	char device[32], target[32];
	unsigned number = 0;
	autoclose int loop_fd = loop_attach(image_fd, &number);

	if (loop_fd < 0)
		return loop_fd;
	snprintf(device, sizeof(device), "/dev/loop%u", number);
	snprintf(target, sizeof(target), "/proc/self/fd/%d", workspace_fd);
	if (mount(device, target, "ext4", MS_NOSUID | MS_NODEV, NULL) < 0)
		return -errno;
	return 0;
}

int
workspace_image_root(int image_fd)
{
	char device[32];
	unsigned number = 0;
	autoclose int loop_fd = loop_attach(image_fd, &number);
	autoclose int fs_fd = -1, mount_fd = -1;
	int fd;

	if (loop_fd < 0)
		return loop_fd;
	snprintf(device, sizeof(device), "/dev/loop%u", number);
	fs_fd = fsopen("ext4", FSOPEN_CLOEXEC);
	if (fs_fd < 0 ||
	    fsconfig(fs_fd, FSCONFIG_SET_STRING, "source", device, 0) < 0 ||
	    fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	mount_fd = fsmount(
	    fs_fd, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (mount_fd < 0)
		return -errno;
	fd = openat(mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlinkat(fd, "lost+found", AT_REMOVEDIR);
	return fd;
}

int
workspace_image_open(
    const struct sandbox_spec *s, int dir_fd, uint64_t *bytes_out)
{
	char name[IMAGE_NAME_SIZE];
	autoclose int fd = -1;
	struct stat st;

	image_name(s, "", name, sizeof(name));
	fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	*bytes_out = (uint64_t)st.st_size;
	return take_fd(&fd);
}

/* Takes it from the directory of the workspace, if it is there. */
static int
image_unmount(const struct sandbox_spec *s, int flags, struct err *e)
{
	autofree char *path = xasprintf("%s/%s", s->dir, s->name);

	if (umount2(path, flags | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL &&
	    errno != ENOENT)
		return err_sys(e, -errno, "cannot unmount %s", path);
	return 0;
}

/* ---- another size ---------------------------------------------------------- */

/* The file has the room already. */
static int
image_grow_mounted(int image_fd, uint64_t bytes)
{
	unsigned number = 0;
	autoclose int root_fd = workspace_image_root(image_fd);
	autoclose int loop_fd = loop_attach(image_fd, &number);
	int rc = root_fd < 0 ? root_fd : loop_fd;

	if (rc >= 0)
		rc = loop_resized(loop_fd);
	return rc < 0 ? rc : e2fs_grow_mounted(root_fd, bytes);
}

/* Where the kernel lets nobody do that, in some containers. */
static int
image_grow_file(const struct sandbox_spec *s, int image_fd)
{
	autofree char *path = xasprintf("%s/.%s.img", s->dir, s->name);
	struct timespec pause = { 0, IMAGE_LOOK_NS };
	int64_t deadline = clock_mono_ms() + IMAGE_FREE_MS;
	int rc = image_unmount(s, 0, NULL);

	/* No device has it: nobody mounts it, in whatever place. */
	while (rc == 0 && loop_is_attached(image_fd)) {
		if (clock_mono_ms() > deadline)
			return -EBUSY;
		nanosleep(&pause, NULL);
	}
	return rc < 0 ? rc : e2fs_grow(path);
}

static int
image_grow(const struct sandbox_spec *s, int image_fd)
{
	struct stat st;
	int rc;

	if (fstat(image_fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size < s->workspace_bytes &&
	    ftruncate(image_fd, (off_t)s->workspace_bytes) < 0)
		return -errno;
	rc = image_grow_mounted(image_fd, s->workspace_bytes);
	return rc < 0 ? image_grow_file(s, image_fd) : rc;
}

/*
 * Makes the image as large as the template says now; nothing runs on it. False
 * when it is larger: what is in it may need the room.
 */
static bool
image_fit(const struct sandbox_spec *s, int image_fd)
{
	uint64_t has = e2fs_bytes(image_fd);
	char why[160];
	int rc;

	if (!s->workspace_bytes || !has)
		return true;
	if (has > s->workspace_bytes) {
		snprintf(why, sizeof(why),
		    "the workspace keeps its %" PRIu64
		    " MiB: it is made smaller only by a restore of a snapshot",
		    has >> 20);
		log_warn("workspace_not_shrunk", "sandbox", s->name, "why", why,
		    NULL);
		task_progress("%s", why);
		return false;
	}
	if (has + IMAGE_SLACK > s->workspace_bytes)
		return true;
	rc = image_grow(s, image_fd);
	if (rc < 0)
		log_warn("workspace_not_grown", "sandbox", s->name, "why",
		    strerrordesc_np(-rc), NULL);
	else
		log_info("workspace_grown", "sandbox", s->name, NULL);
	return true;
}

/* ---- the whole ------------------------------------------------------------- */

/* The directory, or what is mounted over it. */
static int
image_enter(const struct sandbox_spec *s, int *fd_io, struct err *e)
{
	if (*fd_io >= 0)
		close(*fd_io);
	*fd_io = workspace_make(s, e);
	if (*fd_io < 0)
		return *fd_io;
	/* Its owner could not look into it. */
	unlinkat(*fd_io, "lost+found", AT_REMOVEDIR);
	return 0;
}

/* The image IMAGE_FD, which is there. */
static int
image_use(const struct sandbox_spec *s, int dir_fd, int image_fd, int *fd_io,
    bool *is_limited_out, struct err *e)
{
	bool is_limited;
	int rc;

	/* Whoever looks keeps it from being unmounted. */
	close(take_fd(fd_io));
	is_limited = image_fit(s, image_fd);
	rc = image_enter(s, fd_io, e);
	if (rc == 0 && !image_is_mounted(dir_fd, *fd_io)) {
		rc = image_mount(image_fd, *fd_io);
		if (rc < 0)
			return err_sys(e, rc,
			    "cannot mount the workspace %s/.%s.img", s->dir,
			    s->name);
		rc = image_enter(s, fd_io, e);
	}
	if (rc == 0)
		*is_limited_out = is_limited;
	return rc;
}

int
workspace_image_mount(const struct sandbox_spec *s, int *fd_io,
    bool *is_limited_out, struct err *e)
{
	autoclose int dir_fd = workspace_open_dir(s, e), image_fd = -1;
	char name[IMAGE_NAME_SIZE];
	uint64_t bytes;
	int rc;

	*is_limited_out = false;
	if (dir_fd < 0)
		return dir_fd;
	image_fd = workspace_image_open(s, dir_fd, &bytes);
	if (image_fd >= 0)
		return image_use(s, dir_fd, image_fd, fd_io, is_limited_out, e);
	if (!s->workspace_bytes || geteuid() != 0 ||
	    !image_is_empty_dir(*fd_io))
		return 0;
	image_fd = image_make(s, dir_fd);
	rc = image_fd < 0 ? image_fd : image_mount(image_fd, *fd_io);
	if (rc < 0) {
		image_name(s, "", name, sizeof(name));
		unlinkat(dir_fd, name, 0);
		log_warn(
		    "no_workspace_size", "why", strerrordesc_np(-rc), NULL);
		return 0;
	}
	*is_limited_out = true;
	return image_enter(s, fd_io, e);
}

int
workspace_image_replace(
    const struct sandbox_spec *s, int dir_fd, const char *fresh, struct err *e)
{
	char name[IMAGE_NAME_SIZE];
	int rc = image_unmount(s, MNT_DETACH, e);

	if (rc < 0)
		return rc;
	image_name(s, "", name, sizeof(name));
	if (renameat2(dir_fd, fresh, dir_fd, name, RENAME_NOREPLACE) < 0 &&
	    (errno != EEXIST ||
		renameat2(dir_fd, fresh, dir_fd, name, RENAME_EXCHANGE) < 0))
		return err_sys(
		    e, -errno, "cannot replace workspace %s", s->name);
	/* Files of a time without an image would lie below it for ever. */
	rc = workspace_remove_at(dir_fd, s->name);
	return rc < 0 ? err_sys(e, rc, "cannot remove what workspace %s was",
			    s->name)
		      : 0;
}

int
workspace_image_remove(const struct sandbox_spec *s, struct err *e)
{
	autoclose int dir_fd = workspace_open_dir(s, e);
	char name[IMAGE_NAME_SIZE];
	struct stat st;
	int rc;

	if (dir_fd < 0)
		return dir_fd;
	image_name(s, ".new", name, sizeof(name));
	unlinkat(dir_fd, name, 0);
	image_name(s, "", name, sizeof(name));
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	rc = image_unmount(s, MNT_DETACH, e);
	if (rc < 0)
		return rc;
	if (unlinkat(dir_fd, name, 0) < 0)
		return err_sys(e, -errno, "cannot remove %s/%s", s->dir, name);
	return 0;
}
