/*
 * asciicast v2 as text: the header line, event lines, and terminal bytes as
 * the inside of a JSON string. Every line is one JSON value in valid UTF-8, an
 * event has exactly three elements. Pure; the recorder writes what comes out.
 */
#ifndef SESSIONS_KEEPER_CAST_H
#define SESSIONS_KEEPER_CAST_H

#include <stddef.h>
#include <stdint.h>

struct buf;

/* Raw bytes in one event at most, so that a line stays far below 1 MiB. */
#define CAST_EVENT_MAX 8192

/* The longest line of an event: six bytes for each of a control character. */
#define CAST_LINE_MAX (6 * (CAST_EVENT_MAX + 8) + 64)

struct cast_header {
	unsigned cols, rows; /* 0 is written as 80 and 24 */
	int64_t wall_s;
	/* any bytes, cut after 1 KiB; NULL to leave it out */
	const char *title, *shell, *term;
};

/* Appends the header line with its LF. */
void cast_put_header(struct buf *out, const struct cast_header *h);

/* The beginning of a character whose end has not come yet. */
struct cast_text {
	uint8_t held[4];
	size_t n_held; /* 0..3 */
};

/*
 * Writes N bytes of P as JSON string content to OUT, which has room for
 * 6 * (N + 3): C0, DEL, C1, `"` and `\` escaped, an invalid sequence as one
 * U+FFFD for each maximal subpart (Unicode 3.9, as browsers do). A character
 * that is cut at the end stays in T for the next call. Returns the bytes
 * written.
 */
size_t cast_text_put(
    struct cast_text *t, const uint8_t *p, size_t n, char *out);

/* Nothing follows: a character held in T becomes U+FFFD (3 bytes). */
size_t cast_text_end(struct cast_text *t, char *out);

/*
 * The two halves of an event line around its string: `[1.500000, "o", "` and
 * `"]` with LF. T_US is microseconds since the start. OUT has room for 64
 * bytes; returns the bytes written.
 */
size_t cast_event_open(uint64_t t_us, char code, char *out);
size_t cast_event_close(char *out);

#endif
