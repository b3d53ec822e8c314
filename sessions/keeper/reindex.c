/* Index rows from a file; see reindex.h. Trusts nothing that the file says. */
#include "sessions/keeper/reindex.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "sessions/keeper/cast.h"
#include "sessions/keeper/recorder.h"
#include "sessions/wire/link.h"

#define REINDEX_PART  (256U << 10)
#define REINDEX_BYTES ((1U << 20) - CAST_LINE_MAX)
#define REINDEX_MS    10000
#define REINDEX_ROWS  RECORDER_INDEX_MAX /* of one frame */
#define REINDEX_HEAD  48                 /* "[TIME, "o"" of a line */

struct reindex {
	struct link link;
	struct recorder_index rows[REINDEX_ROWS], last;
	unsigned n_rows;
	uint64_t line;           /* offset of the line that is being read */
	char head[REINDEX_HEAD]; /* its beginning, terminated */
	size_t n_head;
};

static int
reindex_send(struct reindex *x)
{
	struct buf b = { 0 };

	if (x->n_rows == 0)
		return 0;
	buf_put_u32(&b, x->n_rows);
	for (unsigned i = 0; i < x->n_rows; i++) {
		buf_put_u64(&b, x->rows[i].t_ms);
		buf_put_u64(&b, x->rows[i].offset);
	}
	link_send(&x->link, FRAME_INDEX, 0, 0, buf_head(&b), buf_len(&b));
	buf_release(&b);
	x->n_rows = 0;
	return link_flush(&x->link);
}

/* True if the line that was read is an event of output; then its time. */
static bool
reindex_event(const struct reindex *x, uint64_t *t_ms_out)
{
	char code;
	double t;

	/* NOLINTNEXTLINE(cert-err34-c): what does not fit is no event */
	if (sscanf(x->head, "[%lf, \"%c\"", &t, &code) != 2 || code != 'o' ||
	    !(t >= 0 && t < 1e12))
		return false;
	*t_ms_out = (uint64_t)(t * 1000);
	return true;
}

/* The line is whole, and NEXT is where the one behind it begins. */
static int
reindex_line(struct reindex *x, uint64_t next)
{
	struct recorder_index row = { .offset = x->line };
	bool is_first = x->last.offset == 0;

	x->head[x->n_head] = '\0';
	x->n_head = 0;
	x->line = next;
	if (!reindex_event(x, &row.t_ms))
		return 0;
	if (!is_first && row.offset - x->last.offset < REINDEX_BYTES &&
	    row.t_ms < x->last.t_ms + REINDEX_MS)
		return 0;
	x->last = row;
	x->rows[x->n_rows++] = row;
	return x->n_rows == REINDEX_ROWS ? reindex_send(x) : 0;
}

static int
reindex_part(struct reindex *x, const char *p, size_t n, uint64_t at)
{
	const char *begin = p, *end = p + n;
	int rc = 0;

	while (p < end && rc == 0) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((nl ? nl : end) - p);
		size_t room = sizeof(x->head) - 1 - x->n_head;

		memcpy(x->head + x->n_head, p, len < room ? len : room);
		x->n_head += len < room ? len : room;
		p += len;
		if (!nl)
			break;
		p++;
		rc = reindex_line(x, at + (uint64_t)(p - begin));
	}
	return rc;
}

int
reindex_run(int link_fd, int file_fd)
{
	struct reindex x = { 0 };
	autofree char *part = xmalloc(REINDEX_PART);
	uint64_t at = 0;
	int rc = 0;

	link_init(&x.link, link_fd);
	while (rc == 0) {
		ssize_t n = pread(file_fd, part, REINDEX_PART, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			rc = -errno;
		if (n <= 0)
			break;
		rc = reindex_part(&x, part, (size_t)n, at);
		at += (uint64_t)n;
	}
	if (rc == 0)
		rc = reindex_send(&x);
	link_release(&x.link);
	return rc;
}
