/*
 * Providers of commands: what their placeholders stand for, what is read from
 * engines, what goes to berth-sandbox, and that calls end in time and in words.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "sandbox/client.h"
#include "sandbox/command.h"
#include "sandbox/engine.h"
#include "sandbox/leader.h"
#include "sandbox/task.h"
#include "tests/unit/unit.h"

static struct command *
make_command(const char *name)
{
	struct command *c = xcalloc(1, sizeof(*c));

	c->name = xstrdup(name);
	for (int i = 0; i < COMMAND_TEXTS; i++)
		c->text[i] = xstrdup("");
	c->env = xcalloc(2, sizeof(*c->env));
	c->env[0] = xstrdup("PATH=" ENGINE_PATH);
	c->timeout_ms = 2000;
	c->create_ms = 3000;
	c->poll_ms = 500;
	return c;
}

static void
set(struct command *c, enum command_text t, const char *text)
{
	free(c->text[t]);
	c->text[t] = xstrdup(text);
}

static struct sandbox_spec
make_spec(const char *provider)
{
	struct sandbox_spec s = { .uid = 1000, .gid = 1001 };

	snprintf(s.name, sizeof(s.name), "My.Box");
	snprintf(s.provider, sizeof(s.provider), "%s", provider);
	snprintf(s.dir, sizeof(s.dir), "/boxes");
	return s;
}

/* ---- words ----------------------------------------------------------------- */

/* The words of TEXT, each in brackets. */
static void
assert_words(struct command *c, const struct sandbox_spec *s, const char *text,
    const char *want)
{
	struct command_fill f = { .command = c, .spec = s };
	struct err e = { .code = 0 };
	char got[512] = "";
	char **v = NULL;
	size_t n = 0;

	set(c, COMMAND_CREATE, text);
	if (command_words(&f, COMMAND_CREATE, &v, &e) < 0)
		fail_msg("%s: %s", text, e.msg);
	for (char **w = v; *w; w++)
		n += (size_t)snprintf(got + n, sizeof(got) - n, "[%s]", *w);
	assert_string_equal(got, want);
	strv_free(v);
}

static void
placeholders_stand_for_what_the_spec_says(void **state)
{
	struct command *c = make_command("p");
	struct sandbox_spec s = make_spec("p");

	(void)state;
	set(c, COMMAND_PROGRAM, "prog");
	set(c, COMMAND_IMAGE, "plain");
	set(c, COMMAND_NETWORK_LOOPBACK, "lonely");
	set(c, COMMAND_NETWORK_HOST, "open");
	assert_words(c, &s, "{program} {name} {dns} {image} {network}",
	    "[prog][My.Box][my-box-79adfad8][plain][lonely]");
	assert_words(
	    c, &s, "{uid}:{gid} {workspace}", "[1000:1001][/boxes/My.Box]");
	assert_words(c, &s,
	    "a -m={memory?} -c={cpus?} {cpu_percent?}% {pids?} b", "[a][b]");
	s.memory_bytes = 1 << 20;
	s.cpu_percent = 150;
	s.pids_max = 7;
	s.network = SANDBOX_NET_HOST;
	snprintf(s.image, sizeof(s.image), "big");
	snprintf(s.address, sizeof(s.address), "pod-1");
	assert_words(c, &s,
	    "-m={memory?} -c={cpus?} {cpu_percent?}% {pids?} {image} {network} "
	    "{address}",
	    "[-m=1048576][-c=1.50][150%][7][big][open][pod-1]");
	command_free(c);
}

static void
names_for_dns_are_valid_and_differ(void **state)
{
	static const char *const names[] = { "a", "A", "a.b", "a-b", "a_b",
		"a-", "a-deadbeef", "deadbeef",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
		"x.y.z", "0" };
	char out[ARRAY_LEN(names)][64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t n;

		command_dns_name(names[i], out[i], sizeof(out[i]));
		n = strlen(out[i]);
		assert_true(n > 0 && n <= 56);
		assert_int_equal(
		    strspn(out[i], "abcdefghijklmnopqrstuvwxyz0123456789-"), n);
		assert_true(out[i][0] != '-' && out[i][n - 1] != '-');
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(out[i], out[j]);
	}
	assert_string_equal(out[0], "a");
	assert_string_equal(out[3], "a-b");
}

static void
words_of_status_are_phases(void **state)
{
	static const struct {
		const char *said;
		enum sandbox_phase phase;
		const char *address;
	} rows[] = {
		{ "", SANDBOX_GONE, "" },
		{ " \n", SANDBOX_GONE, "" },
		{ "running\n", SANDBOX_RUNNING, "" },
		{ "Up 2 minutes\n", SANDBOX_RUNNING, "2" },
		{ "running pod-7f.x/y:1\n", SANDBOX_RUNNING, "pod-7f.x/y:1" },
		{ "running -rf\n", SANDBOX_RUNNING, "" },
		{ "running a;b\n", SANDBOX_RUNNING, "" },
		{ "wait", SANDBOX_PENDING, "" },
		{ "paused", SANDBOX_SUSPENDED, "" },
		{ "run", SANDBOX_FAILED, "" },
		{ "runningx", SANDBOX_FAILED, "" },
		{ "exited", SANDBOX_FAILED, "" },
	};
	struct command *c = make_command("p");

	(void)state;
	set(c, COMMAND_RUNNING, "Up running");
	set(c, COMMAND_PENDING, "wait");
	set(c, COMMAND_SUSPENDED, "paused Paused");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct sandbox_made made = { .missing = "" };

		command_parse_status(
		    c, rows[i].said, strlen(rows[i].said), &made);
		assert_int_equal(made.phase, rows[i].phase);
		assert_string_equal(made.address, rows[i].address);
	}
	command_free(c);
}

static void
metrics_that_nobody_counts_are_minus_one(void **state)
{
	static const char said[] = "cpu_ns 5000\nmemory 12\nmax x\npids -3\n"
				   "rx 1\ntx 2\n";
	struct sandbox_metrics m;

	(void)state;
	command_parse_metrics(said, strlen(said), &m);
	assert_int_equal(m.cpu_us, 5);
	assert_int_equal(m.memory_bytes, 12);
	assert_int_equal(m.memory_peak_bytes, -1);
	assert_int_equal(m.processes, -1);
	assert_int_equal(m.net_rx_bytes, 1);
	assert_int_equal(m.net_tx_bytes, 2);
	assert_int_equal(m.disk_bytes, -1);
}

/* ---- registry, task -------------------------------------------------------- */

static void
capabilities_are_the_commands_that_there_are(void **state)
{
	static const struct {
		enum command_text t;
		unsigned bit;
	} rows[] = {
		{ COMMAND_FORWARD, SANDBOX_CAP_PORT_FORWARD },
		{ COMMAND_METRICS, SANDBOX_CAP_METRICS },
	};
	struct err e = { .code = 0 };
	struct command *c = make_command("bare");

	(void)state;
	assert_int_equal(command_register(c, &e), 0);
	assert_int_equal(c->provider.capabilities, SANDBOX_CAP_EXEC);
	assert_ptr_equal(command_find("bare"), c);
	assert_ptr_equal(sandbox_find("bare", &e), &c->provider);
	assert_int_equal(command_register(make_command("bare"), &e), -EEXIST);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char name[16];

		snprintf(name, sizeof(name), "with%zu", i);
		c = make_command(name);
		set(c, rows[i].t, "x");
		assert_int_equal(command_register(c, &e), 0);
		assert_int_equal(
		    c->provider.capabilities, SANDBOX_CAP_EXEC | rows[i].bit);
	}
	c = make_command("with-suspend");
	set(c, COMMAND_SUSPEND, "x");
	set(c, COMMAND_RESUME, "x");
	assert_int_equal(command_register(c, &e), 0);
	assert_int_equal(
	    c->provider.capabilities, SANDBOX_CAP_EXEC | SANDBOX_CAP_SUSPEND);
}

static void
a_task_takes_its_provider_along(void **state)
{
	struct command *c = make_command("far");
	struct task t = { .op = TASK_REAP, .arg = "ses-1", .command = c }, got;
	struct buf b = { 0 };

	(void)state;
	t.spec = make_spec("far");
	snprintf(t.spec.address, sizeof(t.spec.address), "there");
	set(c, COMMAND_CREATE, "a {name}\nb");
	task_encode(&b, &t);
	assert_int_equal(task_decode(buf_head(&b), buf_len(&b), &got), 0);
	assert_int_equal(got.op, TASK_REAP);
	assert_string_equal(got.arg, "ses-1");
	assert_string_equal(got.spec.address, "there");
	assert_string_equal(got.command->text[COMMAND_CREATE], "a {name}\nb");
	assert_string_equal(got.command->env[0], c->env[0]);
	assert_int_equal(got.command->create_ms, 3000);
	command_free(got.command);
	for (size_t n = 0; n < buf_len(&b); n++)
		assert_int_equal(task_decode(buf_head(&b), n, &got), -EPROTO);
	buf_release(&b);
	command_free(c);
}

/* ---- calls ----------------------------------------------------------------- */

static int
call(const void *argv, uint32_t ms, struct buf *out, struct err *e)
{
	static const char *const env[] = { "PATH=" ENGINE_PATH, "A=b", NULL };
	struct engine_call c = {
		.argv = argv,
		.env = (char *const *)(uintptr_t)env,
		.input = "in\n",
		.timeout_ms = ms,
	};

	return engine_run(&c, out, e);
}

static void
a_call_has_input_output_environment_and_code(void **state)
{
	const char *const argv[] = { "sh", "-c", "cat; echo $A$HOME; exit 3",
		NULL };
	struct err e = { .code = 0 };
	struct buf out = { 0 };

	(void)state;
	assert_int_equal(call(argv, 5000, &out, &e), 3);
	assert_int_equal(buf_len(&out), 5);
	assert_memory_equal(buf_head(&out), "in\nb\n", 5);
	assert_string_equal(e.msg, "sh ended with 3");
	buf_release(&out);
}

static void
what_an_engine_says_last_is_the_reason(void **state)
{
	static const struct {
		const char *script, *why;
	} rows[] = {
		{ "echo one >&2; echo two. >&2; exit 1", "two" },
		{ "printf 'a\\n\\n' >&2; exit 1", "a" },
		{ "printf 'Error: x\\nTry this' >&2; exit 1", "Error: x" },
		{ "printf 'a\\033[31mb' >&2; exit 1", "a\\e[31mb" },
		{ "kill -9 $$", "sh was ended by signal 9" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *const argv[] = { "sh", "-c", rows[i].script, NULL };
		struct err e = { .code = 0 };

		assert_true(call(argv, 5000, NULL, &e) > 0);
		assert_string_equal(e.msg, rows[i].why);
	}
}

static void
a_call_that_hangs_is_ended_with_its_children(void **state)
{
	const char *const argv[] = { "sh", "-c", "sleep 60 & sleep 60", NULL };
	const char *const none[] = { "no-such-engine", NULL };
	int64_t began = clock_mono_ms();
	struct err e = { .code = 0 };

	(void)state;
	assert_int_equal(call(argv, 300, NULL, &e), -ETIMEDOUT);
	assert_string_equal(e.msg, "sh does not answer within 1 s");
	assert_true(clock_mono_ms() - began < 5000);
	assert_int_equal(call(none, 300, NULL, &e), 127);
	assert_string_equal(
	    e.msg, "cannot run no-such-engine: No such file or directory");
}

static void
a_flood_of_output_is_cut(void **state)
{
	const char *const argv[] = { "sh", "-c",
		"head -c 3000000 /dev/zero; head -c 300000 /dev/zero >&2",
		NULL };
	struct err e = { .code = 0 };
	struct buf out = { 0 };

	(void)state;
	assert_int_equal(call(argv, 10000, &out, &e), 0);
	assert_true(buf_len(&out) <= ENGINE_OUTPUT_MAX);
	buf_release(&out);
}

/* ---- inside ---------------------------------------------------------------- */

static void
the_leader_has_what_it_is_given_and_no_more(void **state)
{
	const char *const argv[] = { "sh", "-c",
		"echo \"$0,$1,$A,$c,$berth_c,$PWD\"", "zero", "$(id) 'x",
		NULL };
	const char *const env[] = { "A=b c", "c=kept", "1bad=x", "bad-name=x",
		NULL };
	struct sandbox_run r = {
		.sid = "ses-0123456789abcdef",
		.argv = (char *const *)(uintptr_t)argv,
		.env = (char *const *)(uintptr_t)env,
		.cwd = "/",
	};
	char **v = leader_start(&r);
	struct err e = { .code = 0 };
	struct buf out = { 0 };

	(void)state;
	assert_int_equal(call(v, 5000, &out, &e), 0);
	buf_put_u8(&out, 0);
	assert_string_equal(
	    (const char *)buf_head(&out), "zero,$(id) 'x,b c,kept,,/\n");
	buf_release(&out);
	strv_free(v);
	r.cwd = "/no/such";
	v = leader_start(&r);
	assert_int_equal(call(v, 5000, NULL, &e), 126);
	strv_free(v);
}

static void
a_signal_for_a_session_that_has_ended_is_success(void **state)
{
	char **v = leader_signal("ses-none");
	struct err e = { .code = 0 };

	(void)state;
	assert_int_equal(call(v, 5000, NULL, &e), 0);
	strv_free(v);
}

static void
the_client_gets_its_words_and_the_signals_theirs(void **state)
{
	const char *const client[] = { "c", "1", NULL };
	const char *const signal[] = { "s", "x", "y", NULL };
	static const char *const want[] = { "berth-sandbox", CLIENT_FLAG, "70",
		"3", "s", "x", "y", "c", "1" };
	char **v = client_argv((char *const *)(uintptr_t)client,
	    (char *const *)(uintptr_t)signal, 70);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		assert_string_equal(v[i], want[i]);
	assert_null(v[ARRAY_LEN(want)]);
	strv_free(v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(placeholders_stand_for_what_the_spec_says),
		cmocka_unit_test(names_for_dns_are_valid_and_differ),
		cmocka_unit_test(words_of_status_are_phases),
		cmocka_unit_test(metrics_that_nobody_counts_are_minus_one),
		cmocka_unit_test(capabilities_are_the_commands_that_there_are),
		cmocka_unit_test(a_task_takes_its_provider_along),
		cmocka_unit_test(a_call_has_input_output_environment_and_code),
		cmocka_unit_test(what_an_engine_says_last_is_the_reason),
		cmocka_unit_test(a_call_that_hangs_is_ended_with_its_children),
		cmocka_unit_test(a_flood_of_output_is_cut),
		cmocka_unit_test(the_leader_has_what_it_is_given_and_no_more),
		cmocka_unit_test(
		    a_signal_for_a_session_that_has_ended_is_success),
		cmocka_unit_test(
		    the_client_gets_its_words_and_the_signals_theirs),
	};

	signal(SIGPIPE, SIG_IGN); /* as berth-sandbox does */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
