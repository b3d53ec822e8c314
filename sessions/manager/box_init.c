/*
 * The init command of a template: a session of berth's own, recorded like any
 * other, that has to end well before anybody is let into a new sandbox. It ran
 * when its row says so, so that no later start of the sandbox repeats it.
 */
#include <errno.h>
#include <event2/event.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "conf/conf.h"
#include "sessions/manager/box.h"
#include "sessions/manager/box_internal.h"
#include "sessions/manager/session.h"

/* No client can name a session so. */
#define INIT_NAME ".init"

/* So much of its recording is looked at for its last line. */
#define INIT_TAIL 16384

bool
box_template(const struct box *b, struct conf_template *out)
{
	return conf_template_find(b->m->conf, b->template, out, NULL) == 0;
}

static bool
init_has_run(const struct box *b)
{
	char ref[2 * STORE_NAME_MAX + 2];
	struct store_session row;
	bool has_run;

	snprintf(ref, sizeof(ref), "%s+%s", b->spec.name, INIT_NAME);
	if (store_session_find(b->m->store, ref, &row) < 0)
		return false;
	has_run = row.sandbox_id == b->id && row.status == SESSION_EXITED &&
		  row.has_exit_code && row.exit_code == 0;
	store_session_release(&row);
	return has_run;
}

bool
box_needs_init(struct box *b)
{
	struct conf_template t;

	if (b->is_initialised || !box_template(b, &t) || !t.init[0])
		return false;
	b->is_initialised = init_has_run(b);
	return !b->is_initialised;
}

/* ---- its last words -------------------------------------------------------- */

/* The last line in TEXT that is not blank; what is no character is a `?`. */
static void
init_last_line(const char *text, size_t n, char *out, size_t size)
{
	size_t from, step;

	while (n > 0 && strchr(" \t\r\n", text[n - 1]))
		n--;
	for (from = n; from > 0 && text[from - 1] != '\n'; from--)
		;
	for (size_t at = 0; from < n; from += step) {
		const uint8_t *p = (const uint8_t *)text + from;
		int len = text_utf8_len(p, n - from);
		bool is_c1 = len == 2 && p[0] == 0xc2 && p[1] < 0xa0;
		bool is_text = len > 0 && !is_c1 && *p >= ' ' && *p != 0x7f;

		step = len > 0 ? (size_t)len : 1;
		if (at + step >= size)
			break;
		memcpy(out + at, is_text ? text + from : "????", step);
		at += is_text ? step : 1;
		out[at] = '\0';
	}
}

/* The output in the events of TEXT, whole lines of a recording, into OUT. */
static void
init_collect(char *text, struct buf *out)
{
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n"))) {
		json_t *event = json_loads(line, JSON_ALLOW_NUL, NULL);
		json_t *data = json_array_get(event, 2);
		const char *kind = json_string_value(json_array_get(event, 1));

		if (kind && strcmp(kind, "o") == 0 && json_is_string(data))
			buf_put(out, json_string_value(data),
			    json_string_length(data));
		json_decref(event);
	}
}

/* What S printed last, "" if that is not known. */
static void
init_last_words(struct session *s, char *out, size_t size)
{
	struct store_recording row;
	struct buf said = { 0 };
	char text[INIT_TAIL + 1];
	autoclose int fd = -1;
	struct stat st;
	off_t from;
	ssize_t n;

	*out = '\0';
	if (store_recording_find(s->m->store, s->id, &row) < 0)
		return;
	fd = recordings_open(s->m, &row, NULL);
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	from = st.st_size > INIT_TAIL ? st.st_size - INIT_TAIL : 0;
	n = pread(fd, text, INIT_TAIL, from);
	if (n <= 0)
		return;
	text[n] = '\0';
	init_collect(text, &said);
	init_last_line(
	    (const char *)buf_head(&said), buf_len(&said), out, size);
	buf_release(&said);
}

/* ---- running --------------------------------------------------------------- */

void
box_init_forget(struct box *b)
{
	b->is_initialising = false;
	if (b->init_ev)
		event_free(take_ptr(b->init_ev));
}

static void
init_failed(struct box *b, const char *why)
{
	char line[256];
	struct err e = { .code = 0 };

	snprintf(line, sizeof(line), "cannot make sandbox %s: %s", b->spec.name,
	    why);
	box_turn(b, SANDBOX_FAILED, "sandbox_failed", NULL, why);
	box_answer_all(b, MANAGER_FAILED, line);
	if (b->provider->is_contained && !b->job &&
	    box_job(b, TASK_HALT, box_on_cleaned, &e) < 0)
		log_err("sandbox_not_cleaned", "sandbox", b->spec.name, "why",
		    e.msg, NULL);
}

static void
init_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct box *b = arg;
	struct session *s = session_by_name(b->m, b->spec.name, INIT_NAME);

	(void)fd;
	(void)what;
	b->is_init_late = true;
	if (s)
		session_stop(s);
}

static int
init_launch(struct box *b, const char *script, struct err *e)
{
	const struct principal self = {
		.identity = "berth", .role = ROLE_OWNER, .is_admin = true
	};
	const struct launch_spec spec = {
		.sandbox = b->spec.name,
		.name = INIT_NAME,
		.command = script,
		.is_recorded = true,
	};
	struct session *s;
	char why[256];

	if (launch_session(b->m, &self, &spec, &s, why) != MANAGER_OK)
		return err_set(e, -EIO, "init: %s", why);
	/* It has nobody to ask. */
	wire_send(&s->wire, FRAME_INPUT_EOF, 0, 0, NULL, 0);
	return 0;
}

void
box_init(struct box *b)
{
	struct conf_template t;
	struct list *pos, *tmp;
	struct timeval tv;
	struct err e = { .code = 0 };

	if (!box_template(b, &t)) {
		init_failed(b, "its template is gone");
		return;
	}
	b->is_initialising = true;
	b->is_init_late = false;
	/* Where the engine put it: the command has to get there. */
	snprintf(
	    b->spec.address, sizeof(b->spec.address), "%s", b->made.address);
	/* One that a former berthd started is waited for. */
	if (!session_by_name(b->m, b->spec.name, INIT_NAME) &&
	    init_launch(b, t.init, &e) < 0) {
		/* Unless the end of a session that was begun told already. */
		if (b->is_initialising) {
			box_init_forget(b);
			init_failed(b, e.msg);
		}
		return;
	}
	b->init_ev = evtimer_new(b->m->base, init_on_timer, b);
	if (!b->init_ev)
		abort();
	b->init_ms = t.init_timeout_ms;
	tv.tv_sec = (time_t)(t.init_timeout_ms / 1000);
	tv.tv_usec = (suseconds_t)(t.init_timeout_ms % 1000 * 1000);
	evtimer_add(b->init_ev, &tv);
	list_for_each (pos, tmp, &b->requests)
		request_wait_box(
		    list_entry(pos, struct request, node), (int)b->init_ms);
}

/* Why it is no success, or "" if it is one. */
static void
init_judge(struct box *b, struct session *s,
    const struct store_session_end *end, const char *note, char *out,
    size_t size)
{
	char last[160];

	*out = '\0';
	if (end->status == SESSION_EXITED && end->exit_code == 0 &&
	    !b->is_init_late)
		return;
	init_last_words(s, last, sizeof(last));
	if (b->is_init_late)
		snprintf(out, size, "init took too long%s%s", *last ? ": " : "",
		    last);
	else if (end->status == SESSION_EXITED)
		snprintf(out, size, "init ended with code %d%s%s",
		    end->exit_code, *last ? ": " : "", last);
	else
		snprintf(out, size, "init was ended by %s%s%s",
		    end->exit_signal[0] ? end->exit_signal
		    : note              ? note
					: "something unknown",
		    *last ? ": " : "", last);
}

void
box_on_session_end(
    struct session *s, const struct store_session_end *end, const char *note)
{
	struct box *b;
	char why[256];

	if (strcmp(s->name, INIT_NAME) != 0)
		return;
	b = box_find(s->m, s->sandbox);
	if (!b || !b->is_initialising)
		return;
	init_judge(b, s, end, note, why, sizeof(why));
	box_init_forget(b);
	if (b->is_leaving)
		return;
	if (*why) {
		init_failed(b, why);
		return;
	}
	b->is_initialised = true;
	box_made(b, &b->made);
	box_answer_all(b, MANAGER_OK, "");
}
