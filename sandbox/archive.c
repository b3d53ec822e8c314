/* What providers call of archive.h; only berth-sandbox has it. */
#include "sandbox/archive.h"

void
archive_use(void)
{
	static const struct archive_calls calls = {
		.pack = archive_pack,
		.unpack = archive_unpack,
	};

	sandbox_archive = &calls;
}
