/*
 * What the terminal answers: every kind of query, in numbers that are true of
 * the screen, ended as the question was, and never with what the question said.
 */
#include <stdio.h>

#include "screen/query_match.h"
#include "tests/unit/screen_fixture.h"
#include "tests/unit/unit.h"

struct answer_row {
	const char *before; /* what the program printed first */
	const char *query, *answer;
};

static const struct answer_row answer_devices[] = {
	{ "", "\033[c", "\033[?62;22c" },
	{ "", "\033[0c", "\033[?62;22c" },
	{ "", "\033[1c", "" },
	{ "", "\302\233c", "\033[?62;22c" },
	{ "", "\033[\n0c", "\033[?62;22c" },
	{ "", "\033Z", "\033[?62;22c" },
	{ "", "\033[>c", "\033[>41;354;0c" },
	{ "", "\033[=c", "\033P!|00000000\033\\" },
	{ "", "\033[>q", "\033P>|berth(1)\033\\" },
	{ "", "\033[>0q", "\033P>|berth(1)\033\\" },
	{ "", "\033[x", "\033[2;1;1;128;128;1;0x" },
	{ "", "\033[1x", "\033[3;1;1;128;128;1;0x" },
	{ "", "\033[5n", "\033[0n" },
	{ "ab\r\nc", "\033[6n", "\033[2;2R" },
	{ "ab\r\nc", "\033[?6n", "\033[?2;2R" },
	{ "\033[3;5r\033[?6h\033[2;4H", "\033[6n", "\033[2;4R" },
	{ "", "\033[?15n", "\033[?13n" },
	{ "", "\033[?25n", "\033[?20n" },
	{ "", "\033[?26n", "\033[?27;1;0;0n" },
	{ "", "\033[?55n", "\033[?50n" },
	{ "", "\033[?996n", "\033[?997;1n" },
	{ "\033]11;#ffffee\033\\", "\033[?996n", "\033[?997;2n" },
	{ "", "\033[?7777n", "" },
};

static const struct answer_row answer_modes[] = {
	{ "", "\033[?7$p", "\033[?7;1$y" },
	{ "\033[?7l", "\033[?7$p", "\033[?7;2$y" },
	{ "", "\033[4$p", "\033[4;2$y" },
	{ "\033[4h", "\033[4$p", "\033[4;1$y" },
	{ "", "\033[?4$p", "\033[?4;4$y" },
	{ "\033[?6h", "\033[?6$p", "\033[?6;1$y" },
	{ "\033[?1002h", "\033[?1002$p", "\033[?1002;1$y" },
	{ "\033[?1002h", "\033[?1000$p", "\033[?1000;2$y" },
	{ "\033[?1006h", "\033[?1006$p", "\033[?1006;1$y" },
	{ "\033[?1049h", "\033[?1049$p", "\033[?1049;1$y" },
	{ "", "\033[?2026$p", "\033[?2026;2$y" },
	{ "", "\033[?2$p", "\033[?2;3$y" },
	{ "", "\033[2$p", "\033[2;4$y" },
	{ "", "\033[12$p", "\033[12;3$y" },
	{ "", "\033[?4711$p", "\033[?4711;0$y" },
	{ "", "\033[?99999999999$p", "\033[?65535;0$y" },
	{ "", "\033[?u", "\033[?0u" },
	{ "\033[>1u\033[>5u", "\033[?u", "\033[?5u" },
	{ "\033[>4;2m", "\033[?4m", "\033[>4;2m" },
	{ "", "\033[?1m", "\033[>1;2m" },
	{ "", "\033[?99m", "" },
	{ "", "\033[?4g", "\033[>4;0f" },
};

static const struct answer_row answer_windows[] = {
	{ "", "\033[11t", "\033[1t" },
	{ "", "\033[13t", "\033[3;0;0t" },
	{ "", "\033[14t", "\033[4;96;320t" },
	{ "", "\033[16t", "\033[6;16;8t" },
	{ "", "\033[18t", "\033[8;6;40t" },
	{ "", "\033[19t", "\033[9;6;40t" },
	{ "\033]0;$(reboot)\033\\", "\033[20t", "\033]L\033\\" },
	{ "\033]0;$(reboot)\033\\", "\033[21t", "\033]l\033\\" },
	{ "\033[3g\033[3G\033H\033[9G\033H", "\033[2$w", "\033P2$u3/9\033\\" },
	{ "", "\033[\"v", "\033[6;40;1;1;1\"w" },
	{ "", "\033['|", "\033[0&w" },
	{ "", "\033[&u", "\033P0!u%5\033\\" },
	{ "", "\033[#R", "\033[?0;0#Q" },
	{ "", "\033[1;1;1;1;9;9*y", "" },
};

static const struct answer_row answer_colours[] = {
	{ "", "\033]10;?\033\\", "\033]10;rgb:dddd/eeee/ffff\033\\" },
	{ "", "\033]11;?\007", "\033]11;rgb:1010/2020/3030\007" },
	{ "", "\033]10;?;?\033\\",
	    "\033]10;rgb:dddd/eeee/ffff\033\\\033]11;rgb:1010/2020/3030\033\\" },
	{ "", "\033]12;?\033\\", "\033]12;rgb:dddd/eeee/ffff\033\\" },
	{ "\033]12;#010203\033\\", "\033]12;?\302\234",
	    "\033]12;rgb:0101/0202/0303\033\\" },
	{ "", "\033]17;?\033\\", "" },
	{ "", "\033]4;1;?\033\\", "\033]4;1;rgb:cdcd/0000/0000\033\\" },
	{ "", "\033]4;16;?;255;?\007",
	    "\033]4;16;rgb:0000/0000/0000\007\033]4;255;rgb:eeee/eeee/eeee\007" },
	{ "", "\033]4;110;?\033\\", "\033]4;110;rgb:8787/afaf/d7d7\033\\" },
	{ "\033]4;7;#abcdef\033\\", "\033]4;7;?\033\\",
	    "\033]4;7;rgb:abab/cdcd/efef\033\\" },
	{ "", "\033]4;256;?;-1;?;x;?;7\033\\", "" },
	{ "", "\033]21;foreground=?;1=?;evil=?;cursor=red\033\\",
	    "\033]21;foreground=rgb:dddd/eeee/ffff;1=rgb:cdcd/0000/0000\033\\" },
	{ "", "\033]52;c;?\033\\", "" },
	{ "", "\033]50;?\033\\", "" },
	{ "", "\033_Ga=q,i=1;AAAA\033\\", "" },
};

static const struct answer_row answer_settings[] = {
	{ "", "\033P$qm\033\\", "\033P1$r0m\033\\" },
	{ "\033[1;31;48;2;1;2;3m", "\033P$qm\033\\",
	    "\033P1$r0;1;31;48:2::1:2:3m\033\\" },
	{ "\033[38;5;99;4:3;58:2::4:5:6m", "\033P$qm\033\\",
	    "\033P1$r0;38:5:99;4:3;58:2::4:5:6m\033\\" },
	{ "\033[2;5r", "\033P$qr\033\\", "\033P1$r2;5r\033\\" },
	{ "\033[?69h\033[3;9s", "\033P$qs\033\\", "\033P1$r3;9s\033\\" },
	{ "", "\033P$q\"p\033\\", "\033P1$r62;1\"p\033\\" },
	{ "\033[1\"q", "\033P$q\"q\033\\", "\033P1$r1\"q\033\\" },
	{ "\033[5 q", "\033P$q q\033\\", "\033P1$r5 q\033\\" },
	{ "", "\033P$q*|\033\\", "\033P1$r6*|\033\\" },
	{ "", "\033P$q;reboot\033\\", "\033P0$r\033\\" },
	{ "", "\033P+q544e\033\\", "\033P1+r544E=787465726D2D74657374\033\\" },
	{ "", "\033P+q436F;524742\033\\",
	    "\033P1+r436F=323536\033\\\033P1+r524742=382F382F38\033\\" },
	{ "", "\033P+q5463\033\\", "\033P1+r5463\033\\" },
	{ "", "\033P+q6576696c\033\\", "\033P0+r\033\\" },
	{ "", "\033P+qzz\033\\", "\033P0+r\033\\" },
	{ "", "\033P+Q666f6e74\033\\", "\033P0+R\033\\" },
};

static struct screen *
answer_screen(void)
{
	struct screen_config c = {
		.cols = 40,
		.rows = 6,
		.name = "berth(1)\033\n",
		.term = "xterm-test",
		.foreground = 0xddeeff,
		.background = 0x102030,
		.cursor_colour = SCREEN_NO_COLOUR,
	};

	return screen_new(&c);
}

static void
answer_check(const struct answer_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct screen *s = answer_screen();
		const uint8_t *q = (const uint8_t *)rows[i].query;
		size_t len = strlen(rows[i].query);
		struct buf out = { 0 };

		assert_true(query_match(q, len));
		screen_put(s, rows[i].before);
		screen_answer(s, q, len, &out);
		buf_put_u8(&out, 0);
		if (strcmp((const char *)buf_head(&out), rows[i].answer) != 0)
			print_message("row %zu: %s\n", i, rows[i].query + 1);
		assert_string_equal(buf_head(&out), rows[i].answer);
		buf_release(&out);
		screen_free(s);
	}
}

static void
answer_names_the_device_and_the_cursor(void **state)
{
	(void)state;
	answer_check(answer_devices, ARRAY_LEN(answer_devices));
}

static void
answer_tells_modes_and_keyboard(void **state)
{
	(void)state;
	answer_check(answer_modes, ARRAY_LEN(answer_modes));
}

static void
answer_tells_sizes_and_no_titles(void **state)
{
	(void)state;
	answer_check(answer_windows, ARRAY_LEN(answer_windows));
}

static void
answer_tells_colours_but_no_clipboard(void **state)
{
	(void)state;
	answer_check(answer_colours, ARRAY_LEN(answer_colours));
}

static void
answer_tells_settings_and_known_capabilities(void **state)
{
	(void)state;
	answer_check(answer_settings, ARRAY_LEN(answer_settings));
}

/* A thousand questions in one do not make a flood. */
static void
answer_is_bounded(void **state)
{
	struct screen *s = answer_screen();
	struct buf q = { 0 }, out = { 0 };

	(void)state;
	buf_put(&q, "\033]4", 3);
	for (unsigned i = 0; i < 1000; i++)
		buf_put(&q, ";1;?", 4);
	buf_put(&q, "\007", 1);
	screen_answer(s, buf_head(&q), buf_len(&q), &out);
	assert_int_equal(
	    buf_len(&out), 256 * strlen("\033]4;1;rgb:cdcd/0000/0000\007"));
	buf_release(&q);
	buf_release(&out);
	screen_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answer_names_the_device_and_the_cursor),
		cmocka_unit_test(answer_tells_modes_and_keyboard),
		cmocka_unit_test(answer_tells_sizes_and_no_titles),
		cmocka_unit_test(answer_tells_colours_but_no_clipboard),
		cmocka_unit_test(answer_tells_settings_and_known_capabilities),
		cmocka_unit_test(answer_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
