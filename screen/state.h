/*
 * What a screen knows, for the files of this folder only: parser.c and those
 * behind it change it, repaint.c and its kin read it. See screen.h.
 */
#ifndef SCREEN_STATE_H
#define SCREEN_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "screen/screen.h"

/* ---- cells ---- */

/*
 * A colour: 0 is the default one; else a kind in the top byte, and a number of
 * the palette or 0xrrggbb.
 */
#define COLOUR_DEFAULT 0U
#define COLOUR_INDEXED (1U << 24)
#define COLOUR_RGB     (2U << 24)
#define COLOUR_KIND    (0xffU << 24)

enum cell_attr {
	CELL_BOLD = 1u << 0,
	CELL_FAINT = 1u << 1,
	CELL_ITALIC = 1u << 2,
	CELL_BLINK = 1u << 3, /* SGR 5 and 6 */
	CELL_INVERSE = 1u << 4,
	CELL_CONCEAL = 1u << 5,
	CELL_STRIKE = 1u << 6,
	CELL_OVERLINE = 1u << 7,
	CELL_UNDERLINE = 7u << 8, /* the style, 0 none, 1..5 as SGR 4:n */
	CELL_PROTECTED = 1u << 11,
	CELL_WIDE = 1u << 12,      /* the left half of a wide character */
	CELL_TAIL = 1u << 13,      /* its right half; ch is 0 */
	CELL_STYLE = CELL_WIDE - 1 /* what belongs to the pen */
};
#define CELL_UNDERLINE_SHIFT 8

/* ch: 0 for a cell without a character, else a code point, or this | index. */
#define CELL_CLUSTER (1U << 31)

/* What a cell is, or what the pen gives it. 16 bytes. */
struct cell {
	uint32_t ch;
	uint32_t fg, bg;
	uint16_t attr; /* enum cell_attr */
	uint16_t ext;  /* 0, or a row of screen.exts */
};

/* What is rare about cells, interned: equal ones have the same number. */
struct cell_ext {
	uint32_t underline; /* colour */
	uint16_t link;      /* 0, or a row of screen.links */
};

struct cell_link {
	char *id, *uri; /* as in OSC 8; id may be "" */
};

/* A character of several code points; UTF-8, not terminated. */
#define CLUSTER_MAX 31
struct cluster {
	uint8_t len;
	uint8_t text[CLUSTER_MAX];
};

/* The tables that the numbers in cells point into. */
struct cell_tables {
	const struct cell_ext *exts;
	const struct cell_link *links;
	const struct cluster *clusters;
};

/* See row.h: its cells are read and written behind row_cells(). */
struct row {
	struct cell *cells; /* screen.cols of them */
	uint8_t *text;      /* as many bytes; or NULL, and n_runs stays 0 */
	uint16_t used;      /* cells from here on are zero */
	uint16_t n_runs;    /* 0, or it is text */
	bool is_wrapped;    /* the text goes on in the next row */
};

/* ---- cursor, buffers ---- */

/* Designations of ISO 2022 that a terminal of today still has. */
enum charset {
	CHARSET_ASCII = 'B',
	CHARSET_UK = 'A',
	CHARSET_LINES = '0'
};

struct cursor {
	uint16_t col, row; /* from 0, of the screen whatever the margins */
	bool is_wrap_pending;
	bool is_origin;  /* DECOM */
	struct cell pen; /* ch is 0 */
	uint8_t g[4];    /* enum charset */
	uint8_t gl;      /* 0..3: which of them is shifted in */
};

#define KITTY_DEPTH 16
struct kitty {
	uint8_t flags[KITTY_DEPTH]; /* the last one is in force */
	uint8_t n;                  /* 0: none pushed, flags are base */
	uint8_t base;               /* set without a push (CSI = u) */
};

/* The main or the alternate screen. */
struct buffer {
	struct row *rows;    /* screen.rows; NULL: never used, all blank */
	struct cell *cells;  /* the memory behind them */
	struct cursor saved; /* DECSC */
	bool has_saved;
	struct kitty kitty;
};

/* ---- modes ---- */

/*
 * Every mode that is only on or off; see screen/modes.c for their numbers. Not
 * here: DECOM (of the cursor), mouse tracking and encoding, 47/1047/1049.
 */
enum mode {
	MODE_INSERT,       /* 4 */
	MODE_NEWLINE,      /* 20 */
	MODE_CURSOR_KEYS,  /* ?1 */
	MODE_REVERSE,      /* ?5 */
	MODE_AUTOWRAP,     /* ?7, on at the start */
	MODE_AUTOREPEAT,   /* ?8, on */
	MODE_CURSOR_BLINK, /* ?12 */
	MODE_CURSOR,       /* ?25, on */
	MODE_REVERSE_WRAP, /* ?45 */
	MODE_KEYPAD,       /* ?66, ESC = and ESC > */
	MODE_BACKARROW,    /* ?67 */
	MODE_MARGINS,      /* ?69 DECLRMM */
	MODE_FOCUS,        /* ?1004 */
	MODE_ALT_SCROLL,   /* ?1007 */
	MODE_META_8BIT,    /* ?1034 */
	MODE_NUMLOCK,      /* ?1035 */
	MODE_META_ESC,     /* ?1036 */
	MODE_ALT_ESC,      /* ?1039 */
	MODE_PASTE,        /* ?2004 */
	MODE_SYNC,         /* ?2026, never repainted */
	MODE_GRAPHEMES,    /* ?2027 */
	MODE_THEME,        /* ?2031 */
	MODE_IN_BAND_SIZE, /* ?2048 */
	MODE_WIN32,        /* ?9001 */
	MODE_COUNT
};

struct mode_info {
	uint16_t number;
	bool is_private; /* DEC's, with the `?` */
	bool is_on;      /* at the start */
	bool is_shown;   /* a repaint sets it, a restore resets it */
};

/* The row of M. */
const struct mode_info *mode_info(enum mode m);

/* ---- strings and colours ---- */

#define TITLE_MAX       256  /* bytes */
#define TITLE_DEPTH     10   /* XTWINOPS 22 and 23 */
#define CWD_MAX         2048 /* OSC 7, bytes */
#define LINK_MAX        2083 /* OSC 8, bytes of the URI */
#define LINK_ID_MAX     250
#define PALETTE_COLOURS 256
#define DYNAMIC_COLOURS 10 /* OSC 10 to 19 */

struct titles {
	char *title, *icon; /* NULL for none */
	struct {
		char *title, *icon;
	} stack[TITLE_DEPTH];
	unsigned depth;
};

struct history; /* history.h */
struct intern;  /* intern.h */
struct parser;  /* parser.h */

struct screen {
	unsigned cols, rows;
	struct buffer main, alt, *now;
	struct cursor cursor;      /* of the buffer in use */
	struct cursor main_cursor; /* while the alternate one is in use */
	bool is_alt_cursor_kept;   /* entered by 1049: leaving restores DECSC */
	uint16_t top, bottom;      /* margins, rows from 0, inclusive */
	uint16_t left, right;      /* columns, inclusive */
	uint64_t modes, saved_modes; /* 1 << enum mode; XTSAVE */
	uint16_t mouse, saved_mouse; /* 0, 9, 1000, 1001, 1002, 1003 */
	uint16_t mouse_encoding, saved_encoding; /* 0, 1005, 1006, 1015, 1016 */
	uint8_t cursor_shape;                    /* DECSCUSR, 0..6 */
	uint8_t
	    modify_keys[8];   /* XTMODKEYS resources 0..7; [4] is other keys */
	uint8_t *tabs;        /* a byte per column: 1 is a stop */
	uint32_t last_ch;     /* for REP; 0 for none */
	uint8_t single_shift; /* 2 or 3: SS2, SS3 for the next character */
	struct titles titles;
	char *cwd;         /* OSC 7, or NULL */
	uint32_t *palette; /* PALETTE_COLOURS; SCREEN_NO_COLOUR; or NULL */
	uint32_t dynamic[DYNAMIC_COLOURS]; /* 0xrrggbb or SCREEN_NO_COLOUR */
	struct cell_ext *exts;             /* [0] is unused */
	unsigned n_exts, cap_exts;
	struct cell_link *links; /* [0] is unused */
	unsigned n_links, cap_links;
	struct cluster *clusters;
	unsigned n_clusters, cap_clusters;
	/*
	 * Numbers of exts, links and clusters mean the same as long as this
	 * stays: it grows when unused ones are collected, to be given away
	 * again. Whoever remembers cells over a write compares it.
	 */
	uint64_t tables_age;
	struct intern *intern; /* how they are found */
	struct history *history;
	struct parser *parser;
	struct screen_config config; /* its strings are ours */
};

static inline bool
mode_is_on(const struct screen *s, enum mode m)
{
	return s->modes >> m & 1;
}

/* The kitty flags in force. */
static inline uint8_t
kitty_flags(const struct kitty *k)
{
	return k->n ? k->flags[k->n - 1] : k->base;
}

static inline struct cell_tables
screen_tables(const struct screen *s)
{
	return (struct cell_tables){ s->exts, s->links, s->clusters };
}

/*
 * A row of B, screen.cols cells; a blank one when the buffer was never used. ROW
 * < screen.rows.
 */
const struct cell *buffer_row(
    const struct screen *s, const struct buffer *b, unsigned row);

#endif
