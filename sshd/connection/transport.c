/*
 * libssh set up as a server in message-queue mode, see transport.h. Runs in
 * berth-sshd. Neither server callbacks nor a message callback are ever set, so
 * libssh answers nothing by itself that berth has to decide.
 */
#include "sshd/connection/transport.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <libssh/callbacks.h>
#include <libssh/server.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "sessions/wire/messages.h"
#include "sshd/connection/read_ahead.h"

#define TRANSPORT_LINGER_MS  500
#define TRANSPORT_LINGER_MAX (256 << 10) /* bytes read away meanwhile */

/* Padding, MAC and header of one packet, for the estimate of unsent bytes. */
#define TRANSPORT_PACKET_OVERHEAD 64

/* Without group exchange (needs files) and group 18 (costs seconds of CPU). */
#define TRANSPORT_KEX                                               \
	"curve25519-sha256,curve25519-sha256@libssh.org,"           \
	"ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-sha2-nistp521," \
	"diffie-hellman-group16-sha512,diffie-hellman-group14-sha256"
#if LIBSSH_VERSION_INT >= SSH_VERSION_INT(0, 12, 0)
#define TRANSPORT_KEX_PQ                                \
	"mlkem768x25519-sha256,sntrup761x25519-sha512," \
	"sntrup761x25519-sha512@openssh.com,"
#else
#define TRANSPORT_KEX_PQ ""
#endif

/* No SHA-1 signatures, no certificates: nobody here checks a CA. */
#define TRANSPORT_USER_KEYS                                    \
	"ssh-ed25519,ecdsa-sha2-nistp256,ecdsa-sha2-nistp384," \
	"ecdsa-sha2-nistp521,rsa-sha2-512,rsa-sha2-256,"       \
	"sk-ssh-ed25519@openssh.com,sk-ecdsa-sha2-nistp256@openssh.com"

struct transport_option {
	enum ssh_bind_options_e type;
	const char *value;
};

static const struct transport_option transport_options[] = {
	{ SSH_BIND_OPTIONS_BANNER, "berth_" BERTH_VERSION },
	{ SSH_BIND_OPTIONS_KEY_EXCHANGE, TRANSPORT_KEX_PQ TRANSPORT_KEX },
	{ SSH_BIND_OPTIONS_PUBKEY_ACCEPTED_KEY_TYPES, TRANSPORT_USER_KEYS },
};

/* Gives the host keys of S to BIND, which owns them. */
static int
transport_import_keys(
    ssh_bind bind, const struct wire_settings *s, struct err *e)
{
	for (unsigned i = 0; s->host_keys[i]; i++) {
		ssh_key key = NULL;

		if (ssh_pki_import_privkey_base64(
			s->host_keys[i], NULL, NULL, NULL, &key) != SSH_OK)
			return err_set(e, -EINVAL,
			    "host key %u: not a private key without "
			    "passphrase that libssh can read",
			    i + 1);
		if (ssh_bind_options_set(
			bind, SSH_BIND_OPTIONS_IMPORT_KEY, key) < 0) {
			ssh_key_free(key);
			return err_set(e, -EINVAL, "host key %u: %s", i + 1,
			    ssh_get_error(bind));
		}
	}
	return 0;
}

/* A bind that only carries options; it never listens. */
static ssh_bind
transport_new_bind(const struct wire_settings *s, struct err *e)
{
	bool no = false;
	ssh_bind bind = ssh_bind_new();

	if (!bind)
		abort();
	/* First, or a file of the system may override what follows. */
	ssh_bind_options_set(bind, SSH_BIND_OPTIONS_PROCESS_CONFIG, &no);
	for (size_t i = 0;
	     i < sizeof(transport_options) / sizeof(*transport_options); i++) {
		const struct transport_option *o = &transport_options[i];

		if (ssh_bind_options_set(bind, o->type, o->value) == 0)
			continue;
		err_set(e, -EINVAL, "libssh: %s", ssh_get_error(bind));
		ssh_bind_free(bind);
		return NULL;
	}
	if (transport_import_keys(bind, s, e) < 0) {
		ssh_bind_free(bind);
		return NULL;
	}
	return bind;
}

int
transport_check_host_keys(const struct wire_settings *s, struct err *e)
{
	ssh_bind bind = transport_new_bind(s, e);

	if (!bind)
		return -EINVAL;
	ssh_bind_free(bind);
	return 0;
}

int
transport_prepare(void)
{
	unsigned char byte;

	return ssh_get_random(&byte, sizeof(byte), 0) == 1 ? 0 : -EIO;
}

/* Best effort: a socket that refuses one of them still works. */
static void
transport_tune_socket(int fd, const struct wire_settings *s)
{
	int one = 1;
	unsigned timeout_ms = s->keepalive_ms * (s->keepalive_count + 1);

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	if (timeout_ms)
		setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms,
		    sizeof(timeout_ms));
}

static void
transport_on_event(evutil_socket_t fd, short what, void *arg)
{
	struct transport *t = arg;

	(void)fd;
	if (what & EV_READ)
		read_ahead_wake();
	t->is_ready = true;
}

int
transport_init(struct transport *t, struct event_base *base, int fd,
    const struct wire_settings *s, struct err *e)
{
	uint64_t bytes = s->rekey_bytes;
	ssh_bind bind;
	int rc;

	*t = (struct transport){ .fd = -1 };
	rc = fd_set_nonblock(fd, true);
	if (rc == 0)
		rc = fd_set_cloexec(fd, true);
	if (rc < 0)
		return err_sys(e, rc, "socket of the connection");
	transport_tune_socket(fd, s);
	bind = transport_new_bind(s, e);
	if (!bind)
		return -EINVAL;
	t->session = ssh_new();
	if (!t->session)
		abort();
	if (ssh_bind_accept_fd(bind, t->session, fd) != SSH_OK) {
		rc = err_set(e, -EIO, "libssh: %s", ssh_get_error(bind));
		ssh_bind_free(bind);
		ssh_free(t->session);
		t->session = NULL;
		return rc;
	}
	ssh_bind_free(bind);
	read_ahead_start(fd);
	ssh_set_blocking(t->session, 0);
	ssh_options_set(t->session, SSH_OPTIONS_COMPRESSION, "no");
	if (s->rekey_bytes)
		ssh_options_set(t->session, SSH_OPTIONS_REKEY_DATA, &bytes);
	ssh_set_counters(t->session, &t->on_socket, &t->packets);
	ssh_set_auth_methods(t->session, SSH_AUTH_METHOD_PUBLICKEY);
	t->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (t->fd < 0)
		return err_sys(e, -errno, "socket of the connection");
	t->read_ev =
	    event_new(base, t->fd, EV_READ | EV_PERSIST, transport_on_event, t);
	t->write_ev = event_new(
	    base, t->fd, EV_WRITE | EV_PERSIST, transport_on_event, t);
	if (!t->read_ev || !t->write_ev)
		abort();
	return 0;
}

int
transport_start(struct transport *t, struct err *e)
{
	if (ssh_handle_key_exchange(t->session) == SSH_ERROR)
		return err_set(e, -EPROTO, "%s", transport_error(t));
	/* A session can join a poller only after the exchange began. */
	t->poller = ssh_event_new();
	if (!t->poller ||
	    ssh_event_add_session(t->poller, t->session) != SSH_OK)
		return err_set(e, -ENOMEM, "libssh cannot watch the socket");
	return 0;
}

uint64_t
transport_bytes_read(const struct transport *t)
{
	return t->on_socket.in_bytes;
}

void
transport_poll(struct transport *t, int rounds)
{
	t->is_ready = false;
	for (int i = 0; i < rounds; i++) {
		if (ssh_event_dopoll(t->poller, 0) != SSH_OK ||
		    !transport_is_alive(t))
			return;
	}
	/* More may be there; the level-triggered event says so. */
}

bool
transport_is_alive(const struct transport *t)
{
	return ssh_is_connected(t->session) &&
	       !(ssh_get_status(t->session) & (SSH_CLOSED | SSH_CLOSED_ERROR));
}

bool
transport_is_clogged(const struct transport *t)
{
	return (ssh_get_status(t->session) & SSH_WRITE_PENDING) != 0;
}

bool
transport_is_flushed(const struct transport *t)
{
	/* The poll flag stays up for one more turn after the last send, and
	 * only then libssh would write a disconnect message at once. */
	return !transport_is_clogged(t) &&
	       !(ssh_get_poll_flags(t->session) & SSH_WRITE_PENDING);
}

/*
 * Bytes that wait in libssh, roughly: what was made into packets less what the
 * socket took, against the same number when nothing waited.
 */
static int64_t
transport_backlog(struct transport *t)
{
	int64_t sent =
	    (int64_t)(t->packets.out_bytes +
		      t->packets.out_packets * TRANSPORT_PACKET_OVERHEAD) -
	    (int64_t)t->on_socket.out_bytes;

	if (!transport_is_clogged(t))
		t->sent_base = sent;
	return sent - t->sent_base;
}

/*
 * After each send libssh wants to hear once that the next may follow. Asked now
 * that takes one call, as an event it takes five. What comes in meanwhile gets
 * a turn.
 */
static void
transport_settle(struct transport *t)
{
	uint64_t before = t->packets.in_packets;

	if (!transport_is_alive(t) || transport_is_clogged(t) ||
	    transport_is_flushed(t))
		return;
	ssh_event_dopoll(t->poller, 0);
	if (t->packets.in_packets != before)
		event_active(t->read_ev, EV_TIMEOUT, 0);
}

void
transport_arm(struct transport *t, bool want_read)
{
	if (want_read)
		transport_settle(t);
	/* libssh has closed the socket: there is nothing to wait for, but that
	 * must be seen. */
	if (!transport_is_alive(t)) {
		event_del(t->read_ev);
		event_del(t->write_ev);
		event_active(t->read_ev, EV_TIMEOUT, 0);
		return;
	}
	if (want_read && transport_backlog(t) < TRANSPORT_BACKLOG_MAX) {
		event_add(t->read_ev, NULL);
		/* For what the socket has given already no event comes. */
		if (read_ahead_has_bytes())
			event_active(t->read_ev, EV_TIMEOUT, 0);
	} else {
		event_del(t->read_ev);
	}
	if (ssh_get_poll_flags(t->session) & SSH_WRITE_PENDING)
		event_add(t->write_ev, NULL);
	else
		event_del(t->write_ev);
}

bool
transport_was_heard(struct transport *t)
{
	bool was = t->packets.in_packets != t->heard_packets;

	t->heard_packets = t->packets.in_packets;
	return was;
}

void
transport_probe(struct transport *t)
{
	/* The first call after an answer only collects that answer. */
	ssh_send_keepalive(t->session);
	if (transport_is_alive(t))
		ssh_send_keepalive(t->session);
}

const char *
transport_error(const struct transport *t)
{
	return ssh_get_error(t->session);
}

/*
 * Reads away what the peer still sends, so that closing the socket does not
 * make the kernel throw away our last message.
 */
static void
transport_linger(int fd)
{
	int64_t end = clock_mono_ms() + TRANSPORT_LINGER_MS;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char scrap[4096];
	ssize_t n, sum = 0;

	shutdown(fd, SHUT_WR);
	while (sum < TRANSPORT_LINGER_MAX) {
		int64_t left = end - clock_mono_ms();

		if (left <= 0 || poll(&p, 1, (int)left) <= 0)
			return;
		n = read(fd, scrap, sizeof(scrap));
		if (n <= 0)
			return;
		sum += n;
	}
}

void
transport_disconnect(struct transport *t, const char *why)
{
	event_del(t->read_ev);
	event_del(t->write_ev);
	if (why)
		ssh_session_set_disconnect_message(t->session, why);
	if (why && transport_is_alive(t))
		ssh_disconnect(t->session);
	else
		ssh_silent_disconnect(t->session);
	transport_linger(t->fd);
	close(t->fd);
	t->fd = -1;
}
