/*
 * What cgroup.c and cgroup_freeze.c share: the small files of a group. Private
 * to them.
 */
#ifndef SANDBOX_CGROUP_INTERNAL_H
#define SANDBOX_CGROUP_INTERNAL_H

#include <stddef.h>
#include <sys/types.h>

/* Writes TEXT to the file NAME of the group DIR: 0 or a negative errno. */
int cgroup_write(const char *dir, const char *name, const char *text);

/* At most SIZE - 1 bytes of a small file, terminated; its length or -errno. */
ssize_t cgroup_read(const char *dir, const char *name, char *out, size_t size);

#endif
