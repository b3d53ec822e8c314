/*
 * Tells a supervisor how far berthd is, in the protocol of sd_notify(3), over
 * the socket that NOTIFY_SOCKET names. Nobody there is no error.
 */
#ifndef SSHD_LISTENER_NOTIFY_H
#define SSHD_LISTENER_NOTIFY_H

/* Sends STATE, such as "READY=1"; does nothing without NOTIFY_SOCKET. */
void notify_send(const char *state);

#endif
