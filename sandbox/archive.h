/*
 * A directory as a zstd tar, and back: what is in it, with modes, owners, times
 * to the nanosecond, links, holes and extended attributes (access lists are
 * some). In berth-archive. Neither side trusts the other: a tree may change
 * while it is read, an archive may be anybody's; no link is followed, and
 * nothing outside of the directory is read or written.
 */
#ifndef SANDBOX_ARCHIVE_H
#define SANDBOX_ARCHIVE_H

#include <stdint.h>
#include <sys/types.h>

struct err;
struct sandbox_copied;

/*
 * Writes all that is below the directory DIR_FD to OUT_FD. Sockets, devices and
 * mounted file systems are left out and counted. 0 or a negative errno with a
 * sentence; -ELOOP for directories nested too deep, -ECANCELED when nobody waits
 * for it any more.
 */
int archive_pack(
    int dir_fd, int out_fd, struct sandbox_copied *out, struct err *e);

/* Whose the top directory is, and what belonged to its former owner. */
struct archive_owner {
	uid_t uid;
	gid_t gid;
	uint64_t max_bytes; /* of contents, holes apart; 0: no limit */
};

/*
 * Fills the empty directory DIR_FD with what the archive IN_FD holds. What is
 * of another uid or gid than the owner's loses set-id bits; berthd's own user,
 * unless it is root, can give nothing away. 0 or a negative errno with a
 * sentence, and then there may be something in the directory, which
 * workspace_remove_at() can remove; -EBADMSG for what is no archive, names
 * something outside or is nested too deep, -EFBIG for more than max_bytes.
 */
int archive_unpack(int dir_fd, int in_fd, const struct archive_owner *owner,
    struct sandbox_copied *out, struct err *e);

/*
 * The tar that IN_FD brings, whose first entry is the directory, as it is but
 * compressed, into OUT_FD: 0 or a negative errno with a sentence, -EBADMSG for
 * what is no whole tar. Files are counted, none is looked at or made.
 */
int archive_take(
    int in_fd, int out_fd, struct sandbox_copied *out, struct err *e);

/*
 * The way back: what the archive IN_FD holds into OUT_FD, or nowhere (-1), only
 * to see what it is. The results are those of archive_take().
 */
int archive_give(
    int in_fd, int out_fd, struct sandbox_copied *out, struct err *e);

/*
 * The same as a table, for providers: their code is in other programs too, which
 * have no use for the library. NULL there; set by archive_use().
 */
struct archive_calls {
	int (*pack)(
	    int dir_fd, int out_fd, struct sandbox_copied *out, struct err *e);
	int (*unpack)(int dir_fd, int in_fd, const struct archive_owner *owner,
	    struct sandbox_copied *out, struct err *e);
	int (*take)(
	    int in_fd, int out_fd, struct sandbox_copied *out, struct err *e);
	int (*give)(
	    int in_fd, int out_fd, struct sandbox_copied *out, struct err *e);
};
extern const struct archive_calls *sandbox_archive;

/* Sets it, in berth-archive. */
void archive_use(void);

#endif
