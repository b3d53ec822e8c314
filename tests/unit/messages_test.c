/*
 * The payloads of the frames: golden bytes of each, and that a decoder takes
 * exactly those: not one byte less, not one more, nothing out of range.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "sessions/wire/frame.h"
#include "sessions/wire/messages.h"
#include "tests/unit/unit.h"

/* Worked out from the shapes in the headers, not from what the code writes. */
static const char golden_exit[] = "01010000000900000003776879";

static const char golden_size[] = "0000007800000028000004b000000320";

static const char golden_launch[] =
    "00000002000000057365732d3100000003622b640000000000000007000002ab"
    "000000072f62696e2f736800000002000000027368000000022d6300"
    "00000100000003413d31000000022f77000003e8000003e900000003"
    "626f7800000050000000180000000000000000000000000010000000"
    "001388000003e8000000001000000000000000000000000000271000"
    "000004"
    "0000000100002710000000000080000002"
    "00000061010000006400"
    "000000046e28312900d0d0d00000000000ff8000"
    "00000005787465726d"
    "00000000000000200000000004000000";

static const char golden_viewer[] =
    "000000000000002a000000070000000a0000007800000028000004b0"
    "000003200000000200000003413d62000000026c73"
    "00000005616c696365";

static const char golden_viewer_1[] =
    "000000000000002a000000070000000a0000007800000028000004b0"
    "00000320";

static const char golden_left[] = "000000000000002a01020304050607080000"
				  "000000000003000000040000000000000005";

static const char golden_left_1[] = "000000000000002a01020304050607080000"
				    "00000000000300000004";

static const char golden_take[] = "000000020000000000000009";

static const char golden_entry[] =
    "7c0200000000000000000064000000042f6f6f6d00000002000000022f610000"
    "00022f62";

static const char golden_stats[] =
    "01020304050607080000000000000002000000780000002800000000"
    "00000003000000000000000400000005";

static const char golden_exited[] =
    "010100000009000000037768790000018bcfe5687b01020304050607"
    "08000000000000000200000078000000280000000000000003000000"
    "00000000040000000502";

static const char golden_hello[] =
    "00000001000000057365732d31000000000000000701000010920000"
    "00000000006301020304050607080000000000000002000000780000"
    "0028000000000000000300000000000000040000000500000003";

static const char golden_auth[] =
    "0200000005626f782b610000000b7373682d65643235353139000000"
    "0441414141000000095353482d322e302d78";

static const char golden_run[] =
    "010100000005787465726d0000007800000028000004b00000032000"
    "000002000000064c414e473d4300000003413d62000000026c73";

static const char golden_settings[] =
    "0000000200000005636f6e2d31000000075b3a3a315d3a390000753000007530"
    "000000030000004000000000001000000201000000010000000350454d";

static const char golden_forward[] =
    "00000007000000033a3a310000005000000001610000ea60";

static const char golden_listen[] = "000000012a00001f90";

static const char golden_forward_end[] =
    "0000000700000000000000030102030405060708";

static struct buf
from_hex(const char *hex)
{
	struct buf b = { 0 };

	for (size_t i = 0; hex[i]; i += 2) {
		unsigned v = 0;

		assert_int_equal(sscanf(hex + i, "%2x", &v), 1);
		buf_put_u8(&b, (uint8_t)v);
	}
	return b;
}

/* ---- the values behind the golden bytes ---------------------------------- */

static char s_sh[] = "sh", s_c[] = "-c", s_path[] = "/bin/sh", s_w[] = "/w",
	    s_a1[] = "A=1", s_lang[] = "LANG=C", s_ab[] = "A=b", s_ls[] = "ls",
	    s_key[] = "AAAA", s_pem[] = "PEM", s_alice[] = "alice";
static char *v_argv[] = { s_sh, s_c, NULL }, *v_env[] = { s_a1, NULL },
	    *v_run_env[] = { s_lang, s_ab, NULL }, *v_keys[] = { s_pem, NULL };

static const struct wire_size in_size = { 120, 40, 1200, 800 };
static const struct wire_exit in_exit = {
	.is_signal = 1, .core_dumped = 1, .value = 9, .note = "why"
};
static const struct wire_stats in_stats = { 0x0102030405060708, 2, 120, 40, 3,
	4, 5 };

static const struct wire_launch in_launch = {
	.version = 2,
	.sid = "ses-1",
	.title = "b+d",
	.generation = 7,
	.flags = LAUNCH_PTY | LAUNCH_BOUND | LAUNCH_RECORD | LAUNCH_SETUID |
		 LAUNCH_SSH_TTY,
	.path = s_path,
	.argv = v_argv,
	.env = v_env,
	.cwd = s_w,
	.uid = 1000,
	.gid = 1001,
	.user = "box",
	.size = { 80, 24, 0, 0 },
	.buffer_bytes = 1 << 20,
	.stop_grace_ms = 5000,
	.rec_flush_ms = 1000,
	.rec_min_free = 1 << 28,
	.rec_index_ms = 10000,
	.resize_policy = RESIZE_FIXED,
	.replay = REPLAY_RAW,
	.scrollback_lines = 10000,
	.scrollback_bytes = 8 << 20,
	.detach_key = { 2, { { 'a', 1 }, { 'd', 0 } } },
	.answer = { "n(1)", 0xd0d0d0, 0, 0xff8000 },
	.term = "xterm",
	.max_processes = 32,
	.max_data = 64 << 20,
};
static const struct wire_viewer in_viewer = { .attachment = 42,
	.flags = 7,
	.tail_lines = 10,
	.size = { 120, 40, 1200, 800 },
	.version = 2,
	.label = s_ab,
	.notice = s_ls,
	.identity = s_alice };
static const struct wire_left in_left = { 42, 0x0102030405060708, 3, 4, 5 };
static const struct wire_take in_take = { 2, 9 };
static char s_group_a[] = "/a", s_group_b[] = "/b", s_oom[] = "/oom";
static char *in_groups[] = { s_group_a, s_group_b, NULL };
static const struct wire_entry in_entry = { 0x7c020000, 100, s_oom, in_groups };
static const struct wire_auth in_auth = { .method = AUTH_KEY_PROVEN,
	.user = "box+a",
	.key_type = "ssh-ed25519",
	.key_base64 = s_key,
	.client_version = "SSH-2.0-x" };
static const struct wire_run in_run = { .kind = RUN_EXEC,
	.has_pty = 1,
	.term = "xterm",
	.size = { 120, 40, 1200, 800 },
	.env = v_run_env,
	.command = s_ls };
static const struct wire_settings in_settings = { .version = 2,
	.conn_id = "con-1",
	.remote_addr = "[::1]:9",
	.login_grace_ms = 30000,
	.keepalive_ms = 30000,
	.keepalive_count = 3,
	.max_channels = 64,
	.rekey_bytes = 1048576,
	.log_level = 2,
	.log_json = 1,
	.host_keys = v_keys };

static const struct wire_forward in_forward = {
	.id = 7, .host = "::1", .port = 80, .origin = "a", .origin_port = 60000
};
static const struct wire_listen in_listen = { "*", 8080 };
static const struct wire_forward_end in_forward_end = { 7, 3,
	0x0102030405060708 };

static struct wire_exited
in_exited(void)
{
	return (struct wire_exited){ .exit = in_exit,
		.exited_ms = 1700000000123,
		.stats = in_stats,
		.rec_state = 2 };
}

static struct wire_hello
in_hello(void)
{
	return (struct wire_hello){ .version = 1,
		.sid = "ses-1",
		.generation = 7,
		.state = STATE_RUNNING,
		.pid = 4242,
		.pid_start = 99,
		.stats = in_stats,
		.n_viewers = 3 };
}

/* ---- a row per payload: encode the value, or decode and encode again ------- */

static void
encode_exit(struct buf *b)
{
	wire_exit_encode(b, &in_exit);
}

static void
encode_size(struct buf *b)
{
	wire_size_encode(b, &in_size);
}

static void
encode_launch(struct buf *b)
{
	wire_launch_encode(b, &in_launch);
}

static void
encode_viewer(struct buf *b)
{
	wire_viewer_encode(b, &in_viewer, 2);
}

static void
encode_viewer_1(struct buf *b)
{
	wire_viewer_encode(b, &in_viewer, 1);
}

static void
encode_left(struct buf *b)
{
	wire_left_encode(b, &in_left, 2);
}

static void
encode_left_1(struct buf *b)
{
	wire_left_encode(b, &in_left, 1);
}

static void
encode_entry(struct buf *b)
{
	wire_entry_encode(b, &in_entry);
}

static void
encode_take(struct buf *b)
{
	wire_take_encode(b, &in_take);
}

static void
encode_stats(struct buf *b)
{
	wire_stats_encode(b, &in_stats);
}

static void
encode_exited(struct buf *b)
{
	struct wire_exited m = in_exited();

	wire_exited_encode(b, &m);
}

static void
encode_hello(struct buf *b)
{
	struct wire_hello m = in_hello();

	wire_hello_encode(b, &m);
}

static void
encode_auth(struct buf *b)
{
	wire_auth_encode(b, &in_auth);
}

static void
encode_run(struct buf *b)
{
	wire_run_encode(b, &in_run);
}

static void
encode_settings(struct buf *b)
{
	wire_settings_encode(b, &in_settings);
}

static void
encode_forward(struct buf *b)
{
	wire_forward_encode(b, &in_forward);
}

static void
encode_listen(struct buf *b)
{
	wire_listen_encode(b, &in_listen);
}

static void
encode_forward_end(struct buf *b)
{
	wire_forward_end_encode(b, &in_forward_end);
}

/* Decodes and, if that went well, encodes what came out into B. */
#define RECODE(kind, release)                                            \
	static int recode_##kind(const void *p, size_t n, struct buf *b) \
	{                                                                \
		struct wire_##kind m;                                    \
		int rc = wire_##kind##_decode(p, n, &m);                 \
                                                                         \
		if (rc < 0)                                              \
			return rc;                                       \
		wire_##kind##_encode(b, &m);                             \
		release;                                                 \
		return 0;                                                \
	}

RECODE(exit, (void)0)
RECODE(size, (void)0)
RECODE(launch, wire_launch_release(&m))
RECODE(take, (void)0)
RECODE(entry, wire_entry_release(&m))
RECODE(stats, (void)0)
RECODE(exited, (void)0)
RECODE(hello, (void)0)
RECODE(auth, wire_auth_release(&m))
RECODE(run, wire_run_release(&m))
RECODE(settings, wire_settings_release(&m))
RECODE(forward, (void)0)
RECODE(listen, (void)0)
RECODE(forward_end, (void)0)

/* The same for the shape of an older version. */
#define RECODE_VERSION(kind, v, release)                                       \
	static int recode_##kind##_##v(const void *p, size_t n, struct buf *b) \
	{                                                                      \
		struct wire_##kind m;                                          \
		int rc = wire_##kind##_decode(p, n, v, &m);                    \
                                                                               \
		if (rc < 0)                                                    \
			return rc;                                             \
		wire_##kind##_encode(b, &m, v);                                \
		release;                                                       \
		return 0;                                                      \
	}

RECODE_VERSION(viewer, 1, wire_viewer_release(&m))
RECODE_VERSION(viewer, 2, wire_viewer_release(&m))
RECODE_VERSION(left, 1, (void)0)
RECODE_VERSION(left, 2, (void)0)

static const struct payload {
	const char *golden;
	void (*encode)(struct buf *b);
	int (*recode)(const void *p, size_t n, struct buf *b);
} payloads[] = {
	{ golden_exit, encode_exit, recode_exit },
	{ golden_size, encode_size, recode_size },
	{ golden_launch, encode_launch, recode_launch },
	{ golden_viewer, encode_viewer, recode_viewer_2 },
	{ golden_viewer_1, encode_viewer_1, recode_viewer_1 },
	{ golden_left, encode_left, recode_left_2 },
	{ golden_left_1, encode_left_1, recode_left_1 },
	{ golden_take, encode_take, recode_take },
	{ golden_entry, encode_entry, recode_entry },
	{ golden_stats, encode_stats, recode_stats },
	{ golden_exited, encode_exited, recode_exited },
	{ golden_hello, encode_hello, recode_hello },
	{ golden_auth, encode_auth, recode_auth },
	{ golden_run, encode_run, recode_run },
	{ golden_settings, encode_settings, recode_settings },
	{ golden_forward, encode_forward, recode_forward },
	{ golden_listen, encode_listen, recode_listen },
	{ golden_forward_end, encode_forward_end, recode_forward_end },
};

static void
payloads_have_their_golden_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(payloads); i++) {
		struct buf want = from_hex(payloads[i].golden), got = { 0 };

		payloads[i].encode(&got);
		assert_int_equal(buf_len(&got), buf_len(&want));
		assert_memory_equal(
		    buf_head(&got), buf_head(&want), buf_len(&want));
		buf_release(&want);
		buf_release(&got);
	}
}

static void
golden_bytes_decode_to_what_was_encoded(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(payloads); i++) {
		struct buf want = from_hex(payloads[i].golden), got = { 0 };

		assert_int_equal(
		    payloads[i].recode(buf_head(&want), buf_len(&want), &got),
		    0);
		assert_int_equal(buf_len(&got), buf_len(&want));
		assert_memory_equal(
		    buf_head(&got), buf_head(&want), buf_len(&want));
		buf_release(&want);
		buf_release(&got);
	}
}

static void
truncation_at_every_length_is_eproto(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(payloads); i++) {
		struct buf b = from_hex(payloads[i].golden), out = { 0 };

		for (size_t n = 0; n < buf_len(&b); n++) {
			/* A copy, so that ASan sees a read past its end. */
			autofree void *p = xmemdup(buf_head(&b), n);

			assert_int_equal(
			    payloads[i].recode(p, n, &out), -EPROTO);
		}
		buf_release(&b);
		buf_release(&out);
	}
}

static void
trailing_byte_is_eproto(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(payloads); i++) {
		struct buf b = from_hex(payloads[i].golden), out = { 0 };

		buf_put_u8(&b, 0);
		assert_int_equal(
		    payloads[i].recode(buf_head(&b), buf_len(&b), &out),
		    -EPROTO);
		buf_release(&b);
		buf_release(&out);
	}
}

static void
any_byte_changed_decodes_or_fails_cleanly(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(payloads); i++) {
		struct buf b = from_hex(payloads[i].golden), out = { 0 };

		for (size_t at = 0; at < buf_len(&b); at++) {
			uint8_t old = b.data[at];

			for (unsigned bit = 0; bit < 8; bit++) {
				int rc;

				b.data[at] = old ^ (uint8_t)(1U << bit);
				rc = payloads[i].recode(
				    buf_head(&b), buf_len(&b), &out);
				assert_true(rc == 0 || rc == -EPROTO);
				buf_clear(&out);
			}
			b.data[at] = old;
		}
		buf_release(&b);
		buf_release(&out);
	}
}

static void
values_out_of_range_are_eproto(void **state)
{
	struct buf b = { 0 };
	struct wire_exit e = in_exit;
	struct wire_exited x = in_exited();
	struct wire_hello h = in_hello();
	struct wire_launch l = in_launch;
	struct wire_auth a = in_auth;
	struct wire_run r = in_run;
	struct wire_settings s = in_settings;

	(void)state;
#define REFUSED(kind, m)                                                      \
	do {                                                                  \
		struct buf out = { 0 };                                       \
                                                                              \
		buf_clear(&b);                                                \
		wire_##kind##_encode(&b, &(m));                               \
		assert_int_equal(                                             \
		    recode_##kind(buf_head(&b), buf_len(&b), &out), -EPROTO); \
	} while (0)
	e.is_signal = 2;
	REFUSED(exit, e);
	x.rec_state = 3;
	REFUSED(exited, x);
	h.state = STATE_EXITED + 1;
	REFUSED(hello, h);
	l.resize_policy = RESIZE_FIXED + 1;
	REFUSED(launch, l);
	l = in_launch;
	l.argv = NULL;
	REFUSED(launch, l);
	l = in_launch;
	l.replay = REPLAY_NONE + 1;
	REFUSED(launch, l);
	l = in_launch;
	l.detach_key.keys[1].is_ctrl = 2;
	REFUSED(launch, l);
	l = in_launch;
	l.answer.cursor = 0x1000000;
	REFUSED(launch, l);
	a.method = AUTH_KEY_PROVEN + 1;
	REFUSED(auth, a);
	r.kind = RUN_SUBSYSTEM + 1;
	REFUSED(run, r);
	r = in_run;
	r.has_pty = 2;
	REFUSED(run, r);
	s.host_keys = NULL;
	REFUSED(settings, s);
	buf_release(&b);
}

/* A vector of COUNT times the same string of LEN bytes, and the string. */
static char **
many(size_t count, char *s, size_t len)
{
	char **v = xcalloc(count + 1, sizeof(*v));

	memset(s, 'x', len);
	s[len] = '\0';
	for (size_t i = 0; i < count; i++)
		v[i] = s;
	return v;
}

static void
largest_request_and_launch_fit_a_frame(void **state)
{
	autofree char *env = xmalloc(WIRE_ENV_LEN_MAX + 1);
	autofree char *command = xmalloc(WIRE_COMMAND_MAX + 1);
	autofree char **one = many(1, command, WIRE_COMMAND_MAX);
	autofree char **run_env = many(WIRE_ENV_MAX, env, WIRE_ENV_LEN_MAX);
	autofree char **all_env =
	    many((size_t)2 * WIRE_ENV_MAX, env, WIRE_ENV_LEN_MAX);
	struct wire_run r = in_run;
	struct wire_launch l = in_launch;
	struct buf b = { 0 }, out = { 0 };

	(void)state;
	r.env = run_env;
	r.command = command;
	wire_run_encode(&b, &r);
	assert_true(buf_len(&b) <= FRAME_MAX);
	assert_int_equal(recode_run(buf_head(&b), buf_len(&b), &out), 0);
	buf_clear(&b);
	l.argv = one;
	l.env = all_env;
	wire_launch_encode(&b, &l);
	assert_true(buf_len(&b) + 2 * 4096 <= FRAME_MAX);
	assert_int_equal(recode_launch(buf_head(&b), buf_len(&b), &out), 0);
	buf_release(&b);
	buf_release(&out);
}

static void
header_has_its_golden_bytes(void **state)
{
	static const uint8_t want[FRAME_HEADER_SIZE] = { 0x80, 0x01, 0x02, 0x03,
		0x10, 0x02, 0xab, 0xcd };
	struct frame_header h = { .length = 0x010203,
		.type = FRAME_DATA,
		.arg = STREAM_ERR,
		.tag = 0xabcd,
		.has_fd = 1 };
	struct frame_header got;
	uint8_t out[FRAME_HEADER_SIZE];

	(void)state;
	frame_encode_header(&h, out);
	assert_memory_equal(out, want, sizeof(want));
	h.length = 0x0f0203;
	frame_encode_header(&h, out);
	assert_int_equal(frame_decode_header(out, &got), 0);
	assert_int_equal(got.length, h.length);
	assert_int_equal(got.type, h.type);
	assert_int_equal(got.arg, h.arg);
	assert_int_equal(got.tag, h.tag);
	assert_int_equal(got.has_fd, 1);
	h.length = FRAME_MAX;
	h.has_fd = 0;
	frame_encode_header(&h, out);
	assert_int_equal(frame_decode_header(out, &got), 0);
	assert_int_equal(got.has_fd, 0);
	h.length = FRAME_MAX + 1;
	frame_encode_header(&h, out);
	assert_int_equal(frame_decode_header(out, &got), -EPROTO);
	memset(out, 0xff, sizeof(out));
	assert_int_equal(frame_decode_header(out, &got), -EPROTO);
}

static void
frame_numbers_never_change(void **state)
{
	static const struct {
		unsigned type;
		unsigned number;
		const char *name;
	} rows[] = {
		{ FRAME_DATA, 0x10, "DATA" },
		{ FRAME_CREDIT, 0x11, "CREDIT" },
		{ FRAME_EOF, 0x12, "EOF" },
		{ FRAME_RESIZE, 0x13, "RESIZE" },
		{ FRAME_SIGNAL, 0x14, "SIGNAL" },
		{ FRAME_BREAK, 0x15, "BREAK" },
		{ FRAME_DETACH, 0x16, "DETACH" },
		{ FRAME_EXIT, 0x17, "EXIT" },
		{ FRAME_END, 0x18, "END" },
		{ FRAME_BORROW, 0x19, "BORROW" },
		{ FRAME_PIPE, 0x1a, "PIPE" },
		{ FRAME_BORROWED, 0x1b, "BORROWED" },
		{ FRAME_LAUNCH, 0x40, "LAUNCH" },
		{ FRAME_VIEWER, 0x41, "VIEWER" },
		{ FRAME_KILL, 0x42, "KILL" },
		{ FRAME_STOP, 0x43, "STOP" },
		{ FRAME_DROP, 0x44, "DROP" },
		{ FRAME_INPUT, 0x45, "INPUT" },
		{ FRAME_INPUT_EOF, 0x46, "INPUT_EOF" },
		{ FRAME_SET_SIZE, 0x47, "SET_SIZE" },
		{ FRAME_FLUSH, 0x48, "FLUSH" },
		{ FRAME_BYE, 0x49, "BYE" },
		{ FRAME_TAKE, 0x4a, "TAKE" },
		{ FRAME_SCREEN, 0x4b, "SCREEN" },
		{ FRAME_WHO, 0x4c, "WHO" },
		{ FRAME_ENTER, 0x50, "ENTER" },
		{ FRAME_HELLO, 0x60, "HELLO" },
		{ FRAME_STARTED, 0x61, "STARTED" },
		{ FRAME_FAILED, 0x62, "FAILED" },
		{ FRAME_VIEWER_ACK, 0x63, "VIEWER_ACK" },
		{ FRAME_VIEWER_GONE, 0x64, "VIEWER_GONE" },
		{ FRAME_INDEX, 0x65, "INDEX" },
		{ FRAME_STATS, 0x66, "STATS" },
		{ FRAME_EXITED, 0x67, "EXITED" },
		{ FRAME_VIEWERS, 0x68, "VIEWERS" },
		{ FRAME_TEXT, 0x69, "TEXT" },
		{ FRAME_VIEWER_STATS, 0x6a, "VIEWER_STATS" },
		{ FRAME_LOG, 0x6b, "LOG" },
		{ FRAME_AUTH, 0x80, "AUTH" },
		{ FRAME_OPEN, 0x81, "OPEN" },
		{ FRAME_ATTACH, 0x82, "ATTACH" },
		{ FRAME_RUN, 0x83, "RUN" },
		{ FRAME_AUTH_REPLY, 0xa0, "AUTH_REPLY" },
		{ FRAME_CHANNEL, 0xa1, "CHANNEL" },
		{ FRAME_CLOSE, 0xa2, "CLOSE" },
		{ FRAME_OK, 0xe0, "OK" },
		{ FRAME_ERROR, 0xe1, "ERROR" },
		{ 0, 0, "?" },
		{ 0xff, 0xff, "?" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(rows[i].type, rows[i].number);
		assert_string_equal(
		    frame_name((uint8_t)rows[i].type), rows[i].name);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(payloads_have_their_golden_bytes),
		cmocka_unit_test(golden_bytes_decode_to_what_was_encoded),
		cmocka_unit_test(truncation_at_every_length_is_eproto),
		cmocka_unit_test(trailing_byte_is_eproto),
		cmocka_unit_test(any_byte_changed_decodes_or_fails_cleanly),
		cmocka_unit_test(values_out_of_range_are_eproto),
		cmocka_unit_test(largest_request_and_launch_fit_a_frame),
		cmocka_unit_test(header_has_its_golden_bytes),
		cmocka_unit_test(frame_numbers_never_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
