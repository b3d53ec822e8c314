/*
 * What is said about a file of an archive (owner, mode, attributes, time) and
 * how much of it is believed. Private to this folder.
 */
#ifndef SANDBOX_ARCHIVE_SETTLE_H
#define SANDBOX_ARCHIVE_SETTLE_H

#include "sandbox/archive.h"

struct archive_entry;

struct settle {
	struct archive_owner owner;
	/* Whose the workspace was; what they had becomes the owner's. */
	uid_t former_uid;
	gid_t former_gid;
};

/*
 * Makes FD, which is no link and may be O_PATH, what ENTRY says. Set-id bits stay
 * only where they give nothing but what the owner is already. 0 or a negative
 * errno.
 */
int settle_fd(const struct settle *s, int fd, struct archive_entry *entry);

/* The same for the symbolic link NAME in DIR_FD: its owner and its time. */
int settle_link(const struct settle *s, int dir_fd, const char *name,
    struct archive_entry *entry);

#endif
