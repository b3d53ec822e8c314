/*
 * What providers call of archive.h, and what both directions share; only
 * berth-sandbox has it.
 */
#include "sandbox/archive.h"

#include <stdlib.h>

#include "sandbox/archive_hash.h"

void
archive_hash(crypto_generichash_state *h, char out[SANDBOX_HASH_SIZE])
{
	uint8_t raw[ARCHIVE_HASH];

	crypto_generichash_final(h, raw, sizeof(raw));
	sodium_bin2hex(out, SANDBOX_HASH_SIZE, raw, sizeof(raw));
}

void
archive_use(void)
{
	static const struct archive_calls calls = {
		.pack = archive_pack,
		.unpack = archive_unpack,
	};

	/* Picks the fastest way to a hash; there is always one. */
	if (sodium_init() < 0)
		abort();
	sandbox_archive = &calls;
}
