/* The operational log; see log.h. One buffer on the stack, one write a line. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"

#define LOG_LINE_MAX 4096
#define LOG_IDS_MAX  2

struct log_id {
	char key[32];
	char value[64];
};

static struct {
	enum log_level level;
	bool is_json;
	char prog[32];
	struct log_id ids[LOG_IDS_MAX];
	int n_ids;
} log_state = { .level = LOG_INFO, .prog = "berth" };

static const char *const log_names[] = {
	[LOG_ERR] = "err",
	[LOG_WARN] = "warn",
	[LOG_INFO] = "info",
	[LOG_DEBUG] = "debug",
};

struct log_line {
	char text[LOG_LINE_MAX];
	size_t len;
	bool is_cut; /* something did not fit; pairs are left out whole */
};

void
log_open(const char *prog, enum log_level level, bool format_json)
{
	log_state.level = level;
	log_state.is_json = format_json;
	snprintf(log_state.prog, sizeof(log_state.prog), "%s", prog);
}

void
log_set_level(enum log_level level)
{
	log_state.level = level;
}

enum log_level
log_get_level(void)
{
	return log_state.level;
}

void
log_set_id(const char *key, const char *value)
{
	struct log_id *id;

	if (log_state.n_ids == LOG_IDS_MAX)
		return;
	id = &log_state.ids[log_state.n_ids++];
	snprintf(id->key, sizeof(id->key), "%s", key);
	snprintf(id->value, sizeof(id->value), "%s", value);
}

int
log_level_parse(const char *s, enum log_level *out)
{
	for (size_t i = 0; i < ARRAY_LEN(log_names); i++) {
		if (strcmp(s, log_names[i]) == 0) {
			*out = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

const char *
log_level_name(enum log_level level)
{
	return log_names[level];
}

static void
log_put(struct log_line *l, const char *s)
{
	size_t room = sizeof(l->text) - 3 - l->len;
	size_t n = strnlen(s, room);

	l->is_cut |= s[n] != '\0';
	memcpy(l->text + l->len, s, n);
	l->len += n;
}

static bool
log_is_plain(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c <= ' ' || c >= 0x7f || c == '"' || c == '=' || c == '\\')
			return false;
	}
	return true;
}

static void
log_pair_text(struct log_line *l, const char *key, const char *value)
{
	char safe[1024];

	if (log_state.is_json) {
		text_escape_json(value, strlen(value), safe, sizeof(safe));
		log_put(l, ",\"");
		log_put(l, key);
		log_put(l, "\":\"");
		log_put(l, safe);
		log_put(l, "\"");
		return;
	}
	log_put(l, " ");
	log_put(l, key);
	log_put(l, "=");
	if (strlen(value) < sizeof(safe) && log_is_plain(value)) {
		log_put(l, value);
		return;
	}
	text_escape(value, strlen(value), safe, sizeof(safe));
	log_put(l, "\"");
	log_put(l, safe);
	log_put(l, "\"");
}

/* A line in JSON must stay JSON: what does not fit is left out whole. */
static void
log_pair(struct log_line *l, const char *key, const char *value)
{
	size_t start = l->len;

	if (l->is_cut)
		return;
	log_pair_text(l, key, value ? value : "-");
	if (l->is_cut)
		l->len = start;
}

static void
log_prefix(struct log_line *l, enum log_level level, const char *event)
{
	struct timespec ts;
	struct tm tm;
	char stamp[64], head[160];
	size_t n;

	clock_gettime(CLOCK_REALTIME, &ts);
	gmtime_r(&ts.tv_sec, &tm);
	n = strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(stamp + n, sizeof(stamp) - n, ".%03ldZ", ts.tv_nsec / 1000000);
	snprintf(head, sizeof(head),
	    log_state.is_json
		? "{\"time\":\"%s\",\"level\":\"%s\",\"prog\":\"%s\","
		  "\"pid\":%d,\"event\":\"%s\""
		: "%s %s %s[%d] %s",
	    stamp, log_names[level], log_state.prog, (int)getpid(), event);
	log_put(l, head);
	for (int i = 0; i < log_state.n_ids; i++)
		log_pair(l, log_state.ids[i].key, log_state.ids[i].value);
}

void
log_event(enum log_level level, const char *event, ...)
{
	struct log_line l;
	const char *key;
	va_list ap;
	ssize_t n;

	if (level > log_state.level)
		return;
	l.len = 0;
	l.is_cut = false;
	log_prefix(&l, level, event);
	va_start(ap, event);
	while ((key = va_arg(ap, const char *)))
		log_pair(&l, key, va_arg(ap, const char *));
	va_end(ap);
	if (log_state.is_json)
		l.text[l.len++] = '}';
	l.text[l.len++] = '\n';
	n = write(STDERR_FILENO, l.text, l.len);
	(void)n; /* a full or closed stderr must not stop the server */
}
