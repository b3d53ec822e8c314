/*
 * Frames over a stream socket; see link.h. Two queues go out: `partial`, the
 * rest of a data frame whose head has left, and `out`, whole frames. The rest
 * of a started frame always goes first, whole control frames next.
 */
#include "sessions/wire/link.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LINK_READ_MAX (128U << 10)

void
link_init(struct link *l, int fd)
{
	*l = (struct link){ .fd = fd };
}

void
link_drop_out(struct link *l)
{
	for (unsigned i = 0; i < l->n_out_fds; i++)
		close(l->out_fds[i]);
	l->n_out_fds = 0;
	buf_clear(&l->partial);
	buf_clear(&l->out);
}

void
link_release(struct link *l)
{
	for (unsigned i = 0; i < l->n_in_fds; i++)
		close(l->in_fds[i]);
	link_drop_out(l);
	if (l->fd >= 0)
		close(l->fd);
	buf_release(&l->in);
	buf_release(&l->partial);
	buf_release(&l->out);
	link_init(l, -1);
}

/* Takes the descriptors of one received message; false when some were cut. */
static bool
link_take_fds(struct link *l, struct msghdr *msg)
{
	bool is_ok = !(msg->msg_flags & MSG_CTRUNC);

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c;
	     c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (l->n_in_fds < LINK_FDS_MAX) {
				l->in_fds[l->n_in_fds++] = fd;
			} else {
				close(fd);
				is_ok = false;
			}
		}
	}
	return is_ok;
}

int
link_fill(struct link *l)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec iov = {
		.iov_base = buf_reserve(&l->in, LINK_READ_MAX),
		.iov_len = LINK_READ_MAX,
	};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space),
	};
	ssize_t n;

	do
		n = recvmsg(l->fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	buf_commit(&l->in, (size_t)n);
	if (!link_take_fds(l, &msg))
		return -EPROTO;
	return (int)n;
}

int
link_next(struct link *l, struct frame *out)
{
	struct frame_header h;

	if (buf_len(&l->in) < FRAME_HEADER_SIZE)
		return 0;
	if (frame_decode_header(buf_head(&l->in), &h) < 0)
		return -EPROTO;
	if (buf_len(&l->in) < FRAME_HEADER_SIZE + (size_t)h.length)
		return 0;
	if (h.has_fd && l->n_in_fds == 0)
		return -EPROTO;
	*out = (struct frame){
		.type = h.type,
		.arg = h.arg,
		.tag = h.tag,
		.fd = -1,
		.data = buf_head(&l->in) + FRAME_HEADER_SIZE,
		.len = h.length,
	};
	if (h.has_fd) {
		out->fd = l->in_fds[0];
		l->n_in_fds--;
		memmove(l->in_fds, l->in_fds + 1, l->n_in_fds * sizeof(int));
	}
	/* The bytes stay where they are until the next fill. */
	buf_consume(&l->in, FRAME_HEADER_SIZE + (size_t)h.length);
	return 1;
}

void
link_send_fd(struct link *l, uint8_t type, uint8_t arg, uint16_t tag,
    const void *p, size_t n, int fd)
{
	struct frame_header h = {
		.length = (uint32_t)n,
		.type = type,
		.arg = arg,
		.tag = tag,
		.has_fd = fd >= 0,
	};
	uint8_t head[FRAME_HEADER_SIZE];

	assert(n <= FRAME_MAX);
	if (fd >= 0) {
		assert(link_has_fd_room(l));
		l->out_fd_at[l->n_out_fds] = l->out_pos + buf_len(&l->out);
		l->out_fds[l->n_out_fds++] = fd;
	}
	frame_encode_header(&h, head);
	buf_put(&l->out, head, sizeof(head));
	buf_put(&l->out, p, n);
}

void
link_send(struct link *l, uint8_t type, uint8_t arg, uint16_t tag,
    const void *p, size_t n)
{
	link_send_fd(l, type, arg, tag, p, n, -1);
}

/* sendmsg() that retries on EINTR and never raises SIGPIPE. */
static ssize_t
link_sendmsg(int fd, struct msghdr *msg)
{
	ssize_t n;

	do
		n = sendmsg(fd, msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int
link_write_data(
    struct link *l, enum frame_stream stream, const struct iovec *iov, int n)
{
	struct iovec v[3];
	uint8_t head[FRAME_HEADER_SIZE];
	struct msghdr msg = { .msg_iov = v, .msg_iovlen = (size_t)n + 1 };
	struct frame_header h = { .type = FRAME_DATA, .arg = (uint8_t)stream };
	ssize_t sent;

	assert(n >= 1 && n <= 2 && link_is_idle(l));
	for (int i = 0; i < n; i++) {
		v[i + 1] = iov[i];
		h.length += (uint32_t)iov[i].iov_len;
	}
	assert(h.length > 0 && h.length <= FRAME_DATA_MAX);
	frame_encode_header(&h, head);
	v[0] = (struct iovec){ .iov_base = head, .iov_len = sizeof(head) };
	sent = link_sendmsg(l->fd, &msg);
	if (sent == -EAGAIN)
		sent = 0;
	if (sent < 0)
		return (int)sent;
	for (int i = 0; i <= n; i++) {
		size_t done =
		    (size_t)sent < v[i].iov_len ? (size_t)sent : v[i].iov_len;

		buf_put(&l->partial, (uint8_t *)v[i].iov_base + done,
		    v[i].iov_len - done);
		sent -= (ssize_t)done;
	}
	return 0;
}

/* Bytes of `out` that may go in one message: up to the next descriptor. */
static size_t
link_segment(const struct link *l, int *fd_out)
{
	size_t len = buf_len(&l->out);
	unsigned next = 0;

	*fd_out = -1;
	if (l->n_out_fds && l->out_fd_at[0] == l->out_pos) {
		*fd_out = l->out_fds[0];
		next = 1;
	}
	if (l->n_out_fds > next && l->out_fd_at[next] - l->out_pos < len)
		len = l->out_fd_at[next] - l->out_pos;
	return len;
}

static int
link_flush_out(struct link *l)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = l->out.data + l->out.start };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;
	int fd;

	iov.iov_len = link_segment(l, &fd);
	if (fd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = control.space;
		msg.msg_controllen = sizeof(control.space);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	n = link_sendmsg(l->fd, &msg);
	if (n < 0)
		return (int)n;
	if (fd >= 0) {
		close(fd);
		l->n_out_fds--;
		memmove(l->out_fds, l->out_fds + 1, l->n_out_fds * sizeof(int));
		memmove(l->out_fd_at, l->out_fd_at + 1,
		    l->n_out_fds * sizeof(l->out_fd_at[0]));
	}
	l->out_pos += (uint64_t)n;
	buf_consume(&l->out, (size_t)n);
	return 0;
}

int
link_flush(struct link *l)
{
	while (buf_len(&l->partial)) {
		struct iovec iov = {
			.iov_base = l->partial.data + l->partial.start,
			.iov_len = buf_len(&l->partial),
		};
		struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
		ssize_t n = link_sendmsg(l->fd, &msg);

		if (n < 0)
			return (int)n;
		buf_consume(&l->partial, (size_t)n);
	}
	while (buf_len(&l->out)) {
		int rc = link_flush_out(l);

		if (rc < 0)
			return rc;
	}
	return 0;
}
