/* The verbs about pools of sandboxes that wait. */
#include <errno.h>

#include "base/err.h"
#include "conf/conf.h"
#include "sessions/manager/control_internal.h"
#include "sessions/manager/pool.h"

static void
control_pool_row(const struct pool_info *i, void *arg)
{
	json_t *rows = arg, *o = json_object();

	control_put_str(o, "template", i->template);
	control_put_str(o, "provider", i->provider);
	control_put_int(o, "ready", i->ready);
	control_put_int(o, "allocated", i->allocated);
	control_put_int(o, "target", i->target);
	control_put_int(o, "configured", i->size);
	control_put_str(o, "detail", i->detail);
	json_array_append_new(rows, o);
}

static void
control_pool_error(struct control_client *cl, const struct err *e)
{
	control_error(cl,
	    e->code == -EOPNOTSUPP ? MANAGER_REFUSED
	    : e->code == -ENOENT   ? MANAGER_NOT_FOUND
				   : MANAGER_FAILED,
	    "%s", e->msg);
}

/* The row of TEMPLATE, or why there is none. */
static void
control_pool_tell(struct control_client *cl, const char *template)
{
	json_t *rows = json_array();
	struct err e = { .code = 0 };
	struct pool_info i;

	if (pool_get(cl->c->m, template, &i, &e) < 0) {
		json_decref(rows);
		control_pool_error(cl, &e);
		return;
	}
	control_pool_row(&i, rows);
	control_rows(cl, rows);
}

void
control_sandbox_pools(struct control_client *cl, const json_t *req)
{
	const char *template = control_str(req, "template", NULL);
	json_t *rows;

	if (template) {
		control_pool_tell(cl, template);
		return;
	}
	rows = json_array();
	pools_each(cl->c->m, control_pool_row, rows);
	control_rows(cl, rows);
}

void
control_sandbox_pool_scale(struct control_client *cl, const json_t *req)
{
	const char *template = control_str(req, "template", "");
	const json_t *size = json_object_get(req, "size");
	json_int_t n = json_integer_value(size);
	struct err e = { .code = 0 };

	if (!json_is_integer(size) || n < 0 || n > CONF_POOL_MAX) {
		control_error(cl, MANAGER_USAGE, "a pool has 0 to %d members",
		    CONF_POOL_MAX);
		return;
	}
	if (!cl->who.is_admin) {
		control_error(
		    cl, MANAGER_REFUSED, "only admins may scale pools");
		return;
	}
	if (pool_scale(cl->c->m, &cl->who, template, (unsigned)n, &e) < 0)
		control_pool_error(cl, &e);
	else
		control_pool_tell(cl, template);
}
