/*
 * The control socket from one berthd to the next in the same process: its
 * clients keep their connections, and who asked for the upgrade is answered by
 * the new one.
 */
#include <errno.h>
#include <event2/event.h>

#include "sessions/manager/control_internal.h"
#include "sessions/wire/handoff.h"

void
control_save(struct control *c, struct handoff *h)
{
	struct buf *b = &h->sections[HANDOFF_CONTROL];
	struct list *pos, *tmp;
	uint32_t n = 0;

	list_for_each (pos, tmp, &c->clients)
		n++;
	handoff_put_fd(h, HANDOFF_CONTROL, c->fd);
	buf_put_u32(b, n);
	list_for_each (pos, tmp, &c->clients) {
		const struct control_client *cl =
		    list_entry(pos, struct control_client, node);

		handoff_put_fd(h, HANDOFF_CONTROL, cl->fd);
		buf_put_u8(b, cl->is_upgrading);
		buf_put_bytes(b, buf_head(&cl->in), buf_len(&cl->in));
		buf_put_bytes(b, buf_head(&cl->out), buf_len(&cl->out));
		handoff_put_fd(h, HANDOFF_CONTROL, cl->out_fd);
		buf_put_u64(b, cl->out_fd_at);
	}
}

static void
control_load_client(struct control *c, struct reader *r)
{
	int fd = handoff_take_fd(r);
	bool is_upgrading = reader_u8(r) == 1;
	struct control_client *cl;
	const uint8_t *in, *out;
	size_t n_in, n_out;

	in = reader_bytes(r, CONTROL_OUT_MAX, &n_in);
	out = reader_bytes(r, 2 * CONTROL_OUT_MAX, &n_out);
	if (r->failed)
		return;
	cl = control_new_client(c, fd);
	cl->is_upgrading = is_upgrading;
	buf_put(&cl->in, in, n_in);
	buf_put(&cl->out, out, n_out);
	cl->out_fd = handoff_take_fd(r);
	cl->out_fd_at = reader_u64(r);
	if (n_out)
		event_add(cl->write_ev, NULL);
}

int
control_load(struct control *c, const struct handoff *h)
{
	struct reader r = handoff_reader(h, HANDOFF_CONTROL);
	uint32_t n;

	c->fd = handoff_take_fd(&r);
	n = reader_u32(&r);
	for (uint32_t i = 0; i < n && !r.failed; i++)
		control_load_client(c, &r);
	return reader_done(&r) ? 0 : -EPROTO;
}

void
control_upgraded(struct control *c, const char *from, const char *why_not)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &c->clients) {
		struct control_client *cl =
		    list_entry(pos, struct control_client, node);
		json_t *o;

		if (!cl->is_upgrading)
			continue;
		cl->is_upgrading = false;
		if (why_not) {
			control_error(cl, MANAGER_FAILED, "%s", why_not);
		} else {
			o = json_object();
			json_object_set_new(o, "from", json_string(from));
			json_object_set_new(
			    o, "version", json_string(BERTH_VERSION));
			control_ok(cl, o);
		}
		control_resume(cl);
	}
}
