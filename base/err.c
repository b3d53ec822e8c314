/* Fills struct err; see err.h. No allocation, so it works when memory is out. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int
err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return code;
}

int
err_sys(struct err *e, int code, const char *fmt, ...)
{
	const char *why = strerrordesc_np(-code);
	va_list ap;
	size_t n;

	if (!e)
		return code;
	e->code = code;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	n = strlen(e->msg);
	snprintf(e->msg + n, sizeof(e->msg) - n, ": %s",
	    why ? why : "unknown error");
	return code;
}

int
err_wrap(struct err *e, int code, const char *fmt, ...)
{
	char inner[ERR_MSG_MAX];
	va_list ap;
	size_t n;

	if (!e)
		return code;
	memcpy(inner, e->msg, sizeof(inner));
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	n = strlen(e->msg);
	snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", inner);
	e->code = code;
	return code;
}
