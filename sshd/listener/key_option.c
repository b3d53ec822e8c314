/* Options of a key, a row each; see key_option.h. Runs in berthd. */
#include "sshd/listener/key_option.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/endpoint.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "sshd/listener/key_line.h"
#include "sshd/listener/source.h"

struct key_option {
	const char *name;
	bool has_value;
	int (*apply)(struct key_line *k, char *value, struct err *e);
};

/* Stores VALUE, which becomes ours, where nothing may stand yet. */
static int
key_option_once(char **where, char *value, const char *name, struct err *e)
{
	if (*where) {
		free(value);
		return err_set(e, -EINVAL, "%s is given twice", name);
	}
	*where = value;
	return 0;
}

static int
key_option_restrict(struct key_line *k, char *value, struct err *e)
{
	(void)value;
	(void)e;
	k->may_pty = k->may_forward = false;
	return 0;
}

static int
key_option_pty(struct key_line *k, char *value, struct err *e)
{
	(void)value;
	(void)e;
	k->may_pty = true;
	return 0;
}

static int
key_option_no_pty(struct key_line *k, char *value, struct err *e)
{
	(void)value;
	(void)e;
	k->may_pty = false;
	return 0;
}

static int
key_option_forward(struct key_line *k, char *value, struct err *e)
{
	(void)value;
	(void)e;
	k->may_forward = true;
	return 0;
}

static int
key_option_no_forward(struct key_line *k, char *value, struct err *e)
{
	(void)value;
	(void)e;
	k->may_forward = false;
	return 0;
}

static int
key_option_admin(struct key_line *k, char *value, struct err *e)
{
	(void)value;
	(void)e;
	k->is_admin = true;
	return 0;
}

/* A restriction that holds for every key: berth has no such thing. */
static int
key_option_holds_anyway(struct key_line *k, char *value, struct err *e)
{
	(void)k;
	(void)value;
	(void)e;
	return 0;
}

/* "host:port" or "[v6]:port", the port a number or `*`. */
static bool
key_option_is_permit(const char *value)
{
	const char *colon = strrchr(value, ':');
	uint64_t port;

	return colon && endpoint_is_pattern(value) && *value != '!' &&
	       (strcmp(colon + 1, "*") == 0 ||
		   text_parse_u64(colon + 1, 1, 65535, &port) == 0);
}

/* Adds VALUE, which becomes ours, to the list *WHERE. */
static void
key_option_append(char **where, char *value)
{
	autofree char *old = *where;

	*where = old ? xasprintf("%s,%s", old, value) : xstrdup(value);
	free(value);
}

static int
key_option_permit_open(struct key_line *k, char *value, struct err *e)
{
	if (!key_option_is_permit(value)) {
		free(value);
		return err_set(e, -EINVAL, "permitopen= wants host:port");
	}
	key_option_append(&k->permit_open, value);
	return 0;
}

/* A port alone stands for that port of any host. */
static int
key_option_permit_listen(struct key_line *k, char *value, struct err *e)
{
	char *full =
	    strchr(value, ':') ? xstrdup(value) : xasprintf("*:%s", value);

	free(value);
	if (!key_option_is_permit(full)) {
		free(full);
		return err_set(e, -EINVAL, "permitlisten= wants [host:]port");
	}
	key_option_append(&k->permit_listen, full);
	return 0;
}

static int
key_option_from(struct key_line *k, char *value, struct err *e)
{
	int rc = source_check(value, e);

	if (rc < 0) {
		free(value);
		return rc;
	}
	return key_option_once(&k->from, value, "from=", e);
}

static int
key_option_command(struct key_line *k, char *value, struct err *e)
{
	return key_option_once(&k->command, value, "command=", e);
}

static int
key_option_sandbox(struct key_line *k, char *value, struct err *e)
{
	return key_option_once(&k->sandbox_globs, value, "sandbox=", e);
}

static int
key_option_session(struct key_line *k, char *value, struct err *e)
{
	return key_option_once(&k->session_globs, value, "session=", e);
}

/* Whether there is one of that name is seen when it is needed. */
static int
key_option_template(struct key_line *k, char *value, struct err *e)
{
	if (!*value || strlen(value) >= PRINCIPAL_TEMPLATE_MAX) {
		free(value);
		return err_set(
		    e, -EINVAL, "template= wants the name of a template");
	}
	return key_option_once(&k->template, value, "template=", e);
}

static int
key_option_role(struct key_line *k, char *value, struct err *e)
{
	int rc = k->has_role ? -EINVAL : role_parse(value, &k->role);

	free(value);
	if (rc < 0)
		return err_set(
		    e, -EINVAL, "role= wants owner, writer or viewer, once");
	k->has_role = true;
	return 0;
}

/* N digits as a number. */
static int
key_option_digits(const char *s, int n)
{
	int v = 0;

	for (int i = 0; i < n; i++)
		v = v * 10 + (s[i] - '0');
	return v;
}

/* YYYYMMDD[HHMM[SS]][Z]; local time without Z. */
static int
key_option_time(const char *s, int64_t *ms_out)
{
	size_t n = strspn(s, "0123456789");
	bool is_utc = strcmp(s + n, "Z") == 0;
	struct tm want = { 0 }, tm;
	time_t t;

	if ((s[n] && !is_utc) || (n != 8 && n != 12 && n != 14))
		return -EINVAL;
	want.tm_year = key_option_digits(s, 4) - 1900;
	want.tm_mon = key_option_digits(s + 4, 2) - 1;
	want.tm_mday = key_option_digits(s + 6, 2);
	if (n >= 12) {
		want.tm_hour = key_option_digits(s + 8, 2);
		want.tm_min = key_option_digits(s + 10, 2);
	}
	if (n == 14)
		want.tm_sec = key_option_digits(s + 12, 2);
	if (want.tm_hour > 23 || want.tm_min > 59 || want.tm_sec > 60)
		return -EINVAL;
	want.tm_isdst = is_utc ? 0 : -1;
	tm = want;
	t = is_utc ? timegm(&tm) : mktime(&tm);
	/* 20250230 would quietly become another day. */
	if (tm.tm_mon != want.tm_mon || tm.tm_mday != want.tm_mday)
		return -EINVAL;
	*ms_out = (int64_t)t * 1000;
	return 0;
}

/* Several: the earliest counts, as in OpenSSH. */
static int
key_option_expiry(struct key_line *k, char *value, struct err *e)
{
	int64_t ms;
	int rc = key_option_time(value, &ms);

	free(value);
	if (rc < 0)
		return err_set(
		    e, -EINVAL, "expiry-time= wants YYYYMMDD[HHMM[SS]][Z]");
	if (ms < k->expires_ms)
		k->expires_ms = ms;
	return 0;
}

static const struct key_option key_options[] = {
	{ "restrict", false, key_option_restrict },
	{ "pty", false, key_option_pty },
	{ "no-pty", false, key_option_no_pty },
	{ "port-forwarding", false, key_option_forward },
	{ "no-port-forwarding", false, key_option_no_forward },
	{ "no-agent-forwarding", false, key_option_holds_anyway },
	{ "no-x11-forwarding", false, key_option_holds_anyway },
	{ "no-user-rc", false, key_option_holds_anyway },
	{ "admin", false, key_option_admin },
	{ "permitopen", true, key_option_permit_open },
	{ "permitlisten", true, key_option_permit_listen },
	{ "from", true, key_option_from },
	{ "expiry-time", true, key_option_expiry },
	{ "command", true, key_option_command },
	{ "sandbox", true, key_option_sandbox },
	{ "session", true, key_option_session },
	{ "role", true, key_option_role },
	{ "template", true, key_option_template },
};

/*
 * The quoted string at *TEXT as a new one; only \" is an escape. NULL when a
 * quote is missing.
 */
static char *
key_option_dequote(const char **text)
{
	const char *s = *text;
	autofree char *out = xmalloc(strlen(s) + 1);
	size_t n = 0;

	if (*s++ != '"')
		return NULL;
	for (; *s && *s != '"'; s++) {
		if (s[0] == '\\' && s[1] == '"')
			s++;
		out[n++] = *s;
	}
	if (*s != '"')
		return NULL;
	out[n] = '\0';
	*text = s + 1;
	return take_ptr(out);
}

static const struct key_option *
key_option_find(const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(key_options); i++) {
		const struct key_option *o = &key_options[i];

		if (strlen(o->name) == n && strncasecmp(o->name, name, n) == 0)
			return o;
	}
	return NULL;
}

static int
key_option_one(const char **text, struct key_line *k, struct err *e)
{
	const char *s = *text;
	size_t n = strcspn(s, "=, \t\"");
	const struct key_option *o = key_option_find(s, n);
	char *value = NULL;

	if (!o || (s[n] == '=') != o->has_value)
		return err_set(e, -EINVAL, "unknown option %.*s", (int)n, s);
	s += n;
	if (o->has_value) {
		s++;
		value = key_option_dequote(&s);
		if (!value)
			return err_set(e, -EINVAL,
			    "the value of %s= wants \"quotes\"", o->name);
	}
	*text = s;
	return o->apply(k, value, e);
}

int
key_options_parse(const char **text, struct key_line *k, struct err *e)
{
	for (;;) {
		int rc = key_option_one(text, k, e);

		if (rc < 0)
			return rc;
		if (**text == ' ' || **text == '\t' || **text == '\0')
			return 0;
		if (**text != ',')
			return err_set(e, -EINVAL,
			    "a comma or a blank is missing after an option");
		(*text)++;
	}
}
