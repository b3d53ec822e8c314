/*
 * The directories that berthd keeps things in, and the lock that makes it the
 * only berthd there. Used at start.
 */
#ifndef SSHD_LISTENER_STATE_DIR_H
#define SSHD_LISTENER_STATE_DIR_H

struct conf;
struct err;

/* Descriptors of the open directories and of the lock; -1 while closed. */
struct state_dir {
	int state_fd, runtime_fd, recordings_fd, lock_fd;
};

/*
 * Makes (0700) and opens server.state_dir, server.runtime_dir and
 * recording.dir, and takes STATE/berthd.lock, or keeps LOCK_FD (owned then; -1
 * for none), which this process holds already. Refuses a directory of somebody
 * else's or one that others may write to, and -EBUSY with the pid of a berthd
 * that already works there. On success and failure alike the caller closes
 * with state_dir_close().
 */
int state_dir_open(
    const struct conf *c, int lock_fd, struct state_dir *out, struct err *e);
void state_dir_close(struct state_dir *d);

#endif
