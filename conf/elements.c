/* Elements of lists in the configuration; see elements.h. */
#include "conf/elements.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/endpoint.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"
#include "conf/conf.h"

/*
 * The next element of the comma-separated *LIST without blanks around it, as a
 * new string; NULL behind the last. *LIST moves on.
 */
static char *
elements_next(const char **list)
{
	const char *s = *list;
	size_t n;

	if (!s)
		return NULL;
	n = strcspn(s, ",");
	*list = s[n] ? s + n + 1 : NULL;
	while (n > 0 && *s == ' ') {
		s++;
		n--;
	}
	while (n > 0 && s[n - 1] == ' ')
		n--;
	return xstrndup(s, n);
}

int
elements_parse(
    const char *text, const char *dir, element_fn fn, char **out, struct err *e)
{
	struct buf b = { 0 };
	const char *rest = text;
	int rc = 0;

	for (unsigned n = 0; rest && rc == 0; n++) {
		autofree char *element = elements_next(&rest);
		autofree char *canonical = NULL;

		if (n == CONF_LIST_MAX)
			rc = err_set(
			    e, -E2BIG, "more than %d entries", CONF_LIST_MAX);
		else if (!*element)
			rc = err_set(
			    e, -EINVAL, "an entry of the list is empty");
		else
			canonical = fn(element, dir, e);
		if (canonical) {
			buf_put(&b, n > 0 ? "," : "", n > 0 ? 1 : 0);
			buf_put(&b, canonical, strlen(canonical));
		} else if (rc == 0) {
			rc = -EINVAL;
		}
	}
	if (rc == 0)
		*out = xstrndup((const char *)buf_head(&b), buf_len(&b));
	buf_release(&b);
	return rc;
}

char *
element_path(const char *text, const char *dir, struct err *e)
{
	autofree char *base = xstrdup(text[0] == '/' ? "" : dir);
	char *path;
	size_t n;

	while (text[0] == '.' &&
	       (text[1] == '/' || !text[1] ||
		   (text[1] == '.' && (text[2] == '/' || !text[2])))) {
		bool is_up = text[1] == '.';
		char *slash = is_up ? strrchr(base, '/') : NULL;

		if (slash)
			*slash = '\0';
		text += is_up ? 2 : 1;
		text += strspn(text, "/");
	}
	n = strlen(base);
	if (n > 0 && base[n - 1] == '/')
		base[n - 1] = '\0';
	path = text[0] == '/' ? xstrdup(text) : xasprintf("%s/%s", base, text);
	for (n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	/* A file could not say it: blanks at the end of a line are not read. */
	if (path[n - 1] == ' ') {
		err_set(e, -EINVAL, "\"%s\" ends in a blank", path);
		free(path);
		return NULL;
	}
	return path;
}

static bool
element_is_host(const char *s, size_t n)
{
	static const char alphabet[] =
	    "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

	return n > 0 && n < 256 && strspn(s, alphabet) == n;
}

char *
element_address(const char *text, const char *dir, struct err *e)
{
	const char *colon = strrchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : 0;
	uint64_t port;

	(void)dir;
	if (!colon || n == 0) {
		err_set(
		    e, -EINVAL, "\"%s\" is not host:port or [v6]:port", text);
		return NULL;
	}
	if (text[0] == '[' && text[n - 1] == ']') {
		autofree char *v6 = xstrndup(text + 1, n - 2);
		struct in6_addr addr;

		if (inet_pton(AF_INET6, v6, &addr) != 1) {
			err_set(
			    e, -EINVAL, "\"%s\" is not an IPv6 address", v6);
			return NULL;
		}
	} else if (!element_is_host(text, n)) {
		err_set(e, -EINVAL,
		    memchr(text, ':', n)
			? "\"%s\": an IPv6 address wants brackets"
			: "\"%s\" does not begin with a host",
		    text);
		return NULL;
	}
	if (text_parse_u64(colon + 1, 0, 65535, &port) < 0) {
		err_set(e, -EINVAL,
		    "\"%s\" does not end in a port (0 to 65535)", text);
		return NULL;
	}
	return xstrdup(text);
}

char *
element_glob(const char *text, const char *dir, struct err *e)
{
	size_t skip = text[0] == '!' ? 1 : 0;
	size_t n = strlen(text + skip);

	(void)dir;
	if (n == 0 || strspn(text + skip,
			  "abcdefghijklmnopqrstuvwxyz"
			  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_*?") != n) {
		err_set(e, -EINVAL, "\"%s\" is not a pattern of variable names",
		    text);
		return NULL;
	}
	return xstrdup(text);
}

char *
element_endpoint(const char *text, const char *dir, struct err *e)
{
	(void)dir;
	if (!endpoint_is_pattern(text)) {
		err_set(e, -EINVAL,
		    "\"%s\" is not a pattern like host:port, *:80 or [v6]:*",
		    text);
		return NULL;
	}
	return xstrdup(text);
}
