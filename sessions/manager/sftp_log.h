/*
 * Reads the log of OpenSSH's sftp-server (-e -l INFO) and tells what it says
 * about files. Pure. The lines come from the sandbox: they may be forged, by a
 * file's name for example, and say no more than what the sandbox reports.
 *
 * A message ends with CRLF. Bytes that are not ASCII are \ooo in it, but line
 * feeds, tabs, quotes and BEL stand as they are, and 1024 bytes are the most.
 */
#ifndef SESSIONS_MANAGER_SFTP_LOG_H
#define SESSIONS_MANAGER_SFTP_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * A path is cut after so many bytes as logged, so that one that is opened and
 * the same that is closed read alike although messages are cut.
 */
#define SFTP_LOG_PATH_LOGGED 900

/* As text: every byte of it may become \xHH. */
#define SFTP_LOG_PATH_MAX (4 * 1200 + 8)

enum sftp_log_kind {
	SFTP_LOG_OPEN,   /* a file is to be opened: path, is_write */
	SFTP_LOG_CLOSE,  /* it was closed: path, n_read, n_written, is_forced */
	SFTP_LOG_STATUS, /* some request failed: path is why */
	SFTP_LOG_CHANGE, /* to be removed, renamed, ...: path is the message */
	SFTP_LOG_OTHER
};

struct sftp_log_event {
	enum sftp_log_kind kind;
	bool is_write;  /* opened to be written */
	bool is_forced; /* closed by the end of the session */
	bool is_cut;    /* n_read and n_written were cut off the message */
	uint64_t n_read, n_written;
	char path[SFTP_LOG_PATH_MAX]; /* printable UTF-8, one line */
};

struct sftp_log {
	struct buf message; /* of which more lines are to come */
};

/* Frees what L holds; it may be used again. */
void sftp_log_release(struct sftp_log *l);

/*
 * Takes the next line of N bytes, without its LF. True if a message is whole
 * and stands in *OUT; never more than one a line.
 */
bool sftp_log_feed(
    struct sftp_log *l, const void *line, size_t n, struct sftp_log_event *out);

#endif
