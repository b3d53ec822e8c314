/*
 * Tars that somebody else makes or takes, an engine's client: they pass as they
 * are, compressed here; see archive.h. In berth-archive. What comes in is read
 * along as a tar, so that half of one is not taken for a snapshot.
 */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sandbox/archive.h"
#include "sandbox/archive/hash.h"
#include "sandbox/task.h"

#define STREAM_CHUNK (256U << 10)

struct stream {
	crypto_generichash_state hash;
	struct archive *reader, *writer; /* one is NULL on the way back */
	char *chunk;
	struct err *e;
	struct sandbox_copied count;
	int in_fd, out_fd;
	int code; /* of what failed below the library */
};

static void
stream_count(struct stream *s, const void *p, size_t n)
{
	crypto_generichash_update(&s->hash, p, n);
	s->count.bytes += n;
}

static la_ssize_t
stream_write(struct archive *a, void *arg, const void *p, size_t n)
{
	struct stream *s = arg;
	int rc = fd_write_all(s->out_fd, p, n);

	if (rc < 0) {
		s->code = err_sys(s->e, rc, "cannot write the snapshot");
		archive_set_error(a, -rc, "write failed");
		return -1;
	}
	stream_count(s, p, n);
	return (la_ssize_t)n;
}

/* The next bytes of in_fd; 0 at the end, -1 and code when it failed. */
static ssize_t
stream_next(struct stream *s)
{
	ssize_t n;

	do
		n = read(s->in_fd, s->chunk, STREAM_CHUNK);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		s->code = err_sys(s->e, -errno, "cannot read the snapshot");
	else if (task_check(s->e) < 0)
		s->code = -ECANCELED;
	return s->code < 0 ? -1 : n;
}

/* Passed on before the library looks at it. */
static la_ssize_t
stream_tee(struct archive *a, void *arg, const void **out)
{
	struct stream *s = arg;
	ssize_t n = stream_next(s);

	*out = s->chunk;
	if (n > 0 && archive_write_data(s->writer, s->chunk, (size_t)n) != n)
		n = -1;
	if (n < 0)
		archive_set_error(a, EIO, "read failed");
	return n;
}

static int
stream_failed(struct stream *s, struct archive *a)
{
	if (s->code < 0)
		return s->code;
	return err_set(s->e, -EBADMSG, "it is no whole tar: %s",
	    archive_error_string(a) ? archive_error_string(a)
				    : "there is nothing");
}

static int
stream_open_writer(struct stream *s)
{
	struct archive_entry *entry = archive_entry_new();
	int rc;

	if (!entry)
		return err_set(s->e, -ENOMEM, "no memory for an archive");
	archive_entry_set_pathname(entry, "tar");
	archive_entry_set_filetype(entry, AE_IFREG);
	rc = archive_write_set_format_raw(s->writer) == ARCHIVE_OK &&
		     archive_write_add_filter_zstd(s->writer) == ARCHIVE_OK &&
		     archive_write_set_filter_option(s->writer, "zstd",
			 "compression-level", "1") == ARCHIVE_OK &&
		     archive_write_set_bytes_per_block(s->writer, 0) ==
			 ARCHIVE_OK &&
		     archive_write_open(s->writer, s, NULL, stream_write,
			 NULL) == ARCHIVE_OK &&
		     archive_write_header(s->writer, entry) == ARCHIVE_OK
		 ? 0
		 : stream_failed(s, s->writer);
	archive_entry_free(entry);
	return rc;
}

static int
stream_entries(struct stream *s)
{
	struct archive_entry *entry;
	int rc;

	if (archive_read_support_format_tar(s->reader) != ARCHIVE_OK ||
	    archive_read_open(s->reader, s, NULL, stream_tee, NULL) !=
		ARCHIVE_OK)
		return stream_failed(s, s->reader);
	while (
	    (rc = archive_read_next_header(s->reader, &entry)) == ARCHIVE_OK ||
	    rc == ARCHIVE_WARN) {
		s->count.files++;
		task_progress_files(s->count.files, s->count.bytes);
	}
	if (rc != ARCHIVE_EOF || s->count.files == 0)
		return stream_failed(s, s->reader);
	return 0;
}

/* What is behind the end of the tar belongs to it. */
static int
stream_rest(struct stream *s)
{
	const void *p;
	la_ssize_t n;

	while ((n = stream_tee(s->reader, s, &p)) > 0)
		;
	return n < 0 ? stream_failed(s, s->writer) : 0;
}

static void
stream_begin(struct stream *s)
{
	s->chunk = xmalloc(STREAM_CHUNK);
	crypto_generichash_init(&s->hash, NULL, 0, ARCHIVE_HASH);
}

static int
stream_end(struct stream *s, int rc, struct sandbox_copied *out)
{
	archive_hash(&s->hash, s->count.hash);
	if (rc == 0)
		*out = s->count;
	archive_read_free(s->reader);
	archive_write_free(s->writer);
	free(s->chunk);
	return rc;
}

int
archive_take(int in_fd, int out_fd, struct sandbox_copied *out, struct err *e)
{
	struct stream s = {
		.in_fd = in_fd,
		.out_fd = out_fd,
		.reader = archive_read_new(),
		.writer = archive_write_new(),
		.e = e,
	};
	int rc = 0;

	stream_begin(&s);
	if (!s.reader || !s.writer)
		rc = err_set(e, -ENOMEM, "no memory for an archive");
	if (rc == 0)
		rc = stream_open_writer(&s);
	if (rc == 0)
		rc = stream_entries(&s);
	if (rc == 0)
		rc = stream_rest(&s);
	if (rc == 0 && archive_write_close(s.writer) != ARCHIVE_OK)
		rc = stream_failed(&s, s.writer);
	return stream_end(&s, rc, out);
}

/* ---- the way back --------------------------------------------------------------- */

static la_ssize_t
stream_read(struct archive *a, void *arg, const void **out)
{
	struct stream *s = arg;
	ssize_t n = stream_next(s);

	*out = s->chunk;
	if (n < 0)
		archive_set_error(a, EIO, "read failed");
	else
		stream_count(s, s->chunk, (size_t)n);
	return n;
}

static int
stream_give(struct stream *s)
{
	struct archive_entry *entry;
	const void *p;
	la_int64_t at;
	size_t n;
	int rc;

	if (archive_read_support_format_raw(s->reader) != ARCHIVE_OK ||
	    archive_read_support_filter_zstd(s->reader) != ARCHIVE_OK ||
	    archive_read_open(s->reader, s, NULL, stream_read, NULL) !=
		ARCHIVE_OK ||
	    archive_read_next_header(s->reader, &entry) != ARCHIVE_OK)
		return stream_failed(s, s->reader);
	while ((rc = archive_read_data_block(s->reader, &p, &n, &at)) ==
	       ARCHIVE_OK) {
		int code = s->out_fd < 0 ? 0 : fd_write_all(s->out_fd, p, n);

		if (code < 0)
			return err_sys(s->e, code, "it does not take it all");
	}
	return rc == ARCHIVE_EOF ? 0 : stream_failed(s, s->reader);
}

int
archive_give(int in_fd, int out_fd, struct sandbox_copied *out, struct err *e)
{
	struct stream s = {
		.in_fd = in_fd,
		.out_fd = out_fd,
		.reader = archive_read_new(),
		.e = e,
	};
	const void *p;
	int rc;

	stream_begin(&s);
	rc = s.reader ? stream_give(&s)
		      : err_set(e, -ENOMEM, "no memory for an archive");
	while (rc == 0 && stream_read(s.reader, &s, &p) > 0)
		;
	return stream_end(&s, rc, out);
}
