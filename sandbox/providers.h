/* The configuration's providers of commands. In berthd. */
#ifndef SANDBOX_PROVIDERS_H
#define SANDBOX_PROVIDERS_H

struct conf;
struct err;

/*
 * Registers a provider for each section [provider NAME] of C that is not there;
 * after sandbox_init(). 0 or a negative errno with a sentence.
 */
int sandbox_register_commands(const struct conf *c, struct err *e);

#endif
