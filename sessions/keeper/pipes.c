/* Stdout and stderr of a bound pipe session; see pipes.h. */
#include "sessions/keeper/pipes.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mem.h"
#include "sessions/keeper/keeper.h"
#include "sessions/keeper/viewer.h"

#define PIPES_TURN_FRAMES 4

/* The kernel's own 64 KiB make writer and reader take turns too often. */
#define PIPES_SIZE (256 << 10)

/* What a pipe of the usual size holds at most, at its end. */
#define PIPES_LOG_READS 16

static bool pipes_move(struct pipes *p, int i, bool may_end);

static const enum frame_stream pipes_stream[] = { STREAM_OUT, STREAM_ERR };

static void
pipes_end_fd(struct pipes *p, int i)
{
	if (p->read_ev[i])
		event_free(p->read_ev[i]);
	p->read_ev[i] = NULL;
	p->fd[i] = -1;
	p->is_reading[i] = false;
}

/* Stderr that is a log is the manager's, whatever the client takes. */
static bool
pipes_is_log(const struct pipes *p, int i)
{
	return i == 1 && keeper_has(p->k, LAUNCH_LOG_STDERR);
}

void
pipes_finish(struct pipes *p)
{
	if (!p->k)
		return;
	/* Its writer has ended: what it said last is all there. */
	for (int n = 0; pipes_is_log(p, 1) && n < PIPES_LOG_READS; n++) {
		if (p->fd[1] < 0 || !pipes_move(p, 1, true))
			break;
	}
	pipes_end_fd(p, 0);
	pipes_end_fd(p, 1);
}

void
pipes_release(struct pipes *p)
{
	pipes_finish(p);
	*p = (struct pipes){ 0 };
}

bool
pipes_are_done(const struct pipes *p)
{
	return p->fd[0] < 0 && p->fd[1] < 0;
}

/* Bytes that may be read of pipe I now. */
static size_t
pipes_room(const struct pipes *p, int i)
{
	const struct viewer *v = p->k->bound_viewer;
	size_t n = FRAME_DATA_MAX, room = recording_room(&p->k->recording);

	if (p->is_discarding || pipes_is_log(p, i))
		return n;
	if (i == 0 && p->is_lent)
		return 0;
	if (!v || v->is_closing || !link_is_idle(&v->wire.link))
		return 0;
	n = frame_data_max(v->wire.version);
	if (v->credit[pipes_stream[i]] < n)
		n = v->credit[pipes_stream[i]];
	if (room == 0 && n > 0)
		keeper_want_tick(p->k);
	return n < room ? n : room;
}

/*
 * Moves one frame from pipe I; false when there is none or no room. Its end is
 * taken only if MAY_END.
 */
static bool
pipes_move(struct pipes *p, int i, bool may_end)
{
	struct keeper *k = p->k;
	size_t room = pipes_room(p, i);
	struct iovec iov = { .iov_base = keeper_scratch(k) };
	ssize_t n;

	if (room == 0)
		return false;
	do
		n = read(p->fd[i], iov.iov_base, room);
	while (n < 0 && errno == EINTR);
	if (n <= 0 && (!may_end || (n < 0 && errno == EAGAIN)))
		return false;
	if (n <= 0) {
		pipes_end_fd(p, i);
		if (pipes_is_log(p, i))
			log_lines_end(&k->log);
		if (k->bound_viewer)
			wire_send(&k->bound_viewer->wire, FRAME_EOF,
			    (uint8_t)pipes_stream[i], 0, NULL, 0);
		return false;
	}
	if (pipes_is_log(p, i)) {
		log_lines_put(&k->log, iov.iov_base, (size_t)n);
		return true;
	}
	p->bytes += (uint64_t)n;
	manager_link_stats_changed(&k->manager);
	if (p->is_discarding)
		return true;
	recording_output(&k->recording, iov.iov_base, (size_t)n);
	iov.iov_len = (size_t)n;
	viewer_write(k->bound_viewer, pipes_stream[i], &iov, 1);
	return true;
}

static void
pipes_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct pipes *p = arg;

	(void)what;
	for (int i = 0; i < 2; i++) {
		int frames = 0;

		if (p->fd[i] < 0 || p->fd[i] != fd)
			continue;
		while (p->fd[i] >= 0 && frames++ < PIPES_TURN_FRAMES &&
		       pipes_move(p, i, true))
			;
	}
	pipes_update(p);
	if (pipes_are_done(p))
		keeper_advance(p->k);
}

void
pipes_open(struct pipes *p, struct keeper *k, int out_fd, int err_fd)
{
	*p = (struct pipes){ .k = k, .fd = { out_fd, err_fd } };
	/* best effort: a user may have too much of it already */
	fcntl(out_fd, F_SETPIPE_SZ, PIPES_SIZE);
	for (int i = 0; i < 2; i++) {
		p->read_ev[i] = event_new(
		    k->base, p->fd[i], EV_READ | EV_PERSIST, pipes_on_read, p);
		if (!p->read_ev[i])
			abort();
	}
	pipes_update(p);
}

void
pipes_update(struct pipes *p)
{
	if (!p->k)
		return;
	for (int i = 0; i < 2; i++) {
		bool may_read;

		if (p->fd[i] < 0)
			continue;
		may_read = pipes_room(p, i) > 0;
		if (may_read && !p->is_reading[i])
			event_add(p->read_ev[i], NULL);
		if (!may_read && p->is_reading[i])
			event_del(p->read_ev[i]);
		p->is_reading[i] = may_read;
	}
}

void
pipes_pump(struct pipes *p)
{
	if (!p->k)
		return;
	for (int i = 0; i < 2; i++) {
		int frames = 0;

		while (p->fd[i] >= 0 && frames++ < PIPES_TURN_FRAMES &&
		       pipes_move(p, i, false))
			;
	}
	pipes_update(p);
}

void
pipes_lend(struct pipes *p)
{
	struct viewer *v = p->k ? p->k->bound_viewer : NULL;
	int fd;

	if (!v || v->is_closing || p->fd[0] < 0 || p->is_lent ||
	    p->is_discarding || recording_room(&p->k->recording) != SIZE_MAX)
		return;
	fd = fcntl(p->fd[0], F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return;
	p->is_lent = true;
	wire_send_fd(&v->wire, FRAME_PIPE, STREAM_OUT, 0, NULL, 0, fd);
	pipes_update(p);
}

void
pipes_taken(struct pipes *p, uint32_t n)
{
	p->bytes += n;
	if (p->k && p->k->bound_viewer)
		p->k->bound_viewer->bytes_out += n;
	if (p->k)
		manager_link_stats_changed(&p->k->manager);
}

void
pipes_take_back(struct pipes *p)
{
	p->is_lent = false;
	pipes_update(p);
}

void
pipes_discard(struct pipes *p)
{
	p->is_lent = false;
	p->is_discarding = true;
	pipes_update(p);
}
