/*
 * The query filter: nothing that makes a terminal answer passes, everything
 * else passes byte for byte, wherever the input is cut. CASES A1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "screen/query_filter.h"
#include "tests/unit/unit.h"

static const char *const query_asking[] = {
	"\033[c", "\033[0c", "\033[>c", "\033[>0c", "\033[=c", "\033Z",
	"\302\232",  /* DECID as C1 */
	"\302\233c", /* CSI as C1 */
	"\033[5n", "\033[6n", "\033[06n", "\033[?6n", "\033[?15n", "\033[?25n",
	"\033[?26n", "\033[?53n", "\033[?996n", "\033[?2026$p", "\033[4$p",
	"\033[>q", "\033[>0q", "\033[?u", "\033[11t", "\033[13t", "\033[13;2t",
	"\033[14t", "\033[14;2t", "\033[15t", "\033[16t", "\033[18t",
	"\033[19t", "\033[20t", "\033[21t", "\033[x", "\033[1x",
	"\033[1;1;1;1;2;2*y", "\033[?4m", "\033[?1;1;0S", "\033[1$w", "\033[&u",
	"\033P$qm\033\\", "\033P$q q\033\\", "\033P+q544e\033\\",
	"\302\220$qm\302\234", "\033]10;?\007", "\033]11;?\033\\",
	"\033]12;?\302\234", "\302\23511;?\007", "\033]011;?\007",
	"\033]19;?\007", "\033]10;?;?\007", "\033]4;1;?\007",
	"\033]4;1;#112233;2;?\007", "\033]5;0;?\033\\", "\033]10;#112233;?\007",
	"\033]52;c;?\007", "\033]52;;?\033\\", "\033]21;foreground=?\033\\",
	"\033]22;?__current__\033\\", "\033]50;?\007",
	"\033]1337;ReportCellSize\007",
	"\033_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\033\\", "\033_Ga=q,i=1\033\\",
	"\005", /* ENQ */
};

static const char *const query_innocent[] = {
	"plain text\r\n\t\b\a",
	"\303\251\343\201\202\360\237\231\202 \302\240\302\205",
	"\377\300\200\343\201x\302x",
	"\033[31m\033[38;2;1;2;3m\033[m",
	"\033[0n",            /* an answer */
	"\033[?1;2c\033[?1c", /* an answer; the Linux console's cursor */
	"\033[>4;1m\033[>4n", /* key modifiers */
	"\033[8;40;100t\033[22;0t\033[23;0t\033[1t",
	"\033[?2026h\033[?1049h\033[?25l\033[?1$r",
	"\033[2 q\033[>1u\033[<u\033[=1;1u\033[u\033[s",
	"\033[1;1;2;2$x\033[2*x",
	"\033[!p\033[5i\033[4y",
	"\033]0;what?\007\033]2;a?b\033\\",
	"\033]10;#ffffff\007\033]4;1;rgb:11/22/33\033\\\033]104\007",
	"\033]52;c;aGVsbG8=\007\033]9;note\007\033]777;notify;a;b?\007",
	"\033]8;;http://h/?q=1\033\\link\033]8;;\033\\",
	"\033]600;x\007\033]1337;File=inline=1:AAAA?\007",
	"\033]133;A\007\033]7;file://h/?\007",
	"\033P0;1q#0~~@@\033\\\033P1$r0m\033\\\033Ptmux;x\033\\",
	"\033_Ga=T,f=100;a=q?\033\\\033^pm?\033\\\033Xsos?\033\\",
	"\0337\0338\033(B\033#8\033=\033>\033c\033\\",
	"\033[3\n1m\033[4\3031m",
	"\033[3\030\033[3\032x\033]0;t\030x",
	"\033]0;cut\033[31mx\033]0;cut\033]0;t\007",
	"\033\033[31m\033\303\251\033\2005",
	"\302\23331m\302\2350;t\302\234\302\220q\302\234",
	"\033[3\302\23331m\302\302\240",
};

/* Filters N bytes of IN in two parts, the first of CUT bytes, and finishes. */
static size_t
query_cut(const char *in, size_t n, size_t cut, uint8_t *out)
{
	static struct query_filter f;
	const uint8_t *p = (const uint8_t *)in;
	size_t len;

	query_filter_init(&f);
	len = query_filter_run(&f, p, cut, out);
	len += query_filter_run(&f, p + cut, n - cut, out + len);
	return len + query_filter_finish(&f, out + len);
}

/* The same one byte at a time. */
static size_t
query_bytes(const char *in, size_t n, uint8_t *out)
{
	static struct query_filter f;
	size_t len = 0;

	query_filter_init(&f);
	for (size_t i = 0; i < n; i++)
		len +=
		    query_filter_run(&f, (const uint8_t *)in + i, 1, out + len);
	return len + query_filter_finish(&f, out + len);
}

static void
query_expect(const char *in, const char *want)
{
	uint8_t out[QUERY_HELD_MAX * 2];
	size_t n = strlen(in), len;

	for (size_t cut = 0; cut <= n + 1; cut++) {
		len = cut <= n ? query_cut(in, n, cut, out)
			       : query_bytes(in, n, out);
		out[len] = '\0';
		if (strcmp((char *)out, want) != 0)
			fail_msg("%s cut at %zu gives %s, not %s", in + 1, cut,
			    (char *)out + (out[0] == 27), want);
	}
}

static void
queries_never_pass(void **state)
{
	char in[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(query_asking); i++) {
		query_expect(query_asking[i], "");
		snprintf(in, sizeof(in), "a%sb", query_asking[i]);
		query_expect(in, "ab");
	}
}

static void
the_whole_list_of_a1_gives_nothing(void **state)
{
	(void)state;
	query_expect("\033[c\033[>c\033[=c\033[6n\033[5n\033[>q\033]10;?\007"
		     "\033]11;?\033\\\033]4;1;?\007\033[?2026$p"
		     "\033P+q544e\033\\\033[?u\033[14t\033[18t\033]52;c;?\007",
	    "");
}

static void
everything_else_passes_byte_for_byte(void **state)
{
	char all[2048] = "";
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(query_innocent); i++) {
		query_expect(query_innocent[i], query_innocent[i]);
		n += (size_t)snprintf(
		    all + n, sizeof(all) - n, "%s", query_innocent[i]);
	}
	query_expect(all, all);
}

static void
only_the_query_of_a_mixture_is_removed(void **state)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		/* executed controls stay */
		{ "\033[6\r\nn", "\r\n" },
		{ "\033\b[6n", "\b" },
		{ "\033\b]11;?\007", "\b" },
		{ "\033[3\0051m", "\033[31m" },
		{ "\303\005", "\303\030" },
		/* an aborted query is followed by what aborted it */
		{ "\033]11;?\033[31m", "\033[31m" },
		{ "\033]11;?\033[6n", "" },
		{ "\033]11;?\030x", "\030x" },
		{ "\033]0;t\033[6nx", "\033]0;t\030x" },
		{ "\033[6\033[6n", "\033[6\030" },
		{ "\033[?1\302\233c", "\033[?1\030" },
		{ "\033Ptmux;\033\033[6n\033\\", "\033Ptmux;\033\030\033\\" },
		{ "\302\033[c", "\302\030" },
		{ "\033\302\233c", "\033\030" },
		{ "\343\201\033[cx", "\343\201\030x" },
		/* what is left must not make up a query */
		{ "\033[\033[cc", "\033[\030c" },
		{ "\033]1\033[c1;?\007", "\033]1\0301;?\007" },
		{ "\302\005\233c", "\302\030\233c" },
		{ "\033P$qm\007still\033\\x", "x" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		query_expect(rows[i].in, rows[i].out);
}

static void
an_unfinished_sequence_comes_out_at_the_end(void **state)
{
	static const char *const rows[] = { "\033", "\033[", "\033[6",
		"\033]11;?", "\033]11;?\033", "\033P+q544e", "\302" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		query_expect(rows[i], rows[i]);
}

/* BEFORE, 10000 times FILL, AFTER must give OUT for the same amount of fill. */
static void
query_expect_long(const char *before, char fill, const char *after,
    const char *want_before, size_t want_fill, const char *want_after)
{
	static char in[12000], want[12000];
	static uint8_t out[12000 + QUERY_HELD_MAX];
	size_t n = strlen(before), w = strlen(want_before), len;

	memcpy(in, before, n);
	memset(in + n, fill, 10000);
	memcpy(in + n + 10000, after, strlen(after));
	n += 10000 + strlen(after);
	memcpy(want, want_before, w);
	memset(want + w, fill, want_fill);
	memcpy(want + w + want_fill, want_after, strlen(want_after));
	w += want_fill + strlen(want_after);
	for (size_t cut = 0; cut <= n; cut += cut < 10 ? 1 : 411) {
		len = query_cut(in, n, cut, out);
		assert_int_equal(len, w);
		assert_memory_equal(out, want, w);
	}
	assert_int_equal(query_bytes(in, n, out), w);
	assert_memory_equal(out, want, w);
}

static void
a_long_string_passes_without_being_held(void **state)
{
	static const char *const rows[][2] = {
		{ "x\033P0;1q", "\033\\y" },
		{ "\033]0;", "\007y" },
		{ "\033]52;c;", "\033\\y" },
		{ "\033]4;1;#112233;", "\302\234y" },
		{ "\033_Ga=T;", "\033\\y" },
		{ "\033X", "\033\\y" },
		{ "\033P0;1q", "\033[31my" },
		{ "\033P0;1q", "\030y" },
		{ "\033P0;1q", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		query_expect_long(
		    rows[i][0], '~', rows[i][1], rows[i][0], 10000, rows[i][1]);
}

static void
a_long_query_does_not_pass(void **state)
{
	(void)state;
	query_expect_long("\033P+q", '4', "\033\\y", "", 0, "y");
	query_expect_long("\033P+q", '4', "\033[31my", "", 0, "\033[31my");
	query_expect_long("\033[", '0', "6ny", "", 0, "y");
	query_expect_long("\033[", '0', "\r6ny", "", 0, "\ry");
	query_expect_long("\033_Ga=q;", 'A', "\033\\y", "", 0, "y");
	query_expect_long("\033]11;?", ';', "\007y", "", 0, "y");
	/* it asks late: the terminal has to forget what it got */
	query_expect_long(
	    "\033]4;1;", '1', "?;2;?\007y", "\033]4;1;", 10000, "\030y");
	/* the live rest still needs its introducer */
	query_expect_long("\033P+q", '4', "", "", 0, "\033P");
	query_expect_long("\033[", '0', "6", "", 0, "\033[");
	query_expect_long("\033P+q", '4', "\033", "", 0, "\033P\033");
}

static void
any_bytes_fit_the_promised_room(void **state)
{
	static struct query_filter f;
	unsigned seed = 7;

	(void)state;
	query_filter_init(&f);
	for (unsigned i = 0; i < 3000; i++) {
		static const char likely[] = "\033[]P_?;06nc$q+G\302\233\234"
					     "\\\005\030\007\n";
		size_t n = 1 + i % 300;
		uint8_t *in = xmalloc(n);
		uint8_t *out = xmalloc(n + QUERY_HELD_MAX);

		for (size_t k = 0; k < n; k++) {
			seed = seed * 1103515245 + 12345;
			in[k] = (uint8_t)likely[(seed >> 16) % sizeof(likely)];
		}
		assert_true(
		    query_filter_run(&f, in, n, out) <= n + QUERY_HELD_MAX);
		free(in);
		free(out);
	}
}

struct query_seen {
	size_t n_calls, n;
	uint8_t q[64];
};

static void
query_on_query(void *arg, const uint8_t *q, size_t n, const uint8_t *out)
{
	struct query_seen *seen = arg;

	(void)out;
	seen->n_calls++;
	seen->n = n;
	if (n <= sizeof(seen->q))
		memcpy(seen->q, q, n);
}

static void
who_asks_to_be_called_hears_every_query_once(void **state)
{
	static struct query_filter f;
	struct query_seen seen = { 0 };
	uint8_t out[QUERY_HELD_MAX * 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(query_asking); i++) {
		size_t n = strlen(query_asking[i]);

		if (query_asking[i][0] == 0x05)
			continue; /* ENQ: nobody answers it */
		seen = (struct query_seen){ 0 };
		query_filter_init(&f);
		f.on_query = query_on_query;
		f.arg = &seen;
		query_filter_run(&f, (const uint8_t *)query_asking[i], n, out);
		if (f.n_held) /* ends with the ESC of what may be ST */
			query_filter_run(&f, (const uint8_t *)"x", 1, out);
		if (seen.n_calls != 1 || seen.n > n)
			fail_msg(
			    "%s: %zu calls", query_asking[i] + 1, seen.n_calls);
	}
}

/* A query whose head went out in time is cancelled, and told whole. */
static void
a_query_that_was_late_ends_in_can(void **state)
{
	static struct query_filter f;
	struct query_seen seen;
	char all[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(query_asking); i++) {
		const uint8_t *q = (const uint8_t *)query_asking[i];
		size_t n = strlen(query_asking[i]);

		for (size_t cut = 1; cut < n && q[0] == 0x1b; cut++) {
			uint8_t *out = (uint8_t *)all;
			size_t len;

			seen = (struct query_seen){ 0 };
			query_filter_init(&f);
			f.on_query = query_on_query;
			f.arg = &seen;
			len = query_filter_run(&f, q, cut, out);
			len += query_filter_release(&f, out + len);
			assert_int_equal(query_filter_release(&f, out), 0);
			assert_false(query_filter_is_holding(&f));
			len +=
			    query_filter_run(&f, q + cut, n - cut, out + len);
			len += query_filter_run(
			    &f, (const uint8_t *)"tail", 4, out + len);
			if (seen.n_calls == 0)
				continue; /* cut behind a BEL */
			assert_int_equal(seen.n_calls, 1);
			assert_memory_equal(out, q, cut);
			assert_memory_equal(out + len - 5, "\030tail", 5);
		}
	}
}

static void
what_is_released_and_innocent_is_given_out_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(query_innocent); i++) {
		const uint8_t *p = (const uint8_t *)query_innocent[i];
		size_t n = strlen(query_innocent[i]);

		for (size_t cut = 0; cut <= n; cut++) {
			static struct query_filter f;
			uint8_t out[QUERY_HELD_MAX * 2];
			size_t len;

			query_filter_init(&f);
			len = query_filter_run(&f, p, cut, out);
			len += query_filter_release(&f, out + len);
			len +=
			    query_filter_run(&f, p + cut, n - cut, out + len);
			len += query_filter_finish(&f, out + len);
			if (len != n || memcmp(out, p, n) != 0)
				fail_msg("%s cut at %zu", p + 1, cut);
		}
	}
}

static void
clean_is_what_would_pass_as_it_is(void **state)
{
	static const char *const clean[] = { "a\r\nb", "\033[1;32mok\033[m",
		"\033[?25l\033[2J\033[H", "r\303\251ponse \342\234\223",
		"\360\237\230\200", "\302\240" };
	static const char *const dirty[] = { "a\005", "a\033", "\303", "\033[1",
		"\033[c", "\033[6n", "\033[?6n", "\033[?m", "\033[>q",
		"\033[?1$p", "\033[18t", "\033]0;x\a", "\302\2336n",
		"\342\302\2336n", "\033[1\r6n", "\033[?u" };
	static struct query_filter f;
	uint8_t out[QUERY_HELD_MAX * 2];

	(void)state;
	query_filter_init(&f);
	for (size_t i = 0; i < ARRAY_LEN(clean); i++) {
		const uint8_t *p = (const uint8_t *)clean[i];
		size_t n = strlen(clean[i]);

		if (!query_filter_is_clean(&f, p, n))
			fail_msg("not clean: %zu", i);
		assert_int_equal(query_filter_run(&f, p, n, out), n);
		assert_memory_equal(out, p, n);
	}
	for (size_t i = 0; i < ARRAY_LEN(dirty); i++) {
		if (query_filter_is_clean(
			&f, (const uint8_t *)dirty[i], strlen(dirty[i])))
			fail_msg("clean: %zu", i);
	}
	query_filter_run(&f, (const uint8_t *)"\033[", 2, out);
	assert_false(query_filter_is_clean(&f, (const uint8_t *)"a", 1));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(queries_never_pass),
		cmocka_unit_test(the_whole_list_of_a1_gives_nothing),
		cmocka_unit_test(everything_else_passes_byte_for_byte),
		cmocka_unit_test(only_the_query_of_a_mixture_is_removed),
		cmocka_unit_test(an_unfinished_sequence_comes_out_at_the_end),
		cmocka_unit_test(a_long_string_passes_without_being_held),
		cmocka_unit_test(a_long_query_does_not_pass),
		cmocka_unit_test(any_bytes_fit_the_promised_room),
		cmocka_unit_test(who_asks_to_be_called_hears_every_query_once),
		cmocka_unit_test(a_query_that_was_late_ends_in_can),
		cmocka_unit_test(
		    what_is_released_and_innocent_is_given_out_once),
		cmocka_unit_test(clean_is_what_would_pass_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
