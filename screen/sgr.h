/* Select graphic rendition: the pen. Pure. */
#ifndef SCREEN_SGR_H
#define SCREEN_SGR_H

struct parser;
struct screen;

/* Applies the parameters of P to the pen. */
void sgr_apply(struct screen *s, const struct parser *p);

/* The underline colour and the link of the pen; 0 for none. */
void sgr_set_ext(struct screen *s, unsigned underline, unsigned link);

#endif
