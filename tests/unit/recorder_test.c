/*
 * The recorder: what reaches the file, in which order, and what happens when
 * the disk is full, slow or stuck. The disk is a memory file behind a pwrite()
 * of this test that can refuse and block. CASES D1, D2, D3, D7, D8, D10.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text.h"
#include "sessions/keeper/recorder.h"
#include "tests/unit/unit.h"

#define DEADLINE_MS 20000
#define FFFD        "\357\277\275"

/* The disk: files end at `limit`, and writes wait while `is_stuck`. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	uint64_t limit;
	bool is_stuck;
	unsigned n_waiting;
} disk = { .lock = PTHREAD_MUTEX_INITIALIZER,
	.moved = PTHREAD_COND_INITIALIZER,
	.limit = UINT64_MAX };

ssize_t pwrite(int fd, const void *p, size_t n, off_t at);

ssize_t
pwrite(int fd, const void *p, size_t n, off_t at)
{
	uint64_t room;

	pthread_mutex_lock(&disk.lock);
	disk.n_waiting++;
	while (disk.is_stuck)
		pthread_cond_wait(&disk.moved, &disk.lock);
	disk.n_waiting--;
	room = disk.limit > (uint64_t)at ? disk.limit - (uint64_t)at : 0;
	pthread_mutex_unlock(&disk.lock);
	if (!room) {
		errno = ENOSPC;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, p, n < room ? n : (size_t)room, at);
}

static void
disk_set(uint64_t limit, bool is_stuck)
{
	pthread_mutex_lock(&disk.lock);
	disk.limit = limit;
	disk.is_stuck = is_stuck;
	pthread_cond_broadcast(&disk.moved);
	pthread_mutex_unlock(&disk.lock);
}

static int
disk_reset(void **state)
{
	(void)state;
	disk_set(UINT64_MAX, false);
	return 0;
}

/* A recorder under test: its file stays open here for reading. */
struct rec {
	struct recorder *r;
	int fd;
	struct recorder_report report; /* gathered */
	struct recorder_index rows[1024];
	unsigned n_rows;
};

struct rec_event {
	uint64_t t_us, offset;
	char code;
	char *text; /* decoded */
	size_t n;
};

struct rec_file {
	char *data;
	size_t n;
	struct rec_event *events;
	size_t n_events, n_longest;
};

static struct recorder_config
rec_config(void)
{
	return (struct recorder_config){ .cols = 80,
		.rows = 24,
		.title = "box",
		.shell = "/bin/sh",
		.term = "xterm",
		.wall_s = 1700000000,
		.start_us = clock_mono_us(),
		.flush_ms = 20,
		.index_ms = 10000 };
}

static void
rec_start_at(struct rec *t, int fd, const struct recorder_config *c)
{
	memset(t, 0, sizeof(*t));
	t->fd = fd;
	assert_true(t->fd >= 0);
	t->r = recorder_new(dup(t->fd), c);
}

static void
rec_start(struct rec *t, const struct recorder_config *c)
{
	rec_start_at(t, memfd_create("rec", MFD_CLOEXEC), c);
}

static void
rec_poll(struct rec *t)
{
	recorder_poll(t->r, &t->report);
	for (unsigned i = 0; i < t->report.n_index; i++) {
		assert_true(t->n_rows < ARRAY_LEN(t->rows));
		t->rows[t->n_rows++] = t->report.index[i];
	}
}

/* Waits for the event descriptor, at most until END. */
static void
rec_wait(struct rec *t, int64_t end)
{
	struct pollfd p = { .fd = recorder_event_fd(t->r), .events = POLLIN };
	int64_t left = end - clock_mono_ms();

	assert_true(left > 0);
	poll(&p, 1, (int)left);
	rec_poll(t);
}

static void
rec_flush(struct rec *t)
{
	int64_t end = clock_mono_ms() + DEADLINE_MS;

	recorder_flush(t->r);
	do
		rec_wait(t, end);
	while (!t->report.is_flushed);
}

/* Writes all of it, however long the recorder takes. */
static void
rec_put(struct rec *t, const void *p, size_t n)
{
	int64_t end = clock_mono_ms() + DEADLINE_MS;

	for (size_t done = 0; done < n;) {
		size_t room = recorder_room(t->r);

		if (room > n - done)
			room = n - done;
		if (room)
			recorder_output(t->r, (const char *)p + done, room);
		else
			rec_wait(t, end);
		done += room;
	}
}

static void
rec_puts(struct rec *t, const char *s)
{
	rec_put(t, s, strlen(s));
}

static void
rec_close(struct rec *t)
{
	int64_t end = clock_mono_ms() + DEADLINE_MS;

	recorder_close(t->r);
	do
		rec_wait(t, end);
	while (!t->report.is_closed);
	recorder_free(t->r);
	t->r = NULL;
}

/* The character behind a backslash at P; writes it and returns its end. */
static const char *
rec_parse_escape(const char *p, char **out)
{
	static const char from[] = "\"\\bfnrt", to[] = "\"\\\b\f\n\r\t";
	const char *at = strchr(from, *p);
	char hex[3] = "", *after;
	unsigned long cp;

	if (at && *at) {
		*(*out)++ = to[at - from];
		return p + 1;
	}
	assert_memory_equal(p, "u00", 3);
	memcpy(hex, p + 3, 2);
	cp = strtoul(hex, &after, 16);
	assert_true(after == hex + 2);
	if (cp >= 0x80)
		*(*out)++ = (char)0xc2;
	*(*out)++ = (char)cp;
	return p + 5;
}

/* A JSON string at P, to its closing quote; strict about bytes. */
static const char *
rec_parse_string(const char *p, const char *end, struct rec_event *ev)
{
	char *out = ev->text = xmalloc((size_t)(end - p) + 1);

	while (*p != '"') {
		int len = text_utf8_len((const uint8_t *)p, (size_t)(end - p));

		assert_true(len > 0);
		assert_true((uint8_t)*p >= 0x20 && *p != 0x7f);
		if (*p == '\\') {
			p = rec_parse_escape(p + 1, &out);
			continue;
		}
		memcpy(out, p, (size_t)len);
		out += len;
		p += len;
	}
	*out = '\0';
	ev->n = (size_t)(out - ev->text);
	return p;
}

/* One event line; exact, so that any JSON parser accepts it. */
static void
rec_parse_line(const char *p, const char *end, struct rec_event *ev)
{
	char *after;

	assert_int_equal(*p, '[');
	ev->t_us = strtoull(p + 1, &after, 10) * 1000000;
	assert_int_equal(*after, '.');
	p = after + 1;
	ev->t_us += strtoull(p, &after, 10);
	assert_int_equal(after - p, 6);
	assert_memory_equal(after, ", \"", 3);
	ev->code = after[3];
	assert_memory_equal(after + 4, "\", \"", 4);
	p = rec_parse_string(after + 8, end, ev);
	assert_int_equal(end - p, 2);
	assert_memory_equal(p, "\"]", 2);
}

/* Reads and checks the whole file: every line, order of times. */
static struct rec_file
rec_read(const struct rec *t)
{
	struct rec_file f = { 0 };
	struct stat st;
	uint64_t last = 0;
	char *p, *nl;

	assert_int_equal(fstat(t->fd, &st), 0);
	f.n = (size_t)st.st_size;
	f.data = xmalloc(f.n + 1);
	assert_int_equal(pread(t->fd, f.data, f.n, 0), f.n);
	f.data[f.n] = '\0';
	f.events = xcalloc(f.n / 20 + 1, sizeof(*f.events));
	assert_true(f.n > 0 && f.data[f.n - 1] == '\n');
	nl = strchr(f.data, '\n');
	assert_memory_equal(f.data, "{\"version\": 2, \"width\": 80, ", 28);
	assert_memory_equal(nl - 2, "}}", 2);
	for (p = nl + 1; p < f.data + f.n; p = nl + 1) {
		struct rec_event *ev = &f.events[f.n_events++];

		nl = memchr(p, '\n', f.n);
		ev->offset = (uint64_t)(p - f.data);
		rec_parse_line(p, nl, ev);
		assert_true(ev->t_us >= last);
		last = ev->t_us;
		if ((size_t)(nl - p) > f.n_longest)
			f.n_longest = (size_t)(nl - p);
	}
	return f;
}

static void
rec_file_free(struct rec_file *f)
{
	for (size_t i = 0; i < f->n_events; i++)
		free(f->events[i].text);
	free(f->events);
	free(f->data);
}

/* All output; the caller frees it. */
static char *
rec_plain(const struct rec_file *f)
{
	char *all = xmalloc(f->n + 1), *to = all;

	for (size_t i = 0; i < f->n_events; i++) {
		if (f->events[i].code != 'o')
			continue;
		memcpy(to, f->events[i].text, f->events[i].n);
		to += f->events[i].n;
	}
	*to = '\0';
	return all;
}

/* Closes T and compares; PLAIN NULL for any. Returns the file. */
static struct rec_file
rec_finish(struct rec *t, const char *plain)
{
	struct rec_file f;

	rec_close(t);
	f = rec_read(t);
	if (plain) {
		autofree char *all = rec_plain(&f);
		size_t same = 0;

		while (all[same] && all[same] == plain[same])
			same++;
		if (all[same] || plain[same])
			fail_msg("from byte %zu: %.40s, not %.40s", same,
			    all + same, plain + same);
	}
	close(t->fd);
	return f;
}

/* Events but output as text: "r 132x50;m gap...;". */
static char *
rec_others(const struct rec_file *f)
{
	char *all = xstrdup("");

	for (size_t i = 0; i < f->n_events; i++) {
		char *longer;

		if (f->events[i].code == 'o')
			continue;
		longer = xasprintf(
		    "%s%c %s;", all, f->events[i].code, f->events[i].text);
		free(all);
		all = longer;
	}
	return all;
}

static void
output_is_recorded_and_complete(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;

	(void)state;
	rec_start(&t, &c);
	rec_puts(&t, "hello \033[31mred\033[m \"q\" \\ \r\n");
	f = rec_finish(&t, "hello \033[31mred\033[m \"q\" \\ \r\n");
	assert_true(t.report.is_complete);
	assert_int_equal(t.report.bytes, f.n);
	assert_int_equal(t.report.gaps, 0);
	assert_string_equal(t.report.error, "");
	rec_file_free(&f);
}

static void
an_empty_recording_has_one_event(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;

	(void)state;
	rec_start(&t, &c);
	f = rec_finish(&t, "");
	assert_int_equal(f.n_events, 1);
	assert_true(t.report.is_complete);
	rec_file_free(&f);
}

static void
invalid_bytes_become_replacements_and_nothing_is_lost(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;
	autofree char *all = NULL;
	uint8_t noise[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(noise); i++)
		noise[i] = (uint8_t)(i * 2654435761U >> 13);
	rec_start(&t, &c);
	rec_puts(&t, "A\377\376\300\200B\n");
	rec_put(&t, noise, sizeof(noise));
	rec_puts(&t, "\nEND\n");
	f = rec_finish(&t, NULL);
	all = rec_plain(&f);
	assert_memory_equal(all, "A" FFFD FFFD FFFD FFFD "B\n", 15);
	assert_true(t.report.is_complete);
	/* the noise has NUL bytes in it, so look from the end */
	assert_int_equal(f.events[f.n_events - 1].code, 'o');
	assert_memory_equal(
	    f.events[f.n_events - 1].text + f.events[f.n_events - 1].n - 5,
	    "\nEND\n", 5);
	rec_file_free(&f);
}

static void
a_character_in_three_writes_is_joined(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;

	(void)state;
	rec_start(&t, &c);
	rec_puts(&t, "\343");
	rec_flush(&t);
	rec_puts(&t, "\201");
	rec_flush(&t);
	rec_puts(&t, "\202\n");
	f = rec_finish(&t, "\343\201\202\n");
	assert_int_equal(f.n_events, 1);
	rec_file_free(&f);
}

static void
characters_cut_everywhere_survive(void **state)
{
	static const char unit[] = "\343\201\202\360\237\231\202\303\251\n";
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;
	autofree char *all = xmalloc(400 * 1000 + 1);

	(void)state;
	for (size_t i = 0; i < 400 * 1000; i++)
		all[i] = unit[i % (sizeof(unit) - 1)];
	all[400 * 1000] = '\0';
	rec_start(&t, &c);
	for (size_t at = 0, part = 1; at < 400 * 1000; at += part) {
		part = part % 4099 + 1;
		if (part > 400 * 1000 - at)
			part = 400 * 1000 - at;
		rec_put(&t, all + at, part);
	}
	f = rec_finish(&t, all);
	rec_file_free(&f);
}

static void
an_incomplete_tail_is_one_replacement(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;

	(void)state;
	rec_start(&t, &c);
	rec_puts(&t, "x\360\237\231");
	f = rec_finish(&t, "x" FFFD);
	assert_true(t.report.is_complete);
	rec_file_free(&f);
}

static void
a_resize_comes_before_the_output_at_that_size(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;
	autofree char *others = NULL;
	static const struct {
		char code;
		const char *text;
	} want[] = { { 'o', "one" }, { 'r', "132x50" }, { 'o', "two" },
		{ 'r', "40x10" } };

	(void)state;
	rec_start(&t, &c);
	recorder_resize(t.r, 80, 24);
	rec_puts(&t, "one");
	recorder_resize(t.r, 132, 50);
	recorder_resize(t.r, 132, 50);
	rec_puts(&t, "two");
	recorder_resize(t.r, 40, 10);
	f = rec_finish(&t, "onetwo");
	assert_int_equal(f.n_events, ARRAY_LEN(want));
	for (size_t i = 0; i < ARRAY_LEN(want); i++) {
		assert_int_equal(f.events[i].code, want[i].code);
		assert_string_equal(f.events[i].text, want[i].text);
	}
	rec_file_free(&f);
}

static void
a_flood_without_newline_has_short_lines_and_all_bytes(void **state)
{
	struct recorder_config c = rec_config();
	size_t n = 8 << 20;
	autofree char *all = xmalloc(n + 1);
	struct rec t;
	struct rec_file f;

	(void)state;
	for (size_t i = 0; i < n; i++)
		all[i] = i % 1000 ? (char)('a' + i % 26) : '\001';
	all[n] = '\0';
	rec_start(&t, &c);
	rec_put(&t, all, n);
	f = rec_finish(&t, all);
	assert_true(f.n_longest < 64 << 10);
	assert_true(f.n < n + n / 10);
	rec_file_free(&f);
}

static void
tiny_events_stay_small(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;
	size_t n = 200 * 1000;

	(void)state;
	rec_start(&t, &c);
	for (size_t i = 0; i < n; i++)
		rec_puts(&t, "y");
	f = rec_finish(&t, NULL);
	assert_true(f.n < n * 3 / 2 + 4096);
	assert_true(t.report.is_complete);
	rec_file_free(&f);
}

static void
index_rows_are_line_starts_at_most_1_mib_apart(void **state)
{
	struct recorder_config c = rec_config();
	size_t n = 5 << 20, e = 0;
	autofree char *all = xmalloc(n);
	struct rec t;
	struct rec_file f;

	(void)state;
	memset(all, '\001', n);
	for (size_t i = 0; i < n; i += 3)
		all[i] = 'a';
	rec_start(&t, &c);
	rec_put(&t, all, n);
	f = rec_finish(&t, NULL);
	assert_true(t.n_rows > f.n >> 20);
	for (unsigned i = 0; i < t.n_rows; i++) {
		while (e < f.n_events && f.events[e].offset < t.rows[i].offset)
			e++;
		assert_true(e < f.n_events);
		assert_int_equal(f.events[e].offset, t.rows[i].offset);
		assert_int_equal(f.events[e].t_us / 1000, t.rows[i].t_ms);
		assert_int_equal(f.events[e].code, 'o');
		assert_true(t.rows[i].offset - (i ? t.rows[i - 1].offset : 0) <=
			    1 << 20);
	}
	assert_true(f.n - t.rows[t.n_rows - 1].offset <= 1 << 20);
	rec_file_free(&f);
}

static void
index_rows_come_by_time_too(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;
	uint64_t last = 0;

	(void)state;
	c.index_ms = 30;
	c.start_us -= 1000000;
	rec_start(&t, &c);
	while (clock_mono_us() - c.start_us < 1300000) {
		rec_puts(&t, "tick");
		poll(NULL, 0, 5);
	}
	f = rec_finish(&t, NULL);
	assert_in_range(t.n_rows, 2, 12);
	for (unsigned i = 0; i < t.n_rows; i++) {
		assert_true(t.rows[i].t_ms >= last + (i ? 30 : 1000));
		last = t.rows[i].t_ms;
	}
	rec_file_free(&f);
}

/* The number in a gap marker of F; exactly one is expected. */
static uint64_t
rec_gap(const struct rec_file *f)
{
	uint64_t n = 0;
	unsigned found = 0;

	for (size_t i = 0; i < f->n_events; i++)
		if (f->events[i].code == 'm') {
			assert_int_equal(sscanf(f->events[i].text,
					     "gap: %" SCNu64 " bytes", &n),
			    1);
			found++;
		}
	assert_int_equal(found, 1);
	return n;
}

static void
a_full_disk_makes_one_gap_and_recording_goes_on(void **state)
{
	struct recorder_config c = rec_config();
	size_t n = 3 << 20;
	autofree char *all = xmalloc(n), *plain = NULL, *others = NULL;
	struct rec t;
	struct rec_file f;
	size_t kept;

	(void)state;
	memset(all, 'a', n);
	disk_set(1 << 20, false);
	rec_start(&t, &c);
	rec_put(&t, all, n);
	recorder_resize(t.r, 100, 30);
	rec_flush(&t);
	assert_int_equal(t.report.gaps, 1);
	assert_false(t.report.has_failed);
	assert_non_null(strstr(t.report.error, "No space left"));
	f = rec_read(&t); /* whole lines, though the write was cut */
	rec_file_free(&f);
	disk_set(UINT64_MAX, false);
	rec_flush(&t);
	rec_puts(&t, "back again");
	f = rec_finish(&t, NULL);
	plain = rec_plain(&f);
	kept = strlen(plain);
	assert_string_equal(plain + kept - 10, "back again");
	assert_true(kept > (1 << 20) * 9 / 10);
	assert_int_equal(kept - 10 + rec_gap(&f), n);
	others = rec_others(&f);
	assert_non_null(strstr(others, "not recorded;r 100x30;"));
	assert_int_equal(t.report.gaps, 1);
	assert_false(t.report.is_complete);
	rec_file_free(&f);
}

static void
a_disk_full_from_the_start_gets_its_header_later(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;

	(void)state;
	disk_set(0, false);
	rec_start(&t, &c);
	rec_puts(&t, "lost\343\201");
	rec_flush(&t);
	assert_int_equal(t.report.bytes, 0);
	disk_set(UINT64_MAX, false);
	rec_flush(&t);
	rec_puts(&t, "kept");
	f = rec_finish(&t, "kept");
	assert_int_equal(rec_gap(&f), 6);
	rec_file_free(&f);
}

static void
a_gap_ends_by_itself_when_space_is_back(void **state)
{
	struct recorder_config c = rec_config();
	int64_t end = clock_mono_ms() + DEADLINE_MS;
	struct rec t;
	struct rec_file f;
	uint64_t before;

	(void)state;
	disk_set(200, false);
	rec_start(&t, &c);
	rec_puts(&t, "this line is too much for the disk, whatever it takes "
		     "to bring it there, so it is lost");
	rec_flush(&t);
	before = t.report.bytes;
	disk_set(UINT64_MAX, false);
	while (t.report.bytes == before) {
		assert_true(clock_mono_ms() < end);
		poll(NULL, 0, 20);
		rec_poll(&t);
	}
	f = rec_finish(&t, "");
	assert_true(rec_gap(&f) > 60);
	rec_file_free(&f);
}

static void
a_full_disk_fails_the_recording_if_told_so(void **state)
{
	struct recorder_config c = rec_config();
	size_t n = 1 << 20;
	autofree char *all = xcalloc(n, 1);
	struct rec t;
	struct rec_file f;

	(void)state;
	c.is_stop_on_error = true;
	disk_set(100000, false);
	rec_start(&t, &c);
	rec_put(&t, all, n);
	rec_flush(&t);
	assert_true(t.report.has_failed);
	assert_true(t.report.error[0]);
	disk_set(UINT64_MAX, false);
	rec_puts(&t, "too late");
	f = rec_finish(&t, NULL);
	assert_false(t.report.is_complete);
	assert_true(f.n <= 100000);
	assert_int_equal(t.report.gaps, 1);
	rec_file_free(&f);
}

static void
below_min_free_nothing_but_header_and_marker_is_written(void **state)
{
	struct recorder_config c = rec_config();
	struct rec t;
	struct rec_file f;

	(void)state;
	c.min_free = UINT64_MAX / 2;
	rec_start_at(
	    &t, open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), &c);
	rec_flush(&t);
	rec_puts(&t, "secret");
	rec_flush(&t);
	assert_int_equal(t.report.gaps, 1);
	f = rec_finish(&t, "");
	assert_int_equal(rec_gap(&f), 6);
	rec_file_free(&f);
}

static void
a_capped_file_ends_with_a_marker_below_the_cap(void **state)
{
	struct recorder_config c = rec_config();
	size_t n = 1 << 20;
	autofree char *all = xmalloc(n), *others = NULL;
	struct rec t;
	struct rec_file f;

	(void)state;
	memset(all, 'a', n);
	c.max_bytes = 100000;
	rec_start(&t, &c);
	rec_put(&t, all, n);
	f = rec_finish(&t, NULL);
	others = rec_others(&f);
	assert_string_equal(others, "m end: limit of 100000 bytes reached;");
	assert_int_equal(f.events[f.n_events - 1].code, 'm');
	assert_in_range(f.n, 90000, 100000);
	assert_int_equal(t.report.gaps, 1);
	assert_false(t.report.has_failed);
	assert_false(t.report.is_complete);
	rec_file_free(&f);
}

/* Fills the queue of T while the disk is stuck; returns the bytes. */
static size_t
rec_fill(struct rec *t)
{
	static const char line[1000] = "filling";
	size_t n = 0, room;

	while ((room = recorder_room(t->r)) > 0) {
		if (room > sizeof(line))
			room = sizeof(line);
		recorder_output(t->r, line, room);
		n += room;
	}
	return n;
}

static void
a_slow_disk_holds_back_and_room_is_told(void **state)
{
	struct recorder_config c = rec_config();
	int64_t end = clock_mono_ms() + DEADLINE_MS;
	struct rec t;
	struct rec_file f;

	(void)state;
	disk_set(UINT64_MAX, true);
	rec_start(&t, &c);
	assert_in_range(
	    rec_fill(&t), RECORDER_QUEUE / 10 * 9, RECORDER_QUEUE * 2);
	assert_int_equal(recorder_room(t.r), 0);
	recorder_resize(t.r, 99, 33); /* waits for room as well */
	disk_set(UINT64_MAX, false);
	while (recorder_room(t.r) == 0)
		rec_wait(&t, end);
	rec_puts(&t, "end");
	f = rec_finish(&t, NULL);
	assert_true(t.report.is_complete);
	assert_string_equal(f.events[f.n_events - 2].text, "99x33");
	assert_string_equal(f.events[f.n_events - 1].text, "end");
	rec_file_free(&f);
}

/*
 * Three recorders on one stuck disk, so that the 5 s pass once: one goes on
 * with a gap, one fails, one is given up by recorder_free().
 */
static void
a_stuck_disk_holds_nobody_longer_than_5_s(void **state)
{
	struct recorder_config c = rec_config();
	int64_t begin, end = clock_mono_ms() + DEADLINE_MS;
	struct rec go, stop, left;
	struct rec_file f;
	size_t n;

	(void)state;
	disk_set(UINT64_MAX, true);
	rec_start(&go, &c);
	rec_start(&left, &c);
	c.is_stop_on_error = true;
	rec_start(&stop, &c);
	rec_puts(&left, "left");
	recorder_close(left.r);
	begin = clock_mono_ms();
	n = rec_fill(&go);
	rec_fill(&stop);
	while (recorder_room(go.r) == 0)
		rec_wait(&go, end);
	assert_in_range(clock_mono_ms() - begin, 4000, 7000);
	assert_int_equal(recorder_room(go.r), RECORDER_QUEUE);
	recorder_output(go.r, "dropped", 7);
	recorder_output(go.r, "dropped", 7);
	rec_wait(&go, end);
	assert_int_equal(go.report.gaps, 1);
	assert_false(go.report.has_failed);

	while (recorder_room(stop.r) == 0)
		rec_wait(&stop, end);
	recorder_output(stop.r, "dropped", 7);
	rec_wait(&stop, end);
	assert_true(stop.report.has_failed);
	assert_non_null(strstr(stop.report.error, "no progress"));

	recorder_free(left.r);
	assert_true(clock_mono_ms() - begin < 8000);

	disk_set(UINT64_MAX, false);
	rec_flush(&go);
	rec_puts(&go, "on");
	f = rec_finish(&go, NULL);
	assert_int_equal(rec_gap(&f), 14);
	assert_string_equal(f.events[f.n_events - 1].text, "on");
	assert_true(f.n > n);
	rec_file_free(&f);
	f = rec_finish(&stop, NULL);
	rec_file_free(&f);
	close(left.fd);
}

static void
a_real_small_disk_keeps_whole_lines(void **state)
{
	char dir[] = "/tmp/berth-recorder-XXXXXX";
	struct recorder_config c = rec_config();
	size_t n = 20 << 20;
	autofree char *all = xmalloc(n), *path = NULL, *plain = NULL;
	struct rec t;
	struct rec_file f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", dir, "tmpfs", 0, "size=2m") < 0) {
		rmdir(dir);
		print_message("explained: no tmpfs can be mounted here (%s)\n",
		    strerror(errno));
		skip();
	}
	memset(all, 'y', n);
	path = xasprintf("%s/a.cast", dir);
	rec_start_at(&t, open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), &c);
	rec_put(&t, all, n);
	f = rec_finish(&t, NULL);
	plain = rec_plain(&f);
	assert_int_equal(t.report.gaps, 1);
	assert_in_range(f.n, 1 << 20, 2 << 20);
	if (strstr(f.events[f.n_events - 1].text, "gap"))
		assert_int_equal(strlen(plain) + rec_gap(&f), n);
	rec_file_free(&f);
	assert_int_equal(umount2(dir, MNT_DETACH), 0);
	rmdir(dir);
}

int
main(void)
{
#define RECORDER_TEST(name) cmocka_unit_test_teardown(name, disk_reset)
	const struct CMUnitTest tests[] = {
		RECORDER_TEST(output_is_recorded_and_complete),
		RECORDER_TEST(an_empty_recording_has_one_event),
		RECORDER_TEST(
		    invalid_bytes_become_replacements_and_nothing_is_lost),
		RECORDER_TEST(a_character_in_three_writes_is_joined),
		RECORDER_TEST(characters_cut_everywhere_survive),
		RECORDER_TEST(an_incomplete_tail_is_one_replacement),
		RECORDER_TEST(a_resize_comes_before_the_output_at_that_size),
		RECORDER_TEST(
		    a_flood_without_newline_has_short_lines_and_all_bytes),
		RECORDER_TEST(tiny_events_stay_small),
		RECORDER_TEST(index_rows_are_line_starts_at_most_1_mib_apart),
		RECORDER_TEST(index_rows_come_by_time_too),
		RECORDER_TEST(a_full_disk_makes_one_gap_and_recording_goes_on),
		RECORDER_TEST(a_disk_full_from_the_start_gets_its_header_later),
		RECORDER_TEST(a_gap_ends_by_itself_when_space_is_back),
		RECORDER_TEST(a_full_disk_fails_the_recording_if_told_so),
		RECORDER_TEST(
		    below_min_free_nothing_but_header_and_marker_is_written),
		RECORDER_TEST(a_capped_file_ends_with_a_marker_below_the_cap),
		RECORDER_TEST(a_slow_disk_holds_back_and_room_is_told),
		RECORDER_TEST(a_stuck_disk_holds_nobody_longer_than_5_s),
		RECORDER_TEST(a_real_small_disk_keeps_whole_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
