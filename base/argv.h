/*
 * Templates of command lines: words with {placeholders}, never a line for a
 * shell. A word is what stands between blanks; what a value holds never becomes
 * another word, an option of its own or a placeholder. Knows nothing of berth.
 */
#ifndef BASE_ARGV_H
#define BASE_ARGV_H

struct err;

/* What a placeholder stands for: a text, or any number of whole words. */
struct argv_value {
	const char *text;
	char *const *list; /* NULL: it is the text */
};

/* Fills OUT with borrowed values; -ENOENT for a name that is none. */
typedef int (*argv_lookup_fn)(
    const char *name, void *arg, struct argv_value *out);

/*
 * Splits TEXT into words and fills them in. In 'single quotes' everything is
 * itself; in "double quotes" blanks do not part words; a backslash takes what
 * follows for itself. A { before a lower-case letter begins a placeholder:
 * {name} is its value, a word with {name?} is left out when that is empty; a
 * list has to be the whole word. Any other brace is itself.
 *
 * *OUT is a vector for strv_free(), which may be empty. -EINVAL with a sentence
 * for an open quote or brace, or a placeholder that FN does not know.
 */
int argv_expand(
    const char *text, argv_lookup_fn fn, void *arg, char ***out, struct err *e);

#endif
