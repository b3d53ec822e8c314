/*
 * The server's host keys: read, made when absent, handed to berth-sshd. Lives
 * in berthd, at start only. A file that exists is never written to, whatever is
 * wrong with it. The texts are secret and locked in memory.
 */
#ifndef SSHD_LISTENER_HOST_KEY_H
#define SSHD_LISTENER_HOST_KEY_H

#include <stddef.h>

struct err;

#define HOST_KEY_COUNT_MAX 16
#define HOST_KEY_SIZE_MAX  (16U << 10)

/* NULL-terminated PEM texts, each from sodium_malloc(), and their files. */
struct host_keys {
	char *pems[HOST_KEY_COUNT_MAX + 1];
	char *paths[HOST_KEY_COUNT_MAX];
	size_t count;
};

/*
 * Loads the comma-separated absolute paths of LIST in that order and makes an
 * ed25519 key (0600, with PATH.pub beside it) where there is no file. Refuses
 * a file that is readable by others, owned by anybody but root and the caller,
 * over 16 KiB, or not in PEM form. The caller frees with host_keys_free().
 */
int host_keys_load(const char *list, struct host_keys *out, struct err *e);
void host_keys_free(struct host_keys *k);

#endif
