/*
 * From a directory to an archive; see archive.h. In berth-archive. Whatever is
 * looked at is held by a descriptor first, so that what is written is what was
 * looked at, whoever moves things meanwhile.
 */
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/archive.h"
#include "sandbox/archive/hash.h"
#include "sandbox/provider.h"
#include "sandbox/task.h"
#include "sandbox/workspace.h"

#define PACK_READ      (1U << 20)
#define PACK_HOLE      (64U << 20) /* of zeros that no memory is used for */
#define PACK_NAMES_MAX (64U << 10)
#define PACK_VALUE_MAX (64U << 10)

struct pack {
	struct archive *a;
	struct archive_entry_linkresolver *links;
	int out_fd, write_code;
	dev_t dev;
	char *buffer;
	void *zeros;
	struct sandbox_copied count;
	crypto_generichash_state hash;
	struct err *e;
};

/* One that is looked at. */
struct pack_file {
	int fd; /* O_PATH */
	char proc[32];
	const char *path; /* from the top */
	struct stat st;
};

static int pack_directory(
    struct pack *p, int dir_fd, const char *path, int depth);

/* ---- the library ------------------------------------------------------------ */

static la_ssize_t
pack_write(struct archive *a, void *arg, const void *data, size_t n)
{
	struct pack *p = arg;
	int rc = fd_write_all(p->out_fd, data, n);

	if (rc < 0) {
		p->write_code = rc;
		archive_set_error(a, -rc, "write failed");
		return -1;
	}
	crypto_generichash_update(&p->hash, data, n);
	p->count.bytes += n;
	return (la_ssize_t)n;
}

/* What the library, or the file below it, says. */
static int
pack_failed(struct pack *p, const char *path)
{
	int code = archive_errno(p->a);

	if (p->write_code)
		return err_sys(
		    p->e, p->write_code, "cannot write the snapshot");
	return err_set(p->e, code > 0 && code < 4096 ? -code : -EIO,
	    "cannot write %.100s to the snapshot: %s", path,
	    archive_error_string(p->a));
}

static int
pack_open(struct pack *p)
{
	p->a = archive_write_new();
	p->links = archive_entry_linkresolver_new();
	if (!p->a || !p->links)
		return err_set(p->e, -ENOMEM, "no memory for an archive");
	/* Names are bytes, whatever they mean to somebody. */
	if (archive_write_set_format_pax(p->a) != ARCHIVE_OK ||
	    archive_write_set_format_option(
		p->a, "pax", "hdrcharset", "BINARY") != ARCHIVE_OK ||
	    archive_write_add_filter_zstd(p->a) != ARCHIVE_OK ||
	    archive_write_set_filter_option(
		p->a, "zstd", "compression-level", "1") != ARCHIVE_OK ||
	    archive_write_set_bytes_per_block(p->a, 0) != ARCHIVE_OK ||
	    archive_write_open(p->a, p, NULL, pack_write, NULL) != ARCHIVE_OK)
		return pack_failed(p, "anything");
	archive_entry_linkresolver_set_strategy(p->links, archive_format(p->a));
	return 0;
}

static void
pack_close(struct pack *p)
{
	struct archive_entry *rest = NULL, *spare = NULL;

	if (p->links) {
		/* None wait with this format; what there is is freed. */
		archive_entry_linkify(p->links, &rest, &spare);
		archive_entry_free(rest);
		archive_entry_linkresolver_free(p->links);
	}
	if (p->a)
		archive_write_free(p->a);
	if (p->zeros != MAP_FAILED)
		munmap(p->zeros, PACK_HOLE);
	free(p->buffer);
}

/* ---- contents --------------------------------------------------------------- */

/* Tells the library where there are bytes, if not everywhere. */
static void
pack_map(int fd, const struct stat *st, struct archive_entry *entry)
{
	off_t at = 0;

	if (st->st_blocks * 512 >= st->st_size)
		return;
	while (at < st->st_size) {
		off_t from = lseek(fd, at, SEEK_DATA), to;

		if (from < 0)
			break;
		to = lseek(fd, from, SEEK_HOLE);
		if (to <= from || to > st->st_size)
			to = st->st_size;
		if (from >= to)
			break;
		archive_entry_sparse_add_entry(entry, from, to - from);
		at = to;
	}
	if (at == 0)
		archive_entry_sparse_add_entry(entry, 0, 0);
}

static int
pack_put(struct pack *p, const struct pack_file *f, const void *data, size_t n)
{
	const char *at = data;

	while (n > 0) {
		la_ssize_t did = archive_write_data(p->a, at, n);

		if (did < 0)
			return pack_failed(p, f->path);
		/* It grew: what was there when it was looked at is kept. */
		if (did == 0)
			return 0;
		at += did;
		n -= (size_t)did;
	}
	return task_check(p->e);
}

/* From AT to TO, of which the bytes are in the file or all 0. */
static int
pack_part(struct pack *p, const struct pack_file *f, int fd, off_t at, off_t to)
{
	bool is_hole = fd < 0;
	off_t max = is_hole ? PACK_HOLE : PACK_READ;
	int rc = 0;

	while (at < to && rc == 0) {
		size_t want = (size_t)(to - at < max ? to - at : max);
		ssize_t n =
		    is_hole ? (ssize_t)want : pread(fd, p->buffer, want, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(
			    p->e, -errno, "cannot read %.100s", f->path);
		/* It shrank: the library fills up. */
		if (n == 0)
			return 0;
		rc = pack_put(p, f, is_hole ? p->zeros : p->buffer, (size_t)n);
		at += n;
	}
	return rc;
}

static int
pack_contents(struct pack *p, const struct pack_file *f, int fd,
    struct archive_entry *map)
{
	la_int64_t from, n;
	off_t at = 0;
	int rc = 0;

	if (archive_entry_sparse_reset(map) == 0)
		return pack_part(p, f, fd, 0, f->st.st_size);
	while (rc == 0 &&
	       archive_entry_sparse_next(map, &from, &n) == ARCHIVE_OK) {
		rc = pack_part(p, f, -1, at, from);
		if (rc == 0)
			rc = pack_part(p, f, fd, from, from + n);
		at = from + n;
	}
	return rc < 0 ? rc : pack_part(p, f, -1, at, f->st.st_size);
}

/* ---- what is said about a file ---------------------------------------------- */

/* Also access lists, which are attributes to the kernel. */
static void
pack_attributes(const struct pack_file *f, struct archive_entry *entry)
{
	autofree char *names = xmalloc(PACK_NAMES_MAX);
	autofree char *value = xmalloc(PACK_VALUE_MAX);
	ssize_t n = listxattr(f->proc, names, PACK_NAMES_MAX);

	for (const char *s = names; n > 0 && s < names + n;
	     s += strlen(s) + 1) {
		ssize_t len = getxattr(f->proc, s, value, PACK_VALUE_MAX);

		if (len >= 0)
			archive_entry_xattr_add_entry(
			    entry, s, value, (size_t)len);
	}
}

static int
pack_link(
    struct pack *p, const struct pack_file *f, struct archive_entry *entry)
{
	char target[4097];
	ssize_t n = readlinkat(f->fd, "", target, sizeof(target) - 1);

	if (n < 0)
		return err_sys(p->e, -errno, "cannot read %.100s", f->path);
	target[n] = '\0';
	archive_entry_set_symlink(entry, target);
	return 0;
}

static void
pack_describe(const struct pack_file *f, struct archive_entry *entry)
{
	archive_entry_set_pathname(entry, f->path);
	archive_entry_set_mode(entry, f->st.st_mode);
	archive_entry_set_uid(entry, f->st.st_uid);
	archive_entry_set_gid(entry, f->st.st_gid);
	archive_entry_set_mtime(
	    entry, f->st.st_mtim.tv_sec, f->st.st_mtim.tv_nsec);
	archive_entry_set_size(
	    entry, S_ISREG(f->st.st_mode) ? f->st.st_size : 0);
	if (S_ISDIR(f->st.st_mode))
		return;
	archive_entry_set_dev(entry, f->st.st_dev);
	archive_entry_set_ino(entry, (la_int64_t)f->st.st_ino);
	archive_entry_set_nlink(entry, (unsigned)f->st.st_nlink);
}

/* The header, and of a file that was not written before its bytes. */
static int
pack_write_entry(
    struct pack *p, const struct pack_file *f, struct archive_entry *entry)
{
	struct archive_entry *spare = NULL;
	autoclose int fd = -1;
	int rc;

	if (S_ISREG(f->st.st_mode)) {
		fd = open(f->proc, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		if (fd < 0)
			return err_sys(
			    p->e, -errno, "cannot open %.100s", f->path);
	}
	archive_entry_linkify(p->links, &entry, &spare);
	if (fd >= 0 && !archive_entry_hardlink(entry))
		pack_map(fd, &f->st, entry);
	rc = archive_write_header(p->a, entry);
	if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN)
		return pack_failed(p, f->path);
	p->count.files++;
	if (fd < 0 || archive_entry_hardlink(entry))
		return task_check(p->e);
	return pack_contents(p, f, fd, entry);
}

static int
pack_file(struct pack *p, const struct pack_file *f, int depth)
{
	struct archive_entry *entry = archive_entry_new();
	int rc = 0;

	if (!entry)
		return err_set(p->e, -ENOMEM, "no memory for an entry");
	pack_describe(f, entry);
	if (S_ISLNK(f->st.st_mode))
		rc = pack_link(p, f, entry);
	else
		pack_attributes(f, entry);
	if (rc == 0)
		rc = pack_write_entry(p, f, entry);
	archive_entry_free(entry);
	task_progress_files(p->count.files, p->count.bytes);
	if (rc < 0 || !S_ISDIR(f->st.st_mode))
		return rc;
	return pack_directory(p, f->fd, f->path, depth);
}

/* ---- the tree ----------------------------------------------------------------- */

static int
pack_name(
    struct pack *p, int dir_fd, const char *name, const char *path, int depth)
{
	autoclose int fd =
	    openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct pack_file f = { .fd = fd, .path = path };

	/* Removed since its name was read. */
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &f.st) < 0)
		return err_sys(p->e, -errno, "cannot look at %.100s", path);
	if (f.st.st_dev != p->dev || S_ISSOCK(f.st.st_mode) ||
	    S_ISCHR(f.st.st_mode) || S_ISBLK(f.st.st_mode)) {
		p->count.skipped++;
		return 0;
	}
	snprintf(f.proc, sizeof(f.proc), "/proc/self/fd/%d", fd);
	return pack_file(p, &f, depth);
}

/* A stream of its own for what DIR_FD names, which may be O_PATH; or NULL. */
static DIR *
pack_open_directory(int dir_fd)
{
	autoclose int fd =
	    openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (d)
		take_fd(&fd);
	return d;
}

static int
pack_directory(struct pack *p, int dir_fd, const char *path, int depth)
{
	const struct dirent *entry;
	int rc = 0;
	DIR *d;

	if (depth >= WORKSPACE_DEPTH_MAX)
		return err_set(p->e, -ELOOP,
		    "a directory is nested deeper than %d",
		    WORKSPACE_DEPTH_MAX);
	d = pack_open_directory(dir_fd);
	if (!d)
		return err_sys(p->e, -errno, "cannot read %.100s", path);
	/* NOLINTNEXTLINE(concurrency-mt-unsafe) */
	while (rc == 0 && (errno = 0, entry = readdir(d))) {
		autofree char *below = NULL;

		if (strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0)
			continue;
		below = xasprintf("%s/%s", path, entry->d_name);
		rc = pack_name(p, dir_fd, entry->d_name, below, depth + 1);
	}
	if (rc == 0 && errno)
		rc = err_sys(p->e, -errno, "cannot read %.100s", path);
	closedir(d);
	return rc;
}

int
archive_pack(int dir_fd, int out_fd, struct sandbox_copied *out, struct err *e)
{
	struct pack p = {
		.out_fd = out_fd,
		.e = e,
		.buffer = xmalloc(PACK_READ),
		.zeros = mmap(NULL, PACK_HOLE, PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
	};
	struct pack_file top = { .fd = dir_fd, .path = "." };
	int rc = 0;

	if (p.zeros == MAP_FAILED || fstat(dir_fd, &top.st) < 0)
		rc = err_sys(e, -errno, "cannot look at the workspace");
	p.dev = top.st.st_dev;
	crypto_generichash_init(&p.hash, NULL, 0, ARCHIVE_HASH);
	snprintf(top.proc, sizeof(top.proc), "/proc/self/fd/%d", dir_fd);
	if (rc == 0)
		rc = pack_open(&p);
	if (rc == 0)
		rc = pack_file(&p, &top, 0);
	if (rc == 0 && archive_write_close(p.a) != ARCHIVE_OK)
		rc = pack_failed(&p, "the end");
	archive_hash(&p.hash, p.count.hash);
	if (rc == 0)
		*out = p.count;
	pack_close(&p);
	return rc;
}
