/*
 * Names of keys (berthd, when it loads its configuration). A key has one
 * spelling when it is shown, whatever way it was written.
 */
#include "conf/detach_key.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/mem.h"
#include "conf/conf.h"

#define DETACH_KEY_ESC 27U

static const char detach_key_ctrl[] = "ctrl-";

/* One NAME of N bytes. */
static int
detach_key_one(const char *name, size_t n, struct conf_key *out, struct err *e)
{
	size_t prefix = strlen(detach_key_ctrl);
	unsigned char ch = (unsigned char)name[n - 1];

	if (n == 3 && strncasecmp(name, "esc", n) == 0) {
		*out = (struct conf_key){ .ch = DETACH_KEY_ESC };
		return 0;
	}
	if (n == 1 && ch > ' ' && ch < 0x7f) {
		*out = (struct conf_key){ .ch = ch };
		return 0;
	}
	if (n == prefix + 1 &&
	    strncasecmp(name, detach_key_ctrl, prefix) == 0) {
		if (ch >= 'A' && ch <= 'Z')
			ch |= 0x20;
		if ((ch >= 'a' && ch <= 'z') || strchr("@[\\]^_", ch)) {
			*out = (struct conf_key){ .ch = ch, .is_ctrl = true };
			return 0;
		}
	}
	return err_set(e, -EINVAL,
	    "\"%.*s\" is neither a key like ctrl-], one character nor esc",
	    (int)n, name);
}

/* Keys that are typed all the time must not be waited for. */
static int
detach_key_check_first(const struct conf_key *k, struct err *e)
{
	static const struct {
		char ch;
		const char *name;
	} taken[] = {
		{ 'i', "Tab" },
		{ 'm', "Enter" },
		{ '[', "Escape" },
	};

	if (!k->is_ctrl)
		return err_set(e, -EINVAL,
		    "the first key wants ctrl, like ctrl-] or ctrl-a");
	for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
		if (k->ch == (uint32_t)taken[i].ch)
			return err_set(e, -EINVAL,
			    "ctrl-%c is the key %s to a terminal", taken[i].ch,
			    taken[i].name);
	}
	return 0;
}

int
detach_key_parse(const char *text, struct conf_detach_key *out, struct err *e)
{
	struct conf_detach_key k = { 0 };
	const char *p = text;

	if (strcmp(text, "none") == 0) {
		*out = k;
		return 0;
	}
	while (*p) {
		size_t n = strcspn(p, " ");
		int rc;

		if (k.n == ARRAY_LEN(k.keys))
			return err_set(e, -EINVAL, "more than two keys");
		rc = detach_key_one(p, n, &k.keys[k.n++], e);
		if (rc < 0)
			return rc;
		p += n;
		p += strspn(p, " ");
	}
	if (detach_key_check_first(&k.keys[0], e) < 0)
		return -EINVAL;
	if (k.n == 2 && k.keys[0].ch == k.keys[1].ch && k.keys[1].is_ctrl)
		return err_set(e, -EINVAL,
		    "the second key must be another one: the first typed twice "
		    "is sent once");
	*out = k;
	return 0;
}

char *
detach_key_format(const struct conf_detach_key *k)
{
	char name[2][16];

	for (unsigned i = 0; i < k->n; i++) {
		const struct conf_key *key = &k->keys[i];

		if (key->ch == DETACH_KEY_ESC)
			snprintf(name[i], sizeof(name[i]), "esc");
		else
			snprintf(name[i], sizeof(name[i]), "%s%c",
			    key->is_ctrl ? detach_key_ctrl : "", (int)key->ch);
	}
	if (k->n == 0)
		return xstrdup("none");
	if (k->n == 1)
		return xstrdup(name[0]);
	return xasprintf("%s %s", name[0], name[1]);
}
