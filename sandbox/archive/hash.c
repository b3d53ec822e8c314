/* The hash of an archive's bytes; see hash.h. */
#include "sandbox/archive/hash.h"

void
archive_hash(crypto_generichash_state *h, char out[SANDBOX_HASH_SIZE])
{
	uint8_t raw[ARCHIVE_HASH];

	crypto_generichash_final(h, raw, sizeof(raw));
	sodium_bin2hex(out, SANDBOX_HASH_SIZE, raw, sizeof(raw));
}
