/*
 * One SSH connection as a whole: its transport, its link to the manager, its
 * channels and the messages that wait for the manager's word. berth-sshd has
 * exactly one; every libssh call happens in a turn of its loop, never in a
 * callback.
 */
#ifndef SSHD_CONNECTION_PEER_H
#define SSHD_CONNECTION_PEER_H

#include <libssh/libssh.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "sessions/wire/messages.h"
#include "sessions/wire/wire.h"
#include "sshd/connection/transport.h"

struct event;
struct event_base;
struct chan;

enum peer_phase {
	PHASE_IDENT,   /* the first line has not arrived */
	PHASE_AUTH,    /* key exchange and authentication */
	PHASE_SERVE,   /* authenticated */
	PHASE_GOODBYE, /* flushing, then a disconnect message */
	PHASE_OVER
};

/* A message of libssh that waits for the manager's reply to `tag`. */
struct held {
	struct list node;
	uint16_t tag;
	uint8_t asked;        /* the frame type of the question */
	uint8_t method;       /* FRAME_AUTH: enum wire_auth_method */
	ssh_message msg;      /* owned */
	struct chan *channel; /* of FRAME_ATTACH and FRAME_RUN */
};

struct peer {
	struct event_base *base;
	struct event *timer;
	struct wire_settings settings; /* without the host keys */
	struct transport transport;
	struct wire manager;
	bool is_orphan;    /* the manager's link is gone */
	bool is_busy;      /* another turn is due without waiting */
	bool is_auth_held; /* nothing is read until the manager answered */
	enum peer_phase phase;
	uint32_t may; /* enum wire_may */
	struct list held;
	unsigned n_opens_held;
	uint16_t last_tag;
	struct list channels;
	unsigned n_channels, next_channel;
	struct list forwards; /* struct forward */
	unsigned n_forwards;
	/* Global requests: nothing is read until the manager answered. */
	unsigned n_globals_held;
	unsigned n_ptys;                        /* channels with a PTY */
	int64_t grace_ms, probe_ms, goodbye_ms; /* deadlines, monotonic */
	int64_t leave_ms;  /* so long terminals are given back before the end */
	int64_t fed_ms;    /* when the watchdog was last fed */
	unsigned n_silent; /* probe intervals without any packet */
	char why[256];     /* for the log */
	char farewell[256]; /* for the client */
};

/* Channels of all kinds, and those that the manager is asked about. */
static inline unsigned
peer_channels(const struct peer *p)
{
	return p->n_channels + p->n_forwards + p->n_opens_held;
}

/*
 * Takes over the socket TCP_FD and the manager's link MANAGER_FD and serves
 * until the connection ends. S is consumed. Returns the exit status.
 */
int peer_serve(int tcp_fd, int manager_fd, struct wire_settings *s);

/*
 * Ends the connection: flushes for at most 2 s, then sends FAREWELL in a
 * disconnect message. WHY goes to the log; NULL repeats FAREWELL.
 */
void peer_goodbye(struct peer *p, const char *farewell, const char *why);

/* Ends it without a word: the socket is dead or the client broke the rules. */
void peer_end(struct peer *p, const char *why);

/*
 * Holds MSG, which the peer owns from now on, and returns a place with a tag
 * that no other held message has. ASKED is the frame type of the question.
 */
struct held *peer_hold(struct peer *p, ssh_message msg, uint8_t asked);

/* Frees H and its message. */
void peer_release_held(struct peer *p, struct held *h);

#endif
