/*
 * A channel's life, see chan.h. Runs in berth-sshd. The callbacks of libssh
 * only copy bytes and set flags; everything that calls libssh is in steps.
 */
#include "sshd/connection/chan.h"

#include <libssh/server.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text.h"
#include "sshd/connection/flow.h"
#include "sshd/connection/lib_log.h"
#include "sshd/connection/peer.h"
#include "sshd/connection/pump.h"
#include "sshd/connection/signame.h"
#include "sshd/connection/window.h"

#define CHAN_CLOSE_MS   10000
#define CHAN_FAIL_VALUE 255
#define CHAN_TOLD_MAX   16384 /* bytes that wait for the client */

/* Takes all or nothing; nothing makes libssh keep it and close its window. */
static int
chan_on_data(ssh_session session, ssh_channel ssh, void *data, uint32_t len,
    int is_stderr, void *arg)
{
	struct chan *c = arg;

	(void)session;
	(void)ssh;
	/*
	 * Behind our CLOSE nothing may follow, and libssh would open the window
	 * for what was taken: clients end the connection for that. What still
	 * comes is as much as the window was.
	 */
	if (c->state >= CHAN_CLOSING)
		return 0;
	if (is_stderr || c->state > CHAN_LIVE)
		return (int)len;
	if (c->is_in_paused || buf_len(&c->in) >= FLOW_IN_HIGH) {
		c->is_in_paused = true;
		return 0;
	}
	buf_put(&c->in, data, len);
	window_took(&c->in_taken, len);
	return (int)len;
}

static void
chan_on_eof(ssh_session session, ssh_channel ssh, void *arg)
{
	struct chan *c = arg;

	(void)session;
	(void)ssh;
	c->has_in_eof = true;
}

static void
chan_on_close(ssh_session session, ssh_channel ssh, void *arg)
{
	struct chan *c = arg;

	(void)session;
	(void)ssh;
	c->is_client_closed = true;
}

static void
chan_on_signal(
    ssh_session session, ssh_channel ssh, const char *name, void *arg)
{
	struct chan *c = arg;
	int sig = signame_from_client(name);

	(void)session;
	(void)ssh;
	if (sig && c->n_signals < sizeof(c->signals))
		c->signals[c->n_signals++] = (uint8_t)sig;
}

struct chan *
chan_new(struct peer *p, ssh_channel ssh)
{
	struct chan *c = xcalloc(1, sizeof(*c));

	c->peer = p;
	c->ssh = ssh;
	c->id = p->next_channel++;
	list_init(&c->node);
	list_init(&c->waiting);
	c->callbacks = (struct ssh_channel_callbacks_struct){
		.userdata = c,
		.channel_data_function = chan_on_data,
		.channel_eof_function = chan_on_eof,
		.channel_close_function = chan_on_close,
		.channel_signal_function = chan_on_signal,
	};
	ssh_callbacks_init(&c->callbacks);
	ssh_set_channel_callbacks(ssh, &c->callbacks);
	list_append(&p->channels, &c->node);
	p->n_channels++;
	return c;
}

struct chan *
chan_find(struct peer *p, ssh_channel ssh)
{
	struct list *pos, *next;

	list_for_each (pos, next, &p->channels) {
		struct chan *c = list_entry(pos, struct chan, node);

		if (c->ssh == ssh)
			return c;
	}
	return NULL;
}

static void
chan_send_size(struct chan *c)
{
	struct buf b = { 0 };

	wire_size_encode(&b, &c->run.size);
	wire_send_buf(&c->wire, FRAME_RESIZE, 0, 0, &b);
	buf_release(&b);
}

void
chan_join(struct chan *c, int fd, uint32_t version)
{
	fd_set_nonblock(fd, true);
	wire_init(&c->wire, c->peer->base, fd, pump_handler(), c);
	c->wire.version = frame_version(version);
	c->has_wire = true;
	c->state = CHAN_LIVE;
	pump_start(c);
	if (memcmp(&c->run.size, &c->asked_size, sizeof(c->run.size)) != 0)
		chan_send_size(c);
	c->peer->is_busy = true;
}

static void
chan_put_line(const struct chan *c, struct buf *out, const char *what)
{
	char line[512];
	size_t n = text_escape(what, strlen(what), line, sizeof(line));

	buf_put(out, "berth: ", 7);
	buf_put(out, line, n);
	/* A client with a terminal has it in raw mode. */
	if (c->run.has_pty)
		buf_put_u8(out, '\r');
	buf_put_u8(out, '\n');
}

void
chan_say(struct chan *c, const char *what)
{
	chan_put_line(c, &c->parting, what);
}

void
chan_tell(struct chan *c, const char *what)
{
	if (buf_len(&c->out[STREAM_ERR]) < CHAN_TOLD_MAX)
		chan_put_line(c, &c->out[STREAM_ERR], what);
	c->peer->is_busy = true;
}

void
chan_fail(struct chan *c, const char *why)
{
	if (c->state > CHAN_LIVE)
		return;
	chan_say(c, why);
	c->exit = (struct wire_exit){ .value = CHAN_FAIL_VALUE };
	c->has_exit = true;
	c->state = CHAN_DRAINING;
	if (c->has_wire)
		wire_close(&c->wire, 0);
	c->peer->is_busy = true;
}

void
chan_resize(struct chan *c, const struct wire_size *size)
{
	c->run.size = *size;
	if (c->state == CHAN_LIVE)
		chan_send_size(c);
}

void
chan_break(struct chan *c, uint32_t length_ms)
{
	struct buf b = { 0 };

	buf_put_u32(&b, length_ms);
	wire_send_buf(&c->wire, FRAME_BREAK, 0, 0, &b);
	buf_release(&b);
}

static void
chan_send_signals(struct chan *c)
{
	for (unsigned i = 0; c->state == CHAN_LIVE && i < c->n_signals; i++)
		wire_send(&c->wire, FRAME_SIGNAL, c->signals[i], 0, NULL, 0);
	c->n_signals = 0;
}

void
chan_hang_up(struct chan *c)
{
	tap_close(c);
	if (c->has_wire)
		wire_release(&c->wire);
	c->has_wire = false;
	c->is_link_over = false;
}

/* The keeper's end is gone. Without its END something may be missing. */
static void
chan_lose_link(struct chan *c)
{
	if (!c->has_end)
		chan_fail(c, "the session's process was lost");
	chan_hang_up(c);
}

static void
chan_send_exit(struct chan *c)
{
	char name[32];

	c->is_exit_sent = true;
	if (!c->exit.is_signal) {
		ssh_channel_request_send_exit_status(
		    c->ssh, (int)c->exit.value);
		return;
	}
	signame_for_exit((int)c->exit.value, name, sizeof(name));
	ssh_channel_request_send_exit_signal(
	    c->ssh, name, c->exit.core_dumped, c->exit.note, "");
}

/* All output is with libssh: what may follow it now? True if something did. */
static bool
chan_advance(struct chan *c)
{
	bool is_last = c->has_end || c->state == CHAN_DRAINING;

	if (is_last && buf_len(&c->parting)) {
		buf_put(&c->out[STREAM_ERR], buf_head(&c->parting),
		    buf_len(&c->parting));
		buf_clear(&c->parting);
		return true;
	}
	if (is_last && !c->has_exit) {
		c->exit.value = CHAN_FAIL_VALUE;
		c->has_exit = true;
	}
	if (c->has_exit && !c->is_exit_sent)
		chan_send_exit(c);
	if (!is_last)
		return false;
	chan_hang_up(c);
	/* libssh may read while it writes: see chan_on_data(). */
	c->state = CHAN_CLOSING;
	/* EOF may say "again" though it is queued; CLOSE needs it first. */
	ssh_channel_send_eof(c->ssh);
	ssh_channel_close(c->ssh);
	c->close_ms = clock_mono_ms() + CHAN_CLOSE_MS;
	return true;
}

/* The client closed first, or answered our CLOSE. */
static void
chan_finish(struct chan *c)
{
	chan_hang_up(c);
	if (c->state != CHAN_CLOSING) {
		ssh_channel_send_eof(c->ssh);
		ssh_channel_close(c->ssh);
	}
	c->state = CHAN_DEAD;
}

bool
chan_step(struct chan *c)
{
	bool moved;

	if (c->state == CHAN_DEAD)
		return false;
	if (c->is_client_closed) {
		chan_finish(c);
		return true;
	}
	if (c->is_link_over)
		chan_lose_link(c);
	chan_send_signals(c);
	moved = pump_in(c);
	if (pump_out(c))
		moved = true;
	if ((c->state == CHAN_LIVE || c->state == CHAN_DRAINING) &&
	    pump_is_drained(c) && chan_advance(c))
		moved = true;
	if (c->state == CHAN_CLOSING && clock_mono_ms() >= c->close_ms) {
		log_info("channel_abandoned", "reason",
		    "the client did not close its end", NULL);
		c->state = CHAN_DEAD;
	}
	return moved;
}

/* Frees the messages that wait for C, so that none outlives its channel. */
static void
chan_drop_messages(struct chan *c)
{
	struct list *pos, *next;

	list_for_each (pos, next, &c->waiting) {
		struct chan_waiting *w =
		    list_entry(pos, struct chan_waiting, node);

		list_remove(&w->node);
		ssh_message_free(w->msg);
		free(w);
	}
	list_for_each (pos, next, &c->peer->held) {
		struct held *h = list_entry(pos, struct held, node);

		if (h->channel != c)
			continue;
		h->channel = NULL;
		ssh_message_free(take_ptr(h->msg));
	}
}

void
chan_free(struct chan *c)
{
	chan_drop_messages(c);
	chan_hang_up(c);
	if (c->run.has_pty && --c->peer->n_ptys == 0)
		lib_log_set_packets(false);
	list_remove(&c->node);
	c->peer->n_channels--;
	/* libssh lists a freed channel until its CLOSE came, with callbacks */
	ssh_remove_channel_callbacks(c->ssh, &c->callbacks);
	ssh_channel_free(c->ssh);
	wire_run_release(&c->run);
	buf_release(&c->in);
	buf_release(&c->parting);
	for (int i = 0; i < STREAM_COUNT; i++)
		buf_release(&c->out[i]);
	free(c);
}
