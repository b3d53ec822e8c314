/*
 * A workspace that is a file system of its own, so that it holds no more than
 * it may: ext4 in a sparse file SANDBOX_DIR/.NAME.img on a loop device, mounted
 * over the directory. For root, where there are loop devices. In berth-sandbox.
 */
#ifndef SANDBOX_WORKSPACE_IMAGE_H
#define SANDBOX_WORKSPACE_IMAGE_H

#include <stdbool.h>

struct err;
struct sandbox_spec;

/*
 * Mounts the image of S, made when workspace_bytes asks for one, over the
 * workspace *FD_IO, which is then that of the image. *IS_LIMITED_OUT is false
 * when there is none and none can be made: the directory has files already, or
 * this is not the place for it. An image that is there and cannot be mounted is
 * a negative errno with a sentence, for what it holds would seem to be gone.
 */
int workspace_image_mount(const struct sandbox_spec *s, int *fd_io,
    bool *is_limited_out, struct err *e);

/* Unmounts and removes it; without one there is nothing to do. */
int workspace_image_remove(const struct sandbox_spec *s, struct err *e);

#endif
