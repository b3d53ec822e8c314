/*
 * What a keeper writes into its lock file is what a manager reads, and nothing
 * that was cut, changed or never written is taken for it.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "sessions/wire/state_file.h"
#include "tests/unit/unit.h"

static struct state_file
sample(void)
{
	struct state_file s = {
		.sid = "ses-1",
		.keeper_pid = 7,
		.pid = 8,
		.keeper_start = 9,
		.pid_start = 10,
		.started_ms = 11,
		.has_exited = 1,
		.exited = { .exit = { .value = 3, .note = "why" },
		    .exited_ms = 12,
		    .rec_state = 1 },
		.n_left = 2,
		.left = { { 1, 2, 3, 4, 5 }, { 6, 7, 8, 9, 10 } },
	};

	state_file_boot(s.boot);
	return s;
}

static int
file_with(const struct state_file *s)
{
	int fd = memfd_create("state", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(state_file_write(fd, s), 0);
	return fd;
}

static void
state_file_reads_what_was_written(void **state)
{
	struct state_file s = sample(), got;
	autoclose int fd = file_with(&s);

	(void)state;
	assert_int_equal(strlen(s.boot), 36);
	memset(&got, 0xff, sizeof(got));
	assert_int_equal(state_file_read(fd, &got), 0);
	assert_string_equal(got.sid, s.sid);
	assert_string_equal(got.boot, s.boot);
	assert_int_equal(got.keeper_pid, 7);
	assert_int_equal(got.pid, 8);
	assert_int_equal(got.keeper_start, 9);
	assert_int_equal(got.pid_start, 10);
	assert_int_equal(got.started_ms, 11);
	assert_int_equal(got.exited.exit.value, 3);
	assert_string_equal(got.exited.exit.note, "why");
	assert_int_equal(got.exited.exited_ms, 12);
	assert_int_equal(got.n_left, 2);
	assert_memory_equal(&got.left[1], &s.left[1], sizeof(s.left[1]));
}

static void
state_file_written_again_is_replaced_whole(void **state)
{
	struct state_file s = sample(), got;
	autoclose int fd = file_with(&s);

	(void)state;
	s.has_exited = 0;
	s.n_left = 0;
	assert_int_equal(state_file_write(fd, &s), 0);
	assert_int_equal(state_file_read(fd, &got), 0);
	assert_int_equal(got.has_exited, 0);
	assert_int_equal(got.n_left, 0);
}

static void
state_file_of_the_most_that_fits_is_read(void **state)
{
	struct state_file s = sample(), got;
	autoclose int fd = -1;

	(void)state;
	s.n_left = STATE_FILE_LEFT_MAX;
	memset(s.exited.exit.note, 'x', sizeof(s.exited.exit.note) - 1);
	fd = file_with(&s);
	assert_int_equal(state_file_read(fd, &got), 0);
	assert_int_equal(got.n_left, STATE_FILE_LEFT_MAX);
}

static void
state_file_that_is_empty_is_enodata(void **state)
{
	autoclose int fd = memfd_create("state", MFD_CLOEXEC);
	struct state_file got;

	(void)state;
	assert_int_equal(state_file_read(fd, &got), -ENODATA);
}

static void
state_file_cut_at_every_length_is_eproto(void **state)
{
	struct state_file s = sample(), got;
	autoclose int fd = file_with(&s);
	off_t size = lseek(fd, 0, SEEK_END);

	(void)state;
	for (off_t n = size - 1; n > 0; n--) {
		assert_int_equal(ftruncate(fd, n), 0);
		assert_int_equal(state_file_read(fd, &got), -EPROTO);
	}
}

static void
state_file_with_any_byte_changed_is_eproto(void **state)
{
	struct state_file s = sample(), got;
	autoclose int fd = file_with(&s);
	off_t size = lseek(fd, 0, SEEK_END);

	(void)state;
	for (off_t at = 0; at < size; at++) {
		uint8_t c, changed;

		assert_int_equal(pread(fd, &c, 1, at), 1);
		changed = (uint8_t)(c ^ 0x10);
		assert_int_equal(pwrite(fd, &changed, 1, at), 1);
		assert_int_equal(state_file_read(fd, &got), -EPROTO);
		assert_int_equal(pwrite(fd, &c, 1, at), 1);
	}
	assert_int_equal(state_file_read(fd, &got), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(state_file_reads_what_was_written),
		cmocka_unit_test(state_file_written_again_is_replaced_whole),
		cmocka_unit_test(state_file_of_the_most_that_fits_is_read),
		cmocka_unit_test(state_file_that_is_empty_is_enodata),
		cmocka_unit_test(state_file_cut_at_every_length_is_eproto),
		cmocka_unit_test(state_file_with_any_byte_changed_is_eproto),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
