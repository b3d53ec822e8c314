/*
 * Rows of JSON objects as text for people: aligned columns, ISO times, escaped
 * outside text. The columns are a table of their own.
 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <jansson.h>
#include <stdio.h>

enum column_kind {
	COLUMN_TEXT,
	COLUMN_NUMBER, /* right-aligned */
	COLUMN_TIME,   /* milliseconds UTC, printed as ISO 8601 to the second */
	COLUMN_DURATION, /* milliseconds, printed as 1h02m03s */
	COLUMN_BYTES     /* with k, M or G */
};

struct column {
	const char *title;
	const char *key; /* of the object */
	enum column_kind kind;
};

/* The text of VALUE (NULL and null: "-") in OUT of SIZE bytes. */
void table_format(
    const json_t *value, enum column_kind kind, char *out, size_t size);

/*
 * Prints a line of titles and one line per object of ROWS, no trailing blanks.
 * Nothing at all for no rows.
 */
void table_print(
    const json_t *rows, const struct column *columns, size_t n, FILE *out);

/* Prints VALUE as JSON in ASCII, with a newline. */
void table_print_json(const json_t *value, FILE *out);

#endif
