/*
 * The process in the sandbox that a copy talks to, as two pipes: a child of
 * ours runs its link.
 */
#ifndef CLI_COPY_LINK_H
#define CLI_COPY_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

struct copy_link {
	int to_fd, from_fd; /* its input and output, blocking */
	int errors_fd;      /* a file that has its error output */
	pid_t child;
	char why[256]; /* after the end: the last line of that, printable */
};

/* Starts the child for the viewer link FD, which it gets. */
int copy_link_start(struct copy_link *l, int fd, struct err *e);

/*
 * Reads the first line: what is at the path ('d', 'f', 'n'), and how many bytes
 * (0 or less: not known). -EPIPE with a sentence when there is none.
 */
int copy_link_begin(
    struct copy_link *l, char *kind_out, int64_t *total_out, struct err *e);

/*
 * Closes the pipes and waits; with IS_CUT the process is ended. Its exit code as
 * attach_report() has it.
 */
int copy_link_end(struct copy_link *l, bool is_cut);

#endif
