/*
 * Sections [provider NAME]: engines that are driven by command lines. A table of
 * its own, like conf/template.h; inside conf/ only. A value that is one command
 * is checked here, word by word, so that what is wrong has a line.
 */
#ifndef CONF_PROVIDER_H
#define CONF_PROVIDER_H

#include <stdbool.h>
#include <stdio.h>

struct conf;
struct err;

/* The name in a section "provider NAME", or NULL for any other section. */
const char *provider_name(const char *section);

/* Makes the provider of SECTION if it is not there. As template_open(). */
int provider_open(struct conf *c, const char *section, struct err *e);

/* Where a value stands: files come in turn, and an earlier one wins. */
struct provider_line {
	unsigned file; /* 0 is the first */
	bool is_more;  /* an indented line, which goes on with the one above */
};

/*
 * Sets KEY of the provider in SECTION, which is open. -ENOENT for an unknown
 * key, -EEXIST for one given twice in a file, else -EINVAL, with a sentence.
 */
int provider_set(struct conf *c, const char *section, const char *key,
    const char *text, const struct provider_line *at, struct err *e);

/*
 * Checks the value that was set last, now that all its lines are there; and
 * forgets which that was.
 */
int provider_end_value(struct conf *c, struct err *e);

/* What must hold when all was read: -EINVAL with a sentence. */
int providers_check(const struct conf *c, struct err *e);

/* All sections of C, as they load again. */
void providers_show(const struct conf *c, FILE *out);

/* The sample, all commented out; and paragraphs for the manual. */
void providers_print_sample(FILE *out);
void providers_print_manual(
    void (*print)(const char *text, FILE *out), FILE *out);

/* Frees what C holds of them. */
void providers_free(struct conf *c);

#endif
