/* Lines of a terminal's stream; see log_text.h. */
#include "cli/log_text.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"

/* Which sequences show and leave the alternate screen (xterm). */
static const struct {
	const char *text;
	bool is_hidden;
} log_text_screens[] = {
	{ "\033[?1049h", true },
	{ "\033[?1049l", false },
	{ "\033[?1047h", true },
	{ "\033[?1047l", false },
	{ "\033[?47h", true },
	{ "\033[?47l", false },
};

/* The line without what is no character, or no printable one. */
static void
log_text_clean(const struct buf *in, struct buf *out)
{
	const uint8_t *p = buf_head(in);
	size_t n = buf_len(in);

	while (n) {
		int len = text_utf8_len(p, n);
		size_t step = len > 0 ? (size_t)len : 1;
		bool is_c1 = len == 2 && p[0] == 0xc2 && p[1] < 0xa0;

		if (len > 0 && !is_c1)
			buf_put(out, p, step);
		p += step;
		n -= step;
	}
	buf_put_u8(out, '\0');
}

static void
log_text_line(struct log_text *t)
{
	struct buf clean = { 0 };

	log_text_clean(&t->line, &clean);
	t->fn(t->ms, (const char *)buf_head(&clean), t->arg);
	buf_release(&clean);
	buf_clear(&t->line);
	t->has_begun = false;
	t->has_cr = false;
}

/* Takes the last character away. */
static void
log_text_back(struct log_text *t)
{
	while (buf_len(&t->line) > 0) {
		uint8_t c = t->line.data[--t->line.end];

		if ((c & 0xc0) != 0x80)
			break;
	}
}

static void
log_text_char(struct log_text *t, uint8_t c)
{
	if (c == '\n') {
		log_text_line(t);
		return;
	}
	if (c == '\r') {
		t->has_cr = true;
		return;
	}
	if (c == '\b')
		log_text_back(t);
	if ((c < ' ' && c != '\t') || c == 0x7f)
		return;
	/* What comes now is written over what was there. */
	if (t->has_cr)
		buf_clear(&t->line);
	t->has_cr = false;
	buf_put_u8(&t->line, c);
	if (buf_len(&t->line) >= LOG_TEXT_LINE_MAX && (c & 0xc0) != 0xc0)
		log_text_line(t);
}

/* A sequence is whole: does it show another screen? */
static void
log_text_sequence(struct log_text *t)
{
	for (size_t i = 0; i < ARRAY_LEN(log_text_screens); i++) {
		const char *text = log_text_screens[i].text;

		if (strlen(text) == t->n_sequence &&
		    memcmp(text, t->sequence, t->n_sequence) == 0)
			t->is_hidden = log_text_screens[i].is_hidden;
	}
	t->n_sequence = 0;
}

void
log_text_feed(struct log_text *t, const void *p, size_t n, int64_t ms)
{
	const uint8_t *c = p;

	for (; n; n--, c++) {
		bool was_text = t->scan.state == VT_SCAN_GROUND;

		vt_scan_byte(&t->scan, *c);
		if (was_text && t->scan.state == VT_SCAN_GROUND) {
			if (t->is_hidden)
				continue;
			if (!t->has_begun)
				t->ms = ms;
			t->has_begun = true;
			log_text_char(t, *c);
			continue;
		}
		/* One that is longer is none that matters. */
		if (t->n_sequence < sizeof(t->sequence))
			t->sequence[t->n_sequence++] = (char)*c;
		if (t->scan.state == VT_SCAN_GROUND)
			log_text_sequence(t);
	}
}

void
log_text_end(struct log_text *t)
{
	if (buf_len(&t->line) > 0)
		log_text_line(t);
}

void
log_text_release(struct log_text *t)
{
	buf_release(&t->line);
}
