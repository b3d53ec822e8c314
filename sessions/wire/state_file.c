/* The content of a session's lock file; see state_file.h. */
#include "sessions/wire/state_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define STATE_FILE_MAGIC   0x62727468 /* "brth" */
#define STATE_FILE_VERSION 1
#define STATE_FILE_MAX     8192

/* FNV-1a: against a half-written file, not against an enemy. */
static uint32_t
state_file_sum(const uint8_t *p, size_t n)
{
	uint32_t h = 2166136261U;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 16777619U;
	return h;
}

void
state_file_boot(char out[40])
{
	autoclose int fd =
	    open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, out, 36);

	out[n > 0 ? n : 0] = '\0';
}

static void
state_file_encode(struct buf *b, const struct state_file *s)
{
	struct buf x = { 0 };

	buf_put_u32(b, STATE_FILE_MAGIC);
	buf_put_u32(b, STATE_FILE_VERSION);
	buf_put_str(b, s->sid);
	buf_put_str(b, s->boot);
	buf_put_u32(b, s->keeper_pid);
	buf_put_u64(b, s->keeper_start);
	buf_put_u32(b, s->pid);
	buf_put_u64(b, s->pid_start);
	buf_put_u64(b, s->started_ms);
	buf_put_u8(b, s->has_exited);
	if (s->has_exited)
		wire_exited_encode(&x, &s->exited);
	buf_put_bytes(b, buf_head(&x), buf_len(&x));
	buf_put_u32(b, s->n_left);
	for (uint32_t i = 0; i < s->n_left; i++) {
		buf_release(&x);
		wire_left_encode(&x, &s->left[i], FRAME_VERSION);
		buf_put_bytes(b, buf_head(&x), buf_len(&x));
	}
	buf_release(&x);
	buf_put_u32(b, state_file_sum(buf_head(b), buf_len(b)));
}

int
state_file_write(int fd, const struct state_file *s)
{
	struct buf b = { 0 };
	int rc = 0;
	ssize_t n;

	state_file_encode(&b, s);
	n = pwrite(fd, buf_head(&b), buf_len(&b), 0);
	if (n != (ssize_t)buf_len(&b))
		rc = n < 0 ? -errno : -ENOSPC;
	else if (ftruncate(fd, n) < 0)
		rc = -errno;
	buf_release(&b);
	return rc;
}

static int
state_file_decode(const uint8_t *p, size_t n, struct state_file *out)
{
	struct reader r = reader_over(p, n - 4),
		      sum = reader_over(p + n - 4, 4);
	const uint8_t *part;
	size_t len;

	if (reader_u32(&sum) != state_file_sum(p, n - 4) ||
	    reader_u32(&r) != STATE_FILE_MAGIC ||
	    reader_u32(&r) != STATE_FILE_VERSION)
		return -EPROTO;
	reader_str_into(&r, out->sid, sizeof(out->sid));
	reader_str_into(&r, out->boot, sizeof(out->boot));
	out->keeper_pid = reader_u32(&r);
	out->keeper_start = reader_u64(&r);
	out->pid = reader_u32(&r);
	out->pid_start = reader_u64(&r);
	out->started_ms = reader_u64(&r);
	out->has_exited = reader_u8(&r);
	part = reader_bytes(&r, STATE_FILE_MAX, &len);
	if (part &&
	    (out->has_exited ? wire_exited_decode(part, len, &out->exited) < 0
			     : len > 0))
		return -EPROTO;
	out->n_left = reader_u32(&r);
	if (out->n_left > STATE_FILE_LEFT_MAX)
		return -EPROTO;
	for (uint32_t i = 0; i < out->n_left && !r.failed; i++) {
		part = reader_bytes(&r, STATE_FILE_MAX, &len);
		if (part && wire_left_decode(
				part, len, FRAME_VERSION, &out->left[i]) < 0)
			return -EPROTO;
	}
	return reader_done(&r) && out->has_exited <= 1 ? 0 : -EPROTO;
}

int
state_file_read(int fd, struct state_file *out)
{
	struct state_file s = { 0 };
	uint8_t bytes[STATE_FILE_MAX];
	ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
	int rc;

	if (n <= 0)
		return n < 0 ? -errno : -ENODATA;
	if (n < 12)
		return -EPROTO;
	rc = state_file_decode(bytes, (size_t)n, &s);
	if (rc == 0)
		*out = s;
	return rc;
}
