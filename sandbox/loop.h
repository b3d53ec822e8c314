/*
 * Loop devices: a block device whose bytes are those of a file. For root, where
 * there are any. In berth-sandbox and berth-archive.
 */
#ifndef SANDBOX_LOOP_H
#define SANDBOX_LOOP_H

#include <stdbool.h>

/*
 * A device that has the file IMAGE_FD; the one that has it already, if there is
 * one, since two of them would spoil what is in it. It goes with its last mount.
 * Its descriptor, the caller's, and its number in *NUMBER_OUT; or a negative
 * errno.
 */
int loop_attach(int image_fd, unsigned *number_out);

/* True if some device has the file IMAGE_FD. */
bool loop_is_attached(int image_fd);

/* Tells the device LOOP_FD that its file has another size; 0 or -errno. */
int loop_resized(int loop_fd);

#endif
