/*
 * The receive window of a channel, wider than libssh keeps it: 1.28 MB that are
 * opened again by halves are too little for many requests in flight, or for a
 * long line. Runs in berth-sshd.
 */
#ifndef SSHD_CONNECTION_WINDOW_H
#define SSHD_CONNECTION_WINDOW_H

#include <libssh/libssh.h>
#include <stdint.h>

struct buf;

/* Counts N bytes that a channel's data callback took, in *TAKEN. */
void window_took(uint32_t *taken, uint32_t n);

/*
 * Opens the window of a channel that may still be sent something if enough was
 * TAKEN since the last time; only while its connection has few channels. For
 * one that takes no input the caller does not ask. Only from the main loop;
 * what is read on the way goes to IN.
 */
void window_widen(
    ssh_channel ssh, struct buf *in, uint32_t *taken, unsigned n_channels);

#endif
