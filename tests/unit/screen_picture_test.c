/*
 * Pictures on terminals of another size: the part with the cursor, a margin with
 * a hint, after the first time only what has changed, and nothing left behind.
 */
#include "screen/emit.h"
#include "screen/picture.h"
#include "tests/unit/screen_fixture.h"
#include "tests/unit/unit.h"

/* A session and a terminal that shows pictures of it. */
struct picture_pair {
	struct screen *session, *terminal;
	struct picture *picture;
	size_t n; /* bytes of the last picture */
};

static struct picture_pair
picture_begin(unsigned cols, unsigned rows, unsigned to_cols, unsigned to_rows)
{
	return (struct picture_pair){
		.session = screen_of(cols, rows),
		.terminal = screen_of(to_cols, to_rows),
		.picture = picture_new(),
	};
}

static void
picture_end(struct picture_pair *p)
{
	picture_free(p->picture);
	screen_free(p->session);
	screen_free(p->terminal);
}

/* Paints; what the terminal shows then, of which the caller frees the text. */
static char *
picture_look(struct picture_pair *p)
{
	struct buf b = { 0 };

	picture_paint(p->picture, p->session, screen_cols(p->terminal),
	    screen_rows(p->terminal), &b);
	p->n = buf_len(&b);
	if (p->n)
		screen_write(p->terminal, buf_head(&b), p->n);
	buf_release(&b);
	return buffer_text(p->terminal, p->terminal->now);
}

struct picture_row {
	const char *in;
	unsigned cols, rows; /* of the terminal; the session is 20x5 */
	const char *shown;
	unsigned col, row; /* of its cursor */
};

static const struct picture_row picture_rows[] = {
	{ "one\r\ntwo", 20, 5, "one|two", 3, 1 },
	{ "one\r\ntwo", 2, 5, "e|o", 1, 1 },
	{ "one\r\ntwo", 20, 1, "two", 3, 0 },
	{ "1\r\n2\r\n3\r\n4\r\n5", 10, 3, "3|4|5", 1, 2 },
	{ "one two three four\033[H", 8, 5, "one two", 0, 0 },
	{ "one\r\ntwo", 20, 7, "one|two|||||     session is 20x5", 3, 1 },
	{ "one\r\ntwo", 40, 5,
	    "one|two|||"
	    "                         session is 20x5",
	    3, 1 },
	{ "one", 24, 5, "one", 3, 0 },
	{ "\346\274\242\346\274\242\346\274\242\033[H", 5, 5,
	    "\346\274\242\346\274\242", 0, 0 },
	{ "x\033[?1049h\033[Halt", 10, 5, "alt", 3, 0 },
};

static void
picture_shows_the_part_with_the_cursor(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(picture_rows); i++) {
		const struct picture_row *r = &picture_rows[i];
		struct picture_pair p = picture_begin(20, 5, r->cols, r->rows);
		char *text;

		screen_put(p.session, r->in);
		text = picture_look(&p);
		assert_string_equal(text, r->shown);
		assert_int_equal(p.terminal->cursor.col, r->col);
		assert_int_equal(p.terminal->cursor.row, r->row);
		assert_true(screen_is_alternate(p.terminal));
		free(text);
		picture_end(&p);
	}
}

static void
picture_sends_only_what_changed(void **state)
{
	struct picture_pair p = picture_begin(80, 24, 100, 30);

	(void)state;
	for (unsigned i = 0; i < 23; i++)
		screen_put(p.session, "a line of some text in the session\r\n");
	free(picture_look(&p));
	assert_true(p.n > 800);
	free(picture_look(&p));
	assert_int_equal(p.n, 0);
	screen_put(p.session, "\033[5;10Hx");
	free(picture_look(&p));
	assert_in_range(p.n, 1, 50);
	/* a move of the cursor is only that */
	screen_put(p.session, "\033[H");
	free(picture_look(&p));
	assert_int_equal(p.n, strlen("\033[1;1H\033[?25h"));
	picture_end(&p);
}

static void
picture_follows_the_cursor_as_little_as_it_can(void **state)
{
	static const struct {
		unsigned col, row, left, top;
	} moves[] = { { 1, 1, 0, 0 }, { 8, 4, 0, 0 }, { 12, 3, 2, 0 },
		{ 11, 9, 2, 4 }, { 9, 6, 0, 4 }, { 1, 5, 0, 4 },
		{ 40, 20, 30, 15 }, { 35, 20, 30, 15 }, { 5, 20, 0, 15 } };
	struct picture_pair p = picture_begin(40, 20, 10, 5);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(moves); i++) {
		struct buf b = { 0 };

		emit_put(&b, "\033[%u;%uH", moves[i].row, moves[i].col);
		screen_write(p.session, buf_head(&b), buf_len(&b));
		buf_release(&b);
		free(picture_look(&p));
		assert_int_equal(p.session->cursor.col - p.terminal->cursor.col,
		    moves[i].left);
		assert_int_equal(p.session->cursor.row - p.terminal->cursor.row,
		    moves[i].top);
	}
	picture_end(&p);
}

static void
picture_sets_what_keys_and_mouse_send(void **state)
{
	struct picture_pair p = picture_begin(20, 5, 30, 9);

	(void)state;
	screen_put(p.session,
	    "\033[?1h\033=\033[?2004h\033[?1004h\033[?1003h\033[?1006h"
	    "\033[>4;2m\033[>5u\033[3 q\033]2;t\033\\\033[?25l");
	free(picture_look(&p));
	assert_true(mode_is_on(p.terminal, MODE_CURSOR_KEYS));
	assert_true(mode_is_on(p.terminal, MODE_KEYPAD));
	assert_true(mode_is_on(p.terminal, MODE_PASTE));
	assert_true(mode_is_on(p.terminal, MODE_FOCUS));
	assert_false(mode_is_on(p.terminal, MODE_CURSOR));
	assert_int_equal(p.terminal->mouse, 1003);
	assert_int_equal(p.terminal->mouse_encoding, 1006);
	assert_int_equal(p.terminal->modify_keys[4], 2);
	assert_int_equal(kitty_flags(&p.terminal->alt.kitty), 5);
	assert_int_equal(p.terminal->cursor_shape, 3);
	assert_string_equal(screen_title(p.terminal), "t");
	picture_end(&p);
}

/* Positions of the mouse would be wrong in any other part. */
static void
picture_has_the_mouse_at_the_top_left_only(void **state)
{
	struct picture_pair p = picture_begin(20, 5, 10, 5);

	(void)state;
	screen_put(p.session, "\033[?1000h\033[?1006h");
	free(picture_look(&p));
	assert_int_equal(p.terminal->mouse, 1000);
	screen_put(p.session, "\033[15G");
	free(picture_look(&p));
	assert_int_equal(p.terminal->mouse, 0);
	assert_int_equal(p.terminal->mouse_encoding, 0);
	screen_put(p.session, "\r");
	free(picture_look(&p));
	assert_int_equal(p.terminal->mouse, 1000);
	picture_end(&p);
}

static void
picture_survives_new_sizes_of_both(void **state)
{
	struct picture_pair p = picture_begin(20, 5, 10, 3);
	char *text;

	(void)state;
	screen_put(p.session, "one\r\ntwo\r\nthree");
	free(picture_look(&p));
	screen_resize(p.terminal, 12, 2);
	text = picture_look(&p);
	assert_string_equal(text, "two|three");
	free(text);
	screen_resize(p.session, 30, 2);
	text = picture_look(&p);
	assert_string_equal(text, "two|three");
	free(text);
	picture_end(&p);
}

/* Numbers of links and clusters mean something else after a collection. */
static void
picture_is_right_after_a_collection(void **state)
{
	struct picture_pair p = picture_begin(20, 5, 20, 5);
	uint64_t age = p.session->tables_age;
	char *text;

	(void)state;
	screen_put(p.session, "e\314\201");
	free(picture_look(&p));
	/* clusters, one after the other in the same cell */
	for (unsigned i = 0; p.session->tables_age == age; i++) {
		char piece[] = "\r\033[2Ka\314\200\314\200\314\200";

		assert_true(i < 100000);
		piece[7] = (char)(0x80 + i % 0x30);
		piece[9] = (char)(0x80 + i / 0x30 % 0x30);
		piece[11] = (char)(0x80 + i / 0x900 % 0x30);
		screen_put(p.session, piece);
	}
	screen_put(p.session, "\r\033[2Ko\314\210");
	text = picture_look(&p);
	assert_string_equal(text, "o\314\210");
	free(text);
	picture_end(&p);
}

static void
picture_clear_leaves_nothing(void **state)
{
	struct picture_pair p = picture_begin(20, 5, 30, 9);
	struct buf b = { 0 };
	char *text;

	(void)state;
	screen_put(p.terminal, "$ berth attach\r\n");
	screen_put(p.session, "\033[?1h\033[?1000h\033[>5u\033[?25ltext");
	assert_false(picture_is_shown(p.picture));
	free(picture_look(&p));
	assert_true(picture_is_shown(p.picture));
	picture_clear(p.picture, &b);
	screen_write(p.terminal, buf_head(&b), buf_len(&b));
	assert_false(picture_is_shown(p.picture));
	assert_false(screen_is_alternate(p.terminal));
	assert_true(mode_is_on(p.terminal, MODE_CURSOR));
	assert_false(mode_is_on(p.terminal, MODE_CURSOR_KEYS));
	assert_int_equal(p.terminal->mouse, 0);
	assert_int_equal(kitty_flags(&p.terminal->alt.kitty), 0);
	text = buffer_text(p.terminal, p.terminal->now);
	assert_string_equal(text, "$ berth attach");
	free(text);
	buf_clear(&b);
	picture_clear(p.picture, &b);
	assert_int_equal(buf_len(&b), 0);
	buf_release(&b);
	picture_end(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(picture_shows_the_part_with_the_cursor),
		cmocka_unit_test(picture_sends_only_what_changed),
		cmocka_unit_test(
		    picture_follows_the_cursor_as_little_as_it_can),
		cmocka_unit_test(picture_sets_what_keys_and_mouse_send),
		cmocka_unit_test(picture_has_the_mouse_at_the_top_left_only),
		cmocka_unit_test(picture_survives_new_sizes_of_both),
		cmocka_unit_test(picture_is_right_after_a_collection),
		cmocka_unit_test(picture_clear_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
