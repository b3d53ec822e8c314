/* Workspaces of a size; see workspace_image.h. */
#include "sandbox/workspace_image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"
#include "sandbox/provider.h"
#include "sandbox/workspace.h"

#define IMAGE_LOOPS_MAX 1024
#define IMAGE_TRIES_MAX 16 /* others want a free device as well */
#define IMAGE_MKFS_MS   20000

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

/* Runs mkfs.ext4 on PATH; true if it went well. */
static bool
image_format(const struct sandbox_spec *s, const char *path)
{
	static const char *const programs[] = { "/usr/sbin/mkfs.ext4",
		"/sbin/mkfs.ext4" };
	char owner[64];
	char *env[] = {
		(char *)(uintptr_t) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL
	};
	const char *argv[] = { "mkfs.ext4", "-q", "-F", "-m", "0", "-E", owner,
		path, NULL };
	autoclose int pidfd = -1;
	struct pollfd p;
	int status = -1;

	snprintf(owner, sizeof(owner), "root_owner=%u:%u", s->uid, s->gid);
	for (size_t i = 0; i < ARRAY_LEN(programs); i++) {
		if (access(programs[i], X_OK) < 0)
			continue;
		if (proc_spawn(programs[i], (char **)(uintptr_t)argv, env, NULL,
			0, &pidfd) < 0)
			return false;
		p = (struct pollfd){ .fd = pidfd, .events = POLLIN };
		if (poll(&p, 1, IMAGE_MKFS_MS) <= 0)
			proc_signal(pidfd, SIGKILL);
		return proc_reap(pidfd, &status) == 1 && WIFEXITED(status) &&
		       WEXITSTATUS(status) == 0;
	}
	log_warn("no_mkfs", "why", "there is no mkfs.ext4 (package e2fsprogs)",
	    NULL);
	return false;
}

/* Under another name until it is whole. The image's descriptor or an errno. */
static int
image_make(const struct sandbox_spec *s, int dir_fd)
{
	char fresh[SANDBOX_NAME_SIZE + 16], name[SANDBOX_NAME_SIZE + 16];
	autofree char *path = NULL;
	autoclose int fd = -1;

	image_name(s, ".new", fresh, sizeof(fresh));
	image_name(s, "", name, sizeof(name));
	path = xasprintf("%s/%s", s->dir, fresh);
	unlinkat(dir_fd, fresh, 0);
	fd = openat(dir_fd, fresh,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)s->workspace_bytes) < 0 ||
	    !image_format(s, path) ||
	    renameat(dir_fd, fresh, dir_fd, name) < 0) {
		unlinkat(dir_fd, fresh, 0);
		return -EIO;
	}
	return take_fd(&fd);
}

/* ---- loop devices ---------------------------------------------------------- */

static int
image_open_loop(unsigned number)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/loop%u", number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * The device that has the image already, for another mount namespace or a
 * sandbox that still ends: two of them would spoil the file system.
 */
static int
image_find_loop(int image_fd, unsigned *number_out)
{
	struct stat st;

	if (fstat(image_fd, &st) < 0)
		return -errno;
	for (unsigned i = 0; i < IMAGE_LOOPS_MAX; i++) {
		struct loop_info64 info = { .lo_number = 0 };
		autoclose int fd = -1;
		char used[64];

		snprintf(used, sizeof(used),
		    "/sys/block/loop%u/loop/backing_file", i);
		if (access(used, F_OK) < 0)
			continue;
		fd = image_open_loop(i);
		if (fd < 0 || ioctl(fd, LOOP_GET_STATUS64, &info) < 0 ||
		    info.lo_device != st.st_dev || info.lo_inode != st.st_ino)
			continue;
		*number_out = i;
		return take_fd(&fd);
	}
	return -ENOENT;
}

/* A device for it, which goes with its last mount. */
static int
image_take_loop(int image_fd, unsigned *number_out)
{
	autoclose int control_fd =
	    open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop_config config = {
		.fd = (uint32_t)image_fd,
		.info = { .lo_flags = LO_FLAGS_AUTOCLEAR },
	};

	if (control_fd < 0)
		return -errno;
	for (int i = 0; i < IMAGE_TRIES_MAX; i++) {
		int number = ioctl(control_fd, LOOP_CTL_GET_FREE);
		autoclose int fd = -1;

		if (number < 0)
			return -errno;
		fd = image_open_loop((unsigned)number);
		if (fd < 0)
			return fd;
		*number_out = (unsigned)number;
		if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
			return take_fd(&fd);
		if (errno != EBUSY)
			return -errno;
	}
	return -EBUSY;
}

static int
image_mount(int image_fd, int workspace_fd)
{
	char device[32], target[32];
	unsigned number = 0;
	autoclose int loop_fd = image_find_loop(image_fd, &number);

	if (loop_fd < 0)
		loop_fd = image_take_loop(image_fd, &number);
	if (loop_fd < 0)
		return loop_fd;
	snprintf(device, sizeof(device), "/dev/loop%u", number);
	snprintf(target, sizeof(target), "/proc/self/fd/%d", workspace_fd);
	if (mount(device, target, "ext4", MS_NOSUID | MS_NODEV, NULL) < 0)
		return -errno;
	return 0;
}

/* ---- the whole ------------------------------------------------------------- */

int
workspace_image_mount(const struct sandbox_spec *s, int *fd_io,
    bool *is_limited_out, struct err *e)
{
	autoclose int dir_fd = workspace_open_dir(s, e), image_fd = -1;
	char name[SANDBOX_NAME_SIZE + 16];
	bool is_old;
	int rc;

	*is_limited_out = true;
	if (dir_fd < 0)
		return dir_fd;
	if (image_is_mounted(dir_fd, *fd_io))
		return 0;
	image_name(s, "", name, sizeof(name));
	image_fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	is_old = image_fd >= 0;
	*is_limited_out = false;
	if (!is_old && (!s->workspace_bytes || geteuid() != 0 ||
			   !image_is_empty_dir(*fd_io)))
		return 0;
	if (!is_old)
		image_fd = image_make(s, dir_fd);
	rc = image_fd < 0 ? image_fd : image_mount(image_fd, *fd_io);
	if (rc < 0 && is_old)
		return err_sys(
		    e, rc, "cannot mount the workspace %s/%s", s->dir, name);
	if (rc < 0) {
		unlinkat(dir_fd, name, 0);
		log_warn(
		    "no_workspace_size", "why", strerrordesc_np(-rc), NULL);
		return 0;
	}
	close(*fd_io);
	*fd_io = workspace_make(s, e);
	if (*fd_io < 0)
		return *fd_io;
	/* Its owner could not look into it. */
	unlinkat(*fd_io, "lost+found", AT_REMOVEDIR);
	*is_limited_out = true;
	return 0;
}

int
workspace_image_remove(const struct sandbox_spec *s, struct err *e)
{
	autoclose int dir_fd = workspace_open_dir(s, e);
	char name[SANDBOX_NAME_SIZE + 16];
	autofree char *path = xasprintf("%s/%s", s->dir, s->name);
	struct stat st;

	if (dir_fd < 0)
		return dir_fd;
	image_name(s, ".new", name, sizeof(name));
	unlinkat(dir_fd, name, 0);
	image_name(s, "", name, sizeof(name));
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 &&
	    errno != EINVAL && errno != ENOENT)
		return err_sys(e, -errno, "cannot unmount %s", path);
	if (unlinkat(dir_fd, name, 0) < 0)
		return err_sys(e, -errno, "cannot remove %s/%s", s->dir, name);
	return 0;
}
