/*
 * Memory and cleanup: the xmalloc family ends the process when memory is out,
 * the auto* attributes free at the end of a scope, take_* hand over visibly.
 * Every size that a peer names is checked against a limit before it gets here.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

/* Like malloc(), calloc(), realloc(), strdup(), strndup(); never NULL. */
void *xmalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t n) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
char *xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
char *xstrndup(const char *s, size_t n)
    __attribute__((malloc, returns_nonnull));
void *xmemdup(const void *p, size_t n) __attribute__((malloc, returns_nonnull));

/* Like asprintf(), but returns the string; the caller frees it. */
char *xasprintf(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), returns_nonnull));

/* A copy of the NULL-terminated vector V for strv_free(); NULL of NULL. */
char **strv_copy(char *const *v);

/* Frees a NULL-terminated vector of strings that were allocated one by one. */
void strv_free(char **v);

static inline void
mem_autofree(void *p)
{
	free(*(void **)p);
}

static inline void
mem_autoclose(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* `autofree char *s = ...;` frees s when the scope ends. */
#define autofree __attribute__((cleanup(mem_autofree)))

/* `autoclose int fd = -1;` closes fd when the scope ends, unless it is < 0. */
#define autoclose __attribute__((cleanup(mem_autoclose)))

/* Gives the pointer away: the value of P, which becomes NULL. */
#define take_ptr(p)                                  \
	({                                           \
		__typeof__(p) *take_at_ = &(p);      \
		__typeof__(p) take_val_ = *take_at_; \
		*take_at_ = NULL;                    \
		take_val_;                           \
	})

/* Gives the descriptor away: the value of *FD, which becomes -1. */
static inline int
take_fd(int *fd)
{
	int v = *fd;

	*fd = -1;
	return v;
}

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* The struct TYPE whose member MEMBER PTR points at. */
#define container_of(ptr, type, member) \
	((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
