/* The break condition on the session's terminal, as a serial line has it. */
#ifndef SESSIONS_KEEPER_TERMINAL_H
#define SESSIONS_KEEPER_TERMINAL_H

struct keeper;

/*
 * Does what the terminal's input flags say of a break (termios(3)): nothing,
 * SIGINT to the foreground group, or bytes to read. Nothing without a terminal.
 */
void terminal_break(struct keeper *k);

#endif
