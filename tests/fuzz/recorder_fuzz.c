/*
 * What a recording becomes of any output: through the recorder's queue into its
 * file, in any pieces, with resizes, gaps, times that go back and a cap. Every
 * line is JSON in valid UTF-8, times never go back, index rows point at events,
 * and the text is what a decoder written from the standard makes of the bytes.
 * Input: flags, u16 cap, then steps.
 */
#include <jansson.h>
#include <stdbool.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "sessions/keeper/recorder_file.h"
#include "sessions/keeper/recorder_queue.h"
#include "tests/fuzz/fuzz.h"

#define RECORDER_STEPS 200
#define RECORDER_TEXT  (3U << 20)

enum recorder_flags {
	FLAG_CAP = 1u << 0,
	FLAG_NAMES = 1u << 1,
	FLAG_INDEX = 1u << 2,
	FLAG_TITLE = 1u << 3,
	FLAG_MARKERS = 1u << 4
};

struct tape {
	struct recorder_queue q;
	struct recorder_file f;
	struct recorder_config config;
	int64_t now_us;
	struct buf bytes; /* all output that was not given as lost */
	uint64_t lost;    /* given as such */
	bool has_markers;
	struct buf markers; /* as they should be read, each with a LF */
	struct recorder_index rows[256];
	unsigned n_rows;
};

/* ---- what goes in -------------------------------------------------------- */

static void
tape_rows(struct tape *t)
{
	for (unsigned i = 0; i < t->f.n_rows_due; i++) {
		if (t->n_rows < ARRAY_LEN(t->rows))
			t->rows[t->n_rows++] = t->f.rows_due[i];
	}
	t->f.n_rows_due = 0;
}

static uint64_t
tape_drain_marker(struct tape *t, const struct recorder_event *ev, uint64_t at)
{
	char text[RECORDER_MARKER_MAX + 1];

	FUZZ_CHECK(ev->arg <= RECORDER_MARKER_MAX);
	for (size_t done = 0, n; done < ev->arg; done += n) {
		const uint8_t *p =
		    recorder_queue_bytes(&t->q, at + done, ev->arg - done, &n);

		memcpy(text + done, p, n);
	}
	text[ev->arg] = '\0';
	recorder_file_marker(&t->f, ev->t_us, text);
	return at + ev->arg;
}

/* As the recorder's thread does it. */
static void
tape_drain(struct tape *t)
{
	uint64_t at = t->q.taken;

	t->q.taken = t->q.head;
	while (at < t->q.taken) {
		struct recorder_event ev;
		uint64_t left;

		at = recorder_queue_event(&t->q, at, &ev);
		left = ev.kind == RECORDER_OUTPUT ? ev.arg : 0;
		while (left) {
			size_t n =
			    left < CAST_EVENT_MAX ? left : CAST_EVENT_MAX;
			const uint8_t *p =
			    recorder_queue_bytes(&t->q, at, n, &n);

			recorder_file_output(&t->f, ev.t_us, p, n);
			at += n;
			left -= n;
		}
		if (ev.kind == RECORDER_RESIZE)
			recorder_file_resize(&t->f, ev.t_us,
			    (unsigned)(ev.arg >> 16), ev.arg & 0xffff);
		else if (ev.kind == RECORDER_GAP)
			recorder_file_gap(&t->f, ev.t_us, ev.arg);
		else if (ev.kind == RECORDER_MARKER)
			at = tape_drain_marker(t, &ev, at);
		tape_rows(t);
	}
	recorder_queue_consume(&t->q, at);
	FUZZ_CHECK(recorder_queue_room(&t->q) == RECORDER_QUEUE);
}

static void
tape_output(struct tape *t, const uint8_t *p, size_t n)
{
	struct recorder_event ev = {
		.t_us = t->now_us, .kind = RECORDER_OUTPUT, .arg = n
	};

	if (!n)
		return;
	if (n > recorder_queue_room(&t->q))
		tape_drain(t);
	if (!recorder_queue_extend(&t->q, t->now_us, p, n))
		recorder_queue_push(&t->q, &ev, p);
	buf_put(&t->bytes, p, n);
}

/* Up to 48 bytes of the input, or them again and again. */
static void
tape_put(struct tape *t, struct fuzz_input *in, bool is_big)
{
	size_t len, n = is_big ? fuzz_u16(in) : 0;
	const uint8_t *word = fuzz_take(in, 1 + fuzz_u8(in) % 48, &len);
	uint8_t *p;

	if (!is_big || !len) {
		tape_output(t, word, len);
		return;
	}
	p = xmalloc(n);
	for (size_t i = 0; i < n; i++)
		p[i] = word[i % len];
	tape_output(t, p, n);
	free(p);
}

static void
tape_push(struct tape *t, enum recorder_kind kind, uint64_t arg)
{
	struct recorder_event ev = { t->now_us, arg, kind };

	if (!recorder_queue_room(&t->q))
		tape_drain(t);
	recorder_queue_push(&t->q, &ev, NULL);
}

/* The star tells it from the recorder's own markers. */
static void
tape_mark(struct tape *t, struct fuzz_input *in)
{
	autofree char *name = fuzz_str(in);
	autofree char *text = xasprintf("*%s", name);
	char shown[RECORDER_MARKER_MAX + 1];
	struct recorder_event ev = { t->now_us, 0, RECORDER_MARKER };

	ev.arg = text_escape_json(text, strlen(text), shown, sizeof(shown));
	if (!recorder_queue_takes_marker(&t->q, ev.arg))
		tape_drain(t);
	recorder_queue_push(&t->q, &ev, shown);
	buf_put(&t->markers, shown, ev.arg);
	buf_put(&t->markers, "\n", 1);
}

static void
tape_step(struct tape *t, struct fuzz_input *in)
{
	unsigned cols, lost;

	switch (fuzz_u8(in) % 8) {
	case 0:
	case 1:
		tape_put(t, in, false);
		break;
	case 2:
		tape_put(t, in, true);
		break;
	case 3:
		cols = 1 + fuzz_u8(in);
		tape_push(t, RECORDER_RESIZE,
		    (uint64_t)cols << 16 | (1 + fuzz_u8(in)));
		break;
	case 4:
		lost = 1 + fuzz_u8(in);
		tape_push(t, RECORDER_GAP, lost);
		t->lost += lost;
		break;
	case 5: /* clocks do go back between threads */
		t->now_us += ((int64_t)fuzz_u16(in) - 8192) * 100;
		break;
	case 6:
		tape_drain(t);
		recorder_file_write(&t->f);
		tape_rows(t);
		break;
	default:
		if (t->has_markers)
			tape_mark(t, in);
		else
			tape_drain(t);
	}
}

/* ---- what came out ------------------------------------------------------- */

/* Unicode 3.9, best practice, by the table of well-formed sequences. */
static size_t
tape_well_formed(const uint8_t *p, size_t n, bool *is_whole)
{
	static const uint8_t rows[][4] = { /* first..last, second..last */
		{ 0xc2, 0xdf, 0x80, 0xbf }, { 0xe0, 0xe0, 0xa0, 0xbf },
		{ 0xe1, 0xec, 0x80, 0xbf }, { 0xed, 0xed, 0x80, 0x9f },
		{ 0xee, 0xef, 0x80, 0xbf }, { 0xf0, 0xf0, 0x90, 0xbf },
		{ 0xf1, 0xf3, 0x80, 0xbf }, { 0xf4, 0xf4, 0x80, 0x8f }
	};
	size_t want, len = 1;

	*is_whole = p[0] < 0x80;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (p[0] < rows[i][0] || p[0] > rows[i][1])
			continue;
		want = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
		if (n > 1 && p[1] >= rows[i][2] && p[1] <= rows[i][3])
			for (len = 2; len < want && len < n; len++)
				if ((p[len] & 0xc0) != 0x80)
					break;
		*is_whole = len == want;
	}
	return len;
}

static void
tape_decode(const struct buf *bytes, struct buf *out)
{
	const uint8_t *p = bytes->data ? buf_head(bytes) : NULL;

	for (size_t i = 0, n = buf_len(bytes); i < n;) {
		bool is_whole;
		size_t len = tape_well_formed(p + i, n - i, &is_whole);

		buf_put(out, is_whole ? (const char *)p + i : "\xef\xbf\xbd",
		    is_whole ? len : 3);
		i += len;
	}
}

struct tape_reading {
	double last_s;
	struct buf text, markers;
	unsigned n_lines, n_gaps, n_ends, n_rows;
	bool was_end;
};

static void
tape_read_marker(struct tape_reading *r, const char *text)
{
	unsigned long long n;

	if (text[0] == '*') {
		buf_put(&r->markers, text, strlen(text));
		buf_put(&r->markers, "\n", 1);
		return;
	}
	if (sscanf(text, "gap: %llu bytes not recorded", &n) == 1) {
		r->n_gaps++;
		return;
	}
	FUZZ_CHECK(sscanf(text, "end: limit of %llu bytes reached", &n) == 1);
	r->n_ends++;
}

static void
tape_read_event(const struct tape *t, struct tape_reading *r,
    const json_t *line, uint64_t offset)
{
	const char *code = json_string_value(json_array_get(line, 1));
	const json_t *data = json_array_get(line, 2);
	double s = json_number_value(json_array_get(line, 0));
	unsigned cols, rows;

	FUZZ_CHECK(json_is_array(line) && json_array_size(line) == 3);
	FUZZ_CHECK(json_is_number(json_array_get(line, 0)) && code);
	FUZZ_CHECK(json_is_string(data) && s >= r->last_s && s >= 0);
	FUZZ_CHECK(r->n_ends == 0); /* nothing behind the end */
	r->last_s = s;
	if (code[0] == 'o')
		buf_put(&r->text, json_string_value(data),
		    json_string_length(data));
	else if (code[0] == 'm')
		tape_read_marker(r, json_string_value(data));
	else
		FUZZ_CHECK(code[0] == 'r' && sscanf(json_string_value(data),
						 "%ux%u", &cols, &rows) == 2);
	for (unsigned i = 0; i < t->n_rows; i++) {
		if (t->rows[i].offset != offset)
			continue;
		FUZZ_CHECK(code[0] == 'o');
		FUZZ_CHECK(t->rows[i].t_ms <= (uint64_t)(s * 1000 + 0.001));
		r->n_rows++;
	}
}

static void
tape_read_header(const struct tape *t, const json_t *line)
{
	const json_t *title = json_object_get(line, "title");

	FUZZ_CHECK(json_integer_value(json_object_get(line, "version")) == 2);
	FUZZ_CHECK(json_integer_value(json_object_get(line, "width")) == 80);
	FUZZ_CHECK(json_is_object(json_object_get(line, "env")));
	FUZZ_CHECK(json_is_string(title) == (t->config.title != NULL));
}

static void
tape_read(const struct tape *t, const struct buf *file, struct tape_reading *r)
{
	const char *p = (const char *)buf_head(file), *at = p;
	const char *end = p + buf_len(file);

	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		json_error_t je;
		json_t *line;

		FUZZ_CHECK(nl && nl - at < CAST_LINE_MAX);
		line = json_loadb(at, (size_t)(nl - at),
		    JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &je);
		FUZZ_CHECK(line);
		if (r->n_lines++ == 0)
			tape_read_header(t, line);
		else
			tape_read_event(t, r, line, (uint64_t)(at - p));
		json_decref(line);
		at = nl + 1;
	}
}

static void
tape_compare(const struct tape *t, const struct buf *file)
{
	struct tape_reading r = { 0 };
	struct buf want = { 0 };
	size_t n;

	tape_read(t, file, &r);
	tape_decode(&t->bytes, &want);
	n = buf_len(&r.text);
	FUZZ_CHECK(r.n_lines >= 2 && r.n_rows == t->n_rows);
	FUZZ_CHECK(r.n_ends == t->f.is_capped);
	FUZZ_CHECK(n <= buf_len(&want));
	FUZZ_CHECK(
	    n == 0 || memcmp(buf_head(&r.text), buf_head(&want), n) == 0);
	FUZZ_CHECK(buf_len(&r.markers) <= buf_len(&t->markers));
	FUZZ_CHECK(buf_len(&r.markers) == 0 ||
		   memcmp(buf_head(&r.markers), buf_head(&t->markers),
		       buf_len(&r.markers)) == 0);
	if (!t->f.is_capped)
		FUZZ_CHECK(n == buf_len(&want) &&
			   buf_len(&r.markers) == buf_len(&t->markers));
	else
		FUZZ_CHECK(
		    buf_len(file) <= t->config.max_bytes || r.n_lines == 2);
	buf_release(&want);
	buf_release(&r.text);
	buf_release(&r.markers);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct fuzz_input in = { p, n };
	struct tape *t = xcalloc(1, sizeof(*t));
	unsigned flags = fuzz_u8(&in), cap = fuzz_u16(&in);
	int fd = memfd_create("tape", MFD_CLOEXEC), copy;
	autofree char *name = NULL;
	struct buf file = { 0 };

	if (flags & FLAG_TITLE)
		name = fuzz_str(&in);
	t->has_markers = flags & FLAG_MARKERS;
	t->now_us = clock_mono_us();
	t->config = (struct recorder_config){ .cols = 80,
		.rows = 24,
		.title = name,
		.shell = flags & FLAG_NAMES ? "/bin/sh" : NULL,
		.term = flags & FLAG_NAMES ? name : NULL,
		.wall_s = 1700000000,
		.start_us = t->now_us,
		.index_ms = flags & FLAG_INDEX ? 1 : 10000,
		.max_bytes = flags & FLAG_CAP ? 8192 + cap : 0 };
	FUZZ_CHECK(fd >= 0 && (copy = dup(fd)) >= 0);
	recorder_queue_init(&t->q);
	recorder_file_init(&t->f, fd, &t->config);
	for (unsigned i = 0;
	     i < RECORDER_STEPS && in.n && buf_len(&t->bytes) < RECORDER_TEXT;
	     i++)
		tape_step(t, &in);
	tape_drain(t);
	recorder_file_close(&t->f, t->now_us);
	tape_rows(t);
	FUZZ_CHECK(lseek(copy, 0, SEEK_SET) == 0);
	FUZZ_CHECK(fd_read_all(copy, 64U << 20, &file) == 0);
	FUZZ_CHECK(buf_len(&file) == t->f.size);
	tape_compare(t, &file);
	close(copy);
	buf_release(&file);
	buf_release(&t->bytes);
	buf_release(&t->markers);
	recorder_file_release(&t->f);
	recorder_queue_release(&t->q);
	free(t);
	return 0;
}
