/*
 * The shortcut of a long stream: the keeper of an unrecorded process on pipes
 * lends its stdout pipe, and the channel reads it without the way through the
 * keeper. What lends and what ends stays the keeper's: at the end of the pipe
 * it is given back.
 */
#ifndef SSHD_CONNECTION_TAP_H
#define SSHD_CONNECTION_TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chan;
struct event;

struct tap {
	struct event *ev; /* NULL when there is no pipe */
	int fd;           /* owned */
	bool is_asked;
	bool is_ready; /* it may have bytes; else the event is armed */
	uint64_t seen; /* bytes that came through the keeper */
	uint32_t
	    unsent; /* bytes read here that wait at the head of the output */
	uint32_t taken; /* bytes read here that the keeper was not told of */
};

/* N more bytes came through the keeper: asks for the pipe when it is worth it.
 */
void tap_saw(struct chan *c, size_t n);

/* The keeper lends FD, which C owns from now on. 0, or -EPROTO if unasked. */
int tap_open(struct chan *c, int fd);

/*
 * Reads a slice (256 KiB) into the output of C when all before it has gone to
 * libssh, so that it is there when the client takes more. True if something
 * moved.
 */
bool tap_fill(struct chan *c);

/* Of N bytes of output handed on, how many the keeper had sent on credit. */
uint32_t tap_on_credit(struct chan *c, uint32_t n);

/* True if output may be in the pipe that nobody has waited for. */
bool tap_is_ready(const struct chan *c);

/* Lets go of the pipe without a word. */
void tap_close(struct chan *c);

#endif
