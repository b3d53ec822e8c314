/*
 * Copies of workspaces, for the providers of this host: a snapshot of one, and
 * a new one beside it that takes its place in one step. What is beside it is
 * closed to everybody but berthd's user, and locked by who works on it. The
 * arguments are those of provider.h.
 */
#ifndef SANDBOX_STAGE_H
#define SANDBOX_STAGE_H

struct err;
struct sandbox_copied;
struct sandbox_spec;

/* The names in sandbox.dir of what is beside workspaces: this, NAME, that. */
#define STAGE_PREFIX "."
#define STAGE_SUFFIX ".fresh"

/* snapshot() of provider.h. */
int stage_pack(const struct sandbox_spec *s, int out_fd,
    struct sandbox_copied *out, struct err *e);

/* unpack() of provider.h. Whatever fails leaves nothing beside. */
int stage_unpack(const struct sandbox_spec *s, int in_fd,
    struct sandbox_copied *out, struct err *e);

/* restore() of provider.h. */
int stage_replace(const struct sandbox_spec *s, struct err *e);

#endif
