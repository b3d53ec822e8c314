/*
 * The operational log: one event a line on stderr, as key=value text or JSON.
 * Only the layer that decides logs, once. Never keys, passwords or terminal
 * bytes. Values from outside are escaped here, so callers pass them raw.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include <stdbool.h>

enum log_level {
	LOG_ERR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG
};

/* Process-wide set-up; PROG ("berthd") and FORMAT_JSON are kept for good. */
void log_open(const char *prog, enum log_level level, bool format_json);
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/*
 * Sets an id that every later line of this process carries, such as "conn" or
 * "sid"; at most two, KEY and VALUE are copied (31 and 63 bytes).
 */
void log_set_id(const char *key, const char *value);

/* "err", "warn", "info", "debug" to the level; -EINVAL for anything else. */
int log_level_parse(const char *s, enum log_level *out);
const char *log_level_name(enum log_level level);

/*
 * Writes one line: time, level, prog, EVENT (a fixed word like
 * "session_created"), the ids, then pairs of const char * KEY, const char *
 * VALUE up to a NULL key. A NULL value is written as "-". One write(2), at most
 * 4 KiB: values are cut at 1023 bytes, pairs that do not fit are left out. Safe
 * in every thread.
 */
void log_event(enum log_level level, const char *event, ...)
    __attribute__((sentinel));

/* log_info("session_created", "sid", sid, "sandbox", name, NULL) */
#define log_err(...)   log_event(LOG_ERR, __VA_ARGS__)
#define log_warn(...)  log_event(LOG_WARN, __VA_ARGS__)
#define log_info(...)  log_event(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_event(LOG_DEBUG, __VA_ARGS__)

#endif
