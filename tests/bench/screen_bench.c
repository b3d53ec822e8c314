/*
 * The terminal engine beside libtsm: how fast each takes streams of four kinds
 * in two sizes, with 10,000 lines of history, in pieces of 64 KiB. With a side
 * (`engine` or `tsm`) it prints one JSON object of MB/s and of memory in KiB;
 * without one it takes turns and prints a JSON row for each stream, best and
 * median.
 *
 * Usage: screen_bench [SIDE] [-r ROUNDS] [-m MB] [-o STREAM]
 */
#include <libtsm.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/mem.h"
#include "screen/screen.h"

#define BENCH_PIECE   (64U << 10)
#define BENCH_LOOP    (4U << 20) /* bytes generated; then they come again */
#define BENCH_HISTORY 10000
#define BENCH_ROUNDS  99

static uint64_t bench_seed = 1;

static unsigned
bench_random(unsigned n)
{
	bench_seed =
	    bench_seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(bench_seed >> 33) % n;
}

__attribute__((format(printf, 2, 3))) static void
bench_put(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	uint8_t *to = buf_reserve(b, 512);
	int n;

	va_start(ap, fmt);
	n = vsnprintf((char *)to, 512, fmt, ap);
	va_end(ap);
	buf_commit(b, (size_t)n);
}

static const char *
bench_word(void)
{
	static const char *const words[] = { "request", "GET", "/api/v1/items",
		"accepted", "timeout", "worker", "in", "200", "connection",
		"cache", "user=alice", "retry", "3.142", "from", "10.0.0.17",
		"closed", "the", "deadbeef", "latency", "ms" };

	return words[bench_random(ARRAY_LEN(words))];
}

/* ---- streams ---- */

static void
bench_log(struct buf *b, unsigned cols, unsigned rows)
{
	static const char *const levels[] = { "INFO", "DEBUG", "WARN" };

	(void)cols;
	(void)rows;
	bench_put(b, "2024-05-%02uT12:%02u:%02u.%03uZ %s [%08x]",
	    1 + bench_random(28), bench_random(60), bench_random(60),
	    bench_random(1000), levels[bench_random(3)],
	    bench_random(1U << 30));
	for (unsigned n = 1 + bench_random(8); n; n--)
		bench_put(b, " %s", bench_word());
	bench_put(b, "\r\n");
}

static void
bench_sgr(struct buf *b, unsigned cols, unsigned rows)
{
	(void)cols;
	(void)rows;
	for (unsigned n = 6; n; n--) {
		switch (bench_random(4)) {
		case 0:
			bench_put(b, "\033[38;5;%um", bench_random(256));
			break;
		case 1:
			bench_put(b, "\033[38;2;%u;%u;%um", bench_random(256),
			    bench_random(256), bench_random(256));
			break;
		case 2:
			bench_put(b, "\033[1;%um", 31 + bench_random(7));
			break;
		default:
			bench_put(b, "\033[0;48;5;%um", bench_random(256));
			break;
		}
		bench_put(b, "%s %s ", bench_word(), bench_word());
	}
	bench_put(b, "\033[0m\r\n");
}

/* What editors, pagers and monitors do all day. */
static void
bench_full(struct buf *b, unsigned cols, unsigned rows)
{
	bench_put(b, "\033[?25l\033[H");
	for (unsigned row = 1; row < rows; row++) {
		unsigned col = 0;

		bench_put(b, "\033[%u;1H\033[38;5;%um%4u\033[m ", row,
		    bench_random(16), row + bench_random(1000));
		for (col = 5; col + 30 < cols;) {
			const char *word = bench_word();

			if (bench_random(4) == 0)
				bench_put(b, "\033[3%um%s\033[39m ",
				    1 + bench_random(7), word);
			else
				bench_put(b, "%s ", word);
			col += (unsigned)strlen(word) + 1;
		}
		bench_put(b, "\033[K");
	}
	bench_put(b, "\033[2;%ur\033[%u;1H\n\n\033[r", rows - 1, rows - 1);
	bench_put(b, "\033[%u;1H\033[7m%s %s\033[27m\033[K\033[?25h", rows,
	    bench_word(), bench_word());
}

static void
bench_cjk(struct buf *b, unsigned cols, unsigned rows)
{
	(void)cols;
	(void)rows;
	for (unsigned n = 8 + bench_random(20); n; n--) {
		uint32_t c;

		switch (bench_random(10)) {
		case 0:
			bench_put(b, "%s ", bench_word());
			continue;
		case 1: /* an emoji */
			c = 0x1f600 + bench_random(64);
			bench_put(b, "%c%c%c%c", 0xf0, 0x80 | (c >> 12 & 0x3f),
			    0x80 | (c >> 6 & 0x3f), 0x80 | (c & 0x3f));
			continue;
		case 2:
		case 3:
			c = 0xac00 + bench_random(11172);
			break;
		default:
			c = 0x4e00 + bench_random(20000);
			break;
		}
		bench_put(b, "%c%c%c", 0xe0 | c >> 12, 0x80 | (c >> 6 & 0x3f),
		    0x80 | (c & 0x3f));
	}
	bench_put(b, "\r\n");
}

static const struct bench_stream {
	const char *name;
	void (*make)(struct buf *b, unsigned cols, unsigned rows);
	unsigned cols, rows;
} bench_streams[] = {
	{ "log_80x24", bench_log, 80, 24 },
	{ "sgr_80x24", bench_sgr, 80, 24 },
	{ "full_80x24", bench_full, 80, 24 },
	{ "cjk_80x24", bench_cjk, 80, 24 },
	{ "log_200x50", bench_log, 200, 50 },
	{ "sgr_200x50", bench_sgr, 200, 50 },
	{ "full_200x50", bench_full, 200, 50 },
	{ "cjk_200x50", bench_cjk, 200, 50 },
};

/* ---- sides ---- */

static double
bench_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* What a side remembers, in bytes: what malloc() has given away. */
static size_t
bench_heap(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static size_t bench_used; /* by the side that ran last, with its history */

static double
bench_engine(const struct bench_stream *t, const struct buf *b, size_t total)
{
	size_t before = bench_heap();
	struct screen_config c = { .cols = t->cols,
		.rows = t->rows,
		.history_lines = BENCH_HISTORY,
		.history_bytes = 8U << 20 };
	struct screen *s = screen_new(&c);
	double start_s = bench_now_s();

	for (size_t done = 0, at = 0; done < total; done += BENCH_PIECE) {
		screen_write(s, buf_head(b) + at, BENCH_PIECE);
		at += BENCH_PIECE;
		if (at + BENCH_PIECE > buf_len(b))
			at = 0;
	}
	start_s = bench_now_s() - start_s;
	bench_used = bench_heap() - before;
	screen_free(s);
	return (double)total / 1e6 / start_s;
}

static void
bench_tsm_answer(struct tsm_vte *vte, const char *u8, size_t len, void *data)
{
	(void)vte;
	(void)u8;
	(void)len;
	(void)data;
}

static double
bench_tsm(const struct bench_stream *t, const struct buf *b, size_t total)
{
	size_t before = bench_heap();
	struct tsm_screen *s;
	struct tsm_vte *v;
	double start_s;

	if (tsm_screen_new(&s, NULL, NULL) < 0 ||
	    tsm_vte_new(&v, s, bench_tsm_answer, NULL, NULL, NULL) < 0 ||
	    tsm_screen_resize(s, t->cols, t->rows) < 0)
		abort();
	tsm_screen_set_max_sb(s, BENCH_HISTORY);
	start_s = bench_now_s();
	for (size_t done = 0, at = 0; done < total; done += BENCH_PIECE) {
		tsm_vte_input(v, (const char *)buf_head(b) + at, BENCH_PIECE);
		at += BENCH_PIECE;
		if (at + BENCH_PIECE > buf_len(b))
			at = 0;
	}
	start_s = bench_now_s() - start_s;
	bench_used = bench_heap() - before;
	tsm_vte_unref(v);
	tsm_screen_unref(s);
	return (double)total / 1e6 / start_s;
}

/* ---- what is printed ---- */

struct bench_args {
	const char *side, *only;
	unsigned rounds;
	size_t bytes;
};

static int
bench_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
bench_row(
    const struct bench_stream *t, double *ours, double *theirs, unsigned rounds)
{
	qsort(ours, rounds, sizeof(*ours), bench_compare);
	qsort(theirs, rounds, sizeof(*theirs), bench_compare);
	printf("{\"stream\": \"%s\", \"engine\": [%.1f, %.1f],"
	       " \"tsm\": [%.1f, %.1f], \"ratio\": %.2f}\n",
	    t->name, ours[rounds - 1], ours[rounds / 2], theirs[rounds - 1],
	    theirs[rounds / 2], ours[rounds / 2] / theirs[rounds / 2]);
	fflush(stdout);
}

static void
bench_stream(const struct bench_stream *t, const struct bench_args *args,
    const char *comma)
{
	double ours[BENCH_ROUNDS], theirs[BENCH_ROUNDS];
	struct buf b = { 0 };

	while (buf_len(&b) < BENCH_LOOP)
		t->make(&b, t->cols, t->rows);
	if (args->side) {
		bool is_engine = strcmp(args->side, "engine") == 0;
		double rate = is_engine ? bench_engine(t, &b, args->bytes)
					: bench_tsm(t, &b, args->bytes);

		printf("%s\"%s\": %.1f, \"%s_kib\": %zu", comma, t->name, rate,
		    t->name, bench_used / 1024);
	} else {
		for (unsigned i = 0; i < args->rounds; i++) {
			ours[i] = bench_engine(t, &b, args->bytes);
			theirs[i] = bench_tsm(t, &b, args->bytes);
		}
		bench_row(t, ours, theirs, args->rounds);
	}
	buf_release(&b);
}

/* A screen that shows two lines. */
static void
bench_idle(const char *side)
{
	struct buf b = { 0 };

	while (buf_len(&b) < BENCH_PIECE)
		bench_put(&b, "\033[H\033[1mtwo\033[m\r\nlines");
	if (strcmp(side, "engine") == 0)
		bench_engine(&bench_streams[0], &b, BENCH_PIECE);
	else
		bench_tsm(&bench_streams[0], &b, BENCH_PIECE);
	buf_release(&b);
	printf("{\"idle_kib\": %zu", bench_used / 1024);
}

static unsigned
bench_number(const char *p, unsigned max)
{
	unsigned long v = strtoul(p, NULL, 10);

	return v < 1 ? 1 : v > max ? max : (unsigned)v;
}

int
main(int argc, char **argv)
{
	struct bench_args args = { .rounds = 5, .bytes = 32U << 20 };
	const char *comma = "";
	int opt;

	while ((opt = getopt(argc, argv, "r:m:o:")) != -1) {
		if (opt == 'r')
			args.rounds = bench_number(optarg, BENCH_ROUNDS);
		else if (opt == 'm')
			args.bytes = (size_t)bench_number(optarg, 1024) << 20;
		else if (opt == 'o')
			args.only = optarg;
		else
			return 2;
	}
	args.side = optind < argc ? argv[optind] : NULL;
	if (args.side) {
		bench_idle(args.side);
		comma = ", ";
	}
	for (size_t i = 0; i < ARRAY_LEN(bench_streams); i++) {
		const char *name = bench_streams[i].name;

		if (args.only && strncmp(name, args.only, strlen(args.only)))
			continue;
		bench_stream(&bench_streams[i], &args, comma);
		comma = ", ";
	}
	if (args.side)
		printf("}\n");
	return 0;
}
