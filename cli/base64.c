/* Base64; see base64.h. */
#include "cli/base64.h"

#include <stdint.h>

#include "base/mem.h"

/* Where the padding stands among the digits. */
#define BASE64_PAD 64

char *
base64_encode(const void *p, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/=";
	const uint8_t *s = p;
	char *out = xmalloc((n + 2) / 3 * 4 + 1), *o = out;

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)s[i] << 16;

		if (i + 1 < n)
			v |= (uint32_t)s[i + 1] << 8;
		if (i + 2 < n)
			v |= s[i + 2];
		*o++ = digits[v >> 18];
		*o++ = digits[v >> 12 & 63];
		*o++ = digits[i + 1 < n ? v >> 6 & 63 : BASE64_PAD];
		*o++ = digits[i + 2 < n ? v & 63 : BASE64_PAD];
	}
	*o = '\0';
	return out;
}
