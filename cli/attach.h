/*
 * What verbs share that hand this terminal to a process of a sandbox: what of
 * our environment goes along, and what the end of it means.
 */
#ifndef CLI_ATTACH_H
#define CLI_ATTACH_H

#include <jansson.h>

struct viewer_outcome;

/* What of our environment a shell would want; berthd has the last word. */
json_t *attach_env(void);

/*
 * Says on stderr how O ended, if that is news, and turns it into the exit code:
 * that of the process, 128 and its signal, or 125.
 */
int attach_report(const struct viewer_outcome *o);

#endif
