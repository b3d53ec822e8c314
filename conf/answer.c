/*
 * What a session's terminal says it is (berthd, when it loads its
 * configuration). The name goes into a control string of a terminal, so it is
 * kept to characters that end none.
 */
#include "conf/answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "conf/conf.h"

/* Light on dark, like most terminals of today. */
#define ANSWER_FOREGROUND 0xd0d0d0U
#define ANSWER_BACKGROUND 0x000000U

#define ANSWER_NO_COLOUR 0xffffffffU

static const char answer_name_chars[] = "abcdefghijklmnopqrstuvwxyz"
					"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789._+-()";

/* One KEY=#rrggbb of N bytes. */
static int
answer_colour(const char *p, size_t n, struct conf_answer *out, struct err *e)
{
	struct {
		const char *key;
		uint32_t *field;
	} rows[] = {
		{ "fg=#", &out->foreground },
		{ "bg=#", &out->background },
		{ "cursor=#", &out->cursor },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t len = strlen(rows[i].key);
		char digits[7];

		if (n != len + 6 || strncmp(p, rows[i].key, len) != 0)
			continue;
		snprintf(digits, sizeof(digits), "%.6s", p + len);
		if (strspn(digits, "0123456789abcdefABCDEF") != 6)
			break;
		*rows[i].field = (uint32_t)strtoul(digits, NULL, 16);
		return 0;
	}
	return err_set(e, -EINVAL,
	    "\"%.*s\" is not a colour like fg=#d0d0d0, bg=#000000 or "
	    "cursor=#ffffff",
	    (int)(n < 80 ? n : 80), p);
}

int
answer_parse(const char *text, struct conf_answer *out, struct err *e)
{
	struct conf_answer a = {
		.foreground = ANSWER_FOREGROUND,
		.background = ANSWER_BACKGROUND,
		.cursor = ANSWER_NO_COLOUR,
	};
	size_t n = strcspn(text, ",");
	const char *p = text + n;

	if (n == 0 || n >= sizeof(a.name) ||
	    strspn(text, answer_name_chars) != n)
		return err_set(e, -EINVAL,
		    "\"%.*s\" is not a name of 1 to %zu letters, digits and "
		    "._+-()",
		    (int)(n < 80 ? n : 80), text, sizeof(a.name) - 1);
	snprintf(a.name, sizeof(a.name), "%.*s", (int)n, text);
	while (*p == ',') {
		int rc;

		p += 1 + strspn(p + 1, " ");
		n = strcspn(p, ",");
		rc = answer_colour(p, n, &a, e);
		if (rc < 0)
			return rc;
		p += n;
	}
	if (a.cursor == ANSWER_NO_COLOUR)
		a.cursor = a.foreground;
	*out = a;
	return 0;
}

char *
answer_format(const struct conf_answer *a)
{
	return xasprintf("%s,fg=#%06x,bg=#%06x,cursor=#%06x", a->name,
	    a->foreground, a->background, a->cursor);
}
