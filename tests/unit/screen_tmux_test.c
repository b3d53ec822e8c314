/*
 * The terminal engine beside tmux, a third opinion, through a real terminal: a
 * pane of the same size shows a file, and what tmux says it holds is what the
 * engine holds. The server has a socket of its own and ends with the test.
 */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/screen_fixture.h"
#include "tests/unit/unit.h"

#define TMUX_STREAMS    16
#define TMUX_GROWN      12
#define TMUX_DEADLINE_S 20

/*
 * %u is a small number. tmux inserts and deletes lines outside of margins too,
 * and leaves the cursor where it is; DECSTBM homes it without DECOM.
 */
static const char *const tmux_pieces[] = {
	"some words of text ",
	"x",
	"\346\274\242\345\255\227",
	"\355\225\234\352\270\200 ",
	"e\314\201",
	"\360\237\231\202",
	"\r\n",
	"\r\n",
	"\r",
	"\n",
	"\033[%u;%uH",
	"\033[H",
	"\033[%uA",
	"\033[%uB",
	"\033[%uC",
	"\033[%uD",
	"\033[%uG",
	"\033[%ud",
	"\033[K",
	"\033[1K",
	"\033[2K",
	"\033[J",
	"\033[1J",
	"\033[2J",
	"\033[%uX",
	"\033[%u@",
	"\033[%uP",
	"\033[?6l\033[r\n\n\033[%uL",
	"\033[?6l\033[r\n\n\033[%uM",
	"\033[?6l\033[%u;20r",
	"\033[?6l\033[r",
	"\033D",
	"\033M",
	"\033E",
	"\b",
	"\t",
	"\033H",
	"\033[g",
	"\0337\033[%u;%uHthere and\0338",
	"\033[%uS",
	"\033[%uT",
	"\033[4h",
	"\033[4l",
	"\033[?6h",
	"\033[?6l",
	"\033[1;%um",
	"\033[48;5;%um",
	"\033[m",
	"\033]2;title\007",
	"\033P1$r0m\033\\",
	"\033[?1049h\033[2J\033[Hfull\r\nscreen\033[K\033[?1049l",
	"y\033[%ub",
};

/* For screens that grow: no regions, for tmux keeps what leaves any of them. */
static const char *const tmux_grow_pieces[] = {
	"some words of text ",
	"x",
	"\346\274\242\345\255\227",
	"a rather long piece of text that makes lines wrap now and then ",
	"e\314\201",
	"\r\n",
	"\r\n",
	"\r\n",
	"\n",
	"\033[%uA",
	"\033[%uC",
	"\033[%u;%uH",
	"\033[20H",
	"\033[J",
	"\033[K",
	"\033[1K",
	"\033[2K",
	"\033[%uX",
	"\033[%uS",
	"\033[1;%um",
	"\033[m",
	"\033[?1049h\033[2J\033[Hfull\r\nscreen\033[K\033[?1049l",
};

static char tmux_dir[] = "/tmp/screen_tmux.XXXXXX";

/* What a command prints, at most N - 1 bytes. */
static void tmux_run(char *out, size_t n, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void
tmux_run(char *out, size_t n, const char *fmt, ...)
{
	char args[400], line[600];
	size_t len = 0, got;
	va_list ap;
	FILE *f;

	va_start(ap, fmt);
	vsnprintf(args, sizeof(args), fmt, ap);
	va_end(ap);
	snprintf(line, sizeof(line),
	    "unset TMUX; exec tmux -S %s/socket -f /dev/null -u %s", tmux_dir,
	    args);
	f = popen(line, "r");
	assert_non_null(f);
	while (len + 1 < n && (got = fread(out + len, 1, n - 1 - len, f)) > 0)
		len += got;
	out[len] = '\0';
	pclose(f);
}

/* Blanks at the end of lines and empty lines at the end go. */
static void
tmux_trim(char *text)
{
	char *to = text, *kept = text;

	for (const char *p = text;; p++) {
		if (*p == '\n' || !*p)
			to = kept;
		if (!*p)
			break;
		*to++ = *p;
		if (*p != ' ')
			kept = to;
	}
	while (to > text && to[-1] == '\n')
		to--;
	*to = '\0';
}

static void
tmux_make(
    struct buf *b, unsigned seed, const char *const *pieces, size_t n_pieces)
{
	for (unsigned i = 0; i < 150; i++) {
		char piece[64];

		seed = seed * 1103515245 + 12345;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(piece, sizeof(piece), pieces[(seed >> 9) % n_pieces],
		    1 + (seed >> 20) % 12, 1 + (seed >> 26) % 50);
#pragma GCC diagnostic pop
		buf_put(b, piece, strlen(piece));
	}
}

/* What the engine shows of B and with ROWS rows then: text, cursor. */
static void
tmux_expect(const struct buf *b, unsigned rows, char *out, size_t n)
{
	struct screen *s = screen_of(60, 20);
	char *text, *p;

	screen_write(s, buf_head(b), buf_len(b));
	screen_resize(s, 60, rows);
	text = buffer_text(s, s->now);
	for (p = text; *p; p++)
		if (*p == '|')
			*p = '\n';
	snprintf(out, n, "%s\n%u,%u", text, s->cursor.col, s->cursor.row);
	free(text);
	screen_free(s);
}

static void
tmux_look(unsigned stream, char *out, size_t n)
{
	size_t len;
	char *at;

	tmux_run(out, n, "capture-pane -p -t s%u", stream);
	tmux_trim(out);
	len = strlen(out);
	tmux_run(out + len, n - len,
	    "display-message -p -t s%u '\n#{cursor_x},#{cursor_y}'", stream);
	tmux_trim(out);
	at = strstr(out + len, "\n60,"); /* its pending wrap */
	if (at)
		memcpy(at, "\n59,", 4);
}

static void
tmux_print(const struct buf *b)
{
	for (const uint8_t *p = buf_head(b); p < buf_head(b) + buf_len(b); p++)
		if (*p < 0x20 || *p > 0x7e || *p == '\\')
			print_error("\\%03o", *p);
		else
			print_error("%c", *p);
	print_error("\n");
}

/* Polls: what cat printed reaches the pane some time. */
static bool
tmux_shows(unsigned stream, const struct buf *b, unsigned rows)
{
	char theirs[16384], ours[16384];
	time_t end = time(NULL) + TMUX_DEADLINE_S;

	tmux_expect(b, rows, ours, sizeof(ours));
	do {
		tmux_look(stream, theirs, sizeof(theirs));
		if (strcmp(theirs, ours) == 0)
			return true;
	} while (time(NULL) < end);
	tmux_print(b);
	print_error("stream %u, %u rows\n--- ours\n%s\n--- tmux\n%s\n---\n",
	    stream, rows, ours, theirs);
	return false;
}

static void
tmux_store(const char *path, const struct buf *b)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fwrite(buf_head(b), 1, buf_len(b), f);
	assert_int_equal(fclose(f), 0);
}

/* A pane that shows B; its session is called s and STREAM. */
static void
tmux_open(unsigned stream, const struct buf *b)
{
	char out[256], path[64];

	snprintf(path, sizeof(path), "%s/%u", tmux_dir, stream);
	tmux_store(path, b);
	tmux_run(out, sizeof(out),
	    "new-session -d -s s%u -x 60 -y 20 'stty raw -echo;"
	    " cat %s; exec sleep 300' \\; set -g status off"
	    " \\; set -g scroll-on-clear off \\; resize-window -x 60 -y 20",
	    stream, path);
}

static void
tmux_close(unsigned stream)
{
	char out[256], path[64];

	tmux_run(out, sizeof(out), "kill-session -t s%u", stream);
	snprintf(path, sizeof(path), "%s/%u", tmux_dir, stream);
	unlink(path);
}

static void
a_pane_shows_the_same(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (unsigned i = 0; i < TMUX_STREAMS; i++) {
		struct buf b = { 0 };

		tmux_make(&b, i, tmux_pieces, ARRAY_LEN(tmux_pieces));
		tmux_open(i, &b);
		wrong += !tmux_shows(i, &b, 20);
		tmux_close(i);
		buf_release(&b);
	}
	assert_int_equal(wrong, 0);
}

static void
a_taller_pane_shows_the_same(void **state)
{
	unsigned wrong = 0;

	(void)state;
	for (unsigned i = 0; i < TMUX_GROWN; i++) {
		unsigned rows = 20 + 1 + i * 7 % 40;
		struct buf b = { 0 };
		char out[256];

		tmux_make(&b, i, tmux_grow_pieces, ARRAY_LEN(tmux_grow_pieces));
		tmux_open(i, &b);
		if (tmux_shows(i, &b, 20)) {
			tmux_run(out, sizeof(out),
			    "resize-window -t s%u -x 60 -y %u", i, rows);
			wrong += !tmux_shows(i, &b, rows);
		} else {
			wrong++;
		}
		tmux_close(i);
		buf_release(&b);
	}
	assert_int_equal(wrong, 0);
}

/* One session stays: a server whose last one ends would end, and race the next. */
static int
tmux_begin(void **state)
{
	char out[64];

	(void)state;
	if (!mkdtemp(tmux_dir))
		return -1;
	tmux_run(out, sizeof(out), "new-session -d -s stays 'exec sleep 600'");
	return 0;
}

static int
tmux_end(void **state)
{
	char out[64], path[64];

	(void)state;
	tmux_run(out, sizeof(out), "kill-server 2>/dev/null");
	snprintf(path, sizeof(path), "%s/socket", tmux_dir);
	unlink(path);
	return rmdir(tmux_dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pane_shows_the_same),
		cmocka_unit_test(a_taller_pane_shows_the_same),
	};

	return cmocka_run_group_tests(tests, tmux_begin, tmux_end);
}
