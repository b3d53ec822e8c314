/*
 * Links: frames come out the same whatever pieces the bytes arrive in, are
 * refused exactly when they are wrong, and what one link sends through a narrow
 * socket the other receives whole, with its descriptors. The first byte chooses
 * between a stream of any bytes and a list of things to send.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "sessions/wire/link.h"
#include "tests/fuzz/fuzz.h"

#define LINK_PIECES 64
#define LINK_SENT   64

static void
link_pair(int pair[2])
{
	FUZZ_CHECK(fd_socketpair(pair, true) == 0);
}

/* ---- any bytes ----------------------------------------------------------- */

/* What the bytes must mean, told by the shape of a header alone. */
struct link_model {
	const uint8_t *p;
	size_t sent, read; /* bytes that arrived; that are taken apart */
	unsigned n_fds;    /* arrived and not claimed by a frame */
};

/* 1 for a frame at `read` of LEN payload bytes, 0 for more, -EPROTO. */
static int
link_model_next(struct link_model *m, size_t *len, int *has_fd)
{
	const uint8_t *h = m->p + m->read;
	uint32_t word;

	if (m->sent - m->read < 8)
		return 0;
	word = (uint32_t)h[0] << 24 | (uint32_t)h[1] << 16 |
	       (uint32_t)h[2] << 8 | h[3];
	*has_fd = (word >> 31) != 0;
	*len = word & 0x7fffffff;
	if (*len > 1 << 20)
		return -EPROTO;
	if (m->sent - m->read < 8 + *len)
		return 0;
	if (*has_fd && m->n_fds == 0)
		return -EPROTO;
	m->n_fds -= (unsigned)*has_fd;
	return 1;
}

static void
link_compare(const struct frame *f, const uint8_t *h, size_t len, int has_fd)
{
	FUZZ_CHECK(f->type == h[4] && f->arg == h[5]);
	FUZZ_CHECK(f->tag == (h[6] << 8 | h[7]));
	FUZZ_CHECK(f->len == len && memcmp(f->data, h + 8, len) == 0);
	FUZZ_CHECK((f->fd >= 0) == has_fd);
}

/* Takes every whole frame out of L; false at one that is refused. */
static bool
link_drain(struct link *l, struct link_model *m)
{
	for (;;) {
		struct frame f;
		struct frame_header h;
		uint8_t again[FRAME_HEADER_SIZE];
		size_t len = 0;
		int has_fd = 0, want = link_model_next(m, &len, &has_fd);

		FUZZ_CHECK(link_next(l, &f) == want);
		if (want <= 0)
			return want == 0;
		link_compare(&f, m->p + m->read, len, has_fd);
		FUZZ_CHECK(frame_decode_header(m->p + m->read, &h) == 0);
		frame_encode_header(&h, again);
		FUZZ_CHECK(memcmp(again, m->p + m->read, 8) == 0);
		if (f.fd >= 0)
			close(f.fd);
		m->read += 8 + len;
	}
}

static void
link_send_piece(int fd, const uint8_t *p, size_t n, bool has_fd)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)p, .iov_len = n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (has_fd) {
		struct cmsghdr *c;

		msg.msg_control = control.space;
		msg.msg_controllen = sizeof(control.space);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	FUZZ_CHECK(sendmsg(fd, &msg, MSG_NOSIGNAL) == (ssize_t)n);
}

/* Pieces: u8 count, then a byte each: bit 7 a descriptor, 0-6 the length. */
static void
link_stream(struct fuzz_input *in)
{
	unsigned n_pieces = fuzz_u8(in) % LINK_PIECES;
	size_t n;
	const uint8_t *pieces = fuzz_take(in, n_pieces, &n);
	struct link_model m = { .p = in->p };
	struct link l;
	int pair[2];

	link_pair(pair);
	link_init(&l, pair[0]);
	for (size_t i = 0; m.sent < in->n; i++) {
		size_t part = in->n - m.sent;
		bool has_fd = i < n && pieces[i] >> 7;
		int rc;

		if (i < n && part > (pieces[i] & 0x7fU) + 1)
			part = (pieces[i] & 0x7fU) + 1;
		link_send_piece(pair[1], m.p + m.sent, part, has_fd);
		m.sent += part;
		m.n_fds += has_fd;
		rc = link_fill(&l);
		FUZZ_CHECK(
		    m.n_fds <= LINK_FDS_MAX ? rc == (int)part : rc == -EPROTO);
		if (rc < 0 || !link_drain(&l, &m))
			break;
	}
	close(pair[1]);
	link_release(&l);
}

/* ---- things to send ------------------------------------------------------ */

struct link_sent {
	uint8_t type, arg;
	uint16_t tag;
	uint32_t len;
	ino_t ino; /* of the file that rides along, 0 for none */
	uint8_t fill;
};

struct link_trip {
	struct link from, to;
	struct link_sent control[LINK_SENT], data[LINK_SENT];
	unsigned n_control, n_data, got_control, got_data;
	bool is_through;
};

/* What came has to be the next of its kind: control may overtake data. */
static void
link_got(struct link_trip *t, const struct frame *f)
{
	bool is_data = f->type == FRAME_DATA;
	const struct link_sent *s =
	    is_data ? &t->data[t->got_data++] : &t->control[t->got_control++];
	struct stat st = { .st_ino = 0 };

	FUZZ_CHECK(t->got_data <= t->n_data && t->got_control <= t->n_control);
	FUZZ_CHECK(f->type == s->type && f->arg == s->arg && f->tag == s->tag);
	FUZZ_CHECK(f->len == s->len);
	for (size_t i = 0; i < f->len; i++)
		FUZZ_CHECK(f->data[i] == (uint8_t)(s->fill + i));
	if (f->fd >= 0) {
		FUZZ_CHECK(fstat(f->fd, &st) == 0);
		close(f->fd);
	}
	FUZZ_CHECK(st.st_ino == s->ino);
}

static void
link_receive(struct link_trip *t)
{
	struct frame f;
	int rc = link_fill(&t->to);

	FUZZ_CHECK(rc > 0 || rc == -EAGAIN);
	t->is_through = rc > 0;
	while ((rc = link_next(&t->to, &f)) == 1)
		link_got(t, &f);
	FUZZ_CHECK(rc == 0);
}

static void
link_put_control(struct link_trip *t, struct fuzz_input *in, bool with_fd)
{
	struct link_sent s = { .type = fuzz_u8(in) };
	struct stat st;
	uint8_t *bytes;
	int fd = -1;

	if (s.type == FRAME_DATA)
		s.type = FRAME_OK;
	s.arg = fuzz_u8(in);
	s.tag = (uint16_t)fuzz_u16(in);
	s.len = fuzz_u16(in);
	s.fill = fuzz_u8(in);
	if (with_fd && link_has_fd_room(&t->from)) {
		fd = open("/", O_PATH | O_CLOEXEC);
		FUZZ_CHECK(fd >= 0 && fstat(fd, &st) == 0);
		s.ino = st.st_ino;
	}
	bytes = xmalloc(s.len);
	for (uint32_t i = 0; i < s.len; i++)
		bytes[i] = (uint8_t)(s.fill + i);
	link_send_fd(&t->from, s.type, s.arg, s.tag, bytes, s.len, fd);
	free(bytes);
	t->control[t->n_control++] = s;
}

static void
link_put_data(struct link_trip *t, struct fuzz_input *in)
{
	struct link_sent s = { .type = FRAME_DATA };
	uint8_t bytes[FRAME_DATA_MAX];
	struct iovec v[2];
	uint32_t cut;

	s.arg = fuzz_u8(in) % STREAM_COUNT;
	s.len = 1 + fuzz_u16(in) % FRAME_DATA_MAX;
	cut = fuzz_u16(in) % s.len;
	s.fill = fuzz_u8(in);
	for (uint32_t i = 0; i < s.len; i++)
		bytes[i] = (uint8_t)(s.fill + i);
	v[0] = (struct iovec){ bytes, cut ? cut : s.len };
	v[1] = (struct iovec){ bytes + cut, s.len - cut };
	FUZZ_CHECK(link_write_data(&t->from, (enum frame_stream)s.arg, v,
		       cut ? 2 : 1) == 0);
	t->data[t->n_data++] = s;
}

static void
link_step(struct link_trip *t, struct fuzz_input *in)
{
	int rc;

	switch (fuzz_u8(in) % 5) {
	case 0:
		link_put_control(t, in, false);
		break;
	case 1:
		link_put_control(t, in, true);
		break;
	case 2:
		if (link_is_idle(&t->from))
			link_put_data(t, in);
		break;
	case 3:
		rc = link_flush(&t->from);
		FUZZ_CHECK(rc == -EAGAIN || rc == 0);
		FUZZ_CHECK((rc == 0) == link_is_idle(&t->from));
		break;
	default:
		link_receive(t);
	}
}

static void
link_trip(struct fuzz_input *in)
{
	struct link_trip *t = xcalloc(1, sizeof(*t));
	int pair[2], narrow = 4096;

	link_pair(pair);
	FUZZ_CHECK(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &narrow,
		       sizeof(narrow)) == 0);
	link_init(&t->from, pair[0]);
	link_init(&t->to, pair[1]);
	while (in->n && t->n_control < LINK_SENT && t->n_data < LINK_SENT)
		link_step(t, in);
	/* Everything arrives once the reader reads. */
	t->is_through = true;
	while (link_flush(&t->from) == -EAGAIN || t->is_through)
		link_receive(t);
	FUZZ_CHECK(t->got_control == t->n_control && t->got_data == t->n_data);
	FUZZ_CHECK(t->to.n_in_fds == 0 && buf_len(&t->to.in) == 0);
	link_release(&t->from);
	link_release(&t->to);
	free(t);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct fuzz_input in = { p, n };

	if (fuzz_u8(&in) % 2)
		link_trip(&in);
	else
		link_stream(&in);
	return 0;
}
