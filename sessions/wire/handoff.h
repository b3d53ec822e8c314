/*
 * What one berthd leaves to the program that it executes in its place: a sealed
 * memory file with a section for each part, and the descriptors that those
 * mention. Numbers of descriptors stay the same across execve().
 */
#ifndef SESSIONS_WIRE_HANDOFF_H
#define SESSIONS_WIRE_HANDOFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct err;
struct event_base;
struct wire;
struct wire_handler;

/* Of the sections' shapes; a berthd reads its own and the one before. */
#define HANDOFF_VERSION        2U
#define HANDOFF_VERSION_OLDEST 1U

enum handoff_section {
	HANDOFF_DAEMON,
	HANDOFF_SERVER,
	HANDOFF_CONTROL,
	HANDOFF_MANAGER,
	HANDOFF_SECTIONS
};

/* Zero-initialise. */
struct handoff {
	uint32_t version; /* of the one who wrote it; set by handoff_open() */
	struct buf sections[HANDOFF_SECTIONS];
	int *fds;
	size_t n_fds, cap;
};

/* Frees what H holds; closes no descriptor. */
void handoff_release(struct handoff *h);

/* Appends FD (borrowed; -1 for none) to SECTION and to what is inherited. */
void handoff_put_fd(struct handoff *h, enum handoff_section section, int fd);

/* The whole as a memory file, close-on-exec, or a negative errno. */
int handoff_seal(const struct handoff *h);

/* Reads what handoff_seal() wrote: 0, or -EPROTO with a sentence. */
int handoff_open(int fd, struct handoff *out, struct err *e);

/* Lets execve() keep the descriptors, or close them. */
void handoff_inherit(const struct handoff *h, bool on);

/* A cursor over a section. */
struct reader handoff_reader(
    const struct handoff *h, enum handoff_section section);

/* A descriptor that handoff_put_fd() put: the caller's now; -1 for none. */
int handoff_take_fd(struct reader *r);

/*
 * Appends the link W with what it has read and not sent yet; it must not be used
 * afterwards but to be released. A link that is over, or that has descriptors
 * under way, is left out.
 */
void handoff_put_wire(
    struct handoff *h, enum handoff_section section, const struct wire *w);

/*
 * Starts W as wire_init() does, with what was there; false, and W is not started,
 * when it was left out.
 */
bool handoff_take_wire(struct reader *r, struct wire *w,
    struct event_base *base, const struct wire_handler *handler, void *owner);

#endif
