/*
 * Bounds: tables that fill up are collected and degrade, memory stays flat under
 * floods, a screen that does little takes little.
 */
#include <stdio.h>

#include "screen/intern.h"
#include "tests/unit/screen_fixture.h"
#include "tests/unit/unit.h"

static void
put_links(struct screen *s, unsigned from, unsigned n)
{
	for (unsigned i = from; i < from + n; i++) {
		char link[64];

		snprintf(link, sizeof(link), "\033]8;;http://host/%u\007x", i);
		screen_put(s, link);
	}
}

static void
links_that_are_gone_make_room(void **state)
{
	struct screen *s = screen_of(80, 24);
	uint64_t age = s->tables_age;

	(void)state;
	put_links(s, 0, 100000);
	/* the newest ones are on the screen, with what they lead to */
	for (unsigned i = 0; i < 80; i++) {
		const struct cell *c = buffer_row(s, &s->main, 10) + i;

		assert_int_not_equal(c->ext, 0);
		assert_memory_equal(
		    s->links[s->exts[c->ext].link].uri, "http://host/", 12);
	}
	assert_true(s->n_links <= 16384);
	assert_true(s->tables_age > age);
	screen_free(s);
}

static void
links_in_use_survive_a_flood_of_others(void **state)
{
	struct screen *s = screen_of(80, 24);
	const struct cell *c = buffer_row(s, &s->main, 0);

	(void)state;
	screen_put(s, "\033]8;id=a;http://stays/\007here\033]8;;\007\033[2;24r"
		      "\033[2H");
	put_links(s, 0, 100000);
	assert_string_equal(
	    s->links[s->exts[c->ext].link].uri, "http://stays/");
	screen_free(s);
}

static void
more_links_than_there_is_room_for_are_left_out(void **state)
{
	struct screen *s = screen_of(1000, 200);
	unsigned with = 0;

	(void)state;
	put_links(s, 0, 200000);
	assert_true(s->n_links <= INTERN_LINKS);
	for (unsigned r = 0; r < 200; r++)
		for (unsigned c = 0; c < 1000; c++) {
			const struct cell *at = buffer_row(s, &s->main, r) + c;

			assert_int_equal(at->ch, 'x');
			with += at->ext != 0;
		}
	assert_true(with > 8000);
	screen_free(s);
}

static void
clusters_that_are_gone_make_room(void **state)
{
	struct screen *s = screen_of(80, 24);

	(void)state;
	for (unsigned i = 0; i < 1000000; i++) {
		uint8_t text[7];
		unsigned n = 0;

		text[n++] = 'a';
		n += print_encode(0x300 + i % 64, text + n);
		n += print_encode(0x300 + i / 64 % 64, text + n);
		screen_write(s, text, n);
	}
	for (unsigned i = 0; i < 80; i++)
		assert_true(buffer_row(s, &s->main, 20)[i].ch & CELL_CLUSTER);
	assert_true(s->n_clusters <= 16384);
	screen_free(s);
}

static void
a_cluster_ends_at_its_cap(void **state)
{
	struct screen *s = screen_of(80, 24);
	const struct cell *c = buffer_row(s, &s->main, 0);

	(void)state;
	screen_put(s, "a");
	for (unsigned i = 0; i < 1000; i++)
		screen_put(s, "\314\201");
	assert_int_equal(s->cursor.col, 1);
	assert_true(c->ch & CELL_CLUSTER);
	assert_int_equal(s->clusters[c->ch & ~CELL_CLUSTER].len, 31);
	screen_free(s);
}

static void
unlike_underlines_are_bounded(void **state)
{
	struct screen *s = screen_of(80, 24);

	(void)state;
	for (unsigned i = 0; i < 200000; i++) {
		char sgr[40];

		snprintf(sgr, sizeof(sgr), "\033[58;2;%u;%u;%umx", i & 255,
		    i >> 8 & 255, i >> 16);
		screen_put(s, sgr);
	}
	assert_true(s->n_exts <= 16384);
	assert_int_equal(s->exts[s->cursor.pen.ext].underline,
	    COLOUR_RGB | (199999 & 255) << 16 | (199999 & 0xff00) |
		199999 >> 16);
	screen_free(s);
}

static void
the_other_grid_comes_when_it_is_used(void **state)
{
	struct screen *s = screen_of(80, 24);

	(void)state;
	assert_null(s->alt.rows);
	screen_put(s, "text\033[m");
	assert_null(s->alt.rows);
	screen_put(s, "\033[?1049h");
	assert_non_null(s->alt.rows);
	screen_free(s);
}

/* Noise that meets everything, the same for the same seed. */
static void
put_noise(struct screen *s, unsigned n, unsigned seed)
{
	static const char *const parts[] = { "text and more text ", "\r\n",
		"\033[%um", "\033[%u;%uH", "\033[38;2;%u;%u;1m",
		"\033]8;;http://h/%u\007", "\033]2;title %u\007",
		"\346\274\242\345\255\227", "e\314\201\314\202", "\033[%uX",
		"\033[%u@", "\033[%uS", "\033[?1049h", "\033[?1049l", "\033[J",
		"\033[>%uu", "\033[22t", "\033]4;%u;red\007", "\033[%ub",
		"\033[58;5;%um", "\0337", "\033]7;/%u\007" };

	while (n--) {
		char part[64];
		unsigned a, b;

		seed = seed * 1103515245 + 12345;
		a = seed >> 16 & 255;
		b = seed >> 24;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(part, sizeof(part),
		    parts[(seed >> 8) % ARRAY_LEN(parts)], a, b);
#pragma GCC diagnostic pop
		screen_put(s, part);
	}
}

/* Rounds of noise and no more: what the first ones took is enough for all. */
static void
memory_is_flat_under_noise(void **state)
{
	struct screen *s = screen_of(80, 24);
	size_t high = 0;

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		size_t now;

		put_noise(s, 20000, i);
		now = history_bytes(s->history) +
		      s->cap_clusters * sizeof(struct cluster) +
		      s->cap_links * sizeof(struct cell_link) +
		      s->cap_exts * sizeof(struct cell_ext);
		if (i < 10)
			high = now > high ? now : high;
		else
			assert_true(now <= high + (128 << 10));
	}
	screen_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_that_are_gone_make_room),
		cmocka_unit_test(links_in_use_survive_a_flood_of_others),
		cmocka_unit_test(
		    more_links_than_there_is_room_for_are_left_out),
		cmocka_unit_test(clusters_that_are_gone_make_room),
		cmocka_unit_test(a_cluster_ends_at_its_cap),
		cmocka_unit_test(unlike_underlines_are_bounded),
		cmocka_unit_test(the_other_grid_comes_when_it_is_used),
		cmocka_unit_test(memory_is_flat_under_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
