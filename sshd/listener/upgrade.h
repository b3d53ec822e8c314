/*
 * Another berthd in place of this one, in the same process: pid, lock,
 * listeners, connections with their identities and links to keepers stay. First
 * the new program is asked whether it would start, then everything comes to rest
 * for a moment, then it is executed; if it cannot begin after all, it executes
 * the old one again. Lives in berthd, on its loop.
 */
#ifndef SSHD_LISTENER_UPGRADE_H
#define SSHD_LISTENER_UPGRADE_H

#include <stdbool.h>
#include <stdint.h>

#include "sessions/wire/handoff.h"

struct conf;
struct control;
struct daemon_args;
struct err;
struct event;
struct event_base;
struct manager;
struct server;
struct store;

struct upgrade {
	/* Set by the owner; borrowed. */
	struct event_base *base;
	const struct daemon_args *args;
	struct server *server;
	struct manager *manager;
	struct control *control;
	struct store *store;
	const struct conf *conf; /* in force */
	int lock_fd;             /* of the state directory */
	int64_t started_ms; /* wall clock, of this process's first berthd */

	/* Its own; zero at the start. */
	bool is_running;
	char who[256];
	int pidfd, answer_fd; /* of the new program while it is asked */
	struct event *pid_ev, *timer;
	int64_t deadline_ms;
};

/* Clears U; upgrade_release() gives up what is under way. */
void upgrade_init(struct upgrade *u);
void upgrade_release(struct upgrade *u);

/*
 * Begins on behalf of WHO. 0, or -EBUSY with a sentence. The end is told to
 * control_upgraded() and to the log: in this program when it went wrong.
 */
int upgrade_begin(struct upgrade *u, const char *who, struct err *e);

/* ---- in the program that was executed ----------------------------------- */

#define UPGRADE_VERSION_MAX 64

/* What the former berthd says about itself, and of how it came to this. */
struct upgrade_past {
	char version[UPGRADE_VERSION_MAX];
	char who[256];
	int64_t started_ms;
	int lock_fd, program_fd, conf_fd; /* the last two: of the former one */
};

/* What the environment of an executed program names; -1 and "" for nothing. */
struct upgrade_call {
	int handoff_fd;
	/* When this is the former program again, because the new one failed: */
	char why_not[256];
	int conf_fd; /* the configuration that it had, as a file */
	char *self;  /* and its path, where its file may not lie any more */
};

/* Reads it, and takes it out of the environment. The caller frees self. */
void upgrade_find(struct upgrade_call *out);

/* Reads what is ours of H; 0, or -EPROTO with a sentence. */
int upgrade_load_past(
    const struct handoff *h, struct upgrade_past *out, struct err *e);

/*
 * This program cannot begin: executes the former one, with the configuration
 * that it had and the same memory file FD, which hears WHY. Returns only if that fails too.
 */
void upgrade_fall_back(const struct daemon_args *args, int fd,
    const struct handoff *h, const struct upgrade_past *past, const char *why);

/*
 * The same for one that fails before it has taken anything over. Returns also
 * when nobody was there before, or the former one itself is what fails.
 */
void upgrade_give_back(const struct daemon_args *args, const char *why);

/* Signals that came since the former berthd left have their turn. */
void upgrade_let_signals(void);

/* The answer of `berthd --rehearse=WHERE`: NULL for yes, or the sentence. */
void upgrade_rehearsed(const char *why_not);

/*
 * -EINVAL with a sentence if CONF would move the berthd that lives WHERE,
 * -EPROTO if this program could not read what that one would hand over.
 */
int upgrade_check_where(
    const struct conf *conf, const char *where, struct err *e);

#endif
