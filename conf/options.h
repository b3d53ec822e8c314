/*
 * The option table and what an option's type can do, inside conf/ only. A row
 * says everything about a key: loader, --show-config, sample file and manual
 * read the rows and know no key by name.
 */
#ifndef CONF_OPTIONS_H
#define CONF_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conf;
struct err;
struct option;

/* Longest value, so that a line of the file can hold it. */
#define OPTION_VALUE_MAX 4096

enum option_kind {
	OPTION_NAME,     /* of a user */
	OPTION_TEMPLATE, /* of a template; whether it exists is seen later */
	OPTION_GROUP,    /* of a group that exists, or none */
	OPTION_PATH,
	OPTION_PATHS,
	OPTION_LISTEN,
	OPTION_GLOBS,     /* of environment variables */
	OPTION_ENDPOINTS, /* patterns of base/endpoint.h */
	OPTION_BOOL,      /* `unit` holds the words for false and true */
	OPTION_WORD,      /* an enum in the order of `unit` */
	OPTION_TEXT,      /* one of the words of `unit`, kept as text */
	OPTION_STRING,    /* any, or none */
	OPTION_VARIABLES, /* words NAME=VALUE, or none; may go on */
	OPTION_SCRIPT,    /* lines for a shell, or none; may go on */
	OPTION_COUNT,
	OPTION_SIZE,
	OPTION_TIME,
	OPTION_UIDS, /* FIRST-LAST, or none */
	OPTION_RESIZE,
	OPTION_DETACH_KEY,
	OPTION_ANSWER,
	OPTION_KINDS
};

struct option_type {
	/*
	 * Stores TEXT in the field of O. Relative paths are taken from DIR,
	 * which is absolute. 0, or a negative errno with what is wrong in E.
	 */
	int (*parse)(const struct option *o, const char *text, const char *dir,
	    struct conf *c, struct err *e);

	/* The value in force as text that parse() accepts; the caller frees. */
	char *(*format)(const struct option *o, const struct conf *c);

	bool is_list;   /* may go on in indented lines, a comma between */
	bool is_string; /* the field is a char * that the conf owns */
};

/* The functions of KIND; never NULL. */
const struct option_type *option_type(enum option_kind kind);

struct option {
	const char *section, *name;
	enum option_kind kind;
	size_t field;      /* offset in struct conf */
	uint64_t min, max; /* of counts, sizes (bytes) and times (ms) */
	const char *def; /* as written in the file, or as the manual puts it */
	/*
	 * NULL, or computes the default after the file was read, from values
	 * of rows further up; the caller frees.
	 */
	char *(*compute)(const struct option *o, const struct conf *c);
	const char *unit; /* what a value looks like: "size", "yes, no" */
	const char *help; /* sentences for sample and manual */
};

/* All rows, grouped by section. */
const struct option *options_all(size_t *n_out);

/* The row, or NULL. */
const struct option *option_find(const char *section, const char *name);

/* True if a row is in SECTION. */
bool option_section_exists(const char *section);

/* What may stand in a line: -EINVAL or -E2BIG with a sentence for the rest. */
int option_check_line(const char *text, struct err *e);

/*
 * Checks TEXT for what no value may hold, then parses it by its kind. The
 * message names neither file nor key.
 */
int option_set(const struct option *o, const char *text, const char *dir,
    struct conf *c, struct err *e);

/* Puts every default that is not computed, then fills the computed ones. */
void options_set_fixed(struct conf *c);
int options_set_computed(struct conf *c, const bool *is_set, struct err *e);

#endif
