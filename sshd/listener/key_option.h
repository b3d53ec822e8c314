/*
 * The options before a key in authorized_keys, as a table. Used by key_line.c
 * alone; pure.
 */
#ifndef SSHD_LISTENER_KEY_OPTION_H
#define SSHD_LISTENER_KEY_OPTION_H

struct err;
struct key_line;

/*
 * Reads the options at *TEXT into K, in order, and moves *TEXT to the blank or
 * the end behind them. -EINVAL with a sentence for an unknown option, bad
 * quoting, a bad value or a second value where only one makes sense.
 */
int key_options_parse(const char **text, struct key_line *k, struct err *e);

#endif
