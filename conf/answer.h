/*
 * The value of session.answer, as text and as a struct; inside conf/ only.
 */
#ifndef CONF_ANSWER_H
#define CONF_ANSWER_H

struct conf_answer;
struct err;

#define ANSWER_DEFAULT "berth(" BERTH_VERSION "),fg=#d0d0d0,bg=#000000"

/*
 * "NAME[,fg=#rrggbb][,bg=#rrggbb][,cursor=#rrggbb]": the name is 1 to 63
 * letters, digits and ._+-() of ASCII. A colour that is left out is that of
 * the default, the cursor's the foreground. 0, or -EINVAL with what is wrong.
 */
int answer_parse(const char *text, struct conf_answer *out, struct err *e);

/* All of it as text that answer_parse() takes; the caller frees. */
char *answer_format(const struct conf_answer *a);

#endif
