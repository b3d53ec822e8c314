/*
 * The viewer's loop (berth attach, berth tail); see viewer.h. Always reads the
 * link and the terminal, so that neither a full session nor a slow screen can
 * lock the detach key out; what waits is bounded by the credit granted and by
 * VIEWER_INPUT_MAX.
 */
#include "cli/viewer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"
#include "cli/terminal.h"
#include "sessions/keeper/detach_key.h"
#include "sessions/wire/link.h"

#define VIEWER_INPUT_MAX (64U << 10)
#define VIEWER_WRITE_MAX (16U << 10)
#define VIEWER_READ_MAX  (16U << 10)

/* Credit is granted again when this much was written. */
#define VIEWER_GRANT (FRAME_WINDOW / 4)

/* So long the rest of a sequence may take that began like the key. */
#define VIEWER_KEY_MS 50

/* How long a viewer that leaves waits for the other side. */
#define VIEWER_LEAVE_MS 1000

struct viewer {
	struct link link;
	const struct viewer_options *options;
	struct viewer_outcome *out;
	struct detach_key_scan keys;
	int64_t typed_ms; /* when something was typed last */
	struct buf input; /* typed, not yet sent */
	uint64_t credit;  /* bytes of input that may go */
	struct {
		struct buf queue; /* received, not yet written */
		uint32_t owed;    /* written, credit not yet granted */
		int fd;
	} sink[STREAM_COUNT]; /* STREAM_OUT and STREAM_ERR */
	int signal_fd;
	bool is_input_over, is_leaving, is_shut;
	bool is_input_sent; /* with its end, to a process of ours */
	bool is_given_back; /* the session left our terminal as it was */
	bool is_over;       /* only what waits is still written */
	bool has_exit, is_stopped;
	int64_t leave_at_ms;
};

static void
viewer_end(struct viewer *v, enum viewer_result result, const char *why)
{
	if (v->is_over || v->is_stopped)
		return;
	v->out->result = result;
	text_escape(why, strlen(why), v->out->why, sizeof(v->out->why));
	v->is_over = true;
}

/* Ends at once; what waits is lost. */
static void
viewer_stop(struct viewer *v, enum viewer_result result, const char *why)
{
	if (!v->is_over)
		viewer_end(v, result, why);
	v->is_stopped = true;
}

static void
viewer_grant(struct viewer *v, enum frame_stream s, uint32_t n)
{
	uint8_t payload[4] = { (uint8_t)(n >> 24), (uint8_t)(n >> 16),
		(uint8_t)(n >> 8), (uint8_t)n };

	link_send(
	    &v->link, FRAME_CREDIT, (uint8_t)s, 0, payload, sizeof(payload));
}

static void
viewer_send_size(struct viewer *v)
{
	struct wire_size size;
	struct buf b = { 0 };

	if (!terminal_size(&size))
		return;
	wire_size_encode(&b, &size);
	link_send(&v->link, FRAME_RESIZE, 0, 0, buf_head(&b), buf_len(&b));
	buf_release(&b);
}

/* Leaves the session: what was typed before still goes. */
static void
viewer_leave(struct viewer *v)
{
	v->is_input_over = v->is_leaving = true;
	v->leave_at_ms = clock_mono_ms() + VIEWER_LEAVE_MS;
}

static bool
viewer_take_data(struct viewer *v, const struct frame *f)
{
	if (f->arg != STREAM_OUT && f->arg != STREAM_ERR)
		return false;
	/* More than we granted: the other side is broken. */
	if (f->len > FRAME_DATA_MAX ||
	    buf_len(&v->sink[f->arg].queue) + f->len > FRAME_WINDOW)
		return false;
	buf_put(&v->sink[f->arg].queue, f->data, f->len);
	return true;
}

static bool
viewer_take_credit(struct viewer *v, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	uint32_t n = reader_u32(&r);

	if (!reader_done(&r) || f->arg != STREAM_IN ||
	    v->credit + n > FRAME_WINDOW)
		return false;
	v->credit += n;
	return true;
}

static bool
viewer_take_detach(struct viewer *v, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	autofree char *why = reader_str(&r, FRAME_DATA_MAX);

	if (!why || !reader_done(&r))
		return false;
	v->is_given_back = true;
	viewer_end(v,
	    v->is_leaving || f->arg == 1 ? VIEWER_DETACHED : VIEWER_DROPPED,
	    why);
	return true;
}

/* False for a frame that must not be. */
static bool
viewer_take(struct viewer *v, const struct frame *f)
{
	switch (f->type) {
	case FRAME_DATA:
		return viewer_take_data(v, f);
	case FRAME_CREDIT:
		return viewer_take_credit(v, f);
	case FRAME_EOF:
		return f->len == 0;
	case FRAME_DETACH:
		return viewer_take_detach(v, f);
	case FRAME_EXIT:
		v->has_exit = true;
		return wire_exit_decode(f->data, f->len, &v->out->exit) == 0;
	case FRAME_END:
		v->is_given_back = true;
		viewer_end(v,
		    v->has_exit     ? VIEWER_EXITED
		    : v->is_leaving ? VIEWER_DETACHED
				    : VIEWER_ENDED,
		    "");
		return f->len == 0;
	default:
		return false;
	}
}

static void
viewer_lost(struct viewer *v, int rc)
{
	if (v->has_exit)
		viewer_end(v, VIEWER_EXITED, "");
	else if (v->is_leaving)
		viewer_end(v, VIEWER_DETACHED, "");
	else
		viewer_end(v, VIEWER_BROKEN,
		    rc == -EPROTO ? "the session's keeper sent garbage"
				  : "the connection to the session broke");
}

static void
viewer_read_link(struct viewer *v)
{
	struct frame f;
	int n = link_fill(&v->link), rc;

	if (n == -EAGAIN)
		return;
	while ((rc = link_next(&v->link, &f)) == 1 && !v->is_over) {
		if (f.fd >= 0)
			close(f.fd);
		if (f.fd >= 0 || !viewer_take(v, &f)) {
			rc = -EPROTO;
			break;
		}
	}
	if (rc < 0 || n <= 0)
		viewer_lost(v, rc < 0 ? rc : n);
}

/* A viewer without the right to type still has the key. */
static void
viewer_put_input(struct viewer *v, const uint8_t *p, size_t n)
{
	if (v->options->reads_stdin)
		buf_put(&v->input, p, n);
}

/* True if the key is among the N bytes of P that were typed. */
static bool
viewer_type(struct viewer *v, const uint8_t *p, size_t n)
{
	v->typed_ms = clock_mono_ms();
	while (n) {
		struct detach_key_step step;

		detach_key_step(&v->keys, p, n, &step);
		viewer_put_input(v, step.p, step.n);
		if (step.is_pressed)
			return true;
		p += step.used;
		n -= step.used;
	}
	return false;
}

/* What began like the key and did not go on was something else. */
static void
viewer_flush_keys(struct viewer *v)
{
	const uint8_t *p;
	size_t n = detach_key_flush(&v->keys, &p);

	viewer_put_input(v, p, n);
}

static void
viewer_read_input(struct viewer *v)
{
	uint8_t p[VIEWER_READ_MAX];
	ssize_t n = read(STDIN_FILENO, p, sizeof(p));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0)
		viewer_flush_keys(v);
	if (n > 0 ? viewer_type(v, p, (size_t)n) : v->options->is_terminal)
		viewer_leave(v);
	else if (n <= 0)
		v->is_input_over = true;
}

static void
viewer_send_input(struct viewer *v)
{
	size_t n = buf_len(&v->input);
	struct iovec iov;

	if (n > v->credit)
		n = (size_t)v->credit;
	/* Whatever keeper it is, this it takes. */
	if (n > FRAME_DATA_MAX_1)
		n = FRAME_DATA_MAX_1;
	if (n == 0 || v->is_shut || !link_is_idle(&v->link))
		return;
	iov.iov_base = v->input.data + v->input.start;
	iov.iov_len = n;
	if (link_write_data(&v->link, STREAM_IN, &iov, 1) < 0)
		return; /* reading will tell why */
	buf_consume(&v->input, n);
	v->credit -= n;
}

/*
 * Input at its end is followed by leaving: a terminal is asked back, else the
 * sending side is shut, so that the keeper reads all of it before it sees the
 * end.
 */
static void
viewer_finish_input(struct viewer *v)
{
	if (!v->is_input_over || v->is_shut || v->is_input_sent)
		return;
	if (buf_len(&v->input) > 0 || !link_is_idle(&v->link))
		return;
	if (v->options->is_bound && !v->is_leaving) {
		link_send(&v->link, FRAME_EOF, STREAM_IN, 0, NULL, 0);
		v->is_input_sent = true;
		return;
	}
	if (!v->is_leaving)
		viewer_leave(v);
	if (v->options->is_terminal)
		link_send(&v->link, FRAME_DETACH, 0, 0, NULL, 0);
	else
		shutdown(v->link.fd, SHUT_WR);
	v->is_shut = true;
}

static void
viewer_write_sink(struct viewer *v, enum frame_stream s)
{
	struct buf *q = &v->sink[s].queue;
	size_t n =
	    buf_len(q) < VIEWER_WRITE_MAX ? buf_len(q) : VIEWER_WRITE_MAX;
	ssize_t k = write(v->sink[s].fd, buf_head(q), n);

	if (k < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (k < 0) {
		viewer_stop(v, VIEWER_BROKEN,
		    errno == EPIPE ? "nobody reads the output any more"
				   : "cannot write the output");
		return;
	}
	buf_consume(q, (size_t)k);
	v->sink[s].owed += (uint32_t)k;
	if (v->sink[s].owed >= VIEWER_GRANT && !v->is_over && !v->is_shut) {
		viewer_grant(v, s, v->sink[s].owed);
		v->sink[s].owed = 0;
	}
}

static void
viewer_read_signal(struct viewer *v)
{
	struct signalfd_siginfo info;

	if (read(v->signal_fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH) {
		if (v->options->sends_size && !v->is_shut)
			viewer_send_size(v);
	} else if (info.ssi_signo == SIGCONT) {
		/* The shell took the terminal back while we were stopped. */
		if (v->options->is_terminal)
			terminal_raw();
	} else if (v->options->is_bound && info.ssi_signo != SIGHUP &&
		   !v->is_over) {
		link_send(&v->link, FRAME_SIGNAL, (uint8_t)info.ssi_signo, 0,
		    NULL, 0);
	} else {
		v->out->signal_number = (int)info.ssi_signo;
		v->is_over = false;
		viewer_stop(v, VIEWER_SIGNALLED, "");
	}
}

static int
viewer_open_signals(bool is_bound)
{
	static const int signals[] = { SIGWINCH, SIGCONT, SIGINT, SIGTERM,
		SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 };
	size_t n = ARRAY_LEN(signals) - (is_bound ? 0 : 2);
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < n; i++)
		sigaddset(&set, signals[i]);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

enum {
	VIEWER_POLL_LINK,
	VIEWER_POLL_SIGNAL,
	VIEWER_POLL_INPUT,
	VIEWER_POLL_OUT,
	VIEWER_POLL_ERR,
	VIEWER_POLL_COUNT
};

static void
viewer_prepare(struct viewer *v, struct pollfd p[VIEWER_POLL_COUNT])
{
	bool wants_input =
	    (v->options->reads_stdin || v->options->is_terminal) &&
	    !v->is_input_over && !v->is_over &&
	    buf_len(&v->input) < VIEWER_INPUT_MAX;
	short link_events = link_is_idle(&v->link) ? POLLIN : POLLIN | POLLOUT;

	p[VIEWER_POLL_LINK] =
	    (struct pollfd){ v->is_over ? -1 : v->link.fd, link_events, 0 };
	p[VIEWER_POLL_SIGNAL] = (struct pollfd){ v->signal_fd, POLLIN, 0 };
	p[VIEWER_POLL_INPUT] =
	    (struct pollfd){ wants_input ? STDIN_FILENO : -1, POLLIN, 0 };
	for (int s = STREAM_OUT; s <= STREAM_ERR; s++) {
		bool waits = buf_len(&v->sink[s].queue) > 0;

		p[s == STREAM_OUT ? VIEWER_POLL_OUT : VIEWER_POLL_ERR] =
		    (struct pollfd){ waits ? v->sink[s].fd : -1, POLLOUT, 0 };
	}
}

/* TIMEOUT, or less while a part of the key may still become one. */
static int
viewer_wait_for_key(struct viewer *v, int timeout)
{
	if (!detach_key_waits(&v->keys))
		return timeout;
	if (clock_mono_ms() - v->typed_ms < VIEWER_KEY_MS)
		return timeout < 0 || timeout > VIEWER_KEY_MS ? VIEWER_KEY_MS
							      : timeout;
	viewer_flush_keys(v);
	viewer_send_input(v);
	return timeout;
}

/* One turn of the loop; false when all is done. */
static bool
viewer_turn(struct viewer *v)
{
	struct pollfd p[VIEWER_POLL_COUNT];
	int timeout = -1;

	if (v->is_leaving && !v->is_over &&
	    (v->is_shut || v->options->is_terminal)) {
		int64_t left = v->leave_at_ms - clock_mono_ms();

		if (left <= 0)
			viewer_end(v, VIEWER_DETACHED, "");
		timeout = left > 0 ? (int)left : 0;
	}
	timeout = viewer_wait_for_key(v, timeout);
	if (v->is_stopped ||
	    (v->is_over && buf_len(&v->sink[STREAM_OUT].queue) == 0 &&
		buf_len(&v->sink[STREAM_ERR].queue) == 0))
		return false;
	viewer_prepare(v, p);
	if (poll(p, VIEWER_POLL_COUNT, timeout) < 0)
		return true;
	if (p[VIEWER_POLL_SIGNAL].revents)
		viewer_read_signal(v);
	if (p[VIEWER_POLL_INPUT].revents)
		viewer_read_input(v);
	if (p[VIEWER_POLL_LINK].revents & (POLLIN | POLLHUP | POLLERR))
		viewer_read_link(v);
	if (p[VIEWER_POLL_OUT].revents && !v->is_stopped)
		viewer_write_sink(v, STREAM_OUT);
	if (p[VIEWER_POLL_ERR].revents && !v->is_stopped)
		viewer_write_sink(v, STREAM_ERR);
	if (v->is_over)
		return true;
	/* A broken pipe shows when reading, behind what is still to read. */
	link_flush(&v->link);
	viewer_send_input(v);
	viewer_finish_input(v);
	return true;
}

static void
viewer_release(struct viewer *v)
{
	for (int s = STREAM_OUT; s <= STREAM_ERR; s++) {
		buf_release(&v->sink[s].queue);
		if (v->sink[s].fd >= 0)
			close(v->sink[s].fd);
	}
	if (v->signal_fd >= 0)
		close(v->signal_fd);
	buf_release(&v->input);
	link_release(&v->link);
}

void
viewer_run(int link_fd, const struct viewer_options *options,
    struct viewer_outcome *out)
{
	static const struct wire_detach_key no_key;
	struct viewer v = { .options = options, .out = out };

	*out = (struct viewer_outcome){ .result = VIEWER_BROKEN };
	detach_key_init(&v.keys, options->is_terminal && options->detach_key
				     ? options->detach_key
				     : &no_key);
	link_init(&v.link, link_fd);
	fd_set_nonblock(link_fd, true);
	v.signal_fd = viewer_open_signals(options->is_bound);
	v.sink[STREAM_OUT].fd = terminal_output(STDOUT_FILENO);
	v.sink[STREAM_ERR].fd = terminal_output(STDERR_FILENO);
	viewer_grant(&v, STREAM_OUT, FRAME_WINDOW);
	viewer_grant(&v, STREAM_ERR, FRAME_WINDOW);
	if (options->is_terminal && terminal_raw() < 0)
		viewer_stop(&v, VIEWER_BROKEN, "cannot make the terminal raw");
	/* It may have changed since it was asked for. */
	if (options->sends_size)
		viewer_send_size(&v);
	link_flush(&v.link);
	while (viewer_turn(&v))
		;
	if (options->is_terminal && !v.is_given_back)
		terminal_leave();
	terminal_restore();
	viewer_release(&v);
}
