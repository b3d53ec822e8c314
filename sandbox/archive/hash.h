/*
 * The hash of an archive's bytes: neither the tar nor the frames of zstd that
 * the library writes have one. Private to this folder.
 */
#ifndef SANDBOX_ARCHIVE_HASH_H
#define SANDBOX_ARCHIVE_HASH_H

#include <sodium.h>

#include "sandbox/provider.h"

#define ARCHIVE_HASH ((SANDBOX_HASH_SIZE - 1) / 2) /* bytes */

/* Ends H; its digits are in OUT. */
void archive_hash(crypto_generichash_state *h, char out[SANDBOX_HASH_SIZE]);

#endif
