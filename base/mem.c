/* The xmalloc family; see mem.h. */
#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void *
mem_check(void *p)
{
	static const char msg[] = "out of memory\n";

	if (!p) {
		ssize_t n = write(STDERR_FILENO, msg, sizeof(msg) - 1);

		(void)n;
		abort();
	}
	return p;
}

void *
xmalloc(size_t n)
{
	return mem_check(malloc(n ? n : 1));
}

void *
xcalloc(size_t count, size_t n)
{
	return mem_check(calloc(count ? count : 1, n ? n : 1));
}

void *
xrealloc(void *p, size_t n)
{
	return mem_check(realloc(p, n ? n : 1));
}

char *
xstrdup(const char *s)
{
	return mem_check(strdup(s));
}

char *
xstrndup(const char *s, size_t n)
{
	return mem_check(strndup(s, n));
}

void *
xmemdup(const void *p, size_t n)
{
	void *copy = xmalloc(n);

	if (n)
		memcpy(copy, p, n);
	return copy;
}

char *
xasprintf(const char *fmt, ...)
{
	char *s = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	return mem_check(n < 0 ? NULL : s);
}

char **
strv_copy(char *const *v)
{
	size_t n = 0;
	char **copy;

	if (!v)
		return NULL;
	while (v[n])
		n++;
	copy = xcalloc(n + 1, sizeof(*copy));
	for (size_t i = 0; i < n; i++)
		copy[i] = xstrdup(v[i]);
	return copy;
}

void
strv_free(char **v)
{
	if (!v)
		return;
	for (char **p = v; *p; p++)
		free(*p);
	free(v);
}
