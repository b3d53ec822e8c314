/* Options of a verb; see args.h. */
#include "cli/args.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

struct args {
	int argc, at;
	char **argv;
	const struct arg_option *options;
	size_t n;
	struct err *e;
};

static int
args_store(struct args *a, const struct arg_option *o, const char *value)
{
	struct arg_list *list;

	switch (o->kind) {
	case ARG_FLAG:
		*(bool *)o->target = true;
		return 0;
	case ARG_TEXT:
		*(const char **)o->target = value;
		return 0;
	case ARG_LIST:
		list = o->target;
		if (list->n == ARG_LIST_MAX)
			return err_set(a->e, -EINVAL,
			    "-%c is given more than %d times", o->letter,
			    ARG_LIST_MAX);
		list->items[list->n++] = value;
		return 0;
	}
	return -EINVAL;
}

/* The next word as the value of the option that WORD names. */
static int
args_store_next(struct args *a, const struct arg_option *o, const char *word)
{
	if (o->kind != ARG_FLAG && a->at + 1 >= a->argc)
		return err_set(a->e, -EINVAL, "%s wants a value", word);
	return args_store(a, o, o->kind == ARG_FLAG ? NULL : a->argv[++a->at]);
}

static int
args_long(struct args *a, const char *word)
{
	const char *name = word + 2;
	size_t len = strcspn(name, "=");

	for (size_t i = 0; i < a->n; i++) {
		const struct arg_option *o = &a->options[i];

		if (!o->name || strlen(o->name) != len ||
		    memcmp(o->name, name, len) != 0)
			continue;
		if (!name[len])
			return args_store_next(a, o, word);
		if (o->kind == ARG_FLAG)
			return err_set(
			    a->e, -EINVAL, "--%s takes no value", o->name);
		return args_store(a, o, name + len + 1);
	}
	return err_set(a->e, -EINVAL, "there is no option %s", word);
}

static const struct arg_option *
args_letter(const struct args *a, char letter)
{
	for (size_t i = 0; i < a->n; i++) {
		if (a->options[i].letter && a->options[i].letter == letter)
			return &a->options[i];
	}
	return NULL;
}

static int
args_short(struct args *a, const char *word)
{
	for (const char *p = word + 1; *p; p++) {
		const struct arg_option *o = args_letter(a, *p);
		int rc;

		if (!o)
			return err_set(
			    a->e, -EINVAL, "there is no option %s", word);
		if (o->kind != ARG_FLAG && p[1])
			return args_store(a, o, p + 1);
		rc = args_store_next(a, o, word);
		if (rc < 0 || o->kind != ARG_FLAG)
			return rc;
	}
	return 0;
}

int
args_parse(int argc, char **argv, const struct arg_option *options, size_t n,
    bool stop_at_first, struct err *e)
{
	struct args a = { argc, 0, argv, options, n, e };
	bool is_over = false;
	int kept = 0;

	for (; a.at < argc; a.at++) {
		char *word = argv[a.at];
		bool is_option = !is_over && word[0] == '-' && word[1];
		int rc = 0;

		if (is_option && strcmp(word, "--") == 0) {
			is_over = true;
			continue;
		}
		if (!is_option) {
			argv[kept++] = word;
			is_over = is_over || stop_at_first;
			continue;
		}
		rc =
		    word[1] == '-' ? args_long(&a, word) : args_short(&a, word);
		if (rc < 0)
			return rc;
	}
	return kept;
}
