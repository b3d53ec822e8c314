/* Directories and the lock; see state_dir.h. Runs in berthd. */
#include "sshd/listener/state_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "conf/conf.h"

#define STATE_DIR_LOCK "berthd.lock"

static int
state_dir_make(const char *path, struct err *e)
{
	int rc = fd_make_dirs(path, e);

	return rc < 0 ? rc : fd_open_dir(path, 0700, e);
}

/* Who holds the lock, for the sentence only. */
static void
state_dir_holder(int fd, char out[16])
{
	ssize_t n = pread(fd, out, 15, 0);

	out[n > 0 ? n : 0] = '\0';
	out[strspn(out, "0123456789")] = '\0';
}

static int
state_dir_lock(int dir_fd, const char *path, struct err *e)
{
	autoclose int fd = openat(dir_fd, STATE_DIR_LOCK,
	    O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	char pid[16];
	int n;

	if (fd < 0)
		return err_sys(
		    e, -errno, "cannot open %s/%s", path, STATE_DIR_LOCK);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return err_sys(e, -errno, "cannot lock %s/%s", path,
			    STATE_DIR_LOCK);
		state_dir_holder(fd, pid);
		return err_set(e, -EBUSY,
		    "state directory %s is in use by berthd, pid %s", path,
		    *pid ? pid : "unknown");
	}
	n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
	if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)n, 0) != n)
		return err_sys(
		    e, -errno, "cannot write %s/%s", path, STATE_DIR_LOCK);
	return take_fd(&fd);
}

/* The lock that this process holds already must be the directory's. */
static int
state_dir_keep_lock(int dir_fd, const char *path, int lock_fd, struct err *e)
{
	struct stat ours, theirs;

	if (fstat(lock_fd, &ours) < 0 ||
	    fstatat(dir_fd, STATE_DIR_LOCK, &theirs, AT_SYMLINK_NOFOLLOW) < 0 ||
	    ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino)
		return err_set(e, -EINVAL,
		    "%s is not the state directory of the berthd that runs;"
		    " stop it and start another to move it",
		    path);
	return lock_fd;
}

int
state_dir_open(
    const struct conf *c, int lock_fd, struct state_dir *out, struct err *e)
{
	const char *path = c->server.state_dir;

	*out = (struct state_dir){ -1, -1, -1, -1 };
	out->state_fd = state_dir_make(path, e);
	if (out->state_fd < 0)
		return out->state_fd;
	out->lock_fd =
	    lock_fd < 0 ? state_dir_lock(out->state_fd, path, e)
			: state_dir_keep_lock(out->state_fd, path, lock_fd, e);
	if (out->lock_fd < 0)
		return out->lock_fd;
	out->runtime_fd = state_dir_make(c->server.runtime_dir, e);
	if (out->runtime_fd < 0)
		return out->runtime_fd;
	out->recordings_fd = state_dir_make(c->recording.dir, e);
	return out->recordings_fd < 0 ? out->recordings_fd : 0;
}

void
state_dir_close(struct state_dir *d)
{
	int *fds[] = { &d->recordings_fd, &d->runtime_fd, &d->lock_fd,
		&d->state_fd };

	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		if (*fds[i] >= 0)
			close(take_fd(fds[i]));
	}
}
