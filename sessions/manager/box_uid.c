/*
 * A uid for each sandbox out of sandbox.uid_range, so that nothing of one, were
 * it to get out, could signal, trace or read another; see box_internal.h.
 */
#include <errno.h>

#include "base/err.h"
#include "conf/conf.h"
#include "sessions/manager/box_internal.h"
#include "sessions/manager/pool.h"
#include "sessions/manager/session.h"

const struct conf_uids *
box_uid_range(const struct manager *m)
{
	const struct conf_uids *range = &m->conf->sandbox.uids;

	return range->first && m->spec.must_setuid ? range : NULL;
}

bool
box_uid_is_free(const struct manager *m, uid_t uid)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &m->boxes) {
		if (list_entry(pos, struct box, node)->spec.uid == uid)
			return false;
	}
	return true;
}

void
box_uid_set(struct box *b, uid_t uid)
{
	if (!uid)
		return;
	b->spec.uid = uid;
	b->spec.gid = uid;
}

int
box_uid_next(struct manager *m, uid_t *out, struct err *e)
{
	const struct conf_uids *range = &m->conf->sandbox.uids;
	uid_t uid = m->last_uid;

	/* One that was given back lately is the last to be given again. */
	for (uint64_t i = 0; i <= range->last - range->first; i++) {
		uid = uid >= range->first && uid < range->last ? uid + 1
							       : range->first;
		if (!box_uid_is_free(m, uid) || pools_have_uid(m, uid))
			continue;
		m->last_uid = *out = uid;
		return 0;
	}
	return err_set(e, -EAGAIN,
	    "all uids of sandbox.uid_range, %u to %u, are in use: remove "
	    "sandboxes or widen the range",
	    range->first, range->last);
}

int
box_uid_take(struct box *b, uid_t *out, struct err *e)
{
	int rc = 0;

	*out = 0;
	if (!box_uid_range(b->m) || b->provider->wrap)
		return 0;
	*out = pool_uid(b->m, b->template, &b->spec);
	if (!*out)
		rc = box_uid_next(b->m, out, e);
	box_uid_set(b, *out);
	return rc;
}
