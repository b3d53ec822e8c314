/* Sessions from one berthd to the next in the same process; see handover.h. */
#include "sessions/manager/handover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "sessions/manager/leftover.h"
#include "sessions/manager/reindex.h"
#include "sessions/manager/session.h"
#include "sessions/wire/handoff.h"

#define HANDOVER_SESSION_MAX (64U << 20)

/* Of a keeper: gone quiet, with a link, or gone quiet and to be stopped. */
enum handover_link {
	HANDOVER_AWAY,
	HANDOVER_READY,
	HANDOVER_STOP
};

/* A session as its section tells it. */
struct handover {
	struct list node; /* of manager->handovers */
	char sid[STORE_ID_MAX];
	int pidfd;
	uint8_t phase;
	uint64_t started_ms, n_attached;
	uint8_t link;    /* enum handover_link */
	struct buf wire; /* for handoff_take_wire() */
};

static void
handover_free(struct handover *o)
{
	list_remove(&o->node);
	buf_release(&o->wire);
	free(o);
}

static void
handover_save_session(struct handoff *h, const struct session *s)
{
	struct buf *b = &h->sections[HANDOFF_MANAGER];

	buf_put_str(b, s->id);
	handoff_put_fd(h, HANDOFF_MANAGER, s->keeper_pidfd);
	buf_put_u8(b, (uint8_t)s->phase);
	buf_put_u64(b, (uint64_t)s->started_ms);
	buf_put_u64(b, s->n_attached);
	buf_put_u8(b, s->is_ready     ? HANDOVER_READY
		      : s->wants_stop ? HANDOVER_STOP
				      : HANDOVER_AWAY);
	if (s->is_ready)
		handoff_put_wire(h, HANDOFF_MANAGER, &s->wire);
}

void
manager_save(struct manager *m, struct handoff *h)
{
	struct buf *b = &h->sections[HANDOFF_MANAGER];
	struct list *pos, *tmp;
	uint32_t n = 0;

	/* Their grace would end in another program. */
	leftover_release_all(m);
	list_for_each (pos, tmp, &m->sessions)
		n++;
	buf_put_u64(b, m->generation);
	buf_put_u16(b, m->next_tag);
	reindex_save(m, b);
	reindex_release(m);
	buf_put_u32(b, n);
	list_for_each (pos, tmp, &m->sessions)
		handover_save_session(h, list_entry(pos, struct session, node));
}

/* Copies the bytes of a link, which only the session itself can start. */
static void
handover_load_wire(struct reader *r, struct buf *out)
{
	const uint8_t *begin = r->p;
	size_t n;

	if (handoff_take_fd(r) >= 0) {
		reader_u32(r);
		reader_bytes(r, HANDOVER_SESSION_MAX, &n);
		reader_bytes(r, HANDOVER_SESSION_MAX, &n);
	}
	if (!r->failed)
		buf_put(out, begin, (size_t)(r->p - begin));
}

int
handover_load(struct manager *m, const struct handoff *h)
{
	struct reader r = handoff_reader(h, HANDOFF_MANAGER);
	uint32_t n;

	m->generation = reader_u64(&r);
	m->next_tag = reader_u16(&r);
	reindex_load(m, &r);
	n = reader_u32(&r);
	for (uint32_t i = 0; i < n && !r.failed; i++) {
		struct handover *o = xcalloc(1, sizeof(*o));

		list_append(&m->handovers, &o->node);
		reader_str_into(&r, o->sid, sizeof(o->sid));
		o->pidfd = handoff_take_fd(&r);
		o->phase = reader_u8(&r);
		o->started_ms = reader_u64(&r);
		o->n_attached = reader_u64(&r);
		o->link = reader_u8(&r);
		if (o->link == HANDOVER_READY)
			handover_load_wire(&r, &o->wire);
		if (o->phase > PHASE_ENDED)
			r.failed = true;
	}
	return reader_done(&r) ? 0 : -EPROTO;
}

static struct handover *
handover_find(struct manager *m, const char *sid)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &m->handovers) {
		struct handover *o = list_entry(pos, struct handover, node);

		if (strcmp(o->sid, sid) == 0)
			return o;
	}
	return NULL;
}

bool
handover_resume(struct session *s)
{
	struct handover *o = handover_find(s->m, s->id);
	struct reader r;
	bool is_resumed = false;

	if (!o)
		return false;
	if (o->pidfd >= 0)
		session_watch(s, take_fd(&o->pidfd));
	if (buf_len(&o->wire)) {
		r = reader_over(buf_head(&o->wire), buf_len(&o->wire));
		is_resumed = session_continue(s, &r);
	}
	s->wants_stop = o->link == HANDOVER_STOP;
	if (is_resumed) {
		s->is_ready = true;
		/* What viewers are like was not handed over. */
		if (s->wire.version >= 2)
			wire_send(&s->wire, FRAME_WHO, 0, 0, NULL, 0);
		s->n_attached = (unsigned)o->n_attached;
		box_adopted(s);
		if (o->started_ms)
			s->started_ms = (int64_t)o->started_ms;
	}
	handover_free(o);
	return is_resumed;
}

void
handover_forget(struct manager *m)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &m->handovers) {
		struct handover *o = list_entry(pos, struct handover, node);

		/* Its end is stored, but it is our child and must be reaped. */
		if (o->pidfd >= 0)
			session_watch_ended(m, o->sid, take_fd(&o->pidfd));
		if (buf_len(&o->wire)) {
			struct reader r =
			    reader_over(buf_head(&o->wire), buf_len(&o->wire));

			close(handoff_take_fd(&r));
		}
		handover_free(o);
	}
}
