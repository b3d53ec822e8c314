/* Words with placeholders; see argv.h. Used by the loader and by providers. */
#include "base/argv.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"

#define ARGV_NAME_MAX 32

struct argv_scan {
	const char *p;
	argv_lookup_fn fn;
	void *arg;
	struct err *e;
	char **words; /* NULL-terminated */
	size_t n;
	struct buf word; /* the present one */
	bool is_begun;   /* there is one, even if it is empty so far */
	bool is_dropped; /* a {name?} in it is empty */
	bool is_list;    /* it was a list, nothing may follow in it */
};

static void
argv_push(struct argv_scan *s, const char *text, size_t n)
{
	s->words = xrealloc(s->words, (s->n + 2) * sizeof(*s->words));
	s->words[s->n++] = xstrndup(text, n);
	s->words[s->n] = NULL;
}

static void
argv_end_word(struct argv_scan *s)
{
	if (s->is_begun && !s->is_dropped && !s->is_list)
		argv_push(s, buf_len(&s->word) ? (char *)s->word.data : "",
		    buf_len(&s->word));
	buf_clear(&s->word);
	s->is_begun = s->is_dropped = s->is_list = false;
}

static int
argv_put(struct argv_scan *s, const char *text, size_t n)
{
	if (s->is_list)
		return err_set(s->e, -EINVAL,
		    "a placeholder for several words stands alone");
	s->is_begun = true;
	buf_put(&s->word, text, n);
	return 0;
}

static int
argv_put_list(struct argv_scan *s, const char *name, char *const *list)
{
	if (s->is_begun)
		return err_set(s->e, -EINVAL,
		    "{%s} is several words and stands alone", name);
	s->is_begun = s->is_list = true;
	for (; *list; list++)
		argv_push(s, *list, strlen(*list));
	return 0;
}

/* At the brace of a placeholder. */
static int
argv_placeholder(struct argv_scan *s)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
	const char *start = s->p + 1;
	size_t n = strspn(start, letters);
	bool is_optional = start[n] == '?';
	struct argv_value v = { .text = NULL };
	char name[ARGV_NAME_MAX + 1];

	if (start[n + is_optional] != '}' || n > ARGV_NAME_MAX)
		return err_set(s->e, -EINVAL,
		    "\"{%.*s\" is not closed; write \\{ for a brace", (int)n,
		    start);
	memcpy(name, start, n);
	name[n] = '\0';
	if (s->fn(name, s->arg, &v) < 0)
		return err_set(
		    s->e, -EINVAL, "{%s} is not a placeholder here", name);
	s->p = start + n + is_optional + 1;
	if (v.list)
		return argv_put_list(s, name, v.list);
	if (is_optional && !*v.text)
		s->is_dropped = true;
	return argv_put(s, v.text, strlen(v.text));
}

/* One character, escape, or placeholder, outside single quotes. */
static int
argv_step(struct argv_scan *s)
{
	if (*s->p == '{' && s->p[1] >= 'a' && s->p[1] <= 'z')
		return argv_placeholder(s);
	if (*s->p == '\\' && !*++s->p)
		return err_set(s->e, -EINVAL, "ends in a backslash");
	return argv_put(s, s->p++, 1);
}

/* At an opening quote. */
static int
argv_quoted(struct argv_scan *s)
{
	char quote = *s->p++;
	int rc = argv_put(s, "", 0);

	while (rc == 0 && *s->p && *s->p != quote)
		rc = quote == '"' ? argv_step(s) : argv_put(s, s->p++, 1);
	if (rc == 0 && *s->p++ != quote)
		return err_set(s->e, -EINVAL, "a quote is not closed");
	return rc;
}

int
argv_expand(
    const char *text, argv_lookup_fn fn, void *arg, char ***out, struct err *e)
{
	struct argv_scan s = { .p = text, .fn = fn, .arg = arg, .e = e };
	int rc = 0;

	s.words = xcalloc(1, sizeof(*s.words));
	while (rc == 0 && *s.p) {
		if (strchr(" \t\n", *s.p)) {
			argv_end_word(&s);
			s.p++;
		} else if (*s.p == '"' || *s.p == '\'') {
			rc = argv_quoted(&s);
		} else {
			rc = argv_step(&s);
		}
	}
	argv_end_word(&s);
	buf_release(&s.word);
	if (rc == 0)
		*out = take_ptr(s.words);
	strv_free(s.words);
	return rc;
}
