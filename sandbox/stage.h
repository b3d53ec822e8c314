/*
 * Copies of workspaces, for the providers of this host: a snapshot of one, and
 * a new one beside it that takes its place in one step. What is beside it is
 * closed to everybody but berthd's user, and locked by who works on it. The
 * arguments are those of provider.h.
 */
#ifndef SANDBOX_STAGE_H
#define SANDBOX_STAGE_H

#include "sandbox/provider.h"

struct err;

/* The names in sandbox.dir of what is beside workspaces: this, NAME, that. */
#define STAGE_PREFIX "."
#define STAGE_SUFFIX ".fresh"

#define STAGE_NAME_SIZE (SANDBOX_NAME_SIZE + 8)

/* That name for S. */
void stage_name(const struct sandbox_spec *s, char out[STAGE_NAME_SIZE]);

/*
 * Removes NAME of DIR_FD, a directory or an image, when nobody works on it any
 * more: 0 or a negative errno with a sentence.
 */
int stage_clear(int dir_fd, const char *name, struct err *e);

/* snapshot() of provider.h. */
int stage_pack(const struct sandbox_spec *s, int out_fd,
    struct sandbox_copied *out, struct err *e);

/* unpack() of provider.h. Whatever fails leaves nothing beside. */
int stage_unpack(const struct sandbox_spec *s, int in_fd,
    struct sandbox_copied *out, struct err *e);

/*
 * The same two where workspaces may be images (workspace_image.h): a snapshot
 * of one that is mounted or not, and a new image of the size that the template
 * has now.
 */
int stage_image_pack(const struct sandbox_spec *s, int out_fd,
    struct sandbox_copied *out, struct err *e);
int stage_image_unpack(const struct sandbox_spec *s, int in_fd,
    struct sandbox_copied *out, struct err *e);

/* restore() of provider.h, of what either left. */
int stage_replace(const struct sandbox_spec *s, int in_fd, struct err *e);

#endif
