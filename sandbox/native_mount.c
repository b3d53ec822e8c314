/*
 * The file system of a native sandbox. A tree in memory with nothing in it but
 * what is put there: the system read-only, /proc, /dev and /tmp of its own, the
 * workspace. In the first process, which alone is in this mount namespace and
 * has all capabilities over it, but none over the host.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "sandbox/native.h"
#include "sandbox/provider.h"

#define MOUNT_SAFE  (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define MOUNT_TMPFS (MS_NOSUID | MS_NODEV)

/* Where the old root is while the new one is made. */
#define MOUNT_OLD  "/old"
#define MOUNT_NEW  "/new"
#define MOUNT_BASE "/base" /* a template's root */

/* What every system has at its top; some of it are links on most. */
static const char *const mount_system[] = { "usr", "bin", "sbin", "lib",
	"lib32", "lib64", "libx32", "opt" };

/* Directories that are ours whatever a template's root has there. */
static const char *const mount_own[] = { "proc", "dev", "tmp", "run", "sys",
	"workspace", "etc", "var" };

static const char *const mount_devices[] = { "null", "zero", "full", "random",
	"urandom", "tty" };

static const struct {
	const char *target, *path;
} mount_dev_links[] = {
	{ "/proc/self/fd", "dev/fd" },
	{ "/proc/self/fd/0", "dev/stdin" },
	{ "/proc/self/fd/1", "dev/stdout" },
	{ "/proc/self/fd/2", "dev/stderr" },
	{ "pts/ptmx", "dev/ptmx" },
};

/* Directories in which an old root can wait: one of them is everywhere. */
static const char *const mount_places[] = { "/tmp", "/run", "/mnt", "/var" };

/* Of /proc, what says or changes something about the host. */
static const char *const mount_proc_read_only[] = { "proc/sys", "proc/irq",
	"proc/bus", "proc/sysrq-trigger" };

int
native_bind(const char *from, const char *to, uint64_t attr)
{
	struct mount_attr a = { .attr_set = attr };

	if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
		return -errno;
	if (syscall(SYS_mount_setattr, AT_FDCWD, to, AT_RECURSIVE, &a,
		sizeof(a)) < 0)
		return -errno;
	return 0;
}

int
native_copy_link(const char *from, const char *to)
{
	char link[512];
	ssize_t n = readlink(from, link, sizeof(link) - 1);

	if (n < 0)
		return -errno;
	link[n] = '\0';
	return symlink(link, to) < 0 ? -errno : 0;
}

static int
mount_mkdir(const char *path, struct err *e)
{
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_sys(e, -errno, "cannot make /%s", path);
	return 0;
}

static int
mount_tmpfs(
    const char *path, unsigned long flags, const char *options, struct err *e)
{
	int rc = mount_mkdir(path, e);

	if (rc == 0 && mount("tmpfs", path, "tmpfs", flags, options) < 0)
		rc = err_sys(e, -errno, "cannot mount /%s", path);
	return rc;
}

int
native_seal(const char *path, bool is_sealed, struct err *e)
{
	struct mount_attr a = {
		.attr_set = is_sealed ? MOUNT_ATTR_RDONLY : 0,
		.attr_clr = is_sealed ? 0 : MOUNT_ATTR_RDONLY,
	};

	if (syscall(SYS_mount_setattr, AT_FDCWD, path, 0, &a, sizeof(a)) < 0)
		return err_sys(e, -errno, "cannot make /%s %s", path,
		    is_sealed ? "read-only" : "writable");
	return 0;
}

/* Attaches the detached mount FD at PATH of the new root. */
static int
mount_attach(int fd, const char *path, uint64_t attr, struct err *e)
{
	struct mount_attr a = { .attr_set = attr };

	if (syscall(SYS_move_mount, fd, "", AT_FDCWD, path,
		MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(e, -errno, "cannot attach %s", path);
	if (syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE, &a,
		sizeof(a)) < 0)
		return err_sys(e, -errno, "cannot restrict %s", path);
	return 0;
}

/*
 * A root in memory, with the old one below it at MOUNT_OLD. The mounts of the
 * host get nothing of what happens here.
 */
static int
mount_begin(struct err *e)
{
	size_t i = 0;

	if (mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0)
		return err_sys(e, -errno, "cannot detach the mounts");
	while (i < ARRAY_LEN(mount_places) &&
	       mount("tmpfs", mount_places[i], "tmpfs", MOUNT_TMPFS,
		   "mode=755,size=64k") < 0)
		i++;
	if (i == ARRAY_LEN(mount_places))
		return err_sys(e, -errno, "cannot mount a tmpfs");
	if (chdir(mount_places[i]) < 0 || mkdir("old", 0755) < 0 ||
	    mkdir("new", 0755) < 0 || mkdir("base", 0755) < 0)
		return err_sys(e, -errno, "cannot prepare a root");
	if (syscall(SYS_pivot_root, ".", "old") < 0)
		return err_sys(e, -errno, "cannot change the root");
	if (chdir("/") < 0 || mount("tmpfs", MOUNT_NEW, "tmpfs", MOUNT_TMPFS,
				  "mode=755,size=1m,nr_inodes=1024") < 0)
		return err_sys(e, -errno, "cannot mount the root");
	return chdir(MOUNT_NEW) < 0 ? err_sys(e, -errno, "cannot enter") : 0;
}

/* What is at the top of FROM, as it is there: a link, or bound read-only. */
static int
mount_top(const char *from, const char *name, struct err *e)
{
	autofree char *source = xasprintf("%s/%s", from, name);
	struct stat st;
	int rc;

	if (lstat(source, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode)) {
		rc = native_copy_link(source, name);
		return rc < 0 ? err_sys(e, rc, "cannot link /%s", name) : 0;
	}
	if (!S_ISDIR(st.st_mode))
		return 0;
	rc = mount_mkdir(name, e);
	if (rc < 0)
		return rc;
	rc = native_bind(source, name, MOUNT_SAFE | MOUNT_ATTR_RDONLY);
	return rc < 0 ? err_sys(e, rc, "cannot bind /%s", name) : 0;
}

static bool
mount_is_own(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(mount_own); i++) {
		if (strcmp(name, mount_own[i]) == 0)
			return true;
	}
	return false;
}

/* The directories of a template's root. */
static int
mount_rootfs(struct native_plan *p, struct err *e)
{
	const struct dirent *d;
	DIR *dir;
	int rc = mount_attach(
	    p->rootfs_fd, MOUNT_BASE, MOUNT_SAFE | MOUNT_ATTR_RDONLY, e);

	if (rc < 0)
		return rc;
	dir = opendir(MOUNT_BASE);
	if (!dir)
		return err_sys(e, -errno, "cannot read the template's rootfs");
	while (rc == 0 && (d = readdir(dir))) {
		if (d->d_name[0] != '.' && !mount_is_own(d->d_name))
			rc = mount_top(MOUNT_BASE, d->d_name, e);
	}
	closedir(dir);
	return rc;
}

static int
mount_host(struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < ARRAY_LEN(mount_system) && rc == 0; i++)
		rc = mount_top(MOUNT_OLD, mount_system[i], e);
	return rc;
}

static int
mount_proc(struct err *e)
{
	int rc = mount_mkdir("proc", e);

	if (rc < 0)
		return rc;
	if (mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		NULL) < 0)
		return err_sys(e, -errno,
		    "cannot mount /proc (is a part of it hidden here?)");
	for (size_t i = 0; i < ARRAY_LEN(mount_proc_read_only); i++) {
		const char *path = mount_proc_read_only[i];

		rc = native_bind(path, path, MOUNT_ATTR_RDONLY);
		if (rc < 0 && rc != -ENOENT)
			return err_sys(e, rc, "cannot cover /%s", path);
	}
	return 0;
}

static int
mount_device(const char *name, struct err *e)
{
	autofree char *from = xasprintf(MOUNT_OLD "/dev/%s", name);
	autofree char *to = xasprintf("dev/%s", name);
	autoclose int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	int rc = fd < 0 ? -errno : native_bind(from, to, MOUNT_ATTR_NOSUID);

	return rc < 0 ? err_sys(e, rc, "cannot bind /%s", to) : 0;
}

static int
mount_dev(struct err *e)
{
	int rc = mount_tmpfs(
	    "dev", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k,nr_inodes=64", e);

	for (size_t i = 0; i < ARRAY_LEN(mount_devices) && rc == 0; i++)
		rc = mount_device(mount_devices[i], e);
	for (size_t i = 0; i < ARRAY_LEN(mount_dev_links) && rc == 0; i++) {
		if (symlink(
			mount_dev_links[i].target, mount_dev_links[i].path) < 0)
			rc = err_sys(e, -errno, "cannot link /%s",
			    mount_dev_links[i].path);
	}
	if (rc == 0)
		rc = mount_tmpfs(
		    "dev/shm", MOUNT_TMPFS, "mode=1777,size=64m", e);
	if (rc == 0)
		rc = mount_mkdir("dev/pts", e);
	if (rc == 0 &&
	    mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		"newinstance,ptmxmode=0666,mode=600") < 0)
		rc = err_sys(e, -errno, "cannot mount /dev/pts");
	return rc < 0 ? rc : native_seal("dev", true, e);
}

/* What programs write outside of the workspace lives in memory. */
static int
mount_scratch(struct err *e)
{
	autofree char *tmp =
	    xasprintf("mode=1777,size=%llu,nr_inodes=200k", SANDBOX_TMP_BYTES);
	int rc = mount_tmpfs("tmp", MOUNT_TMPFS, tmp, e);

	if (rc == 0)
		rc = mount_tmpfs(
		    "run", MOUNT_TMPFS, "mode=755,size=16m,nr_inodes=4k", e);
	if (rc == 0)
		rc = mount_mkdir("var", e);
	if (rc == 0)
		rc = mount_mkdir("var/lib", e);
	if (rc == 0 &&
	    (symlink("/tmp", "var/tmp") < 0 || symlink("/run", "var/run") < 0))
		rc = err_sys(e, -errno, "cannot link /var/tmp");
	if (rc == 0)
		rc = mount_mkdir("sys", e);
	return rc;
}

int
native_tree(int dir_fd)
{
	int fd = (int)syscall(SYS_open_tree, dir_fd, "",
	    AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	return fd < 0 ? -errno : fd;
}

/* The workspace is opened by its path, and is the one that was checked. */
int
native_find_workspace(struct native_plan *p, struct err *e)
{
	const struct sandbox_spec *s = p->spec;
	autofree char *path = xasprintf("%s/%s", s->dir, s->name);
	autoclose int fd = -1;
	struct stat there, checked;

	if (p->workspace_fd >= 0 || p->workspace_dir_fd < 0)
		return 0;
	fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &there) < 0 ||
	    fstat(p->workspace_dir_fd, &checked) < 0)
		return err_sys(e, -errno, "cannot open %s", path);
	if (there.st_ino != checked.st_ino || there.st_dev != checked.st_dev)
		return err_set(e, -ESTALE, "%s was replaced", path);
	p->workspace_fd = native_tree(fd);
	if (p->workspace_fd < 0)
		return err_sys(
		    e, p->workspace_fd, "cannot take the mount of %s", path);
	return 0;
}

int
native_attach_workspace(const struct native_plan *p, struct err *e)
{
	return mount_attach(p->workspace_fd, "workspace", MOUNT_SAFE, e);
}

static int
mount_find_rootfs(struct native_plan *p, struct err *e)
{
	const char *path = p->spec->rootfs;
	autoclose int fd = -1;

	if (p->rootfs_fd >= 0 || !*path)
		return 0;
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	p->rootfs_fd = fd < 0 ? -errno : native_tree(fd);
	if (p->rootfs_fd < 0)
		return err_sys(e, p->rootfs_fd, "cannot take rootfs %s", path);
	return 0;
}

/* Nothing of the old root is left to be found. */
static int
mount_end(struct err *e)
{
	int rc = native_seal(".", true, e);

	if (rc < 0)
		return rc;
	if (umount2(MOUNT_OLD, MNT_DETACH) < 0 ||
	    syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_sys(e, -errno, "cannot leave the old root");
	return 0;
}

int
native_mount(struct native_plan *p, struct err *e)
{
	bool has_rootfs = p->spec->rootfs[0] != '\0';
	int rc = native_find_workspace(p, e);

	if (rc == 0)
		rc = mount_find_rootfs(p, e);
	if (rc == 0)
		rc = mount_begin(e);
	if (rc == 0)
		rc = has_rootfs ? mount_rootfs(p, e) : mount_host(e);
	if (rc == 0)
		rc = mount_proc(e);
	if (rc == 0)
		rc = mount_dev(e);
	if (rc == 0)
		rc = mount_scratch(e);
	if (rc == 0)
		rc = mount_mkdir("etc", e);
	if (rc == 0)
		rc = native_etc(p->spec,
		    has_rootfs ? MOUNT_BASE "/etc" : MOUNT_OLD "/etc", e);
	if (rc == 0)
		rc = mount_mkdir("workspace", e);
	if (rc == 0 && p->workspace_fd >= 0)
		rc = native_attach_workspace(p, e);
	return rc < 0 ? rc : mount_end(e);
}
