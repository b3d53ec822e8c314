/*
 * Which escape sequences and control strings make a terminal answer: the table
 * behind the query filter. Pure.
 */
#ifndef SCREEN_QUERY_MATCH_H
#define SCREEN_QUERY_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * True if the N bytes of P are a query: one whole sequence or string from its
 * introducer (7-bit, or C1 as UTF-8) on, with or without the terminator of a
 * string. C0 controls inside are overlooked as terminals do.
 */
bool query_match(const uint8_t *p, size_t n);

enum query_start {
	QUERY_NEVER,    /* whatever follows, it is none */
	QUERY_ALWAYS,   /* whatever follows, it is one, or of no use */
	QUERY_IF_ASKED, /* a colour or clipboard string: one if a `?` follows */
};

/* What the first N bytes of a sequence too long to be held say about it. */
enum query_start query_match_start(const uint8_t *p, size_t n);

#endif
