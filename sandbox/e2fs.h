/*
 * The file system of an image: made, and grown, by the programs of e2fsprogs or
 * by the kernel. For root. In berth-sandbox and berth-archive.
 */
#ifndef SANDBOX_E2FS_H
#define SANDBOX_E2FS_H

#include <stdint.h>
#include <sys/types.h>

/*
 * Makes the file PATH, which has its size, an empty ext4 that belongs to UID and
 * GID. 0, -ENOENT when there is no mkfs.ext4, else -EIO.
 */
int e2fs_make(const char *path, uid_t uid, gid_t gid);

/* How many bytes the ext4 in IMAGE_FD has; 0 if that is none. */
uint64_t e2fs_bytes(int image_fd);

/*
 * Grows the mounted ext4 that ROOT_FD is of to what its device has room for,
 * BYTES. Nothing to do is success. -EPERM where the kernel does not let us.
 */
int e2fs_grow_mounted(int root_fd, uint64_t bytes);

/*
 * The same for the file PATH, which nobody has mounted, to the size of the file.
 * It is checked, and repaired, before. 0, -ENOENT without e2fsprogs, else -EIO.
 */
int e2fs_grow(const char *path);

#endif
