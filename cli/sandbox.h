/* What the files of verbs over sandboxes share. */
#ifndef CLI_SANDBOX_H
#define CLI_SANDBOX_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct cli;
struct column;

/* Prints how sandboxes are, NAME alone unless that is NULL. The exit code. */
int sandbox_print(struct cli *c, const char *name, bool is_json);

/*
 * Prints the rows that REQUEST is answered with (taken over; NULL: an argument
 * is no UTF-8), in the N COLUMNS or as JSON. The exit code.
 */
int sandbox_print_rows(struct cli *c, json_t *request,
    const struct column *columns, size_t n, bool is_json);

#endif
