/*
 * Rows of snapshots: names are a sandbox's own, a reference means one or none,
 * and what was not finished is still there to be undone.
 */
#include "tests/unit/store_fixture.h"

static int
add(struct fixture *f, const char *id, const char *sandbox, const char *name)
{
	struct store_snapshot r = { .created_ms = 10 };

	snprintf(r.id, sizeof(r.id), "%s", id);
	snprintf(r.sandbox, sizeof(r.sandbox), "%s", sandbox);
	snprintf(r.name, sizeof(r.name), "%s", name);
	snprintf(r.provider, sizeof(r.provider), "local");
	return store_snapshot_insert(f->store, &r);
}

static void
names_are_unique_in_a_sandbox(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(add(f, "snp-10", "a", "x"), 0);
	assert_int_equal(add(f, "snp-11", "a", "x"), -EEXIST);
	assert_int_equal(add(f, "snp-11", "b", "x"), 0);
	assert_int_equal(add(f, "snp-12", "a", ""), 0);
	assert_int_equal(add(f, "snp-13", "a", ""), 0);
	assert_int_equal(store_snapshot_delete(f->store, "snp-10"), 0);
	assert_int_equal(add(f, "snp-20", "a", "x"), 0);
}

static void
references_mean_one_or_none(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *ref, *id;
		int rc;
	} rows[] = {
		{ "snp-10", "snp-10", 0 },
		{ "snp-2", "snp-2f", 0 },
		{ "snp-1", "", -ENOTUNIQ },
		{ "snp-3", "", -ENOENT },
		{ "a+x", "snp-10", 0 },
		{ "x", "", -ENOTUNIQ },
		{ "only", "snp-2f", 0 },
		{ "a", "", -ENOENT },
		{ "", "", -ENOENT },
	};
	struct store_snapshot got;

	assert_int_equal(add(f, "snp-10", "a", "x"), 0);
	assert_int_equal(add(f, "snp-11", "b", "x"), 0);
	assert_int_equal(add(f, "snp-2f", "a", "only"), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(
		    store_snapshot_find(f->store, rows[i].ref, &got),
		    rows[i].rc);
		if (rows[i].rc == 0)
			assert_string_equal(got.id, rows[i].id);
	}
}

static bool
count(const struct store_snapshot *r, void *arg)
{
	(void)r;
	(*(unsigned *)arg)++;
	return true;
}

static void
complete_rows_have_their_counts(void **state)
{
	struct fixture *f = *state;
	struct store_snapshot got;
	unsigned n = 0;

	assert_int_equal(add(f, "snp-1", "a", ""), 0);
	assert_int_equal(add(f, "snp-2", "b", ""), 0);
	assert_int_equal(store_snapshot_find(f->store, "snp-1", &got), 0);
	assert_string_equal(got.state, "making");
	got.files = 3;
	got.bytes = 1ULL << 40;
	got.skipped = 1;
	snprintf(got.hash, sizeof(got.hash), "abc");
	assert_int_equal(store_snapshot_complete(f->store, &got), 0);
	memset(&got, 0, sizeof(got));
	assert_int_equal(store_snapshot_find(f->store, "snp-1", &got), 0);
	assert_string_equal(got.state, "complete");
	assert_string_equal(got.hash, "abc");
	assert_int_equal(got.bytes, 1ULL << 40);
	assert_int_equal(got.skipped, 1);
	store_snapshot_each(f->store, "a", count, &n);
	assert_int_equal(n, 1);
	store_snapshot_each(f->store, NULL, count, &n);
	assert_int_equal(n, 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
		    names_are_unique_in_a_sandbox, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    references_mean_one_or_none, setup, teardown),
		cmocka_unit_test_setup_teardown(
		    complete_rows_have_their_counts, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
