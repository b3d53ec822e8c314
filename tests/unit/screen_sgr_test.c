/*
 * The pen and what else a program sets: SGR in all its spellings, modes, titles,
 * colours, links, kitty's keyboard, DECSTR and RIS.
 */
#include <stdio.h>

#include "tests/unit/screen_fixture.h"
#include "tests/unit/unit.h"

#define UNDERLINE(n) ((n) << CELL_UNDERLINE_SHIFT)

struct pen_row {
	const char *in;
	unsigned attr;
	uint32_t fg, bg, underline;
};

static const struct pen_row pen_rows[] = {
	{ "", 0, 0, 0, 0 },
	{ "\033[1;2;3;5;7;8;9;53m",
	    CELL_BOLD | CELL_FAINT | CELL_ITALIC | CELL_BLINK | CELL_INVERSE |
		CELL_CONCEAL | CELL_STRIKE | CELL_OVERLINE,
	    0, 0, 0 },
	{ "\033[1;2;3;5;7;8;9;53m\033[22;23;25;27;28;29;55m", 0, 0, 0, 0 },
	{ "\033[1;31;42m\033[m", 0, 0, 0, 0 },
	{ "\033[1;31;42m\033[0m", 0, 0, 0, 0 },
	{ "\033[1;31;42m\033[;4m", UNDERLINE(1), 0, 0, 0 },
	{ "\033[4m", UNDERLINE(1), 0, 0, 0 },
	{ "\033[21m", UNDERLINE(2), 0, 0, 0 },
	{ "\033[4:3m", UNDERLINE(3), 0, 0, 0 },
	{ "\033[4:5;1m", UNDERLINE(5) | CELL_BOLD, 0, 0, 0 },
	{ "\033[4:3m\033[4:0m", 0, 0, 0, 0 },
	{ "\033[4:3m\033[24m", 0, 0, 0, 0 },
	{ "\033[4:9m", 0, 0, 0, 0 },
	{ "\033[31;47m", 0, COLOUR_INDEXED | 1, COLOUR_INDEXED | 7, 0 },
	{ "\033[97;100m", 0, COLOUR_INDEXED | 15, COLOUR_INDEXED | 8, 0 },
	{ "\033[31;47m\033[39;49m", 0, 0, 0, 0 },
	{ "\033[38;5;200;1m", CELL_BOLD, COLOUR_INDEXED | 200, 0, 0 },
	{ "\033[38:5:200;1m", CELL_BOLD, COLOUR_INDEXED | 200, 0, 0 },
	{ "\033[38;2;1;2;3;1m", CELL_BOLD, COLOUR_RGB | 0x010203, 0, 0 },
	{ "\033[48:2:1:2:3;1m", CELL_BOLD, 0, COLOUR_RGB | 0x010203, 0 },
	{ "\033[48:2::1:2:3m", 0, 0, COLOUR_RGB | 0x010203, 0 },
	{ "\033[38:2:7:1:2:3m", 0, COLOUR_RGB | 0x010203, 0, 0 },
	{ "\033[58;5;9m", 0, 0, 0, COLOUR_INDEXED | 9 },
	{ "\033[58:2::1:2:3m", 0, 0, 0, COLOUR_RGB | 0x010203 },
	{ "\033[58;5;9m\033[59m", 0, 0, 0, 0 },
	{ "\033[58;5;9m\033[m", 0, 0, 0, 0 },
	{ "\033[38;5;300m", 0, 0, 0, 0 },
	{ "\033[38m", 0, 0, 0, 0 },
	{ "\033[38;5m", 0, 0, 0, 0 },
	{ "\033[38;2;1m", 0, 0, 0, 0 },
	{ "\033[38:5m\033[1m", CELL_BOLD, 0, 0, 0 },
	{ "\033[1;999;3m", CELL_BOLD | CELL_ITALIC, 0, 0, 0 },
	{ "\033[1\"q\033[m", CELL_PROTECTED, 0, 0, 0 },
	{ "\033[>1m", 0, 0, 0, 0 },
	{ "\033[?1m", 0, 0, 0, 0 },
	{ "\0337\033[1;31m\0338", 0, 0, 0, 0 },
	/* more parameters than there is room for: the first ones count */
	{ "\033[1;3;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0;0"
	  ";1;0;0;0m",
	    CELL_BOLD, 0, 0, 0 },
};

static void
sgr_sets_the_pen(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pen_rows); i++) {
		const struct pen_row *r = &pen_rows[i];
		struct screen *s = screen_of(10, 4);
		const struct cell *pen = &s->cursor.pen;
		uint32_t underline;

		screen_put(s, r->in);
		underline = pen->ext ? s->exts[pen->ext].underline : 0;
		if (pen->attr != r->attr || pen->fg != r->fg ||
		    pen->bg != r->bg || underline != r->underline)
			fail_msg("row %zu: %x %x %x %x", i, pen->attr, pen->fg,
			    pen->bg, underline);
		screen_free(s);
	}
}

static void
what_is_printed_has_the_pen(void **state)
{
	struct screen *s = screen_of(10, 4);
	const struct cell *c = buffer_row(s, &s->main, 0);

	(void)state;
	screen_put(s, "\033[1;31ma\033[m\346\274\242\033[44m\033[K");
	assert_int_equal(c[0].attr, CELL_BOLD);
	assert_int_equal(c[0].fg, COLOUR_INDEXED | 1);
	assert_int_equal(c[1].attr, CELL_WIDE);
	assert_int_equal(c[1].ch, 0x6f22);
	assert_int_equal(c[2].attr, CELL_TAIL);
	assert_int_equal(c[2].ch, 0);
	/* what is erased keeps the background and nothing else */
	assert_int_equal(c[3].bg, COLOUR_INDEXED | 4);
	assert_int_equal(c[9].bg, COLOUR_INDEXED | 4);
	screen_put(s, "\033[1;7m\033[4H\n");
	c = buffer_row(s, &s->main, 3);
	assert_int_equal(c[9].bg, COLOUR_INDEXED | 4);
	assert_int_equal(c[9].attr, 0);
	screen_free(s);
}

static void
modes_have_their_defaults_and_change(void **state)
{
	struct screen *s = screen_of(10, 4);

	(void)state;
	for (unsigned m = 0; m < MODE_COUNT; m++) {
		const struct mode_info *i = mode_info(m);
		char on[32], off[32], save[32], restore[32];
		const char *dec = i->is_private ? "?" : "";

		snprintf(on, sizeof(on), "\033[%s%uh", dec, i->number);
		snprintf(off, sizeof(off), "\033[%s%ul", dec, i->number);
		snprintf(save, sizeof(save), "\033[?%us", i->number);
		snprintf(restore, sizeof(restore), "\033[?%ur", i->number);
		assert_int_not_equal(i->number, 0);
		assert_int_equal(mode_is_on(s, m), i->is_on);
		screen_put(s, on);
		assert_true(mode_is_on(s, m));
		if (i->is_private) {
			screen_put(s, save);
			screen_put(s, off);
			screen_put(s, restore);
			assert_true(mode_is_on(s, m));
		}
		screen_put(s, off);
		assert_false(mode_is_on(s, m));
	}
	screen_put(s, "\033=");
	assert_true(mode_is_on(s, MODE_KEYPAD));
	screen_put(s, "\033>");
	assert_false(mode_is_on(s, MODE_KEYPAD));
	screen_free(s);
}

static void
mouse_tracking_and_encoding_are_one_of_many(void **state)
{
	struct screen *s = screen_of(10, 4);

	(void)state;
	screen_put(s, "\033[?1000;1006h");
	assert_int_equal(s->mouse, 1000);
	assert_int_equal(s->mouse_encoding, 1006);
	screen_put(s, "\033[?1000;1006s\033[?1003h\033[?1015h");
	assert_int_equal(s->mouse, 1003);
	assert_int_equal(s->mouse_encoding, 1015);
	screen_put(s, "\033[?1000;1006r");
	assert_int_equal(s->mouse, 1000);
	assert_int_equal(s->mouse_encoding, 1006);
	screen_put(s, "\033[?1000l\033[?1006l");
	assert_int_equal(s->mouse, 0);
	assert_int_equal(s->mouse_encoding, 0);
	screen_free(s);
}

static void
titles_are_clean_capped_and_stacked(void **state)
{
	struct screen *s = screen_of(10, 4);
	char longest[1024];

	(void)state;
	screen_put(s, "\033]0;both\007");
	assert_string_equal(screen_title(s), "both");
	assert_string_equal(s->titles.icon, "both");
	screen_put(s, "\033]2;a;b\033\\\033]1;icon\033\\");
	assert_string_equal(screen_title(s), "a;b");
	assert_string_equal(s->titles.icon, "icon");
	screen_put(s, "\033[22t\033]0;x\007\033[22;2t\033]0;y\007\033[23t");
	assert_string_equal(screen_title(s), "x");
	screen_put(s, "\033[23t");
	assert_string_equal(screen_title(s), "a;b");
	assert_string_equal(s->titles.icon, "icon");
	screen_put(s, "\033[23t");
	assert_string_equal(screen_title(s), "a;b");
	for (unsigned i = 0; i < 100; i++)
		screen_put(s, "\033[22t");
	assert_int_equal(s->titles.depth, TITLE_DEPTH);
	/* controls go, what is not UTF-8 is replaced */
	screen_put(s, "\033]2;a\001b\302\205c\377d\303\007");
	assert_string_equal(screen_title(s), "abc\357\277\275d\357\277\275");
	/* cut at a character's boundary */
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "\033]2;", 4);
	memcpy(longest + 4 + TITLE_MAX - 1, "\303\251", 2);
	memcpy(longest + 600, "\007", 2);
	screen_put(s, longest);
	assert_int_equal(strlen(screen_title(s)), TITLE_MAX - 1);
	screen_put(s, "\033]2;\007");
	assert_string_equal(screen_title(s), "");
	screen_free(s);
}

static void
an_overlong_string_is_dropped_whole(void **state)
{
	struct screen *s = screen_of(10, 4);

	(void)state;
	screen_put(s, "\033]2;short\007\033]2;");
	for (unsigned i = 0; i < 1000; i++)
		screen_put(s, "0123456789");
	screen_put(s, "\007x\033[m");
	assert_string_equal(screen_title(s), "short");
	screen_put(s, "\033]2;");
	for (unsigned i = 0; i < 1000; i++)
		screen_put(s, "0123456789");
	screen_put(s, "\033\\\0337");
	assert_string_equal(screen_title(s), "short");
	assert_true(s->main.has_saved);
	screen_free(s);
}

static void
colours_are_parsed(void **state)
{
	static const struct {
		const char *spec;
		uint32_t colour;
	} rows[] = { { "rgb:ff/80/00", 0xff8000 },
		{ "rgb:ffff/8080/0000", 0xff8000 }, { "rgb:f/8/0", 0xff8800 },
		{ "#ff8000", 0xff8000 }, { "#f80", 0xf08000 },
		{ "#ffff80800000", 0xff8080 >> 0 }, { "Red", 0xff0000 },
		{ "nonsense", SCREEN_NO_COLOUR },
		{ "rgb:ff/80", SCREEN_NO_COLOUR },
		{ "rgb:ff/80/0/1", SCREEN_NO_COLOUR },
		{ "rgb:gg/80/00", SCREEN_NO_COLOUR },
		{ "#ff80", SCREEN_NO_COLOUR }, { "?", SCREEN_NO_COLOUR } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct screen *s = screen_of(10, 4);
		char in[100];
		uint32_t expected = rows[i].colour;

		if (strcmp(rows[i].spec, "#ffff80800000") == 0)
			expected = 0xff8000;
		snprintf(in, sizeof(in), "\033]11;%s\033\\\033]4;7;%s\007",
		    rows[i].spec, rows[i].spec);
		screen_put(s, in);
		if (s->dynamic[1] != expected)
			fail_msg("%s: %x", rows[i].spec, s->dynamic[1]);
		if (expected != SCREEN_NO_COLOUR)
			assert_int_equal(s->palette[7], expected);
		else
			assert_null(s->palette);
		screen_put(s, "\033]111\007\033]104;7\007");
		assert_int_equal(s->dynamic[1], SCREEN_NO_COLOUR);
		if (s->palette)
			assert_int_equal(s->palette[7], SCREEN_NO_COLOUR);
		screen_put(s, "\033]104\007");
		assert_null(s->palette);
		screen_free(s);
	}
}

static void
several_colours_in_one_string(void **state)
{
	struct screen *s = screen_of(10, 4);

	(void)state;
	screen_put(s, "\033]10;#111111;?;#222222\007");
	assert_int_equal(s->dynamic[0], 0x111111);
	assert_int_equal(s->dynamic[1], SCREEN_NO_COLOUR);
	assert_int_equal(s->dynamic[2], 0x222222);
	screen_put(s, "\033]4;1;#333333;2;#444444;999;#555555\007");
	assert_int_equal(s->palette[1], 0x333333);
	assert_int_equal(s->palette[2], 0x444444);
	screen_free(s);
}

static const struct cell_link *
link_at(const struct screen *s, unsigned col)
{
	const struct cell *c = buffer_row(s, s->now, 0) + col;

	return c->ext && s->exts[c->ext].link ? &s->links[s->exts[c->ext].link]
					      : NULL;
}

static void
links_belong_to_cells(void **state)
{
	struct screen *s = screen_of(10, 4);

	(void)state;
	screen_put(
	    s, "\033]8;x=1:id=me;http://h/;a\033\\a\033[58;5;1mb\033[mc");
	screen_put(s, "\033]8;;\033\\d\033]8;;http://h/;a\007e");
	assert_string_equal(link_at(s, 0)->uri, "http://h/;a");
	assert_string_equal(link_at(s, 0)->id, "me");
	assert_ptr_equal(link_at(s, 1), link_at(s, 0));
	assert_ptr_equal(link_at(s, 2), link_at(s, 0));
	assert_null(link_at(s, 3));
	assert_string_equal(link_at(s, 4)->id, "");
	assert_string_equal(
	    s->links[s->exts[s->cursor.pen.ext].link].uri, "http://h/;a");
	screen_free(s);
}

static void
the_working_directory_is_kept(void **state)
{
	struct screen *s = screen_of(10, 4);

	(void)state;
	screen_put(s, "\033]7;file://host/tmp\033\\");
	assert_string_equal(s->cwd, "file://host/tmp");
	screen_free(s);
}

static void
kitty_stacks_are_per_screen(void **state)
{
	struct screen *s = screen_of(10, 4);

	(void)state;
	screen_put(s, "\033[=5u\033[>1u\033[>3u");
	assert_int_equal(kitty_flags(&s->main.kitty), 3);
	screen_put(s, "\033[?1049h");
	assert_int_equal(kitty_flags(&s->now->kitty), 0);
	screen_put(s, "\033[>8u\033[=1;2u");
	assert_int_equal(kitty_flags(&s->now->kitty), 9);
	screen_put(s, "\033[=8;3u");
	assert_int_equal(kitty_flags(&s->now->kitty), 1);
	screen_put(s, "\033[?1049l");
	assert_int_equal(kitty_flags(&s->now->kitty), 3);
	screen_put(s, "\033[<u");
	assert_int_equal(kitty_flags(&s->now->kitty), 1);
	screen_put(s, "\033[<1u");
	assert_int_equal(kitty_flags(&s->now->kitty), 5);
	screen_put(s, "\033[<9u");
	assert_int_equal(kitty_flags(&s->now->kitty), 0);
	for (unsigned i = 0; i < 100; i++)
		screen_put(s, "\033[>1u");
	assert_int_equal(s->main.kitty.n, KITTY_DEPTH);
	screen_free(s);
}

static void
keys_and_cursor_shape(void **state)
{
	struct screen *s = screen_of(10, 4);

	(void)state;
	screen_put(s, "\033[>4;2m\033[3 q");
	assert_int_equal(s->modify_keys[4], 2);
	assert_int_equal(s->cursor_shape, 3);
	screen_put(s, "\033[>4m\033[9 q");
	assert_int_equal(s->modify_keys[4], 0);
	assert_int_equal(s->cursor_shape, 3);
	screen_put(s, "\033[>4;1m\033[>4n\033[ q");
	assert_int_equal(s->modify_keys[4], 0);
	assert_int_equal(s->cursor_shape, 0);
	screen_free(s);
}

static void
ris_makes_it_new(void **state)
{
	struct screen *s = screen_of(10, 4), *fresh = screen_of(10, 4);

	(void)state;
	screen_put(s,
	    "\033[1;31mx\033]2;t\007\033]4;1;red\007\033]8;;u\007y"
	    "\033[?1049h\033[?1h\033[?1000;1006h\033[2;3r\033[>1u"
	    "\033[3 q\033(0\016\033[3g\0337\033[>4;2m\n\n\n\n\n\033c");
	assert_true(s->now == &s->main);
	assert_memory_equal(&s->cursor, &fresh->cursor, sizeof(s->cursor));
	assert_int_equal(s->modes, fresh->modes);
	assert_memory_equal(s->tabs, fresh->tabs, 10);
	assert_memory_equal(
	    s->main.cells, fresh->main.cells, 40 * sizeof(struct cell));
	assert_int_equal(s->mouse, 0);
	assert_int_equal(s->main.kitty.n, 0);
	assert_int_equal(s->cursor_shape, 0);
	assert_int_equal(s->modify_keys[4], 0);
	assert_false(s->main.has_saved);
	assert_string_equal(screen_title(s), "");
	assert_null(s->palette);
	assert_null(s->alt.rows);
	assert_int_equal(s->n_links, 0);
	screen_free(s);
	screen_free(fresh);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sgr_sets_the_pen),
		cmocka_unit_test(what_is_printed_has_the_pen),
		cmocka_unit_test(modes_have_their_defaults_and_change),
		cmocka_unit_test(mouse_tracking_and_encoding_are_one_of_many),
		cmocka_unit_test(titles_are_clean_capped_and_stacked),
		cmocka_unit_test(an_overlong_string_is_dropped_whole),
		cmocka_unit_test(colours_are_parsed),
		cmocka_unit_test(several_colours_in_one_string),
		cmocka_unit_test(links_belong_to_cells),
		cmocka_unit_test(the_working_directory_is_kept),
		cmocka_unit_test(kitty_stacks_are_per_screen),
		cmocka_unit_test(keys_and_cursor_shape),
		cmocka_unit_test(ris_makes_it_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
