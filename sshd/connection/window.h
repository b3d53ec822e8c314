/*
 * The receive window of a channel, wider than libssh keeps it: 1.28 MB that are
 * opened again by halves are too little for many requests in flight, or for a
 * long line. Runs in berth-sshd.
 */
#ifndef SSHD_CONNECTION_WINDOW_H
#define SSHD_CONNECTION_WINDOW_H

struct chan;

/*
 * Opens the window of C again if enough came since the last time and nothing of
 * it waits; for channels without a terminal, as long as a connection has few.
 * Only from the main loop. What is read on the way goes to c->in.
 */
void window_widen(struct chan *c);

#endif
