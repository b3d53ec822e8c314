/* Bytes: what is put in comes out, and no read goes past the end. */
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "tests/unit/unit.h"

static void
empty_buffer_has_nothing_and_may_be_released(void **state)
{
	struct buf b = { 0 };

	(void)state;
	assert_int_equal(buf_len(&b), 0);
	buf_clear(&b);
	buf_release(&b);
	buf_put(&b, NULL, 0);
	assert_null(b.data);
}

static void
content_survives_any_mix_of_put_and_consume(void **state)
{
	struct buf b = { 0 };
	uint8_t in = 0, out = 0;
	unsigned seed = 1;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		size_t n;

		seed = seed * 1103515245U + 12345U;
		n = (seed >> 16) % 97;
		if (seed & 0x4000000U || buf_len(&b) > 4000) {
			n = n < buf_len(&b) ? n : buf_len(&b);
			for (size_t k = 0; k < n; k++)
				assert_int_equal(buf_head(&b)[k], out++);
			buf_consume(&b, n);
		} else {
			uint8_t *p = buf_reserve(&b, n);

			for (size_t k = 0; k < n; k++)
				p[k] = in++;
			buf_commit(&b, n);
		}
	}
	assert_int_equal((uint8_t)(out + buf_len(&b)), in);
	/* It moved its content instead of growing for ever. */
	assert_true(b.cap <= 16384);
	buf_release(&b);
}

static void
numbers_are_big_endian(void **state)
{
	static const uint8_t want[] = { 0x01, 0x02, 0x03, 0x04, 0x05, 0x06,
		0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0xff };
	struct buf b = { 0 };
	struct reader r;

	(void)state;
	buf_put_u8(&b, 0x01);
	buf_put_u16(&b, 0x0203);
	buf_put_u32(&b, 0x04050607);
	buf_put_u64(&b, 0x08090a0b0c0d0effULL);
	assert_int_equal(buf_len(&b), sizeof(want));
	assert_memory_equal(buf_head(&b), want, sizeof(want));
	r = reader_over(buf_head(&b), buf_len(&b));
	assert_int_equal(reader_u8(&r), 0x01);
	assert_int_equal(reader_u16(&r), 0x0203);
	assert_int_equal(reader_u32(&r), 0x04050607);
	assert_int_equal(reader_u64(&r), 0x08090a0b0c0d0effULL);
	assert_true(reader_done(&r));
	buf_release(&b);
}

static void
strings_and_vectors_round_trip(void **state)
{
	char one[] = "one", none[] = "", *v[] = { one, none, NULL };
	struct buf b = { 0 };
	struct reader r;
	char **got, into[8];
	size_t n;

	(void)state;
	buf_put_str(&b, "hello");
	buf_put_str(&b, NULL);
	buf_put_strv(&b, v);
	buf_put_strv(&b, NULL);
	buf_put_bytes(&b, "a\0b", 3);
	r = reader_over(buf_head(&b), buf_len(&b));
	reader_str_into(&r, into, sizeof(into));
	assert_string_equal(into, "hello");
	{
		autofree char *s = reader_str(&r, 10);

		assert_string_equal(s, "");
	}
	got = reader_strv(&r, 2, 3);
	assert_string_equal(got[0], "one");
	assert_string_equal(got[1], "");
	assert_null(got[2]);
	strv_free(got);
	got = reader_strv(&r, 0, 0);
	assert_null(got[0]);
	strv_free(got);
	assert_memory_equal(reader_bytes(&r, 3, &n), "a\0b", 3);
	assert_int_equal(n, 3);
	assert_true(reader_done(&r));
	buf_release(&b);
}

static void
reading_past_the_end_fails_for_good(void **state)
{
	static const uint8_t bytes[] = { 1, 2, 3 };
	struct reader r = reader_over(bytes, sizeof(bytes));

	(void)state;
	assert_int_equal(reader_u32(&r), 0);
	assert_true(r.failed);
	assert_null(reader_take(&r, 1));
	assert_int_equal(reader_u8(&r), 0);
	assert_false(reader_done(&r));
	r = reader_over(NULL, 0);
	assert_true(reader_done(&r));
	assert_int_equal(reader_u8(&r), 0);
	assert_false(reader_done(&r));
}

static void
leftover_bytes_are_not_done(void **state)
{
	struct reader r = reader_over("ab", 2);

	(void)state;
	reader_u8(&r);
	assert_false(reader_done(&r));
	assert_false(r.failed);
}

static void
strings_over_their_limit_fail(void **state)
{
	static const uint8_t five[] = { 0, 0, 0, 5, 'h', 'e', 'l', 'l', 'o' };
	static const uint8_t huge[] = { 0xff, 0xff, 0xff, 0xff, 'x' };
	static const uint8_t nul[] = { 0, 0, 0, 3, 'a', 0, 'b' };
	struct reader r = reader_over(five, sizeof(five));
	char into[6] = "junk";
	size_t n = 9;

	(void)state;
	assert_null(reader_str(&r, 4));
	r = reader_over(five, sizeof(five));
	reader_str_into(&r, into, 5);
	assert_true(r.failed);
	assert_string_equal(into, "");
	r = reader_over(five, sizeof(five));
	reader_str_into(&r, into, 6);
	assert_string_equal(into, "hello");
	r = reader_over(huge, sizeof(huge));
	assert_null(reader_bytes(&r, SIZE_MAX, &n));
	assert_int_equal(n, 0);
	r = reader_over(nul, sizeof(nul));
	assert_null(reader_str(&r, 10));
	r = reader_over(nul, sizeof(nul));
	reader_str_into(&r, into, sizeof(into));
	assert_true(r.failed);
	assert_string_equal(into, "");
}

static void
vector_that_promises_too_much_fails_before_it_allocates(void **state)
{
	static const uint8_t many[] = { 0x00, 0xff, 0xff, 0xff, 0, 0, 0, 0 };
	static const uint8_t two[] = { 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9 };
	struct reader r = reader_over(many, sizeof(many));

	(void)state;
	assert_null(reader_strv(&r, UINT32_MAX, 10));
	assert_true(r.failed);
	/* The second string is cut: the first one is freed. */
	r = reader_over(two, sizeof(two));
	assert_null(reader_strv(&r, 2, 10));
	assert_true(r.failed);
	r = reader_over(two, sizeof(two));
	assert_null(reader_strv(&r, 1, 10));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_buffer_has_nothing_and_may_be_released),
		cmocka_unit_test(content_survives_any_mix_of_put_and_consume),
		cmocka_unit_test(numbers_are_big_endian),
		cmocka_unit_test(strings_and_vectors_round_trip),
		cmocka_unit_test(reading_past_the_end_fails_for_good),
		cmocka_unit_test(leftover_bytes_are_not_done),
		cmocka_unit_test(strings_over_their_limit_fail),
		cmocka_unit_test(
		    vector_that_promises_too_much_fails_before_it_allocates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
