/*
 * The detach key: every spelling of it is found however the bytes are cut,
 * everything else goes on as it was typed.
 */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "sessions/keeper/detach_key.h"
#include "sessions/wire/messages.h"
#include "tests/unit/unit.h"

static const struct wire_detach_key key_none = { 0 };
static const struct wire_detach_key key_bracket = { 1, { { ']', 1 } } };
static const struct wire_detach_key key_at = { 1, { { '@', 1 } } };
static const struct wire_detach_key key_under = { 1, { { '_', 1 } } };
static const struct wire_detach_key key_a_d = { 2, { { 'a', 1 }, { 'd', 0 } } };
static const struct wire_detach_key key_a_big_d = { 2,
	{ { 'a', 1 }, { 'D', 0 } } };
static const struct wire_detach_key key_a_at = { 2,
	{ { 'a', 1 }, { '@', 0 } } };
static const struct wire_detach_key key_p_q = { 2, { { 'p', 1 }, { 'q', 1 } } };
static const struct wire_detach_key key_a_esc = { 2,
	{ { 'a', 1 }, { 27, 0 } } };

/* Feeds one piece; what goes on is added to OUT. True when it is pressed. */
static bool
feed(struct detach_key_scan *s, const char *p, size_t n, struct buf *out)
{
	unsigned n_idle = 0;

	while (n) {
		/* A copy, so that ASan sees a read past its end. */
		autofree char *copy = xmemdup(p, n);
		struct detach_key_step step;

		detach_key_step(s, copy, n, &step);
		assert_true(step.used <= n);
		assert_true(s->n_held <= DETACH_KEY_HELD_MAX);
		n_idle = step.used ? 0 : n_idle + 1;
		assert_true(n_idle < 2);
		buf_put(out, step.p, step.n);
		if (step.is_pressed)
			return true;
		p += step.used;
		n -= step.used;
	}
	return false;
}

static void
flush(struct detach_key_scan *s, struct buf *out)
{
	const uint8_t *p;
	size_t n = detach_key_flush(s, &p);

	buf_put(out, p, n);
	assert_int_equal(detach_key_waits(s), DETACH_KEY_HOLDS_NONE);
}

#define S(text) (text), sizeof(text) - 1

static const struct row {
	const struct wire_detach_key *keys;
	const char *in;
	size_t n_in;
	bool is_pressed;
	const char *out;
	size_t n_out;
} rows[] = {
	/* one key */
	{ &key_none, S("a\035b\033[93;5u"), false, S("a\035b\033[93;5u") },
	{ &key_bracket, S("ab\035cd"), true, S("ab") },
	{ &key_bracket, S("ab\033[93;5ucd"), true, S("ab") },
	{ &key_bracket, S("\033[93;5:1u"), true, S("") },
	{ &key_bracket, S("\033[93;5:2u"), true, S("") },
	{ &key_bracket, S("\033[93:125;5:1u"), true, S("") },
	{ &key_bracket, S("\033[93:125:93;5:1u"), true, S("") },
	{ &key_bracket, S("\033[43::93;5u"), true, S("") },
	{ &key_bracket, S("\033[93;69u"), true, S("") },
	{ &key_bracket, S("\033[93;197;29u"), true, S("") },
	{ &key_bracket, S("\033[27;5;93~"), true, S("") },
	{ &key_bracket, S("\033[221;27;29;1;8;1_"), true, S("") },
	{ &key_bracket, S("\033\035"), true, S("\033") },
	{ &key_bracket, S("\033[\035"), true, S("\033[") },
	{ &key_bracket, S("\033[1;5\035"), true, S("\033[1;5") },
	/* almost */
	{ &key_bracket, S("\033[93;5:3u"), false, S("\033[93;5:3u") },
	{ &key_bracket, S("\033[93;1u"), false, S("\033[93;1u") },
	{ &key_bracket, S("\033[93u"), false, S("\033[93u") },
	{ &key_bracket, S("\033[93;7u"), false, S("\033[93;7u") },
	{ &key_bracket, S("\033[91;5u"), false, S("\033[91;5u") },
	{ &key_bracket, S("\033[93;5~"), false, S("\033[93;5~") },
	{ &key_bracket, S("\033[27;5;91~"), false, S("\033[27;5;91~") },
	{ &key_bracket, S("\033[221;27;29;0;8;1_"), false,
	    S("\033[221;27;29;0;8;1_") },
	{ &key_bracket, S("]\033]93;5u"), false, S("]\033]93;5u") },
	{ &key_bracket, S("\033[?93;5u"), false, S("\033[?93;5u") },
	{ &key_bracket, S("\033[93;5"), false, S("\033[93;5") },
	{ &key_bracket, S("\033[99999999993;5u"), false,
	    S("\033[99999999993;5u") },
	{ &key_bracket,
	    S("\033[0000000000000000000000000000000000000000000000000093;5u"),
	    false,
	    S("\033[0000000000000000000000000000000000000000000000000093;5"
	      "u") },
	/* what a terminal sends all the time */
	{ &key_bracket, S("\033[A\033OP\033[1;5C\033[3~\033x\033"), false,
	    S("\033[A\033OP\033[1;5C\033[3~\033x\033") },
	{ &key_bracket, S("\303\244\342\202\254\033\033[D"), false,
	    S("\303\244\342\202\254\033\033[D") },
	{ &key_bracket, S("\033[<35;10;20M\033[M !!\033[I\033[5;7R"), false,
	    S("\033[<35;10;20M\033[M !!\033[I\033[5;7R") },
	{ &key_bracket, S("\033]11;rgb:0/0/0\033\\\033P1$r0m\033\\"), false,
	    S("\033]11;rgb:0/0/0\033\\\033P1$r0m\033\\") },
	/* never inside a paste */
	{ &key_bracket, S("\033[200~a\035\033[93;5u\033[201~"), false,
	    S("\033[200~a\035\033[93;5u\033[201~") },
	{ &key_bracket, S("\033[200~a\033[201\033[201~b\035c"), true,
	    S("\033[200~a\033[201\033[201~b") },
	/* Ctrl-@ and keys that want shift */
	{ &key_at, S("a\000b"), true, S("a") },
	{ &key_at, S("\033[32;5u"), true, S("") },
	{ &key_at, S("\033[50;6u"), true, S("") },
	{ &key_at, S("\033[27;6;64~"), true, S("") },
	{ &key_at, S("\033[65;0;0;1;0;1_"), false, S("\033[65;0;0;1;0;1_") },
	{ &key_under, S("\033[45;6u"), true, S("") },
	{ &key_under, S("\033[45:95;6u"), true, S("") },
	{ &key_under, S("\033[45;5u"), false, S("\033[45;5u") },
	/* two keys */
	{ &key_a_d, S("x\001dy"), true, S("x") },
	{ &key_a_d, S("\001xd"), false, S("\001xd") },
	{ &key_a_d, S("\001\001d"), false, S("\001d") },
	{ &key_a_d, S("\001\001\001d"), true, S("\001") },
	{ &key_a_d, S("\001"), false, S("\001") },
	{ &key_a_d, S("\001\033[A"), false, S("\001\033[A") },
	{ &key_a_d, S("\001\033d"), false, S("\001\033d") },
	{ &key_a_d, S("\001D"), false, S("\001D") },
	{ &key_a_d, S("\001\304d"), false, S("\001\304d") },
	{ &key_a_d, S("d\001"), false, S("d\001") },
	{ &key_a_d, S("\001\033[200~d\033[201~d"), false,
	    S("\001\033[200~d\033[201~d") },
	{ &key_a_d, S("\033[97;5u\033[97;5:3u\033[57442;1:3u\033[100u"), true,
	    S("") },
	{ &key_a_d, S("\033[97;5u\033[100;1:1u"), true, S("") },
	{ &key_a_d, S("\033[97;5ud"), true, S("") },
	{ &key_a_d, S("\033[97;5u\033[97;5:3u\033[120u"), false,
	    S("\033[97;5u\033[97;5:3u\033[120u") },
	{ &key_a_d, S("\033[97;5u\033[97;5:3u\033[97;5u\033[100u"), false,
	    S("\033[97;5u\033[97;5:3u\033[100u") },
	{ &key_a_d, S("\033[97;6ud"), false, S("\033[97;6ud") },
	{ &key_a_d, S("\033[27;5;97~\033[27;1;100~"), true, S("") },
	{ &key_a_d,
	    S("\033[65;30;1;1;8;1_\033[65;30;1;0;8;1_\033[17;29;0;0;0;"
	      "1_\033[68;32;100;1;0;1_"),
	    true, S("") },
	{ &key_a_d, S("\001\033[<0;5;5Md"), false, S("\001\033[<0;5;5Md") },
	{ &key_a_d, S("\001\033[<35;5;5M\033[O\033[Id"), true,
	    S("\033[<35;5;5M\033[O\033[I") },
	{ &key_a_big_d, S("\001D"), true, S("") },
	{ &key_a_big_d, S("\001\033[100;2u"), true, S("") },
	{ &key_a_big_d, S("\001\033[100:68;2u"), true, S("") },
	{ &key_a_big_d, S("\001\033[100;65;68u"), true, S("") },
	{ &key_a_big_d, S("\001\033[100u"), false, S("\001\033[100u") },
	{ &key_a_at, S("\001\033[113:64;2u"), true, S("") },
	{ &key_a_at, S("\001\033[50;2;34u"), false, S("\001\033[50;2;34u") },
	{ &key_p_q, S("\020\021"), true, S("") },
	{ &key_p_q, S("\020q"), false, S("\020q") },
	{ &key_a_esc, S("\001\033[27u"), true, S("") },
	{ &key_a_esc, S("\001\033"), true, S("") },
	{ &key_a_esc, S("\001\033\033[A"), true, S("") },
	{ &key_a_esc, S("\001x"), false, S("\001x") },
};

/* True if a cut at AT of the row's input has ESC at the end of a piece. */
static bool
cuts_behind_esc(const struct row *r, size_t at)
{
	return at > 0 && r->in[at - 1] == '\033';
}

static void
check(const struct row *r, const struct detach_key_scan *s, bool is_pressed,
    const struct buf *out)
{
	if (is_pressed != r->is_pressed || buf_len(out) != r->n_out ||
	    (r->n_out && memcmp(buf_head(out), r->out, r->n_out) != 0))
		print_error("row %zd\n", r - rows);
	assert_int_equal(is_pressed, r->is_pressed);
	assert_int_equal(buf_len(out), r->n_out);
	if (r->n_out)
		assert_memory_equal(buf_head(out), r->out, r->n_out);
	if (is_pressed)
		assert_int_equal(detach_key_waits(s), DETACH_KEY_HOLDS_NONE);
}

static void
keys_are_found_and_the_rest_goes_on(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct detach_key_scan s;
		struct buf out = { 0 };
		bool is_pressed;

		detach_key_init(&s, r->keys);
		is_pressed = feed(&s, r->in, r->n_in, &out);
		if (!is_pressed)
			flush(&s, &out);
		check(r, &s, is_pressed, &out);
		buf_release(&out);
	}
}

static void
cuts_make_no_difference(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];

		for (size_t a = 0; a <= r->n_in; a++) {
			for (size_t b = a; b <= r->n_in; b++) {
				struct detach_key_scan s;
				struct buf out = { 0 };
				bool is_pressed;

				/* ESC goes on at once: the next test. */
				if (cuts_behind_esc(r, a) ||
				    cuts_behind_esc(r, b))
					continue;
				detach_key_init(&s, r->keys);
				is_pressed =
				    feed(&s, r->in, a, &out) ||
				    feed(&s, r->in + a, b - a, &out) ||
				    feed(&s, r->in + b, r->n_in - b, &out);
				if (!is_pressed)
					flush(&s, &out);
				check(r, &s, is_pressed, &out);
				buf_release(&out);
			}
		}
	}
}

/* BYTES without its ESCs. */
static struct buf
without_esc(const void *bytes, size_t n)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (((const uint8_t *)bytes)[i] != 033)
			buf_put(&b, (const uint8_t *)bytes + i, 1);
	}
	return b;
}

static void
single_bytes_are_found_as_well(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct detach_key_scan s;
		struct buf out = { 0 }, got, want;
		bool is_pressed = false;

		if (r->keys == &key_a_esc)
			continue; /* there a lone ESC says all */
		detach_key_init(&s, r->keys);
		for (size_t k = 0; k < r->n_in && !is_pressed; k++)
			is_pressed = feed(&s, r->in + k, 1, &out);
		if (!is_pressed)
			flush(&s, &out);
		/* Only an ESC may be more: it was a key before the rest came */
		got = without_esc(buf_head(&out), buf_len(&out));
		want = without_esc(r->out, r->n_out);
		assert_int_equal(is_pressed, r->is_pressed);
		assert_int_equal(buf_len(&got), buf_len(&want));
		if (buf_len(&want))
			assert_memory_equal(
			    buf_head(&got), buf_head(&want), buf_len(&want));
		buf_release(&got);
		buf_release(&want);
		buf_release(&out);
	}
}

static void
nothing_but_parts_and_first_keys_waits(void **state)
{
	static const struct {
		const struct wire_detach_key *keys;
		const char *in;
		enum detach_key_wait want;
	} waits[] = {
		{ &key_bracket, "a", DETACH_KEY_HOLDS_NONE },
		{ &key_bracket, "\033", DETACH_KEY_HOLDS_NONE },
		{ &key_bracket, "\033O", DETACH_KEY_HOLDS_NONE },
		{ &key_bracket, "\303", DETACH_KEY_HOLDS_NONE },
		{ &key_bracket, "\033[<35;1", DETACH_KEY_HOLDS_NONE },
		{ &key_bracket, "\033[?6", DETACH_KEY_HOLDS_NONE },
		{ &key_bracket, "\033[A", DETACH_KEY_HOLDS_NONE },
		{ &key_bracket, "\033[200~ab\033[20", DETACH_KEY_HOLDS_NONE },
		{ &key_bracket, "\033[", DETACH_KEY_HOLDS_PART },
		{ &key_bracket, "a\033[93;", DETACH_KEY_HOLDS_PART },
		{ &key_a_d, "\001", DETACH_KEY_HOLDS_FIRST },
		{ &key_a_d, "\001\033", DETACH_KEY_HOLDS_FIRST },
		{ &key_a_d, "\001\033[97;5:3u", DETACH_KEY_HOLDS_FIRST },
		{ &key_a_d, "\001\001", DETACH_KEY_HOLDS_NONE },
		{ &key_a_d, "\001x", DETACH_KEY_HOLDS_NONE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
		struct detach_key_scan s;
		struct buf out = { 0 };

		detach_key_init(&s, waits[i].keys);
		assert_false(feed(&s, waits[i].in, strlen(waits[i].in), &out));
		assert_int_equal(detach_key_waits(&s), waits[i].want);
		flush(&s, &out);
		assert_int_equal(buf_len(&out),
		    strcmp(waits[i].in, "\001\001") == 0 ? 1
							 : strlen(waits[i].in));
		buf_release(&out);
	}
}

static void
keys_begin_anew_after_a_flush(void **state)
{
	struct detach_key_scan s;
	struct buf out = { 0 };

	(void)state;
	detach_key_init(&s, &key_a_d);
	assert_false(feed(&s, S("\001"), &out));
	flush(&s, &out);
	assert_false(feed(&s, S("d"), &out));
	assert_false(feed(&s, S("\033["), &out));
	flush(&s, &out);
	assert_false(feed(&s, S("97;5ud"), &out));
	assert_int_equal(buf_len(&out), 2 + 2 + 6);
	assert_true(feed(&s, S("\001d"), &out));
	buf_release(&out);
}

static void
a_flood_of_releases_ends_the_wait(void **state)
{
	struct detach_key_scan s;
	struct buf out = { 0 };

	(void)state;
	detach_key_init(&s, &key_a_d);
	assert_false(feed(&s, S("\001"), &out));
	for (unsigned i = 0; i < 100; i++)
		assert_false(feed(&s, S("\033[97;5:3u"), &out));
	assert_int_equal(detach_key_waits(&s), DETACH_KEY_HOLDS_NONE);
	assert_int_equal(buf_len(&out), 1 + 100 * 9);
	assert_memory_equal(buf_head(&out), "\001\033[97;5:3u", 10);
	buf_release(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_found_and_the_rest_goes_on),
		cmocka_unit_test(cuts_make_no_difference),
		cmocka_unit_test(single_bytes_are_found_as_well),
		cmocka_unit_test(nothing_but_parts_and_first_keys_waits),
		cmocka_unit_test(keys_begin_anew_after_a_flush),
		cmocka_unit_test(a_flood_of_releases_ends_the_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
