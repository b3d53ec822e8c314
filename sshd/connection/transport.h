/*
 * The SSH transport of one connection: a libssh server session in
 * message-queue mode on our own event loop. Nothing here blocks; after every
 * call that may have polled the socket the caller asks transport_is_alive(),
 * because a libssh session in error keeps reading without bound.
 */
#ifndef SSHD_CONNECTION_TRANSPORT_H
#define SSHD_CONNECTION_TRANSPORT_H

#include <libssh/libssh.h>
#include <stdbool.h>
#include <stdint.h>

struct err;
struct event;
struct event_base;
struct wire_settings;

/* Unsent bytes above which the socket is not read any more. */
#define TRANSPORT_BACKLOG_MAX (1U << 20)

struct transport {
	int fd; /* our own copy: libssh closes its descriptor when it likes */
	ssh_session session;
	ssh_event poller; /* holds the session alone */
	struct event *read_ev, *write_ev;
	struct ssh_counter_struct on_socket, packets;
	int64_t sent_base;      /* estimate of unsent bytes when none waited */
	uint64_t heard_packets; /* at the last transport_was_heard() */
	bool is_ready;          /* the socket wants a transport_poll() */
};

/*
 * Imports each host key of S. 0, or -EINVAL with a sentence that names the
 * first bad one by its place, counted from 1.
 */
int transport_check_host_keys(const struct wire_settings *s, struct err *e);

/*
 * Lets libcrypto read its configuration, as long as there is a file system. 0,
 * or -EIO when it gives no random numbers.
 */
int transport_prepare(void);

/*
 * Prepares a session on the connected socket FD, which is made nonblocking,
 * close-on-exec, without delay and with keepalive; sends nothing. libssh owns
 * FD from then on; it stays the caller's on failure.
 */
int transport_init(struct transport *t, struct event_base *base, int fd,
    const struct wire_settings *s, struct err *e);

/* Sends the identification and begins the key exchange. */
int transport_start(struct transport *t, struct err *e);

/* Bytes that libssh has read from the socket so far. */
uint64_t transport_bytes_read(const struct transport *t);

/* Lets libssh read and write, at most ROUNDS times 4 KiB in. */
void transport_poll(struct transport *t, int rounds);

/* False once the session is over or in error: then nothing may follow. */
bool transport_is_alive(const struct transport *t);

/* True while bytes wait for the socket; then nothing more is written. */
bool transport_is_clogged(const struct transport *t);

/* True when everything that was queued has left this process. */
bool transport_is_flushed(const struct transport *t);

/*
 * Arms the socket's events: reading if WANT_READ and if the peer takes our
 * answers, writing if bytes wait.
 */
void transport_arm(struct transport *t, bool want_read);

/* True if a packet arrived since the last call. */
bool transport_was_heard(struct transport *t);

/* Sends a probe that the peer must answer. */
void transport_probe(struct transport *t);

/* What went wrong, for the log; "" if nothing did. Borrowed, not escaped. */
const char *transport_error(const struct transport *t);

/*
 * Sends a disconnect message with WHY (NULL: none) and ends the socket after a
 * bounded wait (0.5 s) for the peer to take it. Every channel is gone after it.
 */
void transport_disconnect(struct transport *t, const char *why);

#endif
