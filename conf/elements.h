/*
 * What stands in a list of the configuration: paths, addresses, patterns. Pure;
 * each function checks one element and brings it into its canonical form.
 */
#ifndef CONF_ELEMENTS_H
#define CONF_ELEMENTS_H

struct err;

/* A new string that the caller frees, or NULL with what is wrong in E. */
typedef char *(*element_fn)(const char *text, const char *dir, struct err *e);

/*
 * TEXT as an absolute path without "./", leading "../" or a slash at its end;
 * a relative one starts at DIR, which is absolute. Refuses one that ends in a
 * blank.
 */
char *element_path(const char *text, const char *dir, struct err *e);

/* "host:port" or "[v6]:port", port 0 to 65535; DIR is not used. */
char *element_address(const char *text, const char *dir, struct err *e);

/* A pattern of names of environment variables; DIR is not used. */
char *element_glob(const char *text, const char *dir, struct err *e);

/* A pattern of hosts with ports, see base/endpoint.h; DIR is not used. */
char *element_endpoint(const char *text, const char *dir, struct err *e);

/*
 * The comma-separated list TEXT, each element through FN, joined again without
 * blanks into *OUT, which the caller frees. -E2BIG over CONF_LIST_MAX elements,
 * -EINVAL for an empty or a wrong one.
 */
int elements_parse(const char *text, const char *dir, element_fn fn, char **out,
    struct err *e);

#endif
