/* Which part of a recording's text is whole; pure. */
#ifndef CLI_LINES_H
#define CLI_LINES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * How many of the N bytes of P are whole lines of an asciicast v2: a line ends
 * with a newline and is one JSON object or array as far as its first and last
 * byte tell. *IS_BAD_OUT says that a line follows which is none, so that
 * nothing behind it counts either.
 */
size_t lines_whole(const char *p, size_t n, bool *is_bad_out);

#endif
