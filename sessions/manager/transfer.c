/* From messages of sftp-server to rows; see transfer.h. */
#include "sessions/manager/transfer.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/log.h"
#include "sessions/manager/session.h"

#define TRANSFER_LINE_MAX 4096 /* bytes of a line in FRAME_LOG */

static void
transfer_audit(struct session *s, const char *event, const char *detail)
{
	struct transfer *t = &s->transfer;

	if (t->n_events > TRANSFER_EVENTS_MAX)
		return;
	if (t->n_events++ == TRANSFER_EVENTS_MAX)
		event = "transfer_more", detail = NULL;
	store_audit_session(s->m->store, event, s->sandbox, s->id, detail);
}

static void
transfer_opened(struct session *s, const struct sftp_log_event *e)
{
	struct transfer *t = &s->transfer;
	struct store_transfer row = {
		.session_id = s->id,
		.path = e->path,
		.is_in = e->is_write,
		.started_ms = clock_wall_ms(),
		.status = "open",
	};

	if (t->n_rows > TRANSFER_ROWS_MAX)
		return;
	if (t->n_rows++ == TRANSFER_ROWS_MAX) {
		row.status = "more";
		row.path = "(more files than are listed)";
		row.finished_ms = row.started_ms;
	}
	t->after_open = t->n_rows <= TRANSFER_ROWS_MAX;
	store_transfer_insert(s->m->store, &row);
}

static void
transfer_closed(struct session *s, const struct sftp_log_event *e)
{
	const char *status = e->is_forced ? "cut"
			     : e->is_cut  ? "unknown"
					  : "done";
	bool is_in = e->n_written > 0;
	uint64_t bytes = is_in ? e->n_written : e->n_read;
	struct store_transfer row = {
		.session_id = s->id,
		.path = e->path,
		.is_in = is_in,
		.bytes = bytes,
		.finished_ms = clock_wall_ms(),
		.status = status,
	};
	char detail[SFTP_LOG_PATH_MAX + 64];

	if (s->transfer.n_closes++ >= TRANSFER_CLOSES_MAX)
		return;
	store_transfer_finish(s->m->store, &row);
	snprintf(detail, sizeof(detail), "%s %s%llu bytes: %s", status,
	    is_in       ? "in "
	    : e->n_read ? "out "
			: "",
	    (unsigned long long)bytes, e->path);
	transfer_audit(s, "transfer", detail);
	/* Read and written: a row each. */
	if (!is_in || e->n_read == 0 || s->transfer.n_rows >= TRANSFER_ROWS_MAX)
		return;
	s->transfer.n_rows++;
	row.is_in = false;
	row.bytes = e->n_read;
	row.started_ms = row.finished_ms;
	store_transfer_insert(s->m->store, &row);
}

static void
transfer_take(struct session *s, const struct sftp_log_event *e)
{
	bool after_open = s->transfer.after_open;

	s->transfer.after_open = false;
	switch (e->kind) {
	case SFTP_LOG_OPEN:
		transfer_opened(s, e);
		return;
	case SFTP_LOG_CLOSE:
		transfer_closed(s, e);
		return;
	case SFTP_LOG_STATUS:
		/* If it was about something else, the close will tell. */
		if (after_open)
			store_transfer_failed(
			    s->m->store, s->id, clock_wall_ms());
		return;
	case SFTP_LOG_CHANGE:
		transfer_audit(s, "file_change", e->path);
		return;
	default:
		return;
	}
}

/* Lines are missing: what comes next does not go on with what was begun. */
static void
transfer_lost(struct session *s, uint32_t lines)
{
	struct transfer *t = &s->transfer;
	char text[16];

	snprintf(text, sizeof(text), "%u", lines);
	if (!t->has_lost)
		log_warn("transfer_lines_lost", "sid", s->id, "lines", text,
		    "why", "the sandbox logs too fast", NULL);
	t->has_lost = true;
	t->after_open = false;
	sftp_log_release(&t->log);
}

int
transfer_on_log(struct session *s, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	uint32_t lost = reader_u32(&r), n = reader_u32(&r);
	autofree struct sftp_log_event *e = xmalloc(sizeof(*e));

	if (lost)
		transfer_lost(s, lost);
	while (n-- > 0 && !r.failed) {
		size_t len;
		const uint8_t *line = reader_bytes(&r, TRANSFER_LINE_MAX, &len);

		if (line && sftp_log_feed(&s->transfer.log, line, len, e))
			transfer_take(s, e);
	}
	if (lost)
		transfer_lost(s, lost);
	return reader_done(&r) ? 0 : -EPROTO;
}

void
transfer_audit_copy(
    struct session *s, const char *status, bool is_in, uint64_t bytes)
{
	char detail[SFTP_LOG_PATH_MAX + 64];

	snprintf(detail, sizeof(detail), "%s %s %llu bytes: %s", status,
	    is_in ? "in" : "out", (unsigned long long)bytes,
	    s->transfer.copy_path);
	transfer_audit(s, "transfer", detail);
}

void
transfer_end(struct session *s, int64_t now_ms)
{
	if (s->transfer.is_possible)
		store_transfer_end(s->m->store, s->sandbox, s->id, now_ms);
	s->transfer.is_possible = false;
}

void
transfer_release(struct transfer *t)
{
	sftp_log_release(&t->log);
	free(take_ptr(t->copy_path));
}
