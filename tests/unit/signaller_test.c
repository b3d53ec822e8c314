/*
 * Who is signalled for a session: descendants of the keeper, here of this test,
 * and nobody else, whatever the request says.
 */
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/privilege.h"
#include "base/process.h"
#include "sessions/keeper/signaller.h"
#include "tests/unit/unit.h"

#define DEADLINE_MS 10000

/* A child that waits for ever, in a session of its own if asked. */
static pid_t
sleeper(bool has_session)
{
	int p[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGTERM, SIG_DFL);
		if (has_session)
			setsid();
		if (write(p[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(p[0], &c, 1), 1);
	close(p[0]);
	close(p[1]);
	return pid;
}

/* The signal that ended PID, 0 if it does not end within WAIT_MS. */
static int
ended_by(pid_t pid, int wait_ms)
{
	int64_t end = clock_mono_ms() + wait_ms;
	int status = 0;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (clock_mono_ms() >= end)
			return 0;
		poll(NULL, 0, 5);
	}
	return WIFSIGNALED(status) ? WTERMSIG(status) : -1;
}

static void
end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void
signaller_decode_takes_only_what_makes_sense(void **state)
{
	const struct signaller_request good = {
		.kind = SIGNALLER_GROUP,
		.leader = 77,
		.group = 78,
		.n_signals = 2,
		.signals = { SIGTERM, SIGKILL },
	};
	struct signaller_request r, out = { 0 };
	char longer[sizeof(r) + 1] = { 0 };

	(void)state;
	assert_int_equal(signaller_decode(&good, sizeof(good), &out), 0);
	assert_memory_equal(&out, &good, sizeof(good));
	memcpy(longer, &good, sizeof(good));
	assert_int_equal(
	    signaller_decode(longer, sizeof(longer), &out), -EPROTO);
	assert_int_equal(
	    signaller_decode(&good, sizeof(good) - 1, &out), -EPROTO);
	assert_int_equal(signaller_decode(&good, 0, &out), -EPROTO);

#define REFUSED(field, value)                                        \
	do {                                                         \
		r = good;                                            \
		r.field = value;                                     \
		assert_int_equal(                                    \
		    signaller_decode(&r, sizeof(r), &out), -EPROTO); \
	} while (0)
	REFUSED(kind, SIGNALLER_ALL + 1);
	REFUSED(kind, SIGNALLER_ALL); /* with a group */
	REFUSED(ns, 7);               /* of a scope only */
	REFUSED(gid, SIGNALLER_MARK); /* the same */
	REFUSED(leader, 1);
	REFUSED(leader, 0);
	REFUSED(leader, -5);
	REFUSED(group, -1);
	REFUSED(n_signals, SIGNALLER_SIGNALS_MAX + 1);
	REFUSED(n_signals, 1); /* and a second one */
	REFUSED(signals[0], 0);
	REFUSED(signals[1], -9);
	REFUSED(signals[1], NSIG);
#undef REFUSED
	r = (struct signaller_request){
		.kind = SIGNALLER_SCOPE,
		.leader = 77,
		.gid = signaller_mark(getpid()),
	};
	assert_int_equal(signaller_decode(&r, sizeof(r), &out), 0);
	for (int i = 0; i < 3; i++) {
		const uint64_t wrong[] = { 100, SIGNALLER_MARK - 1,
			UINT32_MAX };

		r.gid = wrong[i];
		assert_int_equal(
		    signaller_decode(&r, sizeof(r), &out), -EPROTO);
	}
	r.gid = SIGNALLER_MARK;
	r.ns = 7; /* one mark is enough */
	assert_int_equal(signaller_decode(&r, sizeof(r), &out), -EPROTO);
	assert_int_equal(signaller_decode(&good, sizeof(good), &out), 0);
	assert_memory_equal(&out, &good, sizeof(good));
}

/* A child in a cgroup namespace of its own; 0 where there are none. */
static pid_t
sleeper_apart(uint64_t *ns_out)
{
	char path[64];
	struct stat st;
	int p[2];
	pid_t pid;
	char ok = 0;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		ok = unshare(CLONE_NEWUSER | CLONE_NEWCGROUP) == 0;
		if (write(p[1], &ok, 1) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(p[0], &ok, 1), 1);
	close(p[0]);
	close(p[1]);
	snprintf(path, sizeof(path), "/proc/%d/ns/cgroup", (int)pid);
	if (ok && stat(path, &st) == 0) {
		*ns_out = st.st_ino;
		return pid;
	}
	end(pid);
	return 0;
}

/* First: what it learns once stays for the process. */
static void
signaller_reaches_who_has_the_namespace_of_the_session(void **state)
{
	uint64_t ns = 0;
	pid_t keeper = sleeper(true), orphan = sleeper_apart(&ns);
	pid_t stranger = sleeper(true);
	struct signaller_request r = {
		.kind = SIGNALLER_SCOPE,
		.leader = keeper,
		.ns = ns,
	};

	(void)state;
	if (orphan > 0) {
		assert_int_equal(signaller_deliver(&r, keeper), 0);
		/* Once: who takes the keeper over cannot name another. */
		assert_int_equal(signaller_deliver(&r, keeper), -EPERM);
		r = (struct signaller_request){
			.kind = SIGNALLER_ALL,
			.leader = keeper,
			.n_signals = 1,
			.signals = { SIGTERM },
		};
		assert_int_equal(signaller_deliver(&r, keeper), 1);
		assert_int_equal(ended_by(orphan, DEADLINE_MS), SIGTERM);
	}
	assert_int_equal(ended_by(stranger, 100), 0);
	end(keeper);
	end(stranger);
}

/* A child of a child, whose parent is gone, in group GID if that is not 0. */
static pid_t
orphan_in_group(gid_t gid)
{
	int p[2];
	pid_t pid, child;

	assert_int_equal(pipe(p), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		pid = fork();
		if (pid != 0)
			_exit(0);
		if (setgroups(gid ? 1 : 0, &gid) < 0)
			_exit(1);
		pid = getpid();
		if (write(p[1], &pid, sizeof(pid)) != sizeof(pid))
			_exit(1);
		alarm(60);
		for (;;)
			pause();
	}
	waitpid(child, NULL, 0);
	close(p[1]);
	assert_int_equal(read(p[0], &pid, sizeof(pid)), sizeof(pid));
	close(p[0]);
	return pid;
}

static bool
is_there(pid_t pid)
{
	struct process p;

	return process_read(pid, &p) == 0 && p.state != 'Z';
}

/* What is learnt stays for the process, so another one does it. */
static void
signaller_reaches_who_has_the_group_of_the_session(void **state)
{
	pid_t keeper, marked, other, unmarked, helper;
	int status = -1;
	gid_t gid;

	(void)state;
	if (geteuid() != 0 || !privilege_has_all_gids())
		skip();
	keeper = sleeper(true);
	gid = signaller_mark(keeper);
	assert_true(signaller_is_mark(gid));
	marked = orphan_in_group(gid);
	other = orphan_in_group(gid ^ (1U << 22));
	unmarked = orphan_in_group(0);
	assert_true(process_has_group(marked, gid));
	assert_false(process_has_group(other, gid));
	assert_false(process_has_group(unmarked, gid));
	assert_false(process_has_group(unmarked, 0));
	helper = fork();
	if (helper == 0) {
		struct signaller_request r = {
			.kind = SIGNALLER_SCOPE,
			.leader = keeper,
			.gid = gid,
		};
		int rc = signaller_deliver(&r, keeper);

		r = (struct signaller_request){
			.kind = SIGNALLER_ALL,
			.leader = keeper,
			.n_signals = 1,
			.signals = { SIGTERM },
		};
		_exit(rc == 0 && signaller_deliver(&r, keeper) == 1 ? 0 : 1);
	}
	assert_int_equal(waitpid(helper, &status, 0), helper);
	assert_int_equal(status, 0);
	for (int i = 0; i < 100 && is_there(marked); i++)
		usleep(50000);
	assert_false(is_there(marked));
	assert_true(is_there(other) && is_there(unmarked));
	kill(other, SIGKILL);
	kill(unmarked, SIGKILL);
	end(keeper);
}

static void
signaller_delivers_to_descendants_of_the_keeper_only(void **state)
{
	pid_t keeper = sleeper(true), stranger = sleeper(true);
	struct signaller_request r = {
		.kind = SIGNALLER_ALL,
		.leader = stranger,
		.n_signals = 1,
		.signals = { SIGKILL },
	};

	(void)state;
	/* The stranger is named in every way there is, and is not of KEEPER. */
	assert_int_equal(signaller_deliver(&r, keeper), 0);
	r.kind = SIGNALLER_SESSION;
	assert_int_equal(signaller_deliver(&r, keeper), 0);
	r.kind = SIGNALLER_GROUP;
	r.group = stranger;
	assert_int_equal(signaller_deliver(&r, keeper), 0);
	assert_int_equal(ended_by(stranger, 200), 0);
	assert_int_equal(ended_by(keeper, 0), 0);
	/* For this process it is a descendant: the same request reaches it. */
	assert_int_equal(signaller_deliver(&r, getpid()), 1);
	assert_int_equal(ended_by(stranger, DEADLINE_MS), SIGKILL);
	end(keeper);
}

static void
signaller_session_leaves_daemons_all_does_not(void **state)
{
	pid_t leader = sleeper(true), away = sleeper(true);
	struct signaller_request r = {
		.kind = SIGNALLER_SESSION,
		.leader = leader,
	};

	(void)state;
	assert_int_equal(signaller_deliver(&r, getpid()), 1);
	r.kind = SIGNALLER_ALL;
	assert_int_equal(signaller_deliver(&r, getpid()), 2);
	r.kind = SIGNALLER_SESSION;
	r.n_signals = 1;
	r.signals[0] = SIGTERM;
	assert_int_equal(signaller_deliver(&r, getpid()), 1);
	assert_int_equal(ended_by(leader, DEADLINE_MS), SIGTERM);
	assert_int_equal(ended_by(away, 100), 0);
	end(away);
}

static void
signaller_without_the_group_takes_the_leaders(void **state)
{
	pid_t leader = sleeper(true);
	struct signaller_request r = {
		.kind = SIGNALLER_GROUP,
		.leader = leader,
		.group = getpgrp(), /* of nobody below us */
		.n_signals = 1,
		.signals = { SIGUSR2 },
	};

	(void)state;
	/* This test would not survive a signal to its own group. */
	assert_int_equal(signaller_deliver(&r, getpid()), 1);
	assert_int_equal(ended_by(leader, DEADLINE_MS), SIGUSR2);
}

/* A child with a child, whose pid goes to *GRAND_OUT. */
static pid_t
sleeper_with_child(pid_t *grand_out)
{
	int p[2];
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		pid_t grand = sleeper(false);

		if (write(p[1], &grand, sizeof(grand)) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(p[0], grand_out, sizeof(*grand_out)),
	    (ssize_t)sizeof(*grand_out));
	close(p[0]);
	close(p[1]);
	return pid;
}

static void
process_walk_marks_descendants_in_order_of_pid(void **state)
{
	pid_t grand = 0, child = sleeper_with_child(&grand);
	size_t n, n_marked[2] = { 0, 0 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		autofree struct process *v = NULL;

		n = process_walk(i == 0 ? child : getpid(), &v);
		for (size_t j = 0; j < n; j++) {
			n_marked[i] += v[j].is_marked;
			assert_true(!v[j].is_marked || v[j].pid == grand ||
				    (i == 1 && v[j].pid == child));
			assert_true(j == 0 || v[j - 1].pid < v[j].pid);
		}
	}
	assert_int_equal(n_marked[0], 1);
	assert_int_equal(n_marked[1], 2);
	end(child);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    signaller_reaches_who_has_the_group_of_the_session),
		cmocka_unit_test(
		    signaller_reaches_who_has_the_namespace_of_the_session),
		cmocka_unit_test(signaller_decode_takes_only_what_makes_sense),
		cmocka_unit_test(
		    signaller_delivers_to_descendants_of_the_keeper_only),
		cmocka_unit_test(signaller_session_leaves_daemons_all_does_not),
		cmocka_unit_test(signaller_without_the_group_takes_the_leaders),
		cmocka_unit_test(
		    process_walk_marks_descendants_in_order_of_pid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
