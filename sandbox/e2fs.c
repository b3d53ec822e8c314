/* File systems of images; see e2fs.h. */
#include "sandbox/e2fs.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"

#define E2FS_RUN_MS 20000
/* linux/ext4.h, which Debian 12 does not have: of blocks. */
#define E2FS_RESIZE _IOW('f', 16, uint64_t)

/* The superblock: where it is, and what is where in it. */
#define E2FS_SUPER     1024
#define E2FS_SUPER_N   1024
#define E2FS_BLOCKS    0x4
#define E2FS_LOG_SIZE  0x18
#define E2FS_MAGIC     0x38
#define E2FS_BLOCKS_HI 0x150

/* Runs ARGV, a program of e2fsprogs: its exit code, -ENOENT or -EIO. */
static int
e2fs_run(const char *const *argv)
{
	static const char *const dirs[] = { "/usr/sbin", "/sbin" };
	char *env[] = {
		(char *)(uintptr_t) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL
	};
	autoclose int pidfd = -1;
	struct pollfd p;
	int status = -1;

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		autofree char *path = xasprintf("%s/%s", dirs[i], argv[0]);

		if (access(path, X_OK) < 0)
			continue;
		if (proc_spawn(path, (char **)(uintptr_t)argv, env, NULL, 0,
			&pidfd) < 0)
			return -EIO;
		p = (struct pollfd){ .fd = pidfd, .events = POLLIN };
		if (poll(&p, 1, E2FS_RUN_MS) <= 0)
			proc_signal(pidfd, SIGKILL);
		return proc_reap(pidfd, &status) == 1 && WIFEXITED(status)
			   ? WEXITSTATUS(status)
			   : -EIO;
	}
	log_warn("no_e2fsprogs", "program", argv[0], "why",
	    "it is not installed (package e2fsprogs)", NULL);
	return -ENOENT;
}

int
e2fs_make(const char *path, uid_t uid, gid_t gid)
{
	char owner[64];
	const char *argv[] = { "mkfs.ext4", "-q", "-F", "-m", "0", "-E", owner,
		path, NULL };
	int rc;

	snprintf(owner, sizeof(owner), "root_owner=%u:%u", uid, gid);
	rc = e2fs_run(argv);
	return rc > 0 ? -EIO : rc;
}

static uint32_t
e2fs_u32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return le32toh(v);
}

uint64_t
e2fs_bytes(int image_fd)
{
	uint8_t s[E2FS_SUPER_N];
	uint64_t blocks;
	uint32_t log_size;

	if (pread(image_fd, s, sizeof(s), E2FS_SUPER) != E2FS_SUPER_N ||
	    s[E2FS_MAGIC] != 0x53 || s[E2FS_MAGIC + 1] != 0xef)
		return 0;
	blocks = (uint64_t)e2fs_u32(s + E2FS_BLOCKS_HI) << 32 |
		 e2fs_u32(s + E2FS_BLOCKS);
	log_size = e2fs_u32(s + E2FS_LOG_SIZE);
	return log_size > 6 ? 0 : blocks * (1024ULL << log_size);
}

int
e2fs_grow_mounted(int root_fd, uint64_t bytes)
{
	struct statvfs fs;
	uint64_t blocks;

	if (fstatvfs(root_fd, &fs) < 0)
		return -errno;
	blocks = bytes / fs.f_frsize;
	return ioctl(root_fd, E2FS_RESIZE, &blocks) < 0 ? -errno : 0;
}

int
e2fs_grow(const char *path)
{
	const char *check[] = { "e2fsck", "-f", "-y", path, NULL };
	const char *grow[] = { "resize2fs", path, NULL };
	int rc = e2fs_run(check);

	/* 1: it is repaired. */
	if (rc == 0 || rc == 1)
		rc = e2fs_run(grow);
	return rc > 0 ? -EIO : rc;
}
