/* Encoding of tasks and reports; see task.h. */
#include "sandbox/task.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sandbox/command.h"

#define TASK_PROGRESS_MS 1000

static int task_progress_fd = -1;

static const char *const task_ops[TASK_OPS] = {
	[TASK_PROVISION] = "provision",
	[TASK_TEARDOWN] = "teardown",
	[TASK_HALT] = "halt",
	[TASK_PROBE] = "probe",
	[TASK_REAP] = "reap",
	[TASK_SUSPEND] = "suspend",
	[TASK_RESUME] = "resume",
	[TASK_MEASURE] = "measure",
	[TASK_SNAPSHOT] = "snapshot",
	[TASK_UNPACK] = "unpack",
	[TASK_UNSTAGE] = "unstage",
	[TASK_REPLACE] = "replace",
	[TASK_FILL] = "fill",
	[TASK_DRAIN] = "drain",
};

const char *
task_op_name(enum task_op op)
{
	return task_ops[op];
}

void
task_encode(struct buf *b, const struct task *t)
{
	const struct sandbox_spec *s = &t->spec;

	buf_put_u32(b, TASK_VERSION);
	buf_put_u8(b, (uint8_t)t->op);
	buf_put_str(b, s->name);
	buf_put_str(b, s->provider);
	buf_put_str(b, s->dir);
	buf_put_str(b, s->user);
	buf_put_str(b, s->shell);
	buf_put_u32(b, s->uid);
	buf_put_u32(b, s->gid);
	buf_put_u8(b, s->must_setuid);
	buf_put_str(b, s->rootfs);
	buf_put_u32(b, s->network);
	buf_put_u32(b, s->cpu_percent);
	buf_put_u64(b, s->memory_bytes);
	buf_put_u64(b, s->pids_max);
	buf_put_u64(b, s->workspace_bytes);
	buf_put_str(b, s->image);
	buf_put_str(b, s->member);
	buf_put_str(b, s->address);
	buf_put_u8(b, s->lacks_sftp_server);
	buf_put_str(b, t->arg);
	buf_put_str(b, t->file);
	command_encode(b, t->command);
}

int
task_decode(const void *p, size_t n, struct task *out)
{
	struct reader r = reader_over(p, n);
	struct task t = { .op = TASK_PROVISION };
	struct sandbox_spec *s = &t.spec;
	uint8_t op;

	if (reader_u32(&r) != TASK_VERSION)
		return -EPROTO;
	op = reader_u8(&r);
	reader_str_into(&r, s->name, sizeof(s->name));
	reader_str_into(&r, s->provider, sizeof(s->provider));
	reader_str_into(&r, s->dir, sizeof(s->dir));
	reader_str_into(&r, s->user, sizeof(s->user));
	reader_str_into(&r, s->shell, sizeof(s->shell));
	s->uid = reader_u32(&r);
	s->gid = reader_u32(&r);
	s->must_setuid = reader_u8(&r) == 1;
	reader_str_into(&r, s->rootfs, sizeof(s->rootfs));
	s->network = reader_u32(&r);
	s->cpu_percent = reader_u32(&r);
	s->memory_bytes = reader_u64(&r);
	s->pids_max = reader_u64(&r);
	s->workspace_bytes = reader_u64(&r);
	reader_str_into(&r, s->image, sizeof(s->image));
	reader_str_into(&r, s->member, sizeof(s->member));
	reader_str_into(&r, s->address, sizeof(s->address));
	s->lacks_sftp_server = reader_u8(&r) == 1;
	reader_str_into(&r, t.arg, sizeof(t.arg));
	reader_str_into(&r, t.file, sizeof(t.file));
	command_decode(&r, &t.command);
	if (!reader_done(&r) || op >= TASK_OPS ||
	    s->network > SANDBOX_NET_NONE || s->cpu_percent > SANDBOX_CPU_MAX ||
	    s->uid == 0 || !sandbox_name_is_valid(s->name) ||
	    (s->member[0] && !sandbox_name_is_valid(s->member)) ||
	    s->dir[0] != '/' || (t.file[0] && t.file[0] != '/')) {
		command_free(t.command);
		return -EPROTO;
	}
	t.op = (enum task_op)op;
	*out = t;
	return 0;
}

/* The fields of metrics in the order of the wire. */
#define TASK_METRICS 8

static void
task_metrics(struct sandbox_metrics *m, int64_t *out[TASK_METRICS])
{
	int64_t *fields[TASK_METRICS] = { &m->cpu_us, &m->memory_bytes,
		&m->memory_peak_bytes, &m->processes, &m->net_rx_bytes,
		&m->net_tx_bytes, &m->disk_bytes, &m->oom_kills };

	memcpy(out, fields, sizeof(fields));
}

void
task_report_encode(struct buf *b, const struct task_report *r)
{
	struct sandbox_metrics m = r->metrics;
	int64_t *fields[TASK_METRICS];

	buf_put_u8(b, (uint8_t)r->kind);
	buf_put_str(b, r->line);
	buf_put_u32(b, (uint32_t)-r->code);
	buf_put_str(b, r->made.missing);
	buf_put_u8(b, (uint8_t)r->made.phase);
	buf_put_str(b, r->made.address);
	buf_put_u8(b, r->made.lacks_sftp_server);
	buf_put_u8(b, r->made.is_claimed);
	task_metrics(&m, fields);
	for (size_t i = 0; i < TASK_METRICS; i++)
		buf_put_u64(b, (uint64_t)*fields[i]);
	buf_put_u64(b, r->copied.files);
	buf_put_u64(b, r->copied.bytes);
	buf_put_u64(b, r->copied.skipped);
	buf_put_str(b, r->copied.hash);
}

int
task_report_decode(const void *p, size_t n, struct task_report *out)
{
	struct reader r = reader_over(p, n);
	struct task_report t = { .kind = TASK_PROGRESS };
	uint8_t kind = reader_u8(&r), phase;
	int64_t *fields[TASK_METRICS];
	uint32_t code;

	reader_str_into(&r, t.line, sizeof(t.line));
	code = reader_u32(&r);
	reader_str_into(&r, t.made.missing, sizeof(t.made.missing));
	phase = reader_u8(&r);
	reader_str_into(&r, t.made.address, sizeof(t.made.address));
	t.made.lacks_sftp_server = reader_u8(&r) == 1;
	t.made.is_claimed = reader_u8(&r) == 1;
	task_metrics(&t.metrics, fields);
	for (size_t i = 0; i < TASK_METRICS; i++)
		*fields[i] = (int64_t)reader_u64(&r);
	t.copied.files = reader_u64(&r);
	t.copied.bytes = reader_u64(&r);
	t.copied.skipped = reader_u64(&r);
	reader_str_into(&r, t.copied.hash, sizeof(t.copied.hash));
	if (!reader_done(&r) ||
	    (kind != TASK_PROGRESS && kind != TASK_RESULT) || code > 4095 ||
	    phase > SANDBOX_GONE)
		return -EPROTO;
	t.made.phase = (enum sandbox_phase)phase;
	t.kind = (enum task_kind)kind;
	t.code = -(int)code;
	*out = t;
	return 0;
}

void
task_progress_to(int fd)
{
	task_progress_fd = fd;
}

void
task_progress(const char *fmt, ...)
{
	struct task_report r = { .kind = TASK_PROGRESS };
	struct buf b = { 0 };
	va_list ap;

	if (task_progress_fd < 0)
		return;
	va_start(ap, fmt);
	vsnprintf(r.line, sizeof(r.line), fmt, ap);
	va_end(ap);
	task_report_encode(&b, &r);
	(void)send(task_progress_fd, buf_head(&b), buf_len(&b),
	    MSG_DONTWAIT | MSG_NOSIGNAL);
	buf_release(&b);
}

void
task_progress_files(uint64_t files, uint64_t bytes)
{
	static int64_t next_ms;
	int64_t now_ms = clock_mono_ms();

	if (next_ms == 0)
		next_ms = now_ms + TASK_PROGRESS_MS;
	if (now_ms < next_ms)
		return;
	next_ms = now_ms + TASK_PROGRESS_MS;
	task_progress("%" PRIu64 " files, %" PRIu64 " MiB of archive", files,
	    bytes >> 20);
}

int
task_check(struct err *e)
{
	struct pollfd p = { .fd = task_progress_fd, .events = POLLRDHUP };

	if (task_progress_fd < 0 || poll(&p, 1, 0) <= 0 ||
	    !(p.revents & (POLLHUP | POLLRDHUP | POLLERR)))
		return 0;
	return err_set(e, -ECANCELED, "berthd does not wait any more");
}
