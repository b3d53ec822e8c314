/*
 * The replay ring: positions, growth and wrap against a plain copy of the
 * stream, safe positions against a byte-by-byte oracle.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "screen/vt_scan.h"
#include "sessions/keeper/ring.h"
#include "tests/unit/unit.h"

#define RING_TEST_MAX (64U << 10)

/* The content from POS on as one block; the caller frees it. */
static uint8_t *
ring_test_copy(const struct ring *r, uint64_t pos, size_t *n_out)
{
	struct iovec v[2];
	int n_v = ring_peek(r, pos, SIZE_MAX, v);
	uint8_t *p = xmalloc((size_t)(ring_end(r) - pos) + 1);
	size_t n = 0;

	for (int i = 0; i < n_v; i++) {
		memcpy(p + n, v[i].iov_base, v[i].iov_len);
		n += v[i].iov_len;
	}
	*n_out = n;
	return p;
}

/* Asserts that the ring holds the end of the N bytes of ALL. */
static void
ring_test_holds(const struct ring *r, const uint8_t *all, size_t n)
{
	size_t len;
	autofree uint8_t *p = ring_test_copy(r, ring_start(r), &len);

	assert_int_equal(ring_end(r), n);
	assert_int_equal(len, n - ring_start(r));
	assert_memory_equal(p, all + ring_start(r), len);
}

static size_t
ring_test_noise(uint8_t *p, size_t n, unsigned seed)
{
	static const char *const parts[] = { "a line of plain text\r\n",
		"\033[38;2;255;100;0m", "\343\201\202\360\237\231\202",
		"\033]8;;http://example.org/\033\\", "\033]0;title\007",
		"\033P0;1q#0~~@@\033\\", "\033_Gf=1;AAAA", "\n", "\033[",
		"\302\233m", "\377\376", "\030" };
	size_t len = 0;

	while (len + 64 < n) {
		const char *part;

		seed = seed * 1103515245 + 12345;
		part = parts[(seed >> 16) % ARRAY_LEN(parts)];
		memcpy(p + len, part, strlen(part));
		len += strlen(part);
	}
	memset(p + len, 'x', n - len);
	return n;
}

static void
ring_begins_empty_at_zero(void **state)
{
	struct ring *r = ring_new(RING_TEST_MAX);
	struct iovec v[2];

	(void)state;
	assert_int_equal(ring_start(r), 0);
	assert_int_equal(ring_end(r), 0);
	assert_int_equal(ring_cap(r), RING_TEST_MAX);
	assert_int_equal(ring_peek(r, 0, 100, v), 0);
	assert_int_equal(ring_safe_from(r, 0), 0);
	assert_int_equal(ring_safe_lines(r, 5), 0);
	ring_free(r);
	ring_free(NULL);
}

static void
ring_cap_is_at_least_16_kib(void **state)
{
	struct ring *r = ring_new(1);

	(void)state;
	assert_int_equal(ring_cap(r), 16384);
	ring_free(r);
}

static void
ring_keeps_everything_up_to_its_cap(void **state)
{
	static uint8_t all[RING_TEST_MAX];
	struct ring *r = ring_new(RING_TEST_MAX);

	(void)state;
	ring_test_noise(all, sizeof(all), 1);
	for (size_t i = 0; i < sizeof(all); i += 1000) {
		size_t n = sizeof(all) - i < 1000 ? sizeof(all) - i : 1000;

		ring_push(r, all + i, n);
		assert_int_equal(ring_start(r), 0);
		ring_test_holds(r, all, i + n);
	}
	ring_free(r);
}

static void
ring_push_past_capacity_forgets_oldest(void **state)
{
	static const size_t caps[] = { 16384, 20000, 65536, 100001 };
	static uint8_t all[400000];

	(void)state;
	for (size_t c = 0; c < ARRAY_LEN(caps); c++) {
		struct ring *r = ring_new(caps[c]);
		size_t n = 0;

		ring_test_noise(all, sizeof(all), 2);
		for (size_t part = 1; n + part <= sizeof(all);
		     part = part * 5 % 7919) {
			uint64_t kept;

			ring_push(r, all + n, part);
			n += part;
			kept = ring_end(r) - ring_start(r);
			assert_true(kept <= caps[c]);
			assert_true(
			    n < caps[c] || kept >= caps[c] - caps[c] / 128);
			ring_test_holds(r, all, n);
		}
		ring_free(r);
	}
}

static void
ring_push_of_more_than_the_cap_keeps_the_last(void **state)
{
	static uint8_t all[300000];
	struct ring *r = ring_new(RING_TEST_MAX);

	(void)state;
	ring_test_noise(all, sizeof(all), 3);
	ring_push(r, all, sizeof(all));
	ring_test_holds(r, all, sizeof(all));
	assert_true(ring_end(r) - ring_start(r) > RING_TEST_MAX * 9 / 10);
	ring_free(r);
}

static void
ring_reserve_forgets_nothing_before_commit(void **state)
{
	static uint8_t all[RING_TEST_MAX];
	struct ring *r = ring_new(RING_TEST_MAX);
	size_t n;

	(void)state;
	ring_test_noise(all, sizeof(all), 4);
	ring_push(r, all, sizeof(all));
	assert_non_null(ring_reserve(r, 5000, &n));
	assert_in_range(n, 1, 5000);
	ring_test_holds(r, all, sizeof(all));
	ring_commit(r, 0);
	ring_test_holds(r, all, sizeof(all));
	ring_free(r);
}

static void
ring_reserve_gives_what_was_asked_while_it_may_grow(void **state)
{
	struct ring *r = ring_new(1 << 20);
	size_t n;

	(void)state;
	(void)ring_reserve(r, 65536, &n);
	assert_int_equal(n, 16384); /* an idle session stays small */
	memset(ring_reserve(r, 65536, &n), 'a', 16384);
	ring_commit(r, 16384);
	(void)ring_reserve(r, 65536, &n);
	assert_int_equal(n, 16384);
	assert_int_equal(ring_start(r), 0);
	ring_free(r);
}

static void
ring_peek_is_bounded_and_wraps(void **state)
{
	static uint8_t all[40000];
	struct ring *r = ring_new(16384);
	struct iovec v[2];
	uint64_t pos;

	(void)state;
	ring_test_noise(all, sizeof(all), 5);
	ring_push(r, all, sizeof(all));
	pos = 32768 - 10; /* the end of the memory, 10 bytes on */
	assert_int_equal(ring_peek(r, pos, 10, v), 1);
	assert_int_equal(v[0].iov_len, 10);
	assert_int_equal(ring_peek(r, pos, 25, v), 2);
	assert_int_equal(v[0].iov_len, 10);
	assert_int_equal(v[1].iov_len, 15);
	assert_memory_equal(v[0].iov_base, all + pos, 10);
	assert_memory_equal(v[1].iov_base, all + pos + 10, 15);
	assert_int_equal(ring_peek(r, ring_end(r), 10, v), 0);
	ring_free(r);
}

static void
ring_safe_from_is_the_first_ground_position(void **state)
{
	static uint8_t all[200000];
	static uint8_t is_ground[sizeof(all) + 1];

	(void)state;
	for (unsigned seed = 1; seed <= 6; seed++) {
		struct ring *r = ring_new(seed % 2 ? 16384 : 50000);
		struct vt_scan s = { 0 };

		ring_test_noise(all, sizeof(all), seed);
		is_ground[0] = 1;
		for (size_t i = 0; i < sizeof(all); i++) {
			vt_scan_byte(&s, all[i]);
			is_ground[i + 1] = vt_scan_is_ground(&s);
		}
		for (size_t n = 0; n < sizeof(all);) {
			size_t part = 1 + n % 5003;
			uint64_t from, want;

			if (part > sizeof(all) - n)
				part = sizeof(all) - n;
			ring_push(r, all + n, part);
			n += part;
			from = ring_start(r);
			for (unsigned k = 0; k < 40 && from < n; k++) {
				for (want = from; want < n && !is_ground[want];)
					want++;
				assert_int_equal(ring_safe_from(r, from), want);
				from += k < 20 ? 1 : 997;
			}
			assert_int_equal(ring_safe_from(r, n), n);
		}
		ring_free(r);
	}
}

static void
ring_drops_a_huge_string_whole(void **state)
{
	static char huge[200000];
	struct ring *r = ring_new(RING_TEST_MAX);
	uint64_t end_of_string;

	(void)state;
	memset(huge, '~', sizeof(huge));
	memcpy(huge, "\033Pq", 3);
	ring_push(r, "before\r\n", 8);
	ring_push(r, huge, sizeof(huge));
	assert_int_equal(ring_safe_from(r, 0), ring_end(r));
	ring_push(r, "\033\\", 2);
	end_of_string = ring_end(r);
	ring_push(r, "after\r\n", 7);
	assert_true(ring_start(r) > 8);
	assert_int_equal(ring_safe_from(r, 0), end_of_string);
	assert_int_equal(ring_safe_lines(r, 10), end_of_string);
	ring_free(r);
}

static void
ring_safe_lines_counts_whole_lines(void **state)
{
	static const struct {
		const char *in;
		unsigned lines;
		const char *tail;
	} rows[] = {
		{ "a\nb\nc\n", 2, "b\nc\n" },
		{ "a\nb\nc\n$ ", 2, "b\nc\n$ " },
		{ "a\nb\nc\n$ ", 0, "$ " },
		{ "a\nb\n", 2, "a\nb\n" },
		{ "a\nb\n", 100, "a\nb\n" },
		{ "no line", 1, "no line" },
		{ "", 3, "" },
		{ "a\n\033]0;x\ny\007b\nc\n", 2, "b\nc\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ring *r = ring_new(0);
		autofree uint8_t *p = NULL;
		size_t n;

		ring_push(r, rows[i].in, strlen(rows[i].in));
		p = ring_test_copy(r, ring_safe_lines(r, rows[i].lines), &n);
		p[n] = '\0';
		assert_string_equal((char *)p, rows[i].tail);
		ring_free(r);
	}
}

static void
ring_safe_lines_works_across_the_wrap(void **state)
{
	struct ring *r = ring_new(16384);

	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		ring_push(r, "0123456789\n", 11);
		assert_int_equal(ring_safe_lines(r, 3),
		    ring_end(r) - 11 * (uint64_t)(i < 3 ? i + 1 : 3));
	}
	ring_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring_begins_empty_at_zero),
		cmocka_unit_test(ring_cap_is_at_least_16_kib),
		cmocka_unit_test(ring_keeps_everything_up_to_its_cap),
		cmocka_unit_test(ring_push_past_capacity_forgets_oldest),
		cmocka_unit_test(ring_push_of_more_than_the_cap_keeps_the_last),
		cmocka_unit_test(ring_reserve_forgets_nothing_before_commit),
		cmocka_unit_test(
		    ring_reserve_gives_what_was_asked_while_it_may_grow),
		cmocka_unit_test(ring_peek_is_bounded_and_wraps),
		cmocka_unit_test(ring_safe_from_is_the_first_ground_position),
		cmocka_unit_test(ring_drops_a_huge_string_whole),
		cmocka_unit_test(ring_safe_lines_counts_whole_lines),
		cmocka_unit_test(ring_safe_lines_works_across_the_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
