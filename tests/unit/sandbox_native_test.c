/*
 * What a native sandbox rests on, without making one: where its control groups
 * go on every layout, the record that knows it again, the task that its helper
 * is told. tests/blackbox/test_sandbox.py makes real ones.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "sandbox/cgroup_find.h"
#include "sandbox/native_record.h"
#include "sandbox/provider.h"
#include "sandbox/task.h"
#include "tests/unit/unit.h"

static char top[64];

static int
setup(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "/tmp/berth-native-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int
teardown(void **state)
{
	(void)state;
	return rmdir(top);
}

static struct sandbox_spec
spec_of(const char *name)
{
	struct sandbox_spec s = { .uid = 65534, .gid = 65534 };

	snprintf(s.name, sizeof(s.name), "%s", name);
	snprintf(s.dir, sizeof(s.dir), "%s", top);
	snprintf(s.provider, sizeof(s.provider), "native");
	snprintf(s.user, sizeof(s.user), "nobody");
	snprintf(s.shell, sizeof(s.shell), "/bin/sh");
	return s;
}

/* ---- control groups -------------------------------------------------------- */

#define V1(controller)                                                     \
	"40 30 0:31 / /sys/fs/cgroup/" controller " rw,nosuid shared:9 - " \
	"cgroup cgroup rw," controller "\n"

static void
groups_are_below_our_own_on_every_layout(void **state)
{
	static const struct {
		const char *mounts, *own;
		const char *want[CGROUP_KINDS];
	} rows[] = {
		/* v2 alone, in a service. */
		{ "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		    "0::/system.slice/berthd.service\n",
		    { "/sys/fs/cgroup/system.slice/berthd.service", "", "", "",
			"" } },
		/* After berthd moved down, groups stay where they were. */
		{ "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
		    "0::/a/berth-main\n",
		    { "/sys/fs/cgroup/a", "", "", "", "" } },
		/* v1 with v2 beside it, some of them at their root. */
		{ "24 1 0:5 / / rw - ext4 /dev/vda rw\n" V1("pids") V1(
		      "memory") V1("freezer")
			V1("cpu,cpuacct") "41 30 0:32 / /sys/fs/cgroup/unified rw - cgroup2 "
					  "none rw\n",
		    "9:name=systemd:/\n8:pids:/\n4:memory:/x/y\n3:freezer:/z\n"
		    "1:cpu,cpuacct:/\n0::/\n",
		    { "/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids",
			"/sys/fs/cgroup/memory/x/y",
			"/sys/fs/cgroup/cpu,cpuacct",
			"/sys/fs/cgroup/freezer/z" } },
		/* In a container that sees its own part only. */
		{ "30 24 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 c rw\n",
		    "0::/docker/abc/sub\n",
		    { "/sys/fs/cgroup/sub", "", "", "", "" } },
		{ "30 24 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 c rw\n",
		    "0::/docker/abcd\n", { "", "", "", "", "" } },
		/* Only whole words name a controller. */
		{ V1("cpuset") V1("cpuacct"), "3:cpuset:/\n2:cpuacct:/\n",
		    { "", "", "", "", "" } },
		{ "", "", { "", "", "", "", "" } },
		{ "nonsense\n- cgroup2\n", "::\n:\n", { "", "", "", "", "" } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cgroup_bases b;

		cgroup_find_in(rows[i].mounts, rows[i].own, &b);
		for (int k = 0; k < CGROUP_KINDS; k++)
			assert_string_equal(b.path[k], rows[i].want[k]);
	}
}

static void
a_group_that_is_gone_is_removed(void **state)
{
	struct cgroup c = { .path = { "" } };

	(void)state;
	assert_int_equal(cgroup_remove(&c, 0), 0);
	snprintf(c.path[CGROUP_PIDS], CGROUP_PATH_MAX, "%s/none", top);
	assert_int_equal(cgroup_remove(&c, 0), 0);
	assert_int_equal(cgroup_number(&c, "pids.current"), -1);
	assert_int_equal(cgroup_counter(&c, "memory.events", "oom"), -1);
}

/* A file of a group that is none: what is written stays as it is. */
static void
put(const char *name, const char *text)
{
	autofree char *path = xasprintf("%s/%s", top, name);
	autoclose int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void
assert_holds(const char *name, const char *want)
{
	autofree char *path = xasprintf("%s/%s", top, name);
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[64] = "";

	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, want);
}

static void
drop(const char *name)
{
	autofree char *path = xasprintf("%s/%s", top, name);

	assert_int_equal(unlink(path), 0);
}

static void
a_freeze_is_done_or_undone_and_v1_lets_die(void **state)
{
	struct cgroup c = { .path = { "" } };

	(void)state;
	assert_int_equal(cgroup_freeze(&c, 10), -EOPNOTSUPP);
	assert_int_equal(cgroup_thaw(&c, 10), -EOPNOTSUPP);
	assert_false(cgroup_is_frozen(&c));
	/* v1: the one file says what is wished and what is so. */
	snprintf(c.path[CGROUP_FREEZER], CGROUP_PATH_MAX, "%s", top);
	put("freezer.state", "THAWED");
	assert_int_equal(cgroup_freeze(&c, 10), 0);
	assert_true(cgroup_is_frozen(&c));
	assert_holds("freezer.state", "FROZEN");
	cgroup_let_die(&c);
	assert_false(cgroup_is_frozen(&c));
	drop("freezer.state");
	/* v2 without a freezer, as old kernels have it, and then with one. */
	c.path[CGROUP_FREEZER][0] = '\0';
	snprintf(c.path[CGROUP_UNIFIED], CGROUP_PATH_MAX, "%s", top);
	assert_int_equal(cgroup_freeze(&c, 10), -EOPNOTSUPP);
	put("cgroup.freeze", "0");
	put("cgroup.events", "populated 1\nfrozen 0\n");
	/* What does not stop in time goes on. */
	assert_int_equal(cgroup_freeze(&c, 20), -ETIMEDOUT);
	assert_holds("cgroup.freeze", "0");
	assert_false(cgroup_is_frozen(&c));
	put("cgroup.events", "populated 1\nfrozen 1\n");
	assert_int_equal(cgroup_freeze(&c, 20), 0);
	assert_true(cgroup_is_frozen(&c));
	drop("cgroup.freeze");
	drop("cgroup.events");
}

static void
counters_are_found_by_whole_words(void **state)
{
	static const char text[] = "oom 3\noom_kill 12\nmax 4\n";
	autofree char *path = xasprintf("%s/memory.events", top);
	struct cgroup c = { .path = { "" } };
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	(void)state;
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	snprintf(c.path[CGROUP_UNIFIED], CGROUP_PATH_MAX, "%s", top);
	assert_int_equal(cgroup_counter(&c, "memory.events", "oom"), 3);
	assert_int_equal(cgroup_counter(&c, "memory.events", "oom_kill"), 12);
	assert_int_equal(cgroup_counter(&c, "memory.events", "kill"), -1);
	unlink(path);
}

/* ---- records --------------------------------------------------------------- */

static void
a_record_comes_back_as_it_was(void **state)
{
	struct sandbox_spec s = spec_of("box");
	struct native_record r, got;
	struct err e = { .code = 0 };

	(void)state;
	assert_int_equal(chmod(top, 0711), 0);
	assert_int_equal(native_record_read(&s, &got), -ENOENT);
	assert_int_equal(native_record_of(getpid(), &r), 0);
	r.ns_flags = 0x7e020000;
	r.pids_max = 77;
	snprintf(r.member, sizeof(r.member), "key-1");
	snprintf(r.missing, sizeof(r.missing), "memory, cpu");
	snprintf(r.cgroup.path[CGROUP_MEMORY], CGROUP_PATH_MAX, "/a b/c");
	assert_int_equal(native_record_write(&s, &r, &e), 0);
	assert_int_equal(native_record_read(&s, &got), 0);
	assert_int_equal(got.pid, getpid());
	assert_int_equal(got.start_ticks, r.start_ticks);
	assert_int_equal(got.pid_ns, r.pid_ns);
	assert_int_equal(got.ns_flags, r.ns_flags);
	assert_int_equal(got.pids_max, 77);
	assert_string_equal(got.boot, r.boot);
	assert_string_equal(got.member, "key-1");
	assert_string_equal(got.missing, "memory, cpu");
	assert_string_equal(got.cgroup.path[CGROUP_MEMORY], "/a b/c");
	assert_string_equal(got.cgroup.path[CGROUP_PIDS], "");
	assert_int_equal(native_record_remove(&s), 0);
	assert_int_equal(native_record_remove(&s), 0);
}

/* A pid alone is believed by nobody. */
static void
a_record_of_another_process_opens_nothing(void **state)
{
	struct native_record r, other;
	int fd;

	(void)state;
	assert_int_equal(native_record_of(getpid(), &r), 0);
	fd = native_record_open(&r);
	assert_true(fd >= 0);
	close(fd);
	other = r;
	other.start_ticks++;
	assert_int_equal(native_record_open(&other), -ESRCH);
	other = r;
	other.pid_ns++;
	assert_int_equal(native_record_open(&other), -ESRCH);
	other = r;
	other.boot[0] ^= 1;
	assert_int_equal(native_record_open(&other), -ESRCH);
	other = r;
	other.pid = 1;
	assert_int_equal(native_record_open(&other), -ESRCH);
}

static void
a_broken_record_is_no_record(void **state)
{
	static const char *const texts[] = { "", "pid 5\n", "\n\n\n", "pid",
		"pid 1\nstart 5\npidns 6\nboot x\n",
		"pid 7\nstart 0\npidns 6\nboot x\n" };
	struct sandbox_spec s = spec_of("box");
	autofree char *path = xasprintf("%s/.box.box", top);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct native_record got;
		int fd =
		    open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);

		assert_int_equal(
		    write(fd, texts[i], strlen(texts[i])), strlen(texts[i]));
		close(fd);
		assert_int_equal(native_record_read(&s, &got), -EPROTO);
	}
	/* Never through a link. */
	unlink(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	{
		struct native_record got;

		assert_int_equal(native_record_read(&s, &got), -ELOOP);
	}
	unlink(path);
}

/* ---- tasks ----------------------------------------------------------------- */

static void
tasks_come_back_as_they_were(void **state)
{
	struct task t = { .op = TASK_TEARDOWN, .spec = spec_of("box") }, got;
	struct buf b = { 0 };

	(void)state;
	t.spec.memory_bytes = 1ULL << 40;
	t.spec.cpu_percent = 150;
	t.spec.network = SANDBOX_NET_NONE;
	snprintf(t.spec.rootfs, sizeof(t.spec.rootfs), "/srv/root");
	snprintf(t.spec.member, sizeof(t.spec.member), "key-1");
	snprintf(t.file, sizeof(t.file), "/srv/x.tar.zst");
	task_encode(&b, &t);
	assert_int_equal(task_decode(buf_head(&b), buf_len(&b), &got), 0);
	assert_int_equal(got.op, TASK_TEARDOWN);
	assert_string_equal(got.spec.name, "box");
	assert_string_equal(got.spec.rootfs, "/srv/root");
	assert_string_equal(got.spec.member, "key-1");
	assert_string_equal(got.file, "/srv/x.tar.zst");
	assert_int_equal(got.spec.memory_bytes, 1ULL << 40);
	assert_int_equal(got.spec.network, SANDBOX_NET_NONE);
	for (size_t n = 0; n < buf_len(&b); n++)
		assert_int_equal(task_decode(buf_head(&b), n, &got), -EPROTO);
	buf_release(&b);
}

static void
tasks_that_nobody_may_ask_for_are_refused(void **state)
{
	struct task t = { .op = TASK_PROVISION, .spec = spec_of("box") }, got;
	struct task bad[7] = { t, t, t, t, t, t, t };

	(void)state;
	bad[0].spec.uid = 0;
	snprintf(bad[1].spec.name, sizeof(bad[1].spec.name), "../x");
	snprintf(bad[2].spec.dir, sizeof(bad[2].spec.dir), "relative");
	bad[3].spec.network = SANDBOX_NET_NONE + 1;
	bad[4].op = TASK_OPS;
	snprintf(bad[5].file, sizeof(bad[5].file), "relative");
	snprintf(bad[6].spec.member, sizeof(bad[6].spec.member), "../x");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct buf b = { 0 };

		task_encode(&b, &bad[i]);
		assert_int_equal(
		    task_decode(buf_head(&b), buf_len(&b), &got), -EPROTO);
		buf_release(&b);
	}
}

static void
reports_come_back_as_they_were(void **state)
{
	struct task_report r = { .kind = TASK_RESULT, .code = -ENOSPC }, got;
	struct buf b = { 0 };

	(void)state;
	snprintf(r.line, sizeof(r.line), "no room");
	snprintf(r.made.missing, sizeof(r.made.missing), "memory");
	r.made.is_claimed = true;
	r.copied = (struct sandbox_copied){ 1, 2, 3, "abcdef" };
	task_report_encode(&b, &r);
	assert_int_equal(
	    task_report_decode(buf_head(&b), buf_len(&b), &got), 0);
	assert_int_equal(got.kind, TASK_RESULT);
	assert_int_equal(got.code, -ENOSPC);
	assert_string_equal(got.line, "no room");
	assert_string_equal(got.made.missing, "memory");
	assert_true(got.made.is_claimed);
	assert_int_equal(got.copied.bytes, 2);
	assert_string_equal(got.copied.hash, "abcdef");
	for (size_t n = 0; n < buf_len(&b); n++)
		assert_int_equal(
		    task_report_decode(buf_head(&b), n, &got), -EPROTO);
	buf_release(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_are_below_our_own_on_every_layout),
		cmocka_unit_test(a_group_that_is_gone_is_removed),
		cmocka_unit_test(a_freeze_is_done_or_undone_and_v1_lets_die),
		cmocka_unit_test(counters_are_found_by_whole_words),
		cmocka_unit_test(a_record_comes_back_as_it_was),
		cmocka_unit_test(a_record_of_another_process_opens_nothing),
		cmocka_unit_test(a_broken_record_is_no_record),
		cmocka_unit_test(tasks_come_back_as_they_were),
		cmocka_unit_test(tasks_that_nobody_may_ask_for_are_refused),
		cmocka_unit_test(reports_come_back_as_they_were),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
