/*
 * What berthd asks berth-sandbox to do, and what it hears of it: one packet
 * there, any number of lines of progress and one result back, on a socket that
 * keeps packets apart. Both are of one build; the version only catches a half
 * replaced installation.
 */
#ifndef SANDBOX_TASK_H
#define SANDBOX_TASK_H

#include "base/buf.h"
#include "base/err.h"
#include "sandbox/provider.h"

#define TASK_VERSION    4
#define TASK_FD         3           /* of the socket, in berth-sandbox */
#define TASK_PACKET_MAX (128 << 10) /* it may hold a provider's commands */
#define TASK_REPORT_MAX 8192
#define TASK_ARG_MAX    4096

enum task_op {
	TASK_PROVISION,
	TASK_TEARDOWN,
	TASK_HALT,
	TASK_PROBE,
	TASK_REAP, /* of the session arg */
	TASK_SUSPEND,
	TASK_RESUME,
	TASK_MEASURE,  /* with the sessions arg */
	TASK_SNAPSHOT, /* into the file */
	TASK_UNPACK,   /* the file, of hash arg, beside the workspace */
	TASK_UNSTAGE,  /* removes what is beside it */
	TASK_REPLACE, /* the workspace, with it or the file: halts the sandbox */
	TASK_FILL,    /* the pool, with the member of the spec's name */
	TASK_DRAIN,   /* the members arg */
	TASK_OPS
};

/* "provision", ...; for logs. */
const char *task_op_name(enum task_op op);

struct command;

struct task {
	enum task_op op;
	struct sandbox_spec spec;
	char arg[TASK_ARG_MAX];
	char file[SANDBOX_PATH_MAX]; /* absolute, or "" */
	/* The provider, if it is one of commands: borrowed, or after decoding */
	struct command *command; /* the caller's. */
};

enum task_kind {
	TASK_PROGRESS = 'p',
	TASK_RESULT = 'r'
};

struct task_report {
	enum task_kind kind;
	char line[ERR_MSG_MAX]; /* of progress; or why it failed */
	int code;               /* of a result: 0 or a negative errno */
	struct sandbox_made made;
	struct sandbox_metrics metrics;
	struct sandbox_copied copied;
};

/* Encoders append to B; decoders take exactly N bytes: 0 or -EPROTO. */
void task_encode(struct buf *b, const struct task *t);
int task_decode(const void *p, size_t n, struct task *out);
void task_report_encode(struct buf *b, const struct task_report *r);
int task_report_decode(const void *p, size_t n, struct task_report *out);

/*
 * In a provider: a line for whoever waits. Sent if this is berth-sandbox, else
 * forgotten; never blocks.
 */
void task_progress(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Of a copy, at most once a second; BYTES are those of the archive. */
void task_progress_files(uint64_t files, uint64_t bytes);

/*
 * -ECANCELED with a sentence if this is berth-sandbox and berthd waits no
 * longer, for operations that are not worth finishing then; else 0.
 */
int task_check(struct err *e);

/* In berth-sandbox: where progress goes. */
void task_progress_to(int fd);

#endif
