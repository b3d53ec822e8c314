/* The table of attachments, for `who` and `info`. */
#ifndef CLI_WHO_H
#define CLI_WHO_H

#include <jansson.h>
#include <stdio.h>

/* Prints the attachments ROWS as a table; nothing for none. */
void who_print(const json_t *rows, FILE *out);

#endif
