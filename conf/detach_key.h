/*
 * The value of session.detach_key, as text and as keys; inside conf/ only. What
 * is typed is compared in the keeper.
 */
#ifndef CONF_DETACH_KEY_H
#define CONF_DETACH_KEY_H

struct conf_detach_key;
struct err;

/*
 * "none", "ctrl-]", "ctrl-a d": names are ctrl-X, one character of printable
 * ASCII, esc. The first key has ctrl and is none that a terminal sends for Tab,
 * Enter or Escape. 0, or -EINVAL with what is wrong in E.
 */
int detach_key_parse(
    const char *text, struct conf_detach_key *out, struct err *e);

/* The same keys as text that detach_key_parse() takes; the caller frees. */
char *detach_key_format(const struct conf_detach_key *k);

#endif
