/*
 * The terminal that a person sits at: raw mode and back, its size, its output
 * without blocking. Whatever ends the program, the terminal is restored first.
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>

struct wire_size;

/*
 * Makes the terminal on descriptor 0 raw; the first call remembers how it was
 * and arranges that exit() restores it. May be called again after a stop. 0 or
 * a negative errno.
 */
int terminal_raw(void);

/* Back to how it was; harmless when it never was raw. */
void terminal_restore(void);

/*
 * Undoes what a full-screen program may have left on: alternate screen, mouse,
 * bracketed paste, hidden cursor. For leaving while it still runs.
 */
void terminal_leave(void);

/* The size of the terminal on 0 or 1; false and zeros when neither has one. */
bool terminal_size(struct wire_size *out);

/*
 * A nonblocking descriptor for what FD (1 or 2) leads to, without changing FD,
 * which others share; the caller closes it. FD itself, duplicated, when it is
 * neither a terminal nor a pipe or may not be opened again.
 */
int terminal_output(int fd);

#endif
