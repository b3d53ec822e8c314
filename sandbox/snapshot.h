/*
 * What is done for snapshots: the order of steps that keeps a copy true and
 * leaves nothing half done. In berth-archive, and in berth-sandbox what needs no
 * archive.
 */
#ifndef SANDBOX_SNAPSHOT_H
#define SANDBOX_SNAPSHOT_H

struct err;
struct sandbox_copied;
struct sandbox_provider;
struct task;

/* A file that is being written has this behind its name. */
#define SNAPSHOT_PART ".part"

/*
 * Does T, one of the four operations on snapshots, by P. 0 or a negative errno
 * with a sentence.
 */
int snapshot_operate(const struct sandbox_provider *p, const struct task *t,
    struct sandbox_copied *out, struct err *e);

#endif
