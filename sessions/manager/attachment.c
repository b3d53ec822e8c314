/* Rows of attachments and labels of viewers; see attachment.h. */
#include "sessions/manager/attachment.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
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
	}
	json_decref(o);
}
