/*
 * Hosts with ports as text, and lists of patterns for them: "host:port" or
 * "[v6]:port", joined by commas. Pure functions; nothing is looked up.
 */
#ifndef BASE_ENDPOINT_H
#define BASE_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#define ENDPOINT_HOST_MAX 256                     /* with its NUL */
#define ENDPOINT_TEXT_MAX (ENDPOINT_HOST_MAX + 8) /* "[host]:65535" */

/*
 * HOST as patterns are compared with it: lower case, without the dot at its
 * end, a numeric address in its one spelling. Cut when it is too long.
 */
void endpoint_canonical(const char *host, char out[ENDPOINT_HOST_MAX]);

/* "host:port", with brackets around an IPv6 address. HOST is not escaped. */
void endpoint_text(
    const char *host, uint16_t port, char out[ENDPOINT_TEXT_MAX]);

/*
 * True if TEXT is one pattern: a host or its glob (`*` and `?`), a colon, and a
 * port, its glob or `*`. May begin with `!`.
 */
bool endpoint_is_pattern(const char *text);

/*
 * True if one of the globs of LIST matches and none that begins with `!` does.
 */
bool endpoint_list_allows(const char *list, const char *host, uint16_t port);

/* True if a pattern of LIST that begins with `!` matches. */
bool endpoint_list_denies(const char *list, const char *host, uint16_t port);

/*
 * The rule of OpenSSH's permitopen: hosts of LIST are literal, but for a lone
 * `*`, and so are ports.
 */
bool endpoint_list_permits(const char *list, const char *host, uint16_t port);

#endif
