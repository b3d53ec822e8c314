/*
 * Errors that people read: a code and one sentence, filled in by the callee on
 * the caller's stack. Library codes become one of these at the edge file of
 * the library and go no further. Knows nothing of berth; all processes.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#define ERR_MSG_MAX 256

struct err {
	int code;              /* negative errno; 0 while no error was set */
	char msg[ERR_MSG_MAX]; /* one sentence without a full stop */
};

/*
 * Stores CODE (a negative errno) and the formatted sentence in E, which may be
 * NULL. A sentence over ERR_MSG_MAX - 1 bytes is cut. Returns CODE, so that
 * callers write `return err_set(e, -EACCES, ...)`.
 */
int err_set(struct err *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Like err_set(), with ": " and the text of strerror(-CODE) appended. */
int err_sys(struct err *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Puts the formatted context and ": " before the sentence that E holds; CODE is
 * what the callee returned and is returned again. E may be NULL.
 */
int err_wrap(struct err *e, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
