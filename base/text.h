/*
 * Text: escaping of what comes from outside, numbers with units, glob lists,
 * random ids. Pure functions; knows nothing of berth.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Writes N bytes of S into OUT of SIZE bytes, terminated, so that the result is
 * one line of printable ASCII: anything else becomes \n \r \t \e \" \\ or \xHH.
 * Cut at a whole escape when OUT is full. Returns the length written.
 */
size_t text_escape(const char *s, size_t n, char *out, size_t size);

/*
 * The same for the inside of a JSON string (RFC 8259 7): valid UTF-8 stays, but
 * C0, C1, DEL, line separators and bidirectional controls become \uXXXX;
 * invalid bytes become \ufffd.
 */
size_t text_escape_json(const char *s, size_t n, char *out, size_t size);

/*
 * The length (1-4) of the valid UTF-8 character at S of N > 0 bytes; 0 if the
 * bytes are invalid; -K if they are a valid start that wants K more bytes.
 * Overlong forms, surrogates and values above U+10FFFF are invalid.
 */
int text_utf8_len(const uint8_t *s, size_t n);

/* A whole decimal number in MIN..MAX; -EINVAL or -ERANGE otherwise. */
int text_parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *out);

/* "16k", "1M", "2G", "4096": bytes, powers of 1024. */
int text_parse_size(const char *s, uint64_t *bytes_out);

/* "100ms", "30s", "5m", "168h", "7d": milliseconds. A bare "0" is allowed. */
int text_parse_duration(const char *s, uint64_t *ms_out);

/* Writes BYTES or MS back in the largest unit that divides it. */
void text_format_size(uint64_t bytes, char *out, size_t size);
void text_format_duration(uint64_t ms, char *out, size_t size);

/* "120x40" with both in 1..65535. */
int text_parse_size2d(const char *s, unsigned *cols_out, unsigned *rows_out);

/*
 * True if NAME matches one of the comma-separated globs of LIST (`*` and `?`
 * only). An entry that begins with `!` and matches makes the answer false.
 */
bool text_glob_list(const char *list, const char *name);

/* PREFIX and N_BYTES random bytes as lower-case hex, e.g. "ses-" + 16 digits. */
void text_random_id(const char *prefix, size_t n_bytes, char *out, size_t size);

/* Comparison in a time that depends on N alone. */
bool text_equal_ct(const void *a, const void *b, size_t n);

#endif
