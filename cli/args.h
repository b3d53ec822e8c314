/*
 * Options of a verb as a table, parsed in one pass over its arguments. Pure:
 * knows no verb, prints nothing.
 */
#ifndef CLI_ARGS_H
#define CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>

struct err;

enum arg_kind {
	ARG_FLAG, /* bool * becomes true */
	ARG_TEXT, /* const char ** gets the argument, borrowed */
	ARG_LIST  /* struct arg_list * gets one more, borrowed */
};

#define ARG_LIST_MAX 64

struct arg_list {
	const char *items[ARG_LIST_MAX];
	size_t n;
};

struct arg_option {
	char letter; /* 0 for none */
	enum arg_kind kind;
	const char *name; /* without "--"; NULL for none */
	void *target;
};

/*
 * Parses ARGV[0..ARGC) by the N rows of OPTIONS: "-a", "-ab", "-sVALUE", "-s
 * VALUE", "--name", "--name=VALUE", "--name VALUE", "--" ends them. What is no
 * option is moved to the front of ARGV in its order and its count returned.
 * With STOP_AT_FIRST everything from the first such word on is kept as it is.
 * -EINVAL with a sentence for what no row allows.
 */
int args_parse(int argc, char **argv, const struct arg_option *options,
    size_t n, bool stop_at_first, struct err *e);

#endif
