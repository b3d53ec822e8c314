/*
 * What the kinds of options can hold: text to value and back (berthd). Every
 * parse function leaves the field as it was when it fails, and every value
 * that it stores formats to text that it would accept again.
 */
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "conf/answer.h"
#include "conf/conf.h"
#include "conf/detach_key.h"
#include "conf/elements.h"
#include "conf/options.h"

#define VALUE_NONE     "none"
#define VALUE_NAME_MAX 32 /* useradd's limit */

static void *
value_field(const struct option *o, struct conf *c)
{
	return (char *)c + o->field;
}

static const void *
value_field_const(const struct option *o, const struct conf *c)
{
	return (const char *)c + o->field;
}

static const char *
value_string(const struct option *o, const struct conf *c)
{
	return *(char *const *)value_field_const(o, c);
}

/* Takes over TEXT. */
static int
value_put_string(const struct option *o, struct conf *c, char *text)
{
	char **field = value_field(o, c);

	free(*field);
	*field = text;
	return 0;
}

static char *
value_format_string(const struct option *o, const struct conf *c)
{
	const char *s = value_string(o, c);

	return xstrdup(s && *s ? s : VALUE_NONE);
}

static int
value_parse_path(const struct option *o, const char *text, const char *dir,
    struct conf *c, struct err *e)
{
	char *path = element_path(text, dir, e);

	return path ? value_put_string(o, c, path) : -EINVAL;
}

static int
value_parse_list(const struct option *o, const char *text, const char *dir,
    struct conf *c, struct err *e)
{
	element_fn fn = o->kind == OPTION_PATHS       ? element_path
			: o->kind == OPTION_LISTEN    ? element_address
			: o->kind == OPTION_ENDPOINTS ? element_endpoint
						      : element_glob;
	char *list = NULL;
	int rc;

	if ((o->kind == OPTION_GLOBS || o->kind == OPTION_ENDPOINTS ||
		strcmp(o->def, VALUE_NONE) == 0) &&
	    strcmp(text, VALUE_NONE) == 0)
		return value_put_string(o, c, xstrdup(""));
	rc = elements_parse(text, dir, fn, &list, e);
	return rc < 0 ? rc : value_put_string(o, c, list);
}

static bool
value_is_name(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n <= VALUE_NAME_MAX && s[0] != '-' &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz"
			 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == n;
}

static int
value_parse_name(const struct option *o, const char *text, const char *dir,
    struct conf *c, struct err *e)
{
	(void)dir;
	if (!value_is_name(text))
		return err_set(
		    e, -EINVAL, "\"%s\" is not the name of a user", text);
	return value_put_string(o, c, xstrdup(text));
}

static int
value_parse_template(const struct option *o, const char *text, const char *dir,
    struct conf *c, struct err *e)
{
	(void)dir;
	if (strlen(text) > CONF_TEMPLATE_NAME_MAX)
		return err_set(e, -EINVAL, "is too long for a name");
	return value_put_string(o, c, xstrdup(text));
}

static int
value_parse_string(const struct option *o, const char *text, const char *dir,
    struct conf *c, struct err *e)
{
	(void)dir;
	(void)e;
	return value_put_string(
	    o, c, xstrdup(strcmp(text, VALUE_NONE) == 0 ? "" : text));
}

/* Lines that go on are indented again. */
static char *
value_format_lines(const struct option *o, const struct conf *c)
{
	const char *s = value_string(o, c);
	struct buf b = { 0 };

	for (s = s && *s ? s : VALUE_NONE; *s; s++) {
		buf_put_u8(&b, (uint8_t)*s);
		if (*s == '\n')
			buf_put_u8(&b, '\t');
	}
	buf_put_u8(&b, '\0');
	return (char *)b.data;
}

static int
value_parse_variables(const struct option *o, const char *text, const char *dir,
    struct conf *c, struct err *e)
{
	char **v = NULL;
	int rc;

	(void)dir;
	rc = conf_variables(text, &v, e);
	strv_free(v);
	return rc < 0 ? rc
		      : value_put_string(o, c,
			    xstrdup(strcmp(text, VALUE_NONE) == 0 ? "" : text));
}

static int
value_parse_group(const struct option *o, const char *text, const char *dir,
    struct conf *c, struct err *e)
{
	(void)dir;
	if (strcmp(text, VALUE_NONE) == 0)
		return value_put_string(o, c, xstrdup(""));
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread reads this */
	if (!value_is_name(text) || !getgrnam(text))
		return err_set(e, -ENOENT, "there is no group \"%s\"", text);
	return value_put_string(o, c, xstrdup(text));
}

/* The place of TEXT among the words "a, b, c" of UNIT, or -1. */
static int
value_word_index(const char *unit, const char *text)
{
	size_t n = strlen(text);
	int index = 0;

	for (const char *p = unit;; p += strspn(p, ", "), index++) {
		size_t len = strcspn(p, ",");

		if (len == n && memcmp(p, text, n) == 0)
			return index;
		p += len;
		if (!*p)
			return -1;
	}
}

static char *
value_word_at(const char *unit, unsigned index)
{
	const char *p = unit;

	for (; index > 0; index--) {
		p += strcspn(p, ",");
		p += strspn(p, ", ");
	}
	return xstrndup(p, strcspn(p, ","));
}

static int
value_bad_word(const struct option *o, const char *text, struct err *e)
{
	return err_set(e, -EINVAL, "\"%s\" is none of: %s", text, o->unit);
}

static int
value_parse_bool(const struct option *o, const char *text, const char *dir,
    struct conf *c, struct err *e)
{
	static const char *const words[][2] = {
		{ "no", "yes" },
		{ "off", "on" },
		{ "false", "true" },
	};
	bool is_switch = value_word_index(o->unit, "json") < 0;
	int index = value_word_index(o->unit, text);

	(void)dir;
	for (size_t i = 0; index < 0 && is_switch && i < ARRAY_LEN(words); i++)
		index = strcmp(text, words[i][0]) == 0   ? 0
			: strcmp(text, words[i][1]) == 0 ? 1
							 : -1;
	if (index < 0)
		return value_bad_word(o, text, e);
	*(bool *)value_field(o, c) = index == 1;
	return 0;
}

static char *
value_format_bool(const struct option *o, const struct conf *c)
{
	return value_word_at(
	    o->unit, *(const bool *)value_field_const(o, c) ? 1 : 0);
}

static int
value_parse_word(const struct option *o, const char *text, const char *dir,
    struct conf *c, struct err *e)
{
	int index = value_word_index(o->unit, text);

	(void)dir;
	if (index < 0)
		return value_bad_word(o, text, e);
	*(unsigned *)value_field(o, c) = (unsigned)index;
	return 0;
}

static char *
value_format_word(const struct option *o, const struct conf *c)
{
	return value_word_at(
	    o->unit, *(const unsigned *)value_field_const(o, c));
}

static int
value_parse_text(const struct option *o, const char *text, const char *dir,
    struct conf *c, struct err *e)
{
	(void)dir;
	if (value_word_index(o->unit, text) < 0)
		return value_bad_word(o, text, e);
	return value_put_string(o, c, xstrdup(text));
}

static void
value_print_number(const struct option *o, uint64_t v, char *out, size_t size)
{
	if (o->kind == OPTION_SIZE)
		text_format_size(v, out, size);
	else if (o->kind == OPTION_TIME)
		text_format_duration(v, out, size);
	else
		snprintf(out, size, "%" PRIu64, v);
}

static int
value_parse_number(const struct option *o, const char *text, const char *dir,
    struct conf *c, struct err *e)
{
	const char *noun = "a whole number";
	uint64_t v = 0;
	char min[32], max[32];
	int rc;

	(void)dir;
	if (o->kind == OPTION_SIZE) {
		noun = "a size like 512k, 1M or 2G";
		rc = text_parse_size(text, &v);
	} else if (o->kind == OPTION_TIME) {
		noun = "a time like 500ms, 30s, 5m, 12h or 7d";
		rc = text_parse_duration(text, &v);
	} else {
		rc = text_parse_u64(text, 0, UINT64_MAX, &v);
	}
	if (rc == -EINVAL)
		return err_set(e, rc, "\"%s\" is not %s", text, noun);
	if (rc == 0 && v >= o->min && v <= o->max) {
		*(uint64_t *)value_field(o, c) = v;
		return 0;
	}
	value_print_number(o, o->min, min, sizeof(min));
	value_print_number(o, o->max, max, sizeof(max));
	return err_set(
	    e, -ERANGE, "%s is not between %s and %s", text, min, max);
}

static char *
value_format_number(const struct option *o, const struct conf *c)
{
	char text[32];

	value_print_number(
	    o, *(const uint64_t *)value_field_const(o, c), text, sizeof(text));
	return xstrdup(text);
}

static int
value_parse_uids(const struct option *o, const char *text, const char *dir,
    struct conf *c, struct err *e)
{
	struct conf_uids *field = value_field(o, c);
	const char *dash = strchr(text, '-');
	uint64_t first, last;
	char from[24];

	(void)dir;
	if (strcmp(text, VALUE_NONE) == 0) {
		*field = (struct conf_uids){ 0 };
		return 0;
	}
	snprintf(
	    from, sizeof(from), "%.*s", dash ? (int)(dash - text) : 0, text);
	if (!dash || text_parse_u64(from, o->min, o->max, &first) < 0 ||
	    text_parse_u64(dash + 1, o->min, o->max, &last) < 0 || first > last)
		return err_set(e, -EINVAL,
		    "\"%s\" is not a range of uids like 200000-265535, all of "
		    "them between %" PRIu64 " and %" PRIu64,
		    text, o->min, o->max);
	*field = (struct conf_uids){ (uid_t)first, (uid_t)last };
	return 0;
}

static char *
value_format_uids(const struct option *o, const struct conf *c)
{
	const struct conf_uids *u = value_field_const(o, c);

	return u->first ? xasprintf("%u-%u", u->first, u->last)
			: xstrdup(VALUE_NONE);
}

static int
value_parse_resize(const struct option *o, const char *text, const char *dir,
    struct conf *c, struct err *e)
{
	static const char fixed[] = "fixed ";
	int index = value_word_index(o->unit, text);
	unsigned cols = 0, rows = 0;

	(void)dir;
	if (strncmp(text, fixed, strlen(fixed)) == 0) {
		const char *size = text + strlen(fixed);

		if (text_parse_size2d(size + strspn(size, " "), &cols, &rows) <
		    0)
			return err_set(e, -EINVAL,
			    "\"%s\" is not a size like 80x24", size);
		index = CONF_RESIZE_FIXED;
	} else if (index < 0 || index >= CONF_RESIZE_FIXED) {
		return value_bad_word(o, text, e);
	}
	c->session.resize = (enum conf_resize)index;
	c->session.fixed_cols = cols;
	c->session.fixed_rows = rows;
	return 0;
}

static char *
value_format_resize(const struct option *o, const struct conf *c)
{
	if (c->session.resize == CONF_RESIZE_FIXED)
		return xasprintf("fixed %ux%u", c->session.fixed_cols,
		    c->session.fixed_rows);
	return value_word_at(o->unit, c->session.resize);
}

static int
value_parse_detach_key(const struct option *o, const char *text,
    const char *dir, struct conf *c, struct err *e)
{
	(void)dir;
	return detach_key_parse(text, value_field(o, c), e);
}

static char *
value_format_detach_key(const struct option *o, const struct conf *c)
{
	return detach_key_format(value_field_const(o, c));
}

static int
value_parse_answer(const struct option *o, const char *text, const char *dir,
    struct conf *c, struct err *e)
{
	(void)dir;
	return answer_parse(text, value_field(o, c), e);
}

static char *
value_format_answer(const struct option *o, const struct conf *c)
{
	return answer_format(value_field_const(o, c));
}

static const struct option_type value_types[OPTION_KINDS] = {
	[OPTION_NAME] = { value_parse_name, value_format_string, false, true },
	[OPTION_TEMPLATE] = { value_parse_template, value_format_string, false,
	    true },
	[OPTION_GROUP] = { value_parse_group, value_format_string, false,
	    true },
	[OPTION_PATH] = { value_parse_path, value_format_string, false, true },
	[OPTION_PATHS] = { value_parse_list, value_format_string, true, true },
	[OPTION_LISTEN] = { value_parse_list, value_format_string, true, true },
	[OPTION_GLOBS] = { value_parse_list, value_format_string, true, true },
	[OPTION_ENDPOINTS] = { value_parse_list, value_format_string, true,
	    true },
	[OPTION_BOOL] = { value_parse_bool, value_format_bool, false, false },
	[OPTION_WORD] = { value_parse_word, value_format_word, false, false },
	[OPTION_TEXT] = { value_parse_text, value_format_string, false, true },
	[OPTION_STRING] = { value_parse_string, value_format_string, false,
	    true },
	[OPTION_VARIABLES] = { value_parse_variables, value_format_lines, false,
	    true },
	[OPTION_SCRIPT] = { value_parse_string, value_format_lines, false,
	    true },
	[OPTION_COUNT] = { value_parse_number, value_format_number, false,
	    false },
	[OPTION_SIZE] = { value_parse_number, value_format_number, false,
	    false },
	[OPTION_TIME] = { value_parse_number, value_format_number, false,
	    false },
	[OPTION_UIDS] = { value_parse_uids, value_format_uids, false, false },
	[OPTION_RESIZE] = { value_parse_resize, value_format_resize, false,
	    false },
	[OPTION_DETACH_KEY] = { value_parse_detach_key, value_format_detach_key,
	    false, false },
	[OPTION_ANSWER] = { value_parse_answer, value_format_answer, false,
	    false },
};

const struct option_type *
option_type(enum option_kind kind)
{
	return &value_types[kind];
}
