/*
 * Makes an ed25519 host key in the form of OpenSSH (openssh-key-v1,
 * PROTOCOL.key), unencrypted as host keys are. Used by host_key.c alone.
 */
#ifndef SSHD_LISTENER_HOST_KEY_NEW_H
#define SSHD_LISTENER_HOST_KEY_NEW_H

struct err;

/*
 * Writes a new key to PATH (0600) and its public half to PATH.pub (0644, an
 * orphan of that name is replaced). PATH appears whole or not at all; -EEXIST
 * if somebody else made it meanwhile, and then nothing is changed.
 */
int host_key_new(const char *path, struct err *e);

#endif
