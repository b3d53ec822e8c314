/*
 * The control socket of a real manager over a real store, with two sessions
 * whose keeper is played here: every request line gets exactly one answer, a
 * JSON object with `ok`, whatever pieces it comes in, and no keeper is told
 * anything that it would refuse. Nothing is ever launched: sandboxes cannot be
 * made and `box` has a provider that is not there. Input: u8 how it is cut,
 * then lines.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdbool.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "conf/conf.h"
#include "sessions/manager/control.h"
#include "sessions/manager/session.h"
#include "tests/fuzz/fuzz.h"

#define STAGE_INPUTS 500 /* then everything is made anew */
#define STAGE_PAD    (80U << 10)

/* The first row; every attach adds one. */
#define STAGE_ATTACHMENT 1

struct stage {
	char dir[64];
	int dir_fd;
	struct conf *conf;
	struct event_base *base;
	struct store *store;
	struct manager *m;
	struct control *control;
	struct session *sessions[2];
	struct link keepers[2]; /* their ends of the links */
	unsigned n_inputs;
};

static struct stage stage;

static const char *const stage_ids[] = { "ses-00112233aabbccdd",
	"ses-00112244aabbccdd", "ses-99112233aabbccdd" };

/* ---- the stage ----------------------------------------------------------- */

/* What a test left is gone when it ends: the directory is the process's. */
static void
stage_remove(void)
{
	static const char *const files[] = { "rec/box/ses-99112233aabbccdd."
					     "cast",
		"rec/box", "rec", "control.sock", "sessions", "berth.db",
		"berth.db-wal", "berth.db-shm" };

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (unlinkat(stage.dir_fd, files[i], 0) < 0)
			unlinkat(stage.dir_fd, files[i], AT_REMOVEDIR);
	}
	rmdir(stage.dir);
}

static void
stage_down(void)
{
	if (!stage.m)
		return;
	control_free(stage.control);
	manager_free(stage.m);
	store_close(stage.store);
	for (unsigned i = 0; i < 2; i++)
		link_release(&stage.keepers[i]);
	event_base_free(stage.base);
	conf_free(stage.conf);
	stage_remove();
	close(stage.dir_fd);
	memset(&stage, 0, sizeof(stage));
}

static void
stage_row(unsigned i, int64_t sandbox_id, enum store_status status)
{
	static char argv[] = "[\"/bin/sh\"]", cwd[] = "/";
	struct store_session r = { .sandbox_id = sandbox_id,
		.is_pty = i != 1,
		.argv = argv,
		.cwd = cwd,
		.status = SESSION_CREATING,
		.created_ms = 1 + i };
	struct store_session_end end = { .status = status,
		.has_exit_code = true,
		.exit_code = 3,
		.exited_ms = 9 };

	snprintf(r.id, sizeof(r.id), "%s", stage_ids[i]);
	snprintf(r.name, sizeof(r.name), "name%u", i);
	FUZZ_CHECK(store_session_insert(stage.store, &r) == 0);
	if (status != SESSION_RUNNING)
		store_session_ended(stage.store, r.id, &end);
	else
		store_session_started(stage.store, r.id, 4000 + i, 2);
}

/* A session that runs, as after an adoption. */
static void
stage_session(unsigned i, int64_t sandbox_id)
{
	struct session *s = session_new(stage.m);
	int pair[2];

	snprintf(s->id, sizeof(s->id), "%s", stage_ids[i]);
	snprintf(s->sandbox, sizeof(s->sandbox), "box");
	snprintf(s->name, sizeof(s->name), "name%u", i);
	s->sandbox_id = sandbox_id;
	s->is_pty = i == 0;
	s->phase = PHASE_RUNNING;
	s->is_ready = true;
	FUZZ_CHECK(fd_socketpair(pair, true) == 0);
	session_connect(s, pair[0]);
	link_init(&stage.keepers[i], pair[1]);
	stage.sessions[i] = s;
}

static void
stage_recording(void)
{
	struct store_recording r = { .format = "asciicast-v2",
		.state = "complete",
		.bytes = 5,
		.started_ms = 1 };
	int fd;

	snprintf(r.session_id, sizeof(r.session_id), "%s", stage_ids[2]);
	snprintf(r.path, sizeof(r.path), "%s/rec/box/%s.cast", stage.dir,
	    stage_ids[2]);
	mkdirat(stage.dir_fd, "rec", 0700);
	mkdirat(stage.dir_fd, "rec/box", 0700);
	fd = open(r.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	FUZZ_CHECK(fd >= 0 && write(fd, "{}\n", 3) == 3);
	close(fd);
	store_recording_insert(stage.store, &r);
}

static void
stage_attachment(void)
{
	struct store_attachment a = { .attached_ms = 1 };

	snprintf(a.session_id, sizeof(a.session_id), "%s", stage_ids[0]);
	snprintf(a.identity, sizeof(a.identity), "somebody");
	snprintf(a.role, sizeof(a.role), "writer");
	FUZZ_CHECK(
	    store_attachment_insert(stage.store, &a) == STAGE_ATTACHMENT);
}

static int
stage_refuse_upgrade(void *arg, const char *who, struct err *e)
{
	(void)arg;
	(void)who;
	return err_set(e, -EBUSY, "not here");
}

static void
stage_up(void)
{
	static const char *const overrides[] = { "access.autocreate=no",
		"session.shell=/bin/sh" };
	struct control_status status = { .listen = "127.0.0.1:1",
		.state_dir = "/nowhere",
		.started_ms = 1,
		.warning = "nobody listens",
		.upgrade = stage_refuse_upgrade };
	struct store_sandbox box = { .name = "box",
		.provider = "absent",
		.state = "running",
		.created_ms = 1,
		.last_active_ms = 1 };
	struct sandbox_spec spec = { .uid = 1, .gid = 1, .user = "daemon" };
	struct manager_paths paths = { .keeper_path = "/nonexistent",
		.sandbox_path = "/nonexistent",
		.spec = &spec };
	char rec[80];

	log_open("fuzz", LOG_ERR, false);
	snprintf(stage.dir, sizeof(stage.dir), "/dev/shm/berth-fuzz-XXXXXX");
	FUZZ_CHECK(mkdtemp(stage.dir));
	stage.dir_fd = open(stage.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(rec, sizeof(rec), "%s/rec", stage.dir);
	snprintf(spec.dir, sizeof(spec.dir), "%s/boxes", stage.dir);
	paths.runtime_fd = stage.dir_fd;
	paths.recordings_dir = rec;
	FUZZ_CHECK(
	    conf_load("/dev/null", overrides, 2, &stage.conf, NULL) == 0);
	stage.base = event_base_new();
	FUZZ_CHECK(store_open(stage.dir, &stage.store, NULL) == 0);
	FUZZ_CHECK(store_sandbox_insert(stage.store, &box) == 0);
	FUZZ_CHECK(manager_new(stage.base, stage.conf, stage.store, &paths,
		       &stage.m, NULL) == 0);
	for (unsigned i = 0; i < 3; i++)
		stage_row(i, box.id, i < 2 ? SESSION_RUNNING : SESSION_EXITED);
	for (unsigned i = 0; i < 2; i++)
		stage_session(i, box.id);
	stage_recording();
	stage_attachment();
	FUZZ_CHECK(control_new(stage.base, stage.conf, stage.dir_fd, &status,
		       &stage.control, NULL) == 0);
	control_start(stage.control, stage.m);
}

/* ---- the keepers --------------------------------------------------------- */

static void
keeper_check_frame(const struct frame *f, bool is_pty)
{
	struct reader r = reader_over(f->data, f->len);
	struct wire_viewer v;
	uint32_t cols, rows;

	switch (f->type) {
	case FRAME_KILL:
		FUZZ_CHECK(f->arg >= 1 && f->arg <= 64 && f->len == 0);
		break;
	case FRAME_STOP:
	case FRAME_FLUSH:
		break;
	case FRAME_INPUT:
		FUZZ_CHECK(f->len >= 1 && f->len <= FRAME_DATA_MAX);
		break;
	case FRAME_INPUT_EOF:
		FUZZ_CHECK(!is_pty);
		break;
	case FRAME_SET_SIZE:
		cols = reader_u32(&r);
		rows = reader_u32(&r);
		FUZZ_CHECK(reader_done(&r) && is_pty);
		FUZZ_CHECK((cols == 0) == (rows == 0));
		FUZZ_CHECK(cols <= 65535 && rows <= 65535);
		break;
	case FRAME_SCREEN:
		FUZZ_CHECK(f->fd >= 0 && f->len == 0 && is_pty);
		FUZZ_CHECK((f->arg & ~WIRE_SCREEN_ALL) == 0);
		FUZZ_CHECK(write(f->fd, "text\n", 5) == 5);
		break;
	case FRAME_DROP:
		FUZZ_CHECK(reader_u64(&r) >= STAGE_ATTACHMENT);
		free(reader_str(&r, 1024));
		FUZZ_CHECK(reader_done(&r));
		break;
	case FRAME_VIEWER:
		FUZZ_CHECK(f->fd >= 0);
		FUZZ_CHECK(wire_viewer_decode(
			       f->data, f->len, FRAME_VERSION, &v) == 0);
		wire_viewer_release(&v);
		break;
	default:
		FUZZ_CHECK(!"a frame that no verb sends");
	}
}

/* Every other time the keeper has no screen. */
static void
keeper_send_text(struct link *l, uint16_t tag)
{
	struct buf b = { 0 };

	if (tag % 2) {
		buf_put_u32(&b, 80);
		buf_put_u32(&b, 24);
		link_send(l, FRAME_TEXT, 0, tag, buf_head(&b), buf_len(&b));
	} else {
		buf_put_str(&b, "no screen");
		link_send(l, FRAME_ERROR, 1, tag, buf_head(&b), buf_len(&b));
	}
	buf_release(&b);
}

static void
keeper_serve(unsigned i)
{
	struct link *l = &stage.keepers[i];
	struct frame f;

	while (link_fill(l) > 0) {
		while (link_next(l, &f) == 1) {
			keeper_check_frame(&f, i == 0);
			if (f.fd >= 0)
				close(f.fd);
			if (f.type == FRAME_VIEWER)
				link_send(
				    l, FRAME_VIEWER_ACK, 1, f.tag, f.data, 8);
			else if (f.type == FRAME_FLUSH)
				link_send(l, FRAME_OK, 0, f.tag, NULL, 0);
			else if (f.type == FRAME_SCREEN)
				keeper_send_text(l, f.tag);
		}
	}
	FUZZ_CHECK(link_flush(l) == 0);
}

/* ---- the client ---------------------------------------------------------- */

struct client {
	int fd;
	struct buf in;
	unsigned n_answers, n_fds, want_fds;
	bool is_eof, is_lazy; /* lazy: reads nothing yet */
};

static void
client_check_answer(struct client *cl, const char *line, size_t n)
{
	json_error_t je;
	json_t *o = json_loadb(line, n, JSON_REJECT_DUPLICATES, &je);
	const json_t *ok = json_object_get(o, "ok");
	const json_t *code = json_object_get(o, "code");
	const char *why = json_string_value(json_object_get(o, "error"));

	FUZZ_CHECK(json_is_object(o) && json_is_boolean(ok));
	if (json_is_false(ok)) {
		FUZZ_CHECK(json_integer_value(code) >= 1 &&
			   json_integer_value(code) <= 5);
		FUZZ_CHECK(why && why[0] && !strchr(why, '\n'));
	}
	cl->n_answers += !json_is_true(json_object_get(o, "more"));
	cl->want_fds += json_object_get(o, "fd") != NULL;
	json_decref(o);
}

static void
client_read(struct client *cl)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = buf_reserve(&cl->in, 65536),
		.iov_len = 65536 };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space) };
	ssize_t n = recvmsg(cl->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const uint8_t *nl;

	if (n < 0)
		cl->is_eof |= errno != EAGAIN;
	if (n == 0)
		cl->is_eof = true;
	if (n <= 0)
		return;
	buf_commit(&cl->in, (size_t)n);
	FUZZ_CHECK(!(msg.msg_flags & MSG_CTRUNC));
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c;
	     c = CMSG_NXTHDR(&msg, c)) {
		int fd;

		FUZZ_CHECK(c->cmsg_len == CMSG_LEN(sizeof(fd)));
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		close(fd);
		cl->n_fds++;
	}
	while (buf_len(&cl->in) &&
	       (nl = memchr(buf_head(&cl->in), '\n', buf_len(&cl->in)))) {
		size_t len = (size_t)(nl - buf_head(&cl->in));

		client_check_answer(cl, (const char *)buf_head(&cl->in), len);
		buf_consume(&cl->in, len + 1);
	}
}

static void
client_turn(struct client *cl)
{
	event_base_loop(stage.base, EVLOOP_NONBLOCK);
	keeper_serve(0);
	keeper_serve(1);
	if (!cl->is_lazy)
		client_read(cl);
}

/* Lines with something on them: one answer each. */
static unsigned
client_count_lines(const uint8_t *p, size_t n)
{
	unsigned lines = 0;
	size_t begin = 0;

	for (size_t i = 0; i < n; i++) {
		if (p[i] != '\n')
			continue;
		lines += i > begin;
		begin = i + 1;
	}
	return lines;
}

/* The first 64 pieces have their size, the rest goes as fast as it can. */
static void
client_send(struct client *cl, const uint8_t *p, size_t n, size_t piece)
{
	for (unsigned i = 0; n && !cl->is_eof; i++) {
		size_t part = n < piece || i > 64 ? n : piece;
		ssize_t sent =
		    send(cl->fd, p, part, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent > 0) {
			p += sent;
			n -= (size_t)sent;
		} else if (sent < 0 && errno != EAGAIN) {
			break;
		}
		client_turn(cl);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	static bool is_first = true;
	struct fuzz_input in = { p, n };
	unsigned cut = fuzz_u8(&in);
	unsigned want = client_count_lines(in.p, in.n);
	int64_t deadline_ms = clock_mono_ms() + 1500;
	struct client cl = { 0 };

	if (is_first)
		atexit(stage_down);
	is_first = false;
	if (stage.n_inputs == STAGE_INPUTS)
		stage_down();
	if (!stage.m)
		stage_up();
	stage.n_inputs++;
	cl.fd = fd_connect_unix(stage.dir_fd, "control.sock");
	FUZZ_CHECK(cl.fd >= 0);
	client_turn(&cl);
	if (cut == 255) { /* a line that never ends */
		uint8_t *pad = xcalloc(1, STAGE_PAD);

		memset(pad, ' ', STAGE_PAD);
		client_send(&cl, pad, STAGE_PAD, STAGE_PAD);
		free(pad);
		want = 1;
	}
	cl.is_lazy = cut == 254;
	client_send(&cl, in.p, in.n, 1 + cut * 16);
	shutdown(cl.fd, SHUT_WR);
	for (unsigned i = 0; i < 8; i++)
		client_turn(&cl);
	cl.is_lazy = false;
	while (!cl.is_eof) {
		client_turn(&cl);
		FUZZ_CHECK(clock_mono_ms() < deadline_ms);
	}
	FUZZ_CHECK(buf_len(&cl.in) == 0 && cl.n_answers == want);
	FUZZ_CHECK(cl.n_fds == cl.want_fds);
	close(cl.fd);
	buf_release(&cl.in);
	return 0;
}
