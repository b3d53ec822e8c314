/* Pools, their members and who takes them; see pool.h. */
#include "sessions/manager/pool.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "conf/conf.h"
#include "sandbox/template.h"
#include "sessions/manager/box_internal.h"
#include "sessions/manager/pool_internal.h"
#include "sessions/manager/session.h"

/* To be raised when members of former programs would not do any more. */
#define POOL_VERSION 1

/* Whoever just got a member has the processors first. */
#define POOL_QUIET_MS 100

struct member {
	struct list node; /* of pool->members */
	struct pool *pool;
	char id[SANDBOX_NAME_SIZE];
	int fd;
	struct event *ev;
};

/*
 * What two sandboxes of one key have in common is all but name, files and, where
 * each has one for itself, uid.
 */
static void
pool_key(const struct manager *m, const char *template,
    const struct sandbox_spec *s, char *out)
{
	const struct conf_uids *range = box_uid_range(m);
	struct conf_uids uids =
	    range ? *range : (struct conf_uids){ s->uid, s->gid };
	autofree char *text = xasprintf(
	    "%d\n%s\n%s\n%s\n%s\n%s\n%u %u %d %u %u %" PRIu64 " %" PRIu64 "\n",
	    POOL_VERSION, template, s->provider, s->rootfs, s->user, s->shell,
	    uids.first, uids.last, s->must_setuid, s->network, s->cpu_percent,
	    s->memory_bytes, s->pids_max);
	uint64_t hash = 14695981039346656037U;

	for (const char *p = text; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 1099511628211U;
	snprintf(out, POOL_KEY_SIZE, "%016" PRIx64, hash);
}

struct pool *
pool_by_key(struct pools *ps, const char *id)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &ps->all) {
		struct pool *p = list_entry(pos, struct pool, node);

		if (strncmp(p->key, id, strlen(p->key)) == 0)
			return p;
	}
	return NULL;
}

static struct pool *
pool_by_template(struct pools *ps, const char *template)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &ps->all) {
		struct pool *p = list_entry(pos, struct pool, node);

		if (strcmp(p->template, template) == 0)
			return p;
	}
	return NULL;
}

/* ---- members --------------------------------------------------------------- */

static const struct member *
member_at(const struct list *node)
{
	return list_entry((struct list *)(uintptr_t)node, struct member, node);
}

static void
member_free(struct member *b)
{
	list_remove(&b->node);
	b->pool->n_ready--;
	event_free(b->ev);
	close(b->fd);
	free(b);
}

static void
member_on_lost(evutil_socket_t fd, short what, void *arg)
{
	struct member *b = arg;
	struct pool *p = b->pool;

	(void)fd;
	(void)what;
	pools_discard(p->ps, p->provider, b->id);
	member_free(b);
	pool_failed(p, "a member ended by itself or was killed");
}

bool
pool_add(struct pool *p, const char *id)
{
	struct sandbox_spec s = p->spec;
	struct member *b;
	int fd;

	snprintf(s.name, sizeof(s.name), "%s", id);
	fd = p->provider->watch_member(&s);
	if (fd < 0)
		return false;
	b = xcalloc(1, sizeof(*b));
	b->pool = p;
	b->fd = fd;
	snprintf(b->id, sizeof(b->id), "%s", id);
	b->ev = event_new(p->ps->m->base, fd, EV_READ, member_on_lost, b);
	if (!b->ev)
		abort();
	event_add(b->ev, NULL);
	list_append(&p->members, &b->node);
	p->n_ready++;
	return true;
}

bool
pool_has(const struct pool *p, const char *id)
{
	const struct list *pos;

	for (pos = p->members.next; pos != &p->members; pos = pos->next) {
		if (strcmp(member_at(pos)->id, id) == 0)
			return true;
	}
	return false;
}

void
pool_pop(struct pool *p, char out[SANDBOX_NAME_SIZE])
{
	struct member *b = list_entry(p->members.next, struct member, node);

	snprintf(out, SANDBOX_NAME_SIZE, "%s", b->id);
	member_free(b);
}

void
pool_empty(struct pool *p)
{
	char id[SANDBOX_NAME_SIZE];

	while (p->n_ready) {
		pool_pop(p, id);
		pools_discard(p->ps, p->provider, id);
	}
}

/* It was made with it. */
static uid_t
member_uid(const char *id)
{
	return (uid_t)strtoul(id + POOL_KEY_SIZE, NULL, 16);
}

/* The pool for sandboxes of TEMPLATE that are as S. */
static struct pool *
pool_of(struct manager *m, const char *template, const struct sandbox_spec *s)
{
	char key[POOL_KEY_SIZE];

	pool_key(m, template, s, key);
	return pool_by_key(m->pools, key);
}

void
pool_take(struct manager *m, const char *template, struct sandbox_spec *io)
{
	struct pool *p = pool_of(m, template, io);
	struct list *pos, *tmp;

	io->member[0] = '\0';
	if (!p)
		return;
	list_for_each (pos, tmp, &p->members) {
		struct member *b = list_entry(pos, struct member, node);

		if (member_uid(b->id) != io->uid)
			continue;
		snprintf(io->member, sizeof(io->member), "%s", b->id);
		member_free(b);
		return;
	}
}

uid_t
pool_uid(struct manager *m, const char *template, const struct sandbox_spec *s)
{
	const struct pool *p = pool_of(m, template, s);
	const struct list *pos;

	if (!p)
		return 0;
	for (pos = p->members.next; pos != &p->members; pos = pos->next) {
		uid_t uid = member_uid(member_at(pos)->id);

		if (box_uid_is_free(m, uid))
			return uid;
	}
	return 0;
}

static bool
pool_has_uid(const struct pool *p, uid_t uid)
{
	const struct list *pos;

	for (pos = p->members.next; pos != &p->members; pos = pos->next) {
		if (member_uid(member_at(pos)->id) == uid)
			return true;
	}
	return false;
}

bool
pools_have_uid(const struct manager *m, uid_t uid)
{
	const struct pools *ps = m->pools;
	struct list *pos, *tmp;

	if (ps->job && ps->fill.uid == uid)
		return true;
	list_for_each (pos, tmp, &ps->all) {
		if (pool_has_uid(list_entry(pos, struct pool, node), uid))
			return true;
	}
	list_for_each (pos, tmp, &ps->waste) {
		if (member_uid(list_entry(pos, struct pool_waste, node)->id) ==
		    uid)
			return true;
	}
	return false;
}

void
pool_taken(struct manager *m, struct sandbox_spec *io, bool is_claimed)
{
	const struct sandbox_provider *provider =
	    sandbox_find(io->provider, NULL);

	if (!io->member[0])
		return;
	if (is_claimed)
		log_info("member_claimed", "sandbox", io->name, "member",
		    io->member, NULL);
	else if (provider)
		pools_discard(m->pools, provider, io->member);
	io->member[0] = '\0';
	pools_arm(m->pools, POOL_QUIET_MS);
}

/* ---- pools ----------------------------------------------------------------- */

static void
pool_free(struct pool *p)
{
	while (!list_empty(&p->members))
		member_free(list_entry(p->members.next, struct member, node));
	list_remove(&p->node);
	free(p);
}

/* The provider of TEMPLATE, whose sandboxes are as S then says. */
static const struct sandbox_provider *
pool_provider(struct manager *m, const char *template, struct sandbox_spec *s,
    struct err *e)
{
	const struct sandbox_provider *provider;

	*s = m->spec;
	if (sandbox_template(m->conf, template, s, e) < 0)
		return NULL;
	provider = sandbox_find(s->provider, e);
	if (!provider || sandbox_require(provider, SANDBOX_CAP_POOLS, e) < 0)
		return NULL;
	return provider;
}

/* The pool of TEMPLATE as it is to be now, made if it is not there. */
static struct pool *
pool_set_up(struct pools *ps, const char *template, struct err *e)
{
	struct pool *p = pool_by_template(ps, template);
	char key[POOL_KEY_SIZE];
	struct sandbox_spec s;
	const struct sandbox_provider *provider =
	    pool_provider(ps->m, template, &s, e);

	if (!provider)
		return NULL;
	pool_key(ps->m, template, &s, key);
	if (!p) {
		p = xcalloc(1, sizeof(*p));
		p->ps = ps;
		list_init(&p->members);
		snprintf(p->template, sizeof(p->template), "%s", template);
		list_append(&ps->all, &p->node);
	}
	if (strcmp(p->key, key) != 0) {
		pool_empty(p);
		/* What did not work may do so now. */
		p->retry_ms = 0;
	}
	p->provider = provider;
	p->spec = s;
	memcpy(p->key, key, sizeof(key));
	return p;
}

static void
pools_configure(struct pools *ps)
{
	const struct conf *c = ps->m->conf;
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &ps->all)
		list_entry(pos, struct pool, node)->is_wanted = false;
	for (size_t i = 0; i < c->n_templates; i++) {
		const struct conf_template *t = c->templates[i];
		struct err e = { .code = 0 };
		struct pool *p =
		    t->pool_size ? pool_set_up(ps, t->name, &e) : NULL;

		if (p) {
			p->size = p->target = (unsigned)t->pool_size;
			p->is_wanted = true;
		} else if (t->pool_size) {
			log_err(
			    "no_pool", "template", t->name, "why", e.msg, NULL);
		}
	}
	list_for_each (pos, tmp, &ps->all) {
		struct pool *p = list_entry(pos, struct pool, node);

		if (p->is_wanted)
			continue;
		pool_empty(p);
		pool_free(p);
	}
	pools_arm(ps, 0);
}

void
pools_reconfigure(struct manager *m)
{
	pools_configure(m->pools);
}

/* ---- telling --------------------------------------------------------------- */

static unsigned
pool_allocated(struct manager *m, const char *template)
{
	struct list *pos, *tmp;
	unsigned n = 0;

	list_for_each (pos, tmp, &m->boxes) {
		const struct box *b = list_entry(pos, struct box, node);

		if (strcmp(b->template, template) == 0 && box_lives(b->phase) &&
		    b->provider && b->provider->was_member &&
		    b->provider->was_member(&b->spec))
			n++;
	}
	return n;
}

static void
pool_tell(const struct pool *p, struct pool_info *out)
{
	const struct pools *ps = p->ps;
	int64_t in_ms = p->retry_ms - clock_mono_ms();

	*out = (struct pool_info){
		.template = p->template,
		.provider = p->provider->name,
		.ready = p->n_ready,
		.target = p->target,
		.size = p->size,
		.allocated = pool_allocated(ps->m, p->template),
	};
	if (p->n_failures && p->n_ready < p->target)
		snprintf(out->detail, sizeof(out->detail),
		    "%s; tried again in %d s", p->why,
		    in_ms > 0 ? (int)(in_ms / 1000) + 1 : 0);
	else if (ps->n_failures)
		snprintf(out->detail, sizeof(out->detail),
		    "members are left: %s", ps->why);
}

void
pools_each(struct manager *m, void (*fn)(const struct pool_info *i, void *arg),
    void *arg)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &m->pools->all) {
		struct pool_info i;

		pool_tell(list_entry(pos, struct pool, node), &i);
		fn(&i, arg);
	}
}

int
pool_get(struct manager *m, const char *template, struct pool_info *out,
    struct err *e)
{
	const struct pool *p = pool_by_template(m->pools, template);
	const struct sandbox_provider *provider;
	struct sandbox_spec s;

	if (p) {
		pool_tell(p, out);
		return 0;
	}
	provider = pool_provider(m, template, &s, e);
	if (!provider)
		return e->code;
	*out = (struct pool_info){
		.template = template,
		.provider = provider->name,
		.allocated = pool_allocated(m, template),
	};
	return 0;
}

int
pool_scale(struct manager *m, const struct principal *who, const char *template,
    unsigned size, struct err *e)
{
	struct pool *p = pool_set_up(m->pools, template, e);
	char detail[128];

	if (!p)
		return e->code;
	p->target = size;
	p->retry_ms = 0;
	snprintf(detail, sizeof(detail), "%s: %u", template, size);
	store_audit(m->store, "pool_scale", who->identity, who->remote_addr,
	    NULL, NULL, detail);
	log_info("pool_scale", "template", template, "identity", who->identity,
	    NULL);
	pools_arm(m->pools, 0);
	return 0;
}

/* ---- life ------------------------------------------------------------------ */

void
pools_free(struct manager *m)
{
	struct pools *ps = m->pools;

	if (!ps)
		return;
	while (!list_empty(&ps->all))
		pool_free(list_entry(ps->all.next, struct pool, node));
	while (!list_empty(&ps->waste)) {
		struct list *node = ps->waste.next;

		list_remove(node);
		free(list_entry(node, struct pool_waste, node));
	}
	if (ps->job)
		job_forget(ps->job);
	event_free(ps->ev);
	free(ps);
	m->pools = NULL;
}
