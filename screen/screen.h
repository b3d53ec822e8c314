/*
 * The terminal engine: a model of an xterm-like terminal that is fed with what
 * a program prints and can say at any time what the screen shows, how to make
 * another terminal show the same, and what that terminal would answer. A
 * library: no processes, no sockets, no clock, no locale. One struct screen per
 * session; nothing is shared, so each may live in a thread of its own.
 *
 * Input is UTF-8. C1 controls count in their UTF-8 form only. Every count,
 * parameter and string is capped, so that memory stays bounded whatever comes.
 *
 * Usage: screen_new(); screen_write() with every byte of output and
 * screen_resize() as they happen; screen_repaint() whenever somebody looks.
 */
#ifndef SCREEN_SCREEN_H
#define SCREEN_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct screen;

#define SCREEN_COLS_MAX 1000
#define SCREEN_ROWS_MAX 1000

/* A colour without one: what the terminal is configured for. */
#define SCREEN_NO_COLOUR 0xffffffffU

struct screen_config {
	unsigned cols, rows;    /* clamped to 1..SCREEN_COLS_MAX/ROWS_MAX */
	uint32_t history_lines; /* scrolled lines kept at most; 0 = none */
	size_t history_bytes;   /* their bytes at most */
	const char *name;       /* XTVERSION: what it claims to be, or NULL */
	const char *term;       /* XTGETTCAP TN: of the program, or NULL */
	uint32_t foreground;    /* 0xrrggbb, answers to OSC 10 ... */
	uint32_t background;    /* ... 11 ... */
	uint32_t cursor_colour; /* ... and 12; SCREEN_NO_COLOUR = foreground */
};

/* An empty screen; strings of C are copied. Free with screen_free(). */
struct screen *screen_new(const struct screen_config *c);
void screen_free(struct screen *s);

/*
 * Interprets N bytes of output. Queries need not be cut out before, they change
 * nothing; screen_answer() answers them.
 */
void screen_write(struct screen *s, const void *p, size_t n);

/*
 * Changes the size, clamped as in the configuration. Long lines of the main
 * screen are wrapped anew; rows that no longer fit go to the history. A screen
 * that becomes taller by N rows takes the last N lines of the history back, or
 * those that there are, above its own rows, as most terminals do with what they
 * scrolled off; what is left of N is blank at the bottom.
 */
void screen_resize(struct screen *s, unsigned cols, unsigned rows);

/* The size now. */
unsigned screen_cols(const struct screen *s);

/* As above. */
unsigned screen_rows(const struct screen *s);

/*
 * How many bytes ago the present character, escape sequence or control string
 * began; 0 on the ground. What screen_repaint() makes of the screen lacks them:
 * whoever shows it must be fed with them again.
 */
uint64_t screen_pending(const struct screen *s);

/* True between `CSI ? 2026 h` and l: a picture of now would be half done. */
bool screen_is_updating(const struct screen *s);

/* True while the alternate screen is shown. */
bool screen_is_alternate(const struct screen *s);

/*
 * The program's title as UTF-8 without control characters, at most 256 bytes;
 * "" for none. Borrowed until the next write.
 */
const char *screen_title(const struct screen *s);

/*
 * The history: lines that scrolled off the top of the main screen, numbered
 * from 0 as long as the screen lives. [start, end) are there. Lines that a
 * resize takes back lower the end: when they scroll off again they get the same
 * numbers.
 */
uint64_t screen_history_start(const struct screen *s);
uint64_t screen_history_end(const struct screen *s);

/*
 * Appends lines of the history from number FROM on (a lower one than the start
 * means the start) until OUT holds MAX bytes or more, at least one when there is
 * one: text and SGR, each from SGR 0 and closed with it, ended by CR LF; a line
 * that was wrapped goes on without, so that a terminal of the same width wraps
 * it itself. Returns the number of the next line.
 */
uint64_t screen_history(
    const struct screen *s, uint64_t from, size_t max, struct buf *out);

/*
 * Appends what makes any xterm-like terminal of the same size, whatever its
 * state (but outside of a control string), show this screen and behave like it:
 * main screen, the alternate one over it, cursor, modes, title. An alternate
 * screen that was never used is left as screen_prologue() makes it. What it
 * scrolled off before is left alone. No query, bell, clipboard access or notification.
 */
void screen_repaint(const struct screen *s, struct buf *out);

/*
 * The first part of a repaint for somebody who has not seen this screen yet:
 * ends any control string, leaves the alternate screen, resets what may be on,
 * scrolls away what a terminal of ROWS rows shows, so that its own history keeps
 * it, and goes home. Then come screen_history(), screen_push() and
 * screen_repaint().
 */
void screen_prologue(unsigned rows, struct buf *out);

/*
 * Scrolls away the last of LINES lines that were printed from the top of an
 * empty terminal of ROWS rows: they, and no blank ones, are in its history then.
 */
void screen_push(unsigned rows, uint64_t lines, struct buf *out);

/*
 * Appends what gives a terminal that shows this screen back to its shell: only
 * what is on is turned off, the alternate screen is left, kitty's keyboard
 * stacks are popped, SGR, margins and cursor are as usual, and the cursor stands
 * on a line of its own below the text. Appends nothing but a new line, if even
 * that, for a program that has left everything as it was.
 */
void screen_restore(const struct screen *s, struct buf *out);

/*
 * The same for a terminal whose state is not known, because it lags behind:
 * ends any control string and turns everything off.
 */
void screen_restore_unknown(struct buf *out);

enum screen_text_flags {
	SCREEN_TEXT_ANSI = 1u << 0,   /* with SGR, as in screen_history() */
	SCREEN_TEXT_HISTORY = 1u << 1 /* the history first */
};

/*
 * Appends the text of what is shown: a line per row ended by LF, blanks at the
 * end of rows and blank rows at the end left out.
 */
void screen_text(const struct screen *s, unsigned flags, struct buf *out);

/*
 * Appends the answer to the query Q of N bytes (one that query_match() knows)
 * as the terminal that the configuration claims; nothing when such a terminal
 * has no answer. Describes the screen as of the last write.
 */
void screen_answer(
    struct screen *s, const uint8_t *q, size_t n, struct buf *out);

#endif
