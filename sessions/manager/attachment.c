/* Rows of attachments, what viewers are like, kicking; see attachment.h. */
#include "sessions/manager/attachment.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "sessions/manager/session.h"

#define ATTACHMENT_LABEL "[s, s, s, s, s, I]"

/* "" when it would not fit: then a crash may lose the row. */
static char *
attachment_label(const struct store_attachment *a)
{
	json_t *o = json_pack(ATTACHMENT_LABEL, a->identity, a->key_fingerprint,
	    a->role, a->remote_addr, a->client_version,
	    (json_int_t)a->attached_ms);
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;

	json_decref(o);
	if (text && strlen(text) <= WIRE_LABEL_MAX)
		return text;
	free(text);
	return xstrdup("");
}

void
attachment_begin(struct request *r)
{
	struct store_attachment a = { .attached_ms = clock_wall_ms() };
	bool is_view = !(r->viewer.flags & VIEWER_MAY_TYPE);

	snprintf(a.session_id, sizeof(a.session_id), "%s", r->s->id);
	snprintf(a.identity, sizeof(a.identity), "%s", r->who.identity);
	snprintf(a.key_fingerprint, sizeof(a.key_fingerprint), "%s",
	    r->who.fingerprint);
	snprintf(a.role, sizeof(a.role), "%s",
	    is_view ? "viewer" : role_name(r->who.role));
	snprintf(
	    a.remote_addr, sizeof(a.remote_addr), "%s", r->who.remote_addr);
	snprintf(a.client_version, sizeof(a.client_version), "%s",
	    r->who.client_version);
	r->viewer.attachment =
	    (uint64_t)store_attachment_insert(r->m->store, &a);
	r->viewer.label = attachment_label(&a);
}

void
attachment_restore(struct session *s, uint64_t id, const char *label)
{
	struct store_attachment a = { .id = (int64_t)id };
	json_t *o = json_loads(label, 0, NULL);
	const char *identity, *key, *role, *addr, *version;
	json_int_t ms;

	if (json_unpack(o, ATTACHMENT_LABEL, &identity, &key, &role, &addr,
		&version, &ms) == 0) {
		snprintf(a.session_id, sizeof(a.session_id), "%s", s->id);
		snprintf(a.identity, sizeof(a.identity), "%s", identity);
		snprintf(
		    a.key_fingerprint, sizeof(a.key_fingerprint), "%s", key);
		snprintf(a.role, sizeof(a.role), "%s", role);
		snprintf(a.remote_addr, sizeof(a.remote_addr), "%s", addr);
		snprintf(
		    a.client_version, sizeof(a.client_version), "%s", version);
		a.attached_ms = ms;
		store_attachment_restore(s->m->store, &a);
		attachment_began(s, a.id, &(struct wire_size){ 0 },
		    strcmp(role, role_name(ROLE_VIEWER)) == 0);
	}
	json_decref(o);
}

/* ---- what they are like --------------------------------------------------- */

static struct session_viewer *
attachment_find(const struct session *s, int64_t id)
{
	for (size_t i = 0; i < s->n_viewers; i++) {
		if (s->viewers[i].attachment == id)
			return &s->viewers[i];
	}
	return NULL;
}

const struct session_viewer *
attachment_known(const struct session *s, int64_t id)
{
	return attachment_find(s, id);
}

void
attachment_began(struct session *s, int64_t id, const struct wire_size *size,
    bool is_watcher)
{
	struct session_viewer *v = attachment_find(s, id);
	struct box *b = box_find(s->m, s->sandbox);

	/* The keeper may have told more already. */
	if (!v) {
		s->viewers = xrealloc(
		    s->viewers, (s->n_viewers + 1) * sizeof(*s->viewers));
		v = &s->viewers[s->n_viewers++];
		*v = (struct session_viewer){
			.attachment = id, .cols = size->cols, .rows = size->rows
		};
	}
	v->is_watcher = is_watcher;
	if (b)
		box_life_changed(b);
}

void
attachment_gone(struct session *s, int64_t id)
{
	struct session_viewer *v = attachment_find(s, id);

	if (v)
		*v = s->viewers[--s->n_viewers];
}

struct attachment_search {
	int64_t id;
	struct store_attachment found; /* id 0: not found */
};

static bool
attachment_search_row(const struct store_attachment *a, void *arg)
{
	struct attachment_search *search = arg;

	if (a->id == search->id)
		search->found = *a;
	return search->found.id == 0;
}

/* True if ID may not type. Of whom a former berthd let in, the row says so. */
static bool
attachment_is_watcher(const struct session *s, int64_t id)
{
	struct attachment_search search = { .id = id };
	const struct session_viewer *v = attachment_find(s, id);

	if (v)
		return v->is_watcher;
	store_attachment_each_open(s->m->store, attachment_search_row, &search);
	return strcmp(search.found.role, role_name(ROLE_VIEWER)) == 0;
}

int
attachment_on_stats(struct session *s, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	uint32_t n = reader_u32(&r);
	struct session_viewer *viewers;
	struct box *b;

	if (n > f->len / 20)
		return -EPROTO;
	viewers = xcalloc(n + 1, sizeof(*viewers));
	for (uint32_t i = 0; i < n; i++) {
		viewers[i].attachment = (int64_t)reader_u64(&r);
		viewers[i].cols = reader_u32(&r);
		viewers[i].rows = reader_u32(&r);
		viewers[i].resyncs = reader_u32(&r);
		viewers[i].is_watcher =
		    attachment_is_watcher(s, viewers[i].attachment);
	}
	if (!reader_done(&r)) {
		free(viewers);
		return -EPROTO;
	}
	free(s->viewers);
	s->viewers = viewers;
	s->n_viewers = n;
	b = box_find(s->m, s->sandbox);
	if (b)
		box_life_changed(b);
	return 0;
}

/* ---- kick ----------------------------------------------------------------- */

void
attachment_drop(struct session *s, int64_t id, const char *why)
{
	struct buf b = { 0 };

	buf_put_u64(&b, (uint64_t)id);
	buf_put_str(&b, why);
	wire_send_buf(&s->wire, FRAME_DROP, 0, 0, &b);
	buf_release(&b);
}

enum manager_code
manager_kick(
    struct manager *m, const struct principal *who, int64_t id, struct err *e)
{
	struct attachment_search search = { .id = id };
	const struct store_attachment *a = &search.found;
	autofree char *detail = NULL;
	struct session *s = NULL;

	store_attachment_each_open(m->store, attachment_search_row, &search);
	if (a->id)
		s = session_by_id(m, a->session_id);
	if (!s) {
		err_set(e, -ENOENT, "nobody has the attachment %" PRId64, id);
		return MANAGER_NOT_FOUND;
	}
	if (!s->is_ready) {
		err_set(e, -EAGAIN,
		    "the keeper of session %s does not answer; try again",
		    s->id);
		return MANAGER_FAILED;
	}
	attachment_drop(s, id, "an administrator ended this attachment");
	detail = xasprintf("attachment %" PRId64 " of %s", id, a->identity);
	log_info("kick", "sid", s->id, "identity", a->identity, "by",
	    who->identity, NULL);
	store_audit(m->store, "kick", who->identity, who->remote_addr,
	    s->sandbox, s->id, detail);
	return MANAGER_OK;
}
