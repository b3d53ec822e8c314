/*
 * Lines to the disk, and what happens when it does not take them; see
 * recorder_file.h. Runs on the recorder's thread.
 */
#include "sessions/keeper/recorder_file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define RECORDER_CHECK_US    1000000
#define RECORDER_CHECK_BYTES (1U << 20)

/* An index row before the next 1 MiB is full, however long the line is. */
#define RECORDER_INDEX_BYTES ((1U << 20) - CAST_LINE_MAX)

/* A gap ends only when this much is free again, or it would come back. */
#define RECORDER_RETRY_BYTES (256U << 10)

/* Room for the last marker of a capped file. */
#define RECORDER_CAP_SPARE 128

static void
recorder_file_lose(struct recorder_file *f, uint64_t n)
{
	f->lost += n;
	if (n && !f->is_gap_counted) {
		f->is_gap_counted = true;
		f->gaps++;
	}
}

/* The half character that waits for its end is lost with what preceded it. */
static void
recorder_file_lose_text(struct recorder_file *f)
{
	recorder_file_lose(f, f->text.n_held);
	f->text.n_held = 0;
}

/* Bytes that the file system has free; UINT64_MAX if it does not say. */
static uint64_t
recorder_file_free(const struct recorder_file *f)
{
	struct statvfs vfs;

	if (fstatvfs(f->fd, &vfs) < 0 || !vfs.f_blocks)
		return UINT64_MAX; /* then the write will tell */
	return (uint64_t)vfs.f_bavail * vfs.f_frsize;
}

static int
recorder_file_check(struct recorder_file *f)
{
	int64_t now = clock_mono_us();

	/* the header and the marker of the last gap are always tried */
	if (!f->config.min_free || f->size == 0 || f->is_closing ||
	    (f->checked_us && now - f->checked_us < RECORDER_CHECK_US &&
		f->size - f->checked_size < RECORDER_CHECK_BYTES))
		return 0;
	if (recorder_file_free(f) < f->config.min_free)
		return err_set(&f->error, -ENOSPC,
		    "the disk of the recording has less than %" PRIu64
		    " bytes free",
		    f->config.min_free);
	f->checked_us = now;
	f->checked_size = f->size;
	return 0;
}

/* Writes the batch at the end of the file; *DONE_OUT bytes of it got there. */
static int
recorder_file_put(struct recorder_file *f, size_t *done_out)
{
	size_t done = 0;
	int rc = 0;

	while (done < f->n_batch) {
		ssize_t n = pwrite(f->fd, f->batch + done, f->n_batch - done,
		    (off_t)(f->size + done));

		if (n > 0) {
			done += (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			rc = err_sys(&f->error, n == 0 ? -EIO : -errno,
			    "write the recording");
			break;
		}
	}
	*done_out = done;
	return rc;
}

static void
recorder_file_index(struct recorder_file *f, uint64_t t_us, uint64_t offset)
{
	struct recorder_index row = { .t_ms = t_us / 1000, .offset = offset };

	if (f->n_rows_due == RECORDER_INDEX_MAX)
		return; /* the next line tries again */
	if (f->has_row && offset - f->row.offset < RECORDER_INDEX_BYTES &&
	    row.t_ms - f->row.t_ms < f->config.index_ms)
		return;
	f->has_row = true;
	f->row = row;
	f->rows_due[f->n_rows_due++] = row;
}

/* Counts the lines that are in the file; returns the first that is not. */
static unsigned
recorder_file_keep(struct recorder_file *f, size_t done)
{
	size_t begin = 0;
	unsigned i;

	for (i = 0; i < f->n_lines && f->lines[i].end <= done; i++) {
		const struct recorder_line *line = &f->lines[i];

		if (line->code == 'o')
			recorder_file_index(f, line->t_us, f->size + begin);
		if (line->code == 'r') {
			f->kept_cols = line->cols;
			f->kept_rows = line->rows;
		}
		f->kept_us = line->t_us;
		begin = line->end;
	}
	f->size += begin;
	return i;
}

void
recorder_file_write(struct recorder_file *f)
{
	size_t done = 0;
	unsigned kept;
	int rc;

	if (!f->n_batch)
		return;
	rc = recorder_file_check(f);
	if (rc == 0)
		rc = recorder_file_put(f, &done);
	f->is_dirty |= done > 0;
	kept = recorder_file_keep(f, done);
	if (rc == 0) {
		f->is_gap_counted &= f->is_capped;
	} else {
		for (unsigned i = kept; i < f->n_lines; i++)
			recorder_file_lose(f, f->lines[i].raw);
		recorder_file_lose_text(f);
		f->is_in_gap = true;
		f->retry_us = clock_mono_us();
		f->has_failed |= f->config.is_stop_on_error;
		/* if this fails, the next write still begins at `size` */
		if (done && ftruncate(f->fd, (off_t)f->size) < 0)
			f->is_damaged = true;
	}
	f->n_batch = 0;
	f->n_lines = 0;
}

/* Microseconds since the start of the recording, never less than before. */
static uint64_t
recorder_file_time(struct recorder_file *f, int64_t t_us)
{
	int64_t t = t_us - f->config.start_us;

	if (t > 0 && (uint64_t)t > f->last_us)
		f->last_us = (uint64_t)t;
	return f->last_us;
}

/* Counts LEN bytes behind the batch as LINE. */
static void
recorder_file_add(
    struct recorder_file *f, struct recorder_line line, size_t len)
{
	assert(len <= CAST_LINE_MAX);
	f->n_batch += len;
	line.end = f->n_batch;
	f->lines[f->n_lines++] = line;
	if (f->n_batch >= RECORDER_BATCH || f->n_lines == RECORDER_LINES)
		recorder_file_write(f);
}

/* An event with short plain text. */
static void
recorder_file_event(
    struct recorder_file *f, struct recorder_line line, const char *text)
{
	char *to = f->batch + f->n_batch;
	size_t len = cast_event_open(line.t_us, line.code, to);
	size_t n = strlen(text);

	memcpy(to + len, text, n);
	len += n;
	len += cast_event_close(to + len);
	recorder_file_add(f, line, len);
}

/* True if LEN more bytes would pass the cap: then the recording ends here. */
static bool
recorder_file_cap(struct recorder_file *f, size_t len)
{
	struct recorder_line line = { .code = 'm', .t_us = f->last_us };
	char text[80];

	if (!f->config.max_bytes ||
	    f->size + f->n_batch + len + RECORDER_CAP_SPARE <=
		f->config.max_bytes)
		return false;
	snprintf(text, sizeof(text), "end: limit of %" PRIu64 " bytes reached",
	    f->config.max_bytes);
	recorder_file_event(f, line, text);
	f->is_capped = true;
	return true;
}

static bool
recorder_file_is_shut(const struct recorder_file *f)
{
	return f->is_in_gap || f->is_capped || f->has_failed;
}

static void
recorder_file_put_gap(struct recorder_file *f, uint64_t n)
{
	struct recorder_line line = {
		.code = 'm', .t_us = f->last_us, .raw = n
	};
	char text[64];

	snprintf(text, sizeof(text), "gap: %" PRIu64 " bytes not recorded", n);
	if (recorder_file_cap(f, RECORDER_CAP_SPARE))
		recorder_file_lose(f, n);
	else
		recorder_file_event(f, line, text);
}

static void
recorder_file_put_size(struct recorder_file *f)
{
	struct recorder_line line = { .code = 'r',
		.t_us = f->last_us,
		.cols = f->cols,
		.rows = f->rows };
	char text[32];

	snprintf(text, sizeof(text), "%ux%u", f->cols, f->rows);
	if (!recorder_file_cap(f, RECORDER_CAP_SPARE))
		recorder_file_event(f, line, text);
}

static void
recorder_file_put_header(struct recorder_file *f)
{
	struct recorder_line line = { .code = 'h' };

	memcpy(f->batch, buf_head(&f->header), buf_len(&f->header));
	recorder_file_add(f, line, buf_len(&f->header));
}

void
recorder_file_retry(struct recorder_file *f, int64_t t_us, bool is_now)
{
	uint64_t lost = f->lost;

	if (!f->is_in_gap || f->is_capped || f->has_failed)
		return;
	if (!is_now) {
		if (clock_mono_us() < recorder_file_retry_at(f))
			return;
		f->retry_us = clock_mono_us();
		if (recorder_file_free(f) < RECORDER_RETRY_BYTES)
			return;
	}
	/* a failing write sets these two again */
	f->is_in_gap = false;
	f->lost = 0;
	f->checked_us = 0;
	recorder_file_time(f, t_us);
	if (f->size == 0)
		recorder_file_put_header(f);
	if (lost)
		recorder_file_put_gap(f, lost);
	if (f->cols != f->kept_cols || f->rows != f->kept_rows)
		recorder_file_put_size(f);
	recorder_file_write(f);
}

int64_t
recorder_file_retry_at(const struct recorder_file *f)
{
	if (!f->is_in_gap || f->is_capped || f->has_failed)
		return INT64_MAX;
	return f->retry_us + RECORDER_RETRY_US;
}

void
recorder_file_output(
    struct recorder_file *f, int64_t t_us, const uint8_t *p, size_t n)
{
	struct recorder_line line = { .code = 'o', .raw = f->text.n_held + n };
	size_t open, len;
	char *to;

	/* The header goes alone: only it is written whatever min_free says. */
	if (f->size == 0)
		recorder_file_write(f);
	recorder_file_retry(f, t_us, false);
	if (recorder_file_is_shut(f)) {
		recorder_file_lose(f, n);
		return;
	}
	line.t_us = recorder_file_time(f, t_us);
	to = f->batch + f->n_batch;
	open = cast_event_open(line.t_us, line.code, to);
	len = open + cast_text_put(&f->text, p, n, to + open);
	if (len == open)
		return; /* no whole character yet */
	len += cast_event_close(to + len);
	if (recorder_file_cap(f, len)) {
		recorder_file_lose(f, line.raw);
		f->text.n_held = 0;
		return;
	}
	line.raw -= f->text.n_held;
	recorder_file_add(f, line, len);
}

void
recorder_file_resize(
    struct recorder_file *f, int64_t t_us, unsigned cols, unsigned rows)
{
	recorder_file_retry(f, t_us, false);
	f->cols = cols;
	f->rows = rows;
	if (recorder_file_is_shut(f))
		return;
	recorder_file_time(f, t_us);
	recorder_file_put_size(f);
}

void
recorder_file_gap(struct recorder_file *f, int64_t t_us, uint64_t lost)
{
	recorder_file_retry(f, t_us, false);
	if (recorder_file_is_shut(f)) {
		recorder_file_lose(f, lost);
		return;
	}
	recorder_file_time(f, t_us);
	recorder_file_put_gap(f, lost);
}

void
recorder_file_marker(struct recorder_file *f, int64_t t_us, const char *text)
{
	struct recorder_line line = { .code = 'm' };
	char json[6 * (RECORDER_MARKER_MAX + 3) + 1];
	struct cast_text t = { .n_held = 0 };
	size_t n;

	recorder_file_retry(f, t_us, false);
	if (recorder_file_is_shut(f))
		return;
	line.t_us = recorder_file_time(f, t_us);
	n = cast_text_put(&t, (const uint8_t *)text, strlen(text), json);
	json[n + cast_text_end(&t, json + n)] = '\0';
	if (!recorder_file_cap(f, strlen(json) + RECORDER_CAP_SPARE))
		recorder_file_event(f, line, json);
}

void
recorder_file_sync(struct recorder_file *f)
{
	recorder_file_write(f);
	f->synced_us = clock_mono_us();
	if (!f->is_dirty)
		return;
	f->is_dirty = false;
	/* EINVAL and EROFS: a special file, which has nothing to sync */
	if (fdatasync(f->fd) == 0 || errno == EINVAL || errno == EROFS)
		return;
	err_sys(&f->error, -errno, "sync the recording");
	f->is_damaged = true;
	f->has_failed |= f->config.is_stop_on_error;
}

/* The tail that is no character, and the one event that every file has. */
static void
recorder_file_finish(struct recorder_file *f)
{
	struct recorder_line line = {
		.code = 'o', .t_us = f->last_us, .raw = f->text.n_held
	};
	char text[8] = "";

	cast_text_end(&f->text, text);
	if (line.raw || f->size + f->n_batch == buf_len(&f->header))
		recorder_file_event(f, line, text);
}

void
recorder_file_close(struct recorder_file *f, int64_t t_us)
{
	/* What waits obeys min_free; only the last marker does not. */
	recorder_file_write(f);
	f->is_closing = true;
	recorder_file_retry(f, t_us, true);
	if (!recorder_file_is_shut(f)) {
		recorder_file_time(f, t_us);
		recorder_file_finish(f);
	}
	recorder_file_sync(f);
	recorder_file_retry(f, t_us, true);
	recorder_file_sync(f);
	if (close(take_fd(&f->fd)) < 0 && errno != EINTR) {
		err_sys(&f->error, -errno, "close the recording");
		f->is_damaged = true;
	}
}

void
recorder_file_init(
    struct recorder_file *f, int fd, const struct recorder_config *c)
{
	struct cast_header h = { .cols = c->cols,
		.rows = c->rows,
		.wall_s = c->wall_s,
		.title = c->title,
		.shell = c->shell,
		.term = c->term };

	*f = (struct recorder_file){ .fd = fd,
		.config = *c,
		.cols = c->cols,
		.rows = c->rows,
		.kept_cols = c->cols,
		.kept_rows = c->rows };
	f->config.title = f->config.shell = f->config.term = NULL;
	cast_put_header(&f->header, &h);
	f->batch = xmalloc(RECORDER_BATCH + CAST_LINE_MAX);
	recorder_file_put_header(f);
}

void
recorder_file_release(struct recorder_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	buf_release(&f->header);
	free(f->batch);
}
