/*
 * Sections [template NAME]: what sandboxes are made from. A table of its own
 * with the kinds of conf/options.h; read in file order, inside conf/ only.
 */
#ifndef CONF_TEMPLATE_H
#define CONF_TEMPLATE_H

#include <stdbool.h>
#include <stdio.h>

struct conf;
struct err;

/* The name in a section "template NAME", or NULL for any other section. */
const char *template_name(const char *section);

/*
 * Makes the template of SECTION if it is not there. -EINVAL with a sentence for
 * a name that is none, -E2BIG for one too many.
 */
int template_open(struct conf *c, const char *section, struct err *e);

/* Where a value stands. */
struct template_line {
	const char *dir; /* relative paths start there */
	bool goes_on;    /* the line is indented: more of the value above */
};

/*
 * Sets KEY of the template in SECTION, which is open, to TEXT. -ENOENT for an
 * unknown key, -EEXIST for one given before, else -EINVAL, each with a sentence.
 */
int template_set(struct conf *c, const char *section, const char *key,
    const char *text, const struct template_line *at, struct err *e);

/* What must hold when all was read, providers too: -EINVAL with a sentence. */
int templates_check(const struct conf *c, struct err *e);

/* True if NAME is built in or in C. */
bool template_exists(const struct conf *c, const char *name);

/* All sections of C, as they load again. */
void templates_show(const struct conf *c, FILE *out);

/* The table, for the manual. */
const struct option *template_options(size_t *n_out);

/* Frees what C holds of them. */
void templates_free(struct conf *c);

#endif
