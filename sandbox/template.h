/* What sandboxes are made from. In berthd. */
#ifndef SANDBOX_TEMPLATE_H
#define SANDBOX_TEMPLATE_H

struct conf;
struct err;
struct sandbox_spec;

/*
 * Fills what the template NAME decides in IO: provider, root, image, network,
 * limits.
 * Built in are auto, native and local; the configuration has more. -ENOENT with
 * a sentence that lists what there is.
 */
int sandbox_template(const struct conf *c, const char *name,
    struct sandbox_spec *io, struct err *e);

#endif
