/*
 * What a viewer is sent that attaches in the middle of a stream: reads a stream
 * from a file and cut points, one a line in rising order, from stdin. For each
 * cut writes seven records, each a u32 length (big-endian) and the bytes: the
 * prologue, the history as it is pushed away, the repaint, the unfinished
 * rest, what restores the viewer's terminal, the screen as text, and the
 * picture for a terminal of another size, which is one from cut to cut.
 *
 * Usage: cut COLS ROWS LINES PICTURE-COLS PICTURE-ROWS FILE <POINTS
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "screen/picture.h"
#include "screen/screen.h"

#define CUT_FILE_MAX (16U << 20)

struct cut {
	struct screen *screen;
	struct picture *picture;
	unsigned cols, rows, picture_cols, picture_rows;
	const uint8_t *stream;
	size_t len, at;
};

static unsigned
cut_number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || *end || n > CUT_FILE_MAX) {
		fprintf(stderr, "cut: bad number %s\n", text);
		exit(2);
	}
	return (unsigned)n;
}

static void
cut_read(const char *path, struct buf *out)
{
	FILE *f = fopen(path, "rb");
	size_t n;

	if (!f) {
		perror(path);
		exit(1);
	}
	n = fread(buf_reserve(out, CUT_FILE_MAX), 1, CUT_FILE_MAX, f);
	buf_commit(out, n);
	fclose(f);
}

/* Writes what BUF holds as one record and empties it. */
static void
cut_record(struct buf *b)
{
	struct buf head = { 0 };

	buf_put_u32(&head, (uint32_t)buf_len(b));
	fwrite(buf_head(&head), 1, buf_len(&head), stdout);
	if (buf_len(b))
		fwrite(buf_head(b), 1, buf_len(b), stdout);
	buf_release(&head);
	buf_clear(b);
}

/* In pieces, as a session would send it. */
static void
cut_history(const struct cut *c, struct buf *out)
{
	uint64_t from = screen_history_start(c->screen);
	uint64_t end = screen_history_end(c->screen);
	uint64_t lines = end - from;

	while (from < end)
		from = screen_history(c->screen, from, 4096, out);
	screen_push(c->rows, lines, out);
}

static void
cut_show(struct cut *c)
{
	uint64_t pending = screen_pending(c->screen);
	struct buf out = { 0 };

	screen_prologue(c->rows, &out);
	cut_record(&out);
	cut_history(c, &out);
	cut_record(&out);
	screen_repaint(c->screen, &out);
	cut_record(&out);
	if (pending)
		buf_put(&out, c->stream + c->at - pending, pending);
	cut_record(&out);
	screen_restore(c->screen, &out);
	cut_record(&out);
	screen_text(c->screen, 0, &out);
	cut_record(&out);
	picture_paint(
	    c->picture, c->screen, c->picture_cols, c->picture_rows, &out);
	cut_record(&out);
	buf_release(&out);
}

static void
cut_run(struct cut *c)
{
	char line[32];

	while (fgets(line, sizeof(line), stdin)) {
		size_t to = strtoul(line, NULL, 10);

		if (to > c->len || to < c->at) {
			fprintf(stderr, "cut: %zu is out of order\n", to);
			exit(2);
		}
		screen_write(c->screen, c->stream + c->at, to - c->at);
		c->at = to;
		cut_show(c);
	}
}

int
main(int argc, char **argv)
{
	struct buf stream = { 0 };
	struct screen_config config = { .foreground = 0xffffff,
		.cursor_colour = SCREEN_NO_COLOUR };
	struct cut c = { 0 };

	if (argc != 7) {
		fprintf(stderr, "usage: cut COLS ROWS LINES PICTURE-COLS "
				"PICTURE-ROWS FILE <POINTS\n");
		return 2;
	}
	config.cols = c.cols = cut_number(argv[1]);
	config.rows = c.rows = cut_number(argv[2]);
	config.history_lines = cut_number(argv[3]);
	config.history_bytes = 1U << 24;
	c.picture_cols = cut_number(argv[4]);
	c.picture_rows = cut_number(argv[5]);
	cut_read(argv[6], &stream);
	c.stream = buf_head(&stream);
	c.len = buf_len(&stream);
	c.screen = screen_new(&config);
	c.picture = picture_new();
	cut_run(&c);
	picture_free(c.picture);
	screen_free(c.screen);
	buf_release(&stream);
	return fflush(stdout) ? 1 : 0;
}
