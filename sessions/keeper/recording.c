/* The recorder on the keeper's loop; see recording.h. */
#include "sessions/keeper/recording.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "sessions/keeper/keeper.h"
#include "sessions/keeper/recorder.h"

#define RECORDING_CLOSE_MS 5000

void
recording_init(struct recording *r, struct keeper *k, int fd)
{
	*r = (struct recording){ .k = k, .waiting_fd = fd };
}

/* The value of NAME in the child's environment, or "". */
static const char *
recording_env(const struct keeper *k, const char *name)
{
	size_t n = strlen(name);

	for (char **e = k->launch.env; e && *e; e++) {
		if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
			return *e + n + 1;
	}
	return "";
}

static void
recording_send_index(struct recording *r, const struct recorder_report *rep)
{
	struct buf b = { 0 };

	if (rep->n_index == 0)
		return;
	buf_put_u32(&b, rep->n_index);
	for (unsigned i = 0; i < rep->n_index; i++) {
		buf_put_u64(&b, rep->index[i].t_ms);
		buf_put_u64(&b, rep->index[i].offset);
	}
	manager_link_send(&r->k->manager, FRAME_INDEX, 0, 0, &b);
	buf_release(&b);
}

static void
recording_answer_flush(struct recording *r)
{
	for (unsigned i = 0; i < r->n_flush_tags; i++)
		manager_link_send(
		    &r->k->manager, FRAME_OK, 0, r->flush_tags[i], NULL);
	r->n_flush_tags = 0;
}

static void
recording_fail(struct recording *r, const struct recorder_report *rep)
{
	char note[sizeof(rep->error) + 32];

	snprintf(note, sizeof(note), "the recording failed: %s", rep->error);
	stop_begin(&r->k->stop, STOP_ALL, r->k->launch.stop_grace_ms, note);
}

static void
recording_on_report(evutil_socket_t fd, short what, void *arg)
{
	struct recording *r = arg;
	struct keeper *k = r->k;
	struct recorder_report rep = { 0 };

	(void)fd;
	(void)what;
	recorder_poll(r->recorder, &rep);
	if (rep.bytes != r->bytes || rep.gaps != r->gaps)
		manager_link_stats_changed(&k->manager);
	r->bytes = rep.bytes;
	r->duration_ms = rep.duration_ms;
	r->gaps = rep.gaps;
	r->is_complete = rep.is_closed && rep.is_complete;
	recording_send_index(r, &rep);
	if (rep.error[0])
		log_warn("recording_trouble", "error", rep.error, NULL);
	if (rep.is_flushed || rep.is_closed)
		recording_answer_flush(r);
	if (rep.has_failed && k->state == STATE_RUNNING && !k->stop.is_active)
		recording_fail(r, &rep);
	if (rep.is_closed && !r->is_closed) {
		r->is_closed = true;
		event_del(r->report_ev);
		keeper_advance(k);
	}
	output_update(&k->output);
	pipes_update(&k->pipes);
}

void
recording_start(struct recording *r)
{
	struct keeper *k = r->k;
	struct recorder_config c = {
		.cols = k->size.cols,
		.rows = k->size.rows,
		.title = k->launch.title,
		.shell = recording_env(k, "SHELL"),
		.term = recording_env(k, "TERM"),
		.wall_s = clock_wall_ms() / 1000,
		.start_us = clock_mono_us(),
		.flush_ms = k->launch.rec_flush_ms,
		.index_ms = k->launch.rec_index_ms,
		.min_free = k->launch.rec_min_free,
		.max_bytes = k->launch.rec_max_bytes,
		.is_stop_on_error = keeper_has(k, LAUNCH_REC_STOP),
	};

	if (r->waiting_fd < 0)
		return;
	r->recorder = recorder_new(take_fd(&r->waiting_fd), &c);
	r->report_ev = event_new(k->base, recorder_event_fd(r->recorder),
	    EV_READ | EV_PERSIST, recording_on_report, r);
	if (!r->report_ev)
		abort();
	event_add(r->report_ev, NULL);
}

void
recording_release(struct recording *r)
{
	if (r->report_ev)
		event_free(r->report_ev);
	if (r->recorder)
		recorder_free(r->recorder);
	if (r->waiting_fd >= 0)
		close(r->waiting_fd);
	*r = (struct recording){ .waiting_fd = -1 };
}

size_t
recording_room(const struct recording *r)
{
	return r->recorder ? recorder_room(r->recorder) : SIZE_MAX;
}

void
recording_output(struct recording *r, const void *p, size_t n)
{
	if (r->recorder && n)
		recorder_output(r->recorder, p, n);
}

void
recording_resize(struct recording *r, unsigned cols, unsigned rows)
{
	if (r->recorder && !r->close_ms)
		recorder_resize(r->recorder, cols, rows);
}

void
recording_marker(struct recording *r, const char *text)
{
	if (r->recorder && !r->close_ms)
		recorder_marker(r->recorder, text);
}

void
recording_flush(struct recording *r, uint16_t tag)
{
	if (!r->recorder || r->is_closed) {
		manager_link_send(&r->k->manager, FRAME_OK, 0, tag, NULL);
		return;
	}
	/* The oldest is answered early rather than never. */
	if (r->n_flush_tags == RECORDING_FLUSH_MAX)
		recording_answer_flush(r);
	r->flush_tags[r->n_flush_tags++] = tag;
	if (!r->close_ms)
		recorder_flush(r->recorder);
}

void
recording_close(struct recording *r)
{
	if (!r->recorder || r->close_ms)
		return;
	r->close_ms = clock_mono_ms();
	recorder_close(r->recorder);
}

bool
recording_is_over(const struct recording *r)
{
	return !r->recorder || r->is_closed ||
	       (r->close_ms &&
		   clock_mono_ms() - r->close_ms > RECORDING_CLOSE_MS);
}

uint8_t
recording_state(const struct recording *r)
{
	if (!r->recorder)
		return 0;
	return r->is_closed && r->is_complete ? 1 : 2;
}
