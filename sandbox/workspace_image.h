/*
 * A workspace that is a file system of its own, so that it holds no more than
 * it may: ext4 in a sparse file SANDBOX_DIR/.NAME.img on a loop device, mounted
 * over the directory. For root, where there are loop devices. In berth-sandbox
 * and berth-archive.
 */
#ifndef SANDBOX_WORKSPACE_IMAGE_H
#define SANDBOX_WORKSPACE_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct sandbox_spec;

/*
 * Mounts the image of S, made when workspace_bytes asks for one, over the
 * workspace *FD_IO, which is then that of the image. One that is smaller than
 * workspace_bytes grows. *IS_LIMITED_OUT is false when it is larger, or there is
 * none and none can be made: the directory has files already, or this is not the
 * place for it. An image that is there and cannot be mounted is a negative errno
 * with a sentence, for what it holds would seem to be gone.
 */
int workspace_image_mount(const struct sandbox_spec *s, int *fd_io,
    bool *is_limited_out, struct err *e);

/* The image of S, if it has one, and its size: a descriptor or a negative errno. */
int workspace_image_open(
    const struct sandbox_spec *s, int dir_fd, uint64_t *bytes_out);

/*
 * Makes the file NAME in DIR_FD, which is S's dir, an empty file system of BYTES
 * for the user of S. A descriptor that holds its lock (flock), or a negative
 * errno and then there is no file.
 */
int workspace_image_make(
    const struct sandbox_spec *s, int dir_fd, const char *name, uint64_t bytes);

/*
 * The top directory of the image IMAGE_FD, mounted nowhere: whoever holds the
 * descriptor, or another below it, holds the mount. Or a negative errno.
 */
int workspace_image_root(int image_fd);

/*
 * Puts the image FRESH of DIR_FD in the place of the workspace of S, in which
 * nothing runs; what FRESH is then, if it is there, is the former image. 0 or a
 * negative errno with a sentence.
 */
int workspace_image_replace(
    const struct sandbox_spec *s, int dir_fd, const char *fresh, struct err *e);

/* Unmounts and removes it; without one there is nothing to do. */
int workspace_image_remove(const struct sandbox_spec *s, struct err *e);

#endif
