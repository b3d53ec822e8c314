/*
 * Files of this host as a tar stream; see copy.h. Directories are read by
 * descriptors, so that a name that becomes a link meanwhile leads nowhere.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "cli/copy.h"
#include "cli/tar.h"

#define COPY_DEPTH_MAX 128
#define COPY_BYTES     (64U << 10)

/* Where a walk is: the name in the archive of what it looks at. */
struct copy_walk {
	struct copy *c;
	struct tar_entry entry; /* its path is extended on the way down */
	unsigned depth;
	struct err *e;
};

static int copy_pack_at(struct copy_walk *w, int dir_fd, const char *name);

static void
copy_pack_fill(struct tar_entry *t, const struct stat *st, char type)
{
	t->type = type;
	t->mode = st->st_mode & 07777;
	t->size = type == TAR_FILE ? (uint64_t)st->st_size : 0;
	t->mtime_s = st->st_mtim.tv_sec;
	t->mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
}

static int
copy_pack_header(struct copy_walk *w)
{
	struct buf b = { 0 };
	int rc;

	tar_encode(&b, &w->entry);
	rc = copy_write(w->c, buf_head(&b), buf_len(&b), w->e);
	buf_release(&b);
	w->c->n_files++;
	return rc;
}

/* As many bytes as its header says, whatever becomes of the file meanwhile. */
static int
copy_pack_content(struct copy_walk *w, int fd)
{
	uint64_t left = w->entry.size;
	static uint8_t space[COPY_BYTES];
	bool is_short = false;
	int rc;

	while (left) {
		size_t want =
		    left < sizeof(space) ? (size_t)left : sizeof(space);
		ssize_t n = is_short ? 0 : read(fd, space, want);

		if (n < 0 && errno == EINTR && !copy_is_stopped())
			continue;
		if (n <= 0) {
			is_short = true;
			memset(space, 0, want);
			n = (ssize_t)want;
		}
		rc = copy_write(w->c, space, (size_t)n, w->e);
		if (rc < 0)
			return rc;
		left -= (uint64_t)n;
		copy_advance(w->c, (uint64_t)n);
	}
	if (is_short)
		copy_skip(w->c, w->entry.path,
		    "it became shorter, the rest is zeros");
	memset(space, 0, TAR_BLOCK);
	return copy_write(w->c, space, tar_padding(w->entry.size), w->e);
}

static int
copy_pack_file(struct copy_walk *w, int dir_fd, const char *name)
{
	autoclose int fd = openat(dir_fd, name,
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int rc;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		copy_skip(w->c, w->entry.path,
		    fd < 0 ? strerrordesc_np(errno) : "it is no file any more");
		return 0;
	}
	copy_pack_fill(&w->entry, &st, TAR_FILE);
	rc = copy_pack_header(w);
	return rc < 0 ? rc : copy_pack_content(w, fd);
}

static int
copy_pack_link(
    struct copy_walk *w, int dir_fd, const char *name, const struct stat *st)
{
	ssize_t n =
	    readlinkat(dir_fd, name, w->entry.link, sizeof(w->entry.link) - 1);
	int rc;

	if (n < 0) {
		copy_skip(w->c, w->entry.path, strerrordesc_np(errno));
		w->entry.link[0] = '\0';
		return 0;
	}
	w->entry.link[n] = '\0';
	copy_pack_fill(&w->entry, st, TAR_SYMLINK);
	rc = copy_pack_header(w);
	w->entry.link[0] = '\0';
	return rc;
}

/* Everything in the directory FD, which is closed. */
static int
copy_pack_below(struct copy_walk *w, int fd)
{
	size_t n = strlen(w->entry.path);
	DIR *d = fdopendir(fd);
	int rc = 0;

	if (!d || w->depth == COPY_DEPTH_MAX) {
		copy_skip(w->c, w->entry.path,
		    d ? "it is too deep" : strerrordesc_np(errno));
		if (d)
			closedir(d);
		else
			close(fd);
		return 0;
	}
	w->depth++;
	for (struct dirent *f; rc == 0 && (f = readdir(d));) {
		if (strcmp(f->d_name, ".") == 0 || strcmp(f->d_name, "..") == 0)
			continue;
		if (n + strlen(f->d_name) + 2 > sizeof(w->entry.path)) {
			copy_skip(w->c, f->d_name, "its path is too long");
			continue;
		}
		snprintf(w->entry.path + n, sizeof(w->entry.path) - n, "/%s",
		    f->d_name);
		rc = copy_is_stopped() ? -EINTR
				       : copy_pack_at(w, dirfd(d), f->d_name);
		w->entry.path[n] = '\0';
	}
	w->depth--;
	closedir(d);
	return rc;
}

static int
copy_pack_directory(
    struct copy_walk *w, int dir_fd, const char *name, const struct stat *st)
{
	int fd = openat(
	    dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc;

	if (fd < 0) {
		copy_skip(w->c, w->entry.path, strerrordesc_np(errno));
		return 0;
	}
	copy_pack_fill(&w->entry, st, TAR_DIRECTORY);
	rc = copy_pack_header(w);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	return copy_pack_below(w, fd);
}

static int
copy_pack_at(struct copy_walk *w, int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		copy_skip(w->c, w->entry.path, strerrordesc_np(errno));
		return 0;
	}
	copy_begins(w->c, w->entry.path);
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
		return copy_pack_file(w, dir_fd, name);
	case S_IFDIR:
		return copy_pack_directory(w, dir_fd, name, &st);
	case S_IFLNK:
		return copy_pack_link(w, dir_fd, name, &st);
	default:
		copy_skip(w->c, w->entry.path,
		    "it is neither file, directory nor link");
		return 0;
	}
}

int
copy_pack(struct copy *c, const char *src, const char *top, struct err *e)
{
	static const uint8_t end[2 * TAR_BLOCK];
	struct copy_walk w = { .c = c, .e = e };
	int fd, rc;

	snprintf(w.entry.path, sizeof(w.entry.path), "%s", top);
	if (strcmp(top, ".") == 0) {
		fd = open(src, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return err_sys(e, -errno, "cannot read %s", src);
		rc = copy_pack_below(&w, fd);
	} else {
		rc = copy_pack_at(&w, AT_FDCWD, src);
	}
	return rc < 0 ? rc : copy_write(c, end, sizeof(end), e);
}

/* ---- counting -------------------------------------------------------------- */

static uint64_t
copy_count_at(int dir_fd, const char *name, unsigned depth)
{
	uint64_t sum = 0;
	struct stat st;
	int fd;
	DIR *d;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISREG(st.st_mode))
		return (uint64_t)st.st_size;
	if (!S_ISDIR(st.st_mode) || depth == COPY_DEPTH_MAX)
		return 0;
	fd = openat(
	    dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	for (struct dirent *f; !copy_is_stopped() && (f = readdir(d));) {
		if (strcmp(f->d_name, ".") != 0 && strcmp(f->d_name, "..") != 0)
			sum += copy_count_at(dirfd(d), f->d_name, depth + 1);
	}
	closedir(d);
	return sum;
}

uint64_t
copy_count(const char *src)
{
	return copy_count_at(AT_FDCWD, src, 0);
}
