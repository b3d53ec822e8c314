/*
 * Payloads of frames: whatever a decoder accepts it encodes again to the same
 * bytes, and what it refuses it leaves nothing of to free. The first byte
 * chooses the row, the rest is the payload.
 */
#include "sessions/wire/messages.h"
#include "tests/fuzz/fuzz.h"

typedef int (*wire_decode_fn)(const void *p, size_t n, void *out);
typedef void (*wire_encode_fn)(struct buf *b, const void *m);
typedef void (*wire_release_fn)(void *m);

/* The functions of NAME as ones that take any struct. */
#define WIRE_PLAIN(name)                                                    \
	static int fuzz_##name##_decode(const void *p, size_t n, void *out) \
	{                                                                   \
		return wire_##name##_decode(p, n, out);                     \
	}                                                                   \
	static void fuzz_##name##_encode(struct buf *b, const void *m)      \
	{                                                                   \
		wire_##name##_encode(b, m);                                 \
	}

#define WIRE_OWNING(name)                          \
	WIRE_PLAIN(name)                           \
	static void fuzz_##name##_release(void *m) \
	{                                          \
		wire_##name##_release(m);          \
	}

/* The same for a message whose shape depends on the version. */
#define WIRE_VERSIONED(name, version)                            \
	static int fuzz_##name##_##version##_decode(             \
	    const void *p, size_t n, void *out)                  \
	{                                                        \
		return wire_##name##_decode(p, n, version, out); \
	}                                                        \
	static void fuzz_##name##_##version##_encode(            \
	    struct buf *b, const void *m)                        \
	{                                                        \
		wire_##name##_encode(b, m, version);             \
	}

WIRE_PLAIN(exit)
WIRE_OWNING(launch)
WIRE_VERSIONED(viewer, 1)
WIRE_VERSIONED(viewer, 2)
WIRE_VERSIONED(left, 1)
WIRE_VERSIONED(left, 2)
WIRE_PLAIN(take)

static void
fuzz_viewer_release(void *m)
{
	wire_viewer_release(m);
}

WIRE_PLAIN(size)
WIRE_PLAIN(stats)
WIRE_PLAIN(exited)
WIRE_PLAIN(hello)
WIRE_OWNING(auth)
WIRE_OWNING(run)
WIRE_OWNING(settings)
WIRE_PLAIN(forward)
WIRE_PLAIN(listen)
WIRE_PLAIN(forward_end)
WIRE_OWNING(entry)

/* A new message is a row at the end: the corpus counts on the order. */
static const struct wire_row {
	wire_decode_fn decode;
	wire_encode_fn encode;
	wire_release_fn release; /* NULL: owns nothing */
	size_t size;
} wire_rows[] = {
	{ fuzz_exit_decode, fuzz_exit_encode, NULL, sizeof(struct wire_exit) },
	{ fuzz_launch_decode, fuzz_launch_encode, fuzz_launch_release,
	    sizeof(struct wire_launch) },
	{ fuzz_viewer_1_decode, fuzz_viewer_1_encode, fuzz_viewer_release,
	    sizeof(struct wire_viewer) },
	{ fuzz_size_decode, fuzz_size_encode, NULL, sizeof(struct wire_size) },
	{ fuzz_stats_decode, fuzz_stats_encode, NULL,
	    sizeof(struct wire_stats) },
	{ fuzz_exited_decode, fuzz_exited_encode, NULL,
	    sizeof(struct wire_exited) },
	{ fuzz_hello_decode, fuzz_hello_encode, NULL,
	    sizeof(struct wire_hello) },
	{ fuzz_auth_decode, fuzz_auth_encode, fuzz_auth_release,
	    sizeof(struct wire_auth) },
	{ fuzz_run_decode, fuzz_run_encode, fuzz_run_release,
	    sizeof(struct wire_run) },
	{ fuzz_settings_decode, fuzz_settings_encode, fuzz_settings_release,
	    sizeof(struct wire_settings) },
	{ fuzz_viewer_2_decode, fuzz_viewer_2_encode, fuzz_viewer_release,
	    sizeof(struct wire_viewer) },
	{ fuzz_left_1_decode, fuzz_left_1_encode, NULL,
	    sizeof(struct wire_left) },
	{ fuzz_left_2_decode, fuzz_left_2_encode, NULL,
	    sizeof(struct wire_left) },
	{ fuzz_take_decode, fuzz_take_encode, NULL, sizeof(struct wire_take) },
	{ fuzz_forward_decode, fuzz_forward_encode, NULL,
	    sizeof(struct wire_forward) },
	{ fuzz_listen_decode, fuzz_listen_encode, NULL,
	    sizeof(struct wire_listen) },
	{ fuzz_forward_end_decode, fuzz_forward_end_encode, NULL,
	    sizeof(struct wire_forward_end) },
	{ fuzz_entry_decode, fuzz_entry_encode, fuzz_entry_release,
	    sizeof(struct wire_entry) },
};

/* Decodes P of N bytes, encodes it and compares. */
static int
wire_round_trip(const struct wire_row *row, const uint8_t *p, size_t n)
{
	void *m = xmalloc(row->size);
	struct buf b = { 0 };
	int rc;

	/* Nothing that was there before may be taken for content. */
	memset(m, 0xa5, row->size);
	rc = row->decode(p, n, m);
	FUZZ_CHECK(rc <= 0);
	if (rc == 0) {
		row->encode(&b, m);
		FUZZ_CHECK(buf_len(&b) == n);
		FUZZ_CHECK(n == 0 || memcmp(buf_head(&b), p, n) == 0);
		if (row->release)
			row->release(m);
		buf_release(&b);
	}
	free(m);
	return rc;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	const struct wire_row *row;
	uint8_t *longer;

	if (n == 0)
		return 0;
	row = &wire_rows[p[0] % ARRAY_LEN(wire_rows)];
	p++;
	n--;
	if (wire_round_trip(row, p, n) < 0)
		return 0;
	/* Exactly these bytes: one more or one less is no message. */
	longer = xmalloc(n + 1);
	memcpy(longer, p, n);
	longer[n] = 0;
	FUZZ_CHECK(wire_round_trip(row, longer, n + 1) < 0);
	FUZZ_CHECK(n == 0 || wire_round_trip(row, p, n - 1) < 0);
	free(longer);
	return 0;
}
