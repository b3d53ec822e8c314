/*
 * What the fuzz targets share: the entry point that libFuzzer and replay.c
 * call, a check that says what it missed, a cursor that takes decisions from
 * the front of an input. Tests only; a target keeps nothing between two inputs.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* One input of N bytes, borrowed. Returns 0; a violated invariant aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Ends the process when WHAT does not hold. */
#define FUZZ_CHECK(what)                                              \
	do {                                                          \
		if (!(what)) {                                        \
			fprintf(stderr, "%s:%d: does not hold: %s\n", \
			    __FILE__, __LINE__, #what);               \
			abort();                                      \
		}                                                     \
	} while (0)

/* The rest of an input. Past its end every decision is 0. */
struct fuzz_input {
	const uint8_t *p;
	size_t n;
};

static inline uint8_t
fuzz_u8(struct fuzz_input *in)
{
	if (!in->n)
		return 0;
	in->n--;
	return *in->p++;
}

static inline unsigned
fuzz_u16(struct fuzz_input *in)
{
	unsigned high = fuzz_u8(in);

	return high << 8 | fuzz_u8(in);
}

/* At most N bytes of what is left, *N_OUT of them. */
static inline const uint8_t *
fuzz_take(struct fuzz_input *in, size_t n, size_t *n_out)
{
	const uint8_t *p = in->p;

	*n_out = n < in->n ? n : in->n;
	in->p += *n_out;
	in->n -= *n_out;
	return p;
}

/*
 * The bytes up to the next NUL or the end as a C string, without the NUL; the
 * caller frees.
 */
static inline char *
fuzz_str(struct fuzz_input *in)
{
	size_t len = 0, used;
	char *s;

	while (len < in->n && in->p[len])
		len++;
	used = len < in->n ? len + 1 : len;
	s = xmalloc(len + 1);
	if (len)
		memcpy(s, in->p, len);
	s[len] = '\0';
	in->p += used;
	in->n -= used;
	return s;
}

#endif
