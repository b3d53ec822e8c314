/*
 * Requests: somebody waits for a session to start, for a keeper's answer, for
 * the end of a dying one. Each has one timer, so that none waits for ever, and
 * is answered exactly once, from the loop.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "sessions/manager/attachment.h"
#include "sessions/manager/session.h"

#define REQUEST_TRIES_MAX 5
#define REQUEST_BOX_MS    90000 /* beyond the limit of its job */

static void
request_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct request *r = arg;

	(void)fd;
	(void)what;
	switch (r->state) {
	case REQUEST_ANSWER:
		request_answer(r, r->code, r->why, -1);
		return;
	case REQUEST_START:
		request_answer(
		    r, MANAGER_FAILED, "the session did not start in time", -1);
		return;
	case REQUEST_BOX:
		request_answer(
		    r, MANAGER_FAILED, "the sandbox takes too long", -1);
		return;
	case REQUEST_END:
		request_answer(r, MANAGER_FAILED,
		    "the session is ending and does not finish; try again", -1);
		return;
	default:
		request_answer(r, MANAGER_FAILED,
		    "the session's keeper does not answer; try again", -1);
	}
}

static char *
request_copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

struct request *
request_new(struct manager *m, const struct principal *who,
    manager_answer_fn fn, void *arg)
{
	struct request *r = xcalloc(1, sizeof(*r));

	list_init(&r->node);
	r->m = m;
	m->n_requests++;
	r->fn = fn;
	r->arg = arg;
	r->client_fd = -1;
	r->who = *who;
	r->who.forced_command = request_copy(who->forced_command);
	r->who.sandbox_globs = request_copy(who->sandbox_globs);
	r->who.session_globs = request_copy(who->session_globs);
	r->timer = evtimer_new(m->base, request_on_timer, r);
	if (!r->timer)
		abort();
	return r;
}

static void
request_free_spec(struct manager_new_session *spec)
{
	free((char *)(uintptr_t)spec->sandbox);
	free((char *)(uintptr_t)spec->name);
	free((char *)(uintptr_t)spec->cwd);
	strv_free(spec->env);
	strv_free(spec->argv);
}

void
request_free(struct request *r)
{
	struct box *b = r->sandbox[0] ? box_find(r->m, r->sandbox) : NULL;

	r->m->n_requests--;
	list_remove(&r->node);
	/* It may have been the last that used it. */
	if (b)
		box_life_changed(b);
	event_free(r->timer);
	if (r->client_fd >= 0)
		close(r->client_fd);
	principal_release(&r->who);
	wire_run_release(&r->run);
	request_free_spec(&r->spec);
	free(r->copy_path);
	free(r);
}

void
manager_on_progress(struct request *r, void (*fn)(const char *line, void *arg))
{
	if (r)
		r->on_progress = fn;
}

void
manager_cancel(struct request *r)
{
	if (r)
		request_free(r);
}

static void
request_wait(struct request *r, enum request_state state, int ms)
{
	struct timeval tv = { ms / 1000, (ms % 1000) * 1000 };

	r->state = state;
	evtimer_add(r->timer, &tv);
}

void
request_fail(struct request *r, enum manager_code code, const char *fmt, ...)
{
	va_list ap;

	list_remove(&r->node);
	r->s = NULL;
	r->code = code;
	va_start(ap, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
	request_wait(r, REQUEST_ANSWER, 0);
}

void
request_answer(
    struct request *r, enum manager_code code, const char *why, int fd)
{
	struct manager_answer a = {
		.code = code,
		.why = why,
		.fd = fd,
		.is_pty = r->s && r->s->is_pty,
		.frame_version = r->s ? r->s->wire.version : FRAME_VERSION,
		.sid = r->s ? r->s->id : NULL,
		.cols = r->viewer.size.cols,
		.rows = r->viewer.size.rows,
	};

	list_remove(&r->node);
	r->fn(&a, r->arg);
	request_free(r);
}

/* Makes the pair and hands the keeper its end. */
static void
request_ask(struct request *r)
{
	bool is_starting = r->s->phase == PHASE_STARTING;
	struct buf b = { 0 };
	int pair[2], rc;

	/* A keeper that reads nothing any more gets no more descriptors. */
	if (!link_has_fd_room(&r->s->wire.link)) {
		request_fail(r, MANAGER_FAILED,
		    "the session's keeper does not answer; try again");
		return;
	}
	rc = fd_socketpair(pair, true);
	if (rc < 0) {
		request_fail(r, MANAGER_FAILED, "no descriptor is free: %s",
		    strerrordesc_np(-rc));
		return;
	}
	r->tag = ++r->m->next_tag;
	r->client_fd = pair[0];
	r->is_acked = false;
	attachment_begin(r);
	r->viewer.notice = r->notice;
	r->viewer.identity = r->who.identity;
	r->viewer.version = r->who.frame_version;
	wire_viewer_encode(&b, &r->viewer, r->s->wire.version);
	free(take_ptr(r->viewer.label));
	wire_send_fd(&r->s->wire, FRAME_VIEWER, 0, r->tag, buf_head(&b),
	    buf_len(&b), pair[1]);
	buf_release(&b);
	request_wait(
	    r, REQUEST_ACK, is_starting ? MANAGER_START_MS : MANAGER_ACK_MS);
}

void
request_join(struct request *r, struct session *s)
{
	list_remove(&r->node);
	r->s = s;
	list_append(&s->requests, &r->node);
	if (!s->is_ready)
		request_wait(r, REQUEST_READY, MANAGER_READY_MS);
	else if (r->wants_link)
		request_ask(r);
	else
		request_wait(r, REQUEST_START, MANAGER_START_MS);
}

void
request_wait_box(struct request *r, int extra_ms)
{
	request_wait(r, REQUEST_BOX, REQUEST_BOX_MS + extra_ms);
}

void
request_wait_copy(struct request *r)
{
	request_wait(r, REQUEST_BOX, MANAGER_COPY_MS + REQUEST_BOX_MS);
}

void
request_go_on(struct request *r)
{
	if (r->go_on)
		r->go_on(r);
	else
		request_fail(r, MANAGER_OK, "%s", "");
}

void
request_on_ready(struct session *s)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &s->requests) {
		struct request *r = list_entry(pos, struct request, node);

		if (r->state == REQUEST_READY)
			request_join(r, s);
	}
}

void
request_flush(struct request *r, struct session *s)
{
	r->s = s;
	r->tag = ++r->m->next_tag;
	list_append(&s->requests, &r->node);
	wire_send(&s->wire, FRAME_FLUSH, 0, r->tag, NULL, 0);
	request_wait(r, REQUEST_FLUSH, MANAGER_START_MS);
}

void
request_screen(struct request *r, struct session *s, unsigned flags)
{
	int fd;

	r->s = s;
	r->tag = ++r->m->next_tag;
	list_append(&s->requests, &r->node);
	if (s->wire.version < 2) {
		request_fail(r, MANAGER_CONFLICT,
		    "the keeper of session %s is too old for that", s->id);
		return;
	}
	if (!link_has_fd_room(&s->wire.link)) {
		request_fail(r, MANAGER_FAILED,
		    "the session's keeper does not answer; try again");
		return;
	}
	r->client_fd = memfd_create("screen", MFD_CLOEXEC);
	fd = r->client_fd < 0 ? -1 : fcntl(r->client_fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0) {
		request_fail(r, MANAGER_FAILED, "no file for the screen: %s",
		    strerrordesc_np(errno));
		return;
	}
	wire_send_fd(
	    &s->wire, FRAME_SCREEN, (uint8_t)flags, r->tag, NULL, 0, fd);
	request_wait(r, REQUEST_SCREEN, MANAGER_START_MS);
}

static void
request_attached(struct request *r)
{
	struct session *s = r->s;

	s->n_attached++;
	attachment_began(s, (int64_t)r->viewer.attachment, &r->viewer.size,
	    !(r->viewer.flags & VIEWER_MAY_TYPE));
	log_info("attach", "sid", s->id, "identity", r->who.identity, "addr",
	    r->who.remote_addr, NULL);
	store_audit(r->m->store, "attach", r->who.identity, r->who.remote_addr,
	    s->sandbox, s->id, s->name[0] ? s->name : NULL);
	request_answer(r, MANAGER_OK, "", take_fd(&r->client_fd));
}

void
request_on_started(struct session *s)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &s->requests) {
		struct request *r = list_entry(pos, struct request, node);

		if (r->state == REQUEST_START)
			request_answer(r, MANAGER_OK, "", -1);
		else if (r->state == REQUEST_ACK && r->is_acked)
			request_attached(r);
	}
}

static struct request *
request_by_tag(struct session *s, uint16_t tag, enum request_state state)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &s->requests) {
		struct request *r = list_entry(pos, struct request, node);

		if (r->tag == tag && r->state == state)
			return r;
	}
	return NULL;
}

void
request_on_ack(struct session *s, uint16_t tag, bool attached)
{
	struct request *r = request_by_tag(s, tag, REQUEST_ACK);

	/* Answered too late: dropping our end ends that viewer. */
	if (!r)
		return;
	if (attached && s->phase == PHASE_STARTING) {
		r->is_acked = true;
		return;
	}
	if (attached) {
		request_attached(r);
		return;
	}
	store_attachment_ended(r->m->store, s->id,
	    (int64_t)r->viewer.attachment, clock_wall_ms(), 0, 0, 0);
	close(take_fd(&r->client_fd));
	if (r->is_shell)
		request_wait(r, REQUEST_END, MANAGER_START_MS);
	else
		request_answer(
		    r, MANAGER_NOT_FOUND, "the session has ended", -1);
}

void
request_on_ok(struct session *s, uint16_t tag)
{
	struct request *r = request_by_tag(s, tag, REQUEST_FLUSH);

	if (r)
		request_answer(r, MANAGER_OK, "", -1);
}

void
request_on_text(struct session *s, uint16_t tag, const struct wire_size *size)
{
	struct request *r = request_by_tag(s, tag, REQUEST_SCREEN);
	int fd;

	if (!r)
		return;
	fd = take_fd(&r->client_fd);
	if (lseek(fd, 0, SEEK_SET) < 0) {
		close(fd);
		request_answer(r, MANAGER_FAILED, "the file has no start", -1);
		return;
	}
	r->viewer.size = *size;
	request_answer(r, MANAGER_OK, "", fd);
}

bool
request_on_error(struct session *s, uint16_t tag, uint8_t code, const char *why)
{
	struct request *r = request_by_tag(s, tag, REQUEST_SCREEN);

	if (!r)
		return false;
	request_answer(
	    r, code == MANAGER_CONFLICT ? code : MANAGER_FAILED, why, -1);
	return true;
}

/* A shell's codes for what is no program, for those who want to know. */
static enum manager_code
request_end_code(const struct request *r, const struct session *s)
{
	if (r->tells_exec && s->exec_code == MANAGER_NO_PROGRAM)
		return MANAGER_NO_PROGRAM;
	if (r->tells_exec && s->exec_code == MANAGER_NOT_RUNNABLE)
		return MANAGER_NOT_RUNNABLE;
	return MANAGER_FAILED;
}

void
request_on_end(struct session *s, bool has_started, const char *note)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &s->requests) {
		struct request *r = list_entry(pos, struct request, node);

		/* A start that failed would fail again. */
		if (!r->is_shell || !has_started ||
		    ++r->n_tries > REQUEST_TRIES_MAX) {
			request_fail(r, request_end_code(r, s), "%s",
			    note ? note : "the session has ended");
			continue;
		}
		list_remove(&r->node);
		r->s = NULL;
		if (r->client_fd >= 0)
			close(take_fd(&r->client_fd));
		attach_begin(r);
	}
}
