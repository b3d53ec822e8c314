/*
 * A recorder under test: its file stays open for reading and is parsed
 * strictly, and its disk is a pwrite() of the test that can refuse and block.
 * Included by one file of a test program.
 */
#ifndef TESTS_UNIT_RECORDER_FIXTURE_H
#define TESTS_UNIT_RECORDER_FIXTURE_H

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

/* Stands in for the one of libc; ENOSPC beyond `limit`, short before it. */
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

static inline void
disk_set(uint64_t limit, bool is_stuck)
{
	pthread_mutex_lock(&disk.lock);
	disk.limit = limit;
	disk.is_stuck = is_stuck;
	pthread_cond_broadcast(&disk.moved);
	pthread_mutex_unlock(&disk.lock);
}

static inline int
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

static inline struct recorder_config
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

static inline void
rec_start_at(struct rec *t, int fd, const struct recorder_config *c)
{
	memset(t, 0, sizeof(*t));
	t->fd = fd;
	assert_true(t->fd >= 0);
	t->r = recorder_new(dup(t->fd), c);
}

static inline void
rec_start(struct rec *t, const struct recorder_config *c)
{
	rec_start_at(t, memfd_create("rec", MFD_CLOEXEC), c);
}

static inline void
rec_poll(struct rec *t)
{
	recorder_poll(t->r, &t->report);
	for (unsigned i = 0; i < t->report.n_index; i++) {
		assert_true(t->n_rows < ARRAY_LEN(t->rows));
		t->rows[t->n_rows++] = t->report.index[i];
	}
}

/* Waits for the event descriptor, at most until END. */
static inline void
rec_wait(struct rec *t, int64_t end)
{
	struct pollfd p = { .fd = recorder_event_fd(t->r), .events = POLLIN };
	int64_t left = end - clock_mono_ms();

	assert_true(left > 0);
	poll(&p, 1, (int)left);
	rec_poll(t);
}

static inline void
rec_flush(struct rec *t)
{
	int64_t end = clock_mono_ms() + DEADLINE_MS;

	recorder_flush(t->r);
	do
		rec_wait(t, end);
	while (!t->report.is_flushed);
}

/* Writes all of it, however long the recorder takes. */
static inline void
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

static inline void
rec_puts(struct rec *t, const char *s)
{
	rec_put(t, s, strlen(s));
}

static inline void
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
static inline const char *
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
static inline const char *
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
static inline void
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
static inline struct rec_file
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

static inline void
rec_file_free(struct rec_file *f)
{
	for (size_t i = 0; i < f->n_events; i++)
		free(f->events[i].text);
	free(f->events);
	free(f->data);
}

/* All output; the caller frees it. */
static inline char *
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
static inline struct rec_file
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
static inline char *
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

#endif
