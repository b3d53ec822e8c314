/* Whole lines; see lines.h. */
#include "cli/lines.h"

#include <string.h>

/* A crash can leave a torn line, or a stretch of zeros, at the end. */
static bool
lines_is_event(const char *p, size_t n)
{
	if (n < 2 || memchr(p, '\0', n))
		return false;
	return (p[0] == '[' && p[n - 1] == ']') ||
	       (p[0] == '{' && p[n - 1] == '}');
}

size_t
lines_whole(const char *p, size_t n, bool *is_bad_out)
{
	size_t done = 0;

	*is_bad_out = false;
	while (done < n) {
		const char *nl = memchr(p + done, '\n', n - done);
		size_t len;

		if (!nl)
			break;
		len = (size_t)(nl - (p + done));
		if (!lines_is_event(p + done, len)) {
			*is_bad_out = true;
			break;
		}
		done += len + 1;
	}
	return done;
}
