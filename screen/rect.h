/*
 * Operations on rectangles of the screen: DECFRA, DECERA, DECSERA, DECCRA. In
 * origin mode their corners are relative to the margins. Each costs a pass over
 * the screen at most.
 */
#ifndef SCREEN_RECT_H
#define SCREEN_RECT_H

struct parser;
struct screen;

/* DECFRA: character; top; left; bottom; right. */
void rect_fill(struct screen *s, const struct parser *p);

/* DECERA and DECSERA: top; left; bottom; right. */
void rect_erase(struct screen *s, const struct parser *p);
void rect_erase_selective(struct screen *s, const struct parser *p);

/* DECCRA: top; left; bottom; right; page; to top; to left; page. */
void rect_copy(struct screen *s, const struct parser *p);

#endif
