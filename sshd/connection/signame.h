/*
 * Names of signals as SSH knows them (RFC 4254 6.10), without "SIG".
 */
#ifndef SSHD_CONNECTION_SIGNAME_H
#define SSHD_CONNECTION_SIGNAME_H

#include <stddef.h>

/*
 * The signal that a client may send under NAME, with or without "SIG": HUP,
 * INT, QUIT, TERM, KILL, USR1, USR2. 0 for every other name.
 */
int signame_from_client(const char *name);

/*
 * The name to send in exit-signal for SIG into OUT of SIZE bytes: one of the
 * RFC's, else NAME@berth, which the RFC leaves to implementations.
 */
void signame_for_exit(int sig, char *out, size_t size);

#endif
