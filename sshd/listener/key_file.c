/* An authorized_keys file; see key_file.h. Runs in berthd. */
#include "sshd/listener/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "sshd/listener/key_line.h"

/* The coarsest clock that a file system may stamp with. */
#define KEY_FILE_TICK_NS (2000LL * 1000 * 1000)

struct key_file *
key_file_new(const char *path)
{
	struct key_file *f = xcalloc(1, sizeof(*f));

	list_init(&f->node);
	list_init(&f->keys);
	f->path = xstrdup(path);
	return f;
}

static void
key_file_forget(struct key_file *f)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &f->keys) {
		list_remove(pos);
		key_line_free(list_entry(pos, struct key_line, node));
	}
	f->is_loaded = false;
}

void
key_file_free(struct key_file *f)
{
	if (!f)
		return;
	key_file_forget(f);
	free(f->path);
	free(f);
}

static int64_t
key_file_ns(const struct timespec *ts)
{
	return (int64_t)ts->tv_sec * 1000000000 + ts->tv_nsec;
}

static struct key_file_stamp
key_file_stamp(const struct stat *st)
{
	return (struct key_file_stamp){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = st->st_size,
		.mtime_ns = key_file_ns(&st->st_mtim),
		.ctime_ns = key_file_ns(&st->st_ctim),
		.mode = st->st_mode,
		.uid = st->st_uid,
	};
}

static bool
key_file_same(const struct key_file_stamp *a, const struct key_file_stamp *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns &&
	       a->mode == b->mode && a->uid == b->uid;
}

static int
key_file_check(const struct stat *st, const char *path, struct err *e)
{
	if (!S_ISREG(st->st_mode))
		return err_set(e, -EINVAL, "%s is not a file", path);
	if (st->st_uid != 0 && st->st_uid != geteuid())
		return err_set(
		    e, -EPERM, "%s belongs to uid %u", path, st->st_uid);
	if (st->st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, -EPERM,
		    "%s is writable by others; run chmod go-w on it", path);
	if (st->st_size > (off_t)KEY_FILE_MAX)
		return err_set(e, -EFBIG, "%s is over 4 MiB long", path);
	return 0;
}

static void
key_file_add_line(struct key_file *f, const char *line, size_t n, int no)
{
	struct key_line *k = NULL;
	struct err e = { 0 };
	autofree char *copy = NULL;
	char number[16];
	int rc;

	/* A file from elsewhere ends its lines with CR LF. */
	if (n > 0 && line[n - 1] == '\r')
		n--;
	if (memchr(line, '\0', n)) {
		rc = err_set(&e, -EINVAL, "there is a NUL byte on this line");
	} else {
		copy = xstrndup(line, n);
		rc = key_line_parse(copy, &k, &e);
	}
	if (rc == 1 && k)
		list_append(&f->keys, &k->node);
	if (rc >= 0 || f->is_quiet)
		return;
	snprintf(number, sizeof(number), "%d", no);
	log_warn(
	    "key_refused", "file", f->path, "line", number, "why", e.msg, NULL);
}

static void
key_file_parse(struct key_file *f, const char *s, size_t n)
{
	for (int no = 1; n > 0; no++) {
		const char *nl = memchr(s, '\n', n);
		size_t len = nl ? (size_t)(nl - s) : n;
		size_t skip = nl ? len + 1 : len;

		key_file_add_line(f, s, len, no);
		s += skip;
		n -= skip;
	}
}

static int
key_file_load(struct key_file *f, int fd, struct err *e)
{
	struct buf b = { 0 };
	int rc = fd_read_all(fd, KEY_FILE_MAX, &b);

	if (rc < 0) {
		buf_release(&b);
		return err_sys(e, rc, "cannot read %s", f->path);
	}
	if (buf_len(&b))
		key_file_parse(f, (const char *)buf_head(&b), buf_len(&b));
	buf_release(&b);
	return 0;
}

static void
key_file_log_loaded(const struct key_file *f)
{
	const struct list *pos;
	char number[16];
	int n = 0;

	for (pos = f->keys.next; pos != &f->keys; pos = pos->next)
		n++;
	snprintf(number, sizeof(number), "%d", n);
	log_info("keys", "file", f->path, "count", number, NULL);
}

static int
key_file_look(struct key_file *f, struct err *e)
{
	autoclose int fd =
	    open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct key_file_stamp now;
	struct stat st;
	int64_t wall_ns = clock_wall_ms() * 1000000;
	int rc;

	if (fd < 0 || fstat(fd, &st) < 0) {
		rc = errno;
		return err_sys(e, -rc, "cannot open %s", f->path);
	}
	now = key_file_stamp(&st);
	if (f->is_loaded && !f->is_fresh && key_file_same(&f->stamp, &now))
		return 0;
	rc = key_file_check(&st, f->path, e);
	if (rc < 0)
		return rc;
	key_file_forget(f);
	f->is_quiet = key_file_same(&f->stamp, &now);
	rc = key_file_load(f, fd, e);
	if (rc < 0)
		return rc;
	if (!f->is_quiet)
		key_file_log_loaded(f);
	f->stamp = now;
	f->is_loaded = true;
	/* Written just now: a second write may leave the same stamp. */
	f->is_fresh = now.mtime_ns > wall_ns - KEY_FILE_TICK_NS ||
		      now.ctime_ns > wall_ns - KEY_FILE_TICK_NS;
	return 0;
}

void
key_file_refresh(struct key_file *f)
{
	struct err e = { 0 };
	int rc = key_file_look(f, &e);

	if (rc < 0) {
		key_file_forget(f);
		if (rc != f->last_rc)
			log_warn("keys", "file", f->path, "why", e.msg, NULL);
		f->stamp = (struct key_file_stamp){ 0 };
	}
	f->last_rc = rc;
}
