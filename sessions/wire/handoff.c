/* The memory file between two berthds in one process; see handoff.h. */
#include "sessions/wire/handoff.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sessions/wire/wire.h"

#define HANDOFF_MAGIC   0x62727570 /* "brup" */
#define HANDOFF_FDS_MAX 65536
#define HANDOFF_MAX     (1U << 30)

void
handoff_release(struct handoff *h)
{
	for (size_t i = 0; i < HANDOFF_SECTIONS; i++)
		buf_release(&h->sections[i]);
	free(h->fds);
	*h = (struct handoff){ 0 };
}

static void
handoff_add_fd(struct handoff *h, int fd)
{
	if (h->n_fds == h->cap) {
		h->cap = h->cap ? 2 * h->cap : 64;
		h->fds = xrealloc(h->fds, h->cap * sizeof(*h->fds));
	}
	h->fds[h->n_fds++] = fd;
}

void
handoff_put_fd(struct handoff *h, enum handoff_section section, int fd)
{
	buf_put_u32(&h->sections[section], (uint32_t)fd);
	if (fd >= 0)
		handoff_add_fd(h, fd);
}

int
handoff_take_fd(struct reader *r)
{
	int fd = (int)reader_u32(r);

	return r->failed ? -1 : fd;
}

int
handoff_seal(const struct handoff *h)
{
	struct buf b = { 0 };
	int fd;

	buf_put_u32(&b, HANDOFF_MAGIC);
	buf_put_u32(&b, HANDOFF_VERSION);
	buf_put_u32(&b, (uint32_t)h->n_fds);
	for (size_t i = 0; i < h->n_fds; i++)
		buf_put_u32(&b, (uint32_t)h->fds[i]);
	for (size_t i = 0; i < HANDOFF_SECTIONS; i++)
		buf_put_bytes(
		    &b, buf_head(&h->sections[i]), buf_len(&h->sections[i]));
	fd = fd_sealed_memfd("berthd-handoff", buf_head(&b), buf_len(&b));
	buf_release(&b);
	return fd;
}

static int
handoff_decode(struct reader *r, struct handoff *out)
{
	uint32_t magic = reader_u32(r), version = reader_u32(r), n;

	if (magic != HANDOFF_MAGIC || version > HANDOFF_VERSION ||
	    version < HANDOFF_VERSION_OLDEST)
		return -EPROTO;
	out->version = version;
	n = reader_u32(r);
	if (n > HANDOFF_FDS_MAX)
		return -EPROTO;
	for (uint32_t i = 0; i < n; i++)
		handoff_add_fd(out, (int)reader_u32(r));
	for (size_t i = 0; i < HANDOFF_SECTIONS; i++) {
		size_t len;
		const uint8_t *p = reader_bytes(r, HANDOFF_MAX, &len);

		if (p)
			buf_put(&out->sections[i], p, len);
	}
	return reader_done(r) ? 0 : -EPROTO;
}

int
handoff_open(int fd, struct handoff *out, struct err *e)
{
	struct handoff h = { 0 };
	struct buf b = { 0 };
	struct reader r;
	int rc = lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;

	if (rc == 0)
		rc = fd_read_all(fd, HANDOFF_MAX, &b);
	if (rc == 0) {
		r = reader_over(buf_head(&b), buf_len(&b));
		rc = handoff_decode(&r, &h);
	}
	buf_release(&b);
	if (rc < 0) {
		handoff_release(&h);
		return err_set(e, rc,
		    "what the former berthd left cannot be read: %s",
		    strerrordesc_np(-rc));
	}
	*out = h;
	return 0;
}

void
handoff_inherit(const struct handoff *h, bool on)
{
	for (size_t i = 0; i < h->n_fds; i++)
		fd_set_cloexec(h->fds[i], !on);
}

struct reader
handoff_reader(const struct handoff *h, enum handoff_section section)
{
	const struct buf *b = &h->sections[section];

	return reader_over(buf_head(b), buf_len(b));
}

void
handoff_put_wire(
    struct handoff *h, enum handoff_section section, const struct wire *w)
{
	const struct link *l = &w->link;
	struct buf *b = &h->sections[section];

	if (w->is_closing || w->is_broken || l->n_in_fds || l->n_out_fds) {
		handoff_put_fd(h, section, -1);
		return;
	}
	handoff_put_fd(h, section, l->fd);
	buf_put_u32(b, w->version);
	buf_put_bytes(b, buf_head(&l->in), buf_len(&l->in));
	buf_put_u32(b, (uint32_t)link_pending(l));
	buf_put(b, buf_head(&l->partial), buf_len(&l->partial));
	buf_put(b, buf_head(&l->out), buf_len(&l->out));
}

bool
handoff_take_wire(struct reader *r, struct wire *w, struct event_base *base,
    const struct wire_handler *handler, void *owner)
{
	int fd = handoff_take_fd(r);
	const uint8_t *in, *out;
	size_t n_in, n_out;
	uint32_t version;

	if (fd < 0)
		return false;
	version = reader_u32(r);
	in = reader_bytes(r, HANDOFF_MAX, &n_in);
	out = reader_bytes(r, HANDOFF_MAX, &n_out);
	if (r->failed)
		return false;
	wire_init(w, base, fd, handler, owner);
	w->version = version;
	wire_continue(w, in, n_in, out, n_out);
	return true;
}
