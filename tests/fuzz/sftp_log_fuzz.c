/*
 * The log of sftp-server. Any lines: what is told is one printable line of
 * valid UTF-8 that fits. And for any name, encoded here as sftp-server does it:
 * its open and its close tell the same path, and the close its figures. The
 * first byte chooses; lines are separated by LF.
 */
#include <stdbool.h>

#include "base/text.h"
#include "sessions/manager/sftp_log.h"
#include "tests/fuzz/fuzz.h"

#define MESSAGE_MAX 1021 /* as sftp-server cuts it */

static void
check_path(const char *path)
{
	size_t n = strlen(path);

	FUZZ_CHECK(n < SFTP_LOG_PATH_MAX);
	for (size_t i = 0; i < n;) {
		int k = text_utf8_len((const uint8_t *)path + i, n - i);

		FUZZ_CHECK(k > 0);
		FUZZ_CHECK(k > 1 || (path[i] >= ' ' && path[i] < 0x7f));
		/* C1 controls */
		FUZZ_CHECK(k != 2 || (uint8_t)path[i] != 0xc2 ||
			   (uint8_t)path[i + 1] >= 0xa0);
		i += (size_t)k;
	}
}

static int
feed(struct sftp_log *l, const char *p, size_t n, struct sftp_log_event *out)
{
	int events = 0;

	while (n) {
		const char *lf = memchr(p, '\n', n);
		size_t len = lf ? (size_t)(lf - p) : n;

		memset(out, 0xa5, sizeof(*out));
		if (sftp_log_feed(l, p, len, out)) {
			check_path(out->path);
			events++;
		}
		len += lf != NULL;
		p += len;
		n -= len;
	}
	return events;
}

/* vis(3) with VIS_SAFE and VIS_OCTAL. */
static size_t
encode(const uint8_t *p, size_t n, char *out, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < n && p[i]; i++) {
		uint8_t c = p[i];
		char unit[8];

		if (c == '\\')
			snprintf(unit, sizeof(unit), "\\\\");
		else if ((c >= ' ' && c < 0x7f) || strchr("\n\t\b\a\r", c))
			snprintf(unit, sizeof(unit), "%c", c);
		else
			snprintf(unit, sizeof(unit), "\\%03o", c);
		if (len + strlen(unit) >= size)
			break;
		memcpy(out + len, unit, strlen(unit));
		len += strlen(unit);
	}
	out[len] = '\0';
	return len;
}

/* BEFORE, NAME and AFTER as one message; false if that cut it. */
static bool
message(char *out, size_t size, const char *before, const char *name,
    const char *after)
{
	char text[4096];
	int n = snprintf(text, sizeof(text), "%s%s%s", before, name, after);

	snprintf(out, size, "%.*s\r\n", MESSAGE_MAX, text);
	return n <= MESSAGE_MAX;
}

static void
fuzz_name(const uint8_t *p, size_t n)
{
	struct sftp_log l = { 0 };
	struct sftp_log_event opened, closed;
	char name[2048], text[MESSAGE_MAX + 8];
	bool is_whole;

	encode(p, n, name, sizeof(name));
	/* What ends a message cannot be told from its end. */
	if (strstr(name, "\r\n") || (*name && name[strlen(name) - 1] == '\r'))
		return;
	message(text, sizeof(text), "open \"", name, "\" flags READ mode 0666");
	/* Nor can a line feed where it was cut. */
	if (text[strlen(text) - 3] == '\r')
		return;
	FUZZ_CHECK(feed(&l, text, strlen(text), &opened) == 1);
	FUZZ_CHECK(opened.kind == SFTP_LOG_OPEN);
	is_whole = message(text, sizeof(text), "close \"", name,
	    "\" bytes read 12345678901 written 0");
	if (!is_whole && strstr(name, "\" bytes read "))
		return;
	FUZZ_CHECK(feed(&l, text, strlen(text), &closed) == 1);
	FUZZ_CHECK(closed.kind == SFTP_LOG_CLOSE);
	FUZZ_CHECK(closed.is_cut == !is_whole);
	FUZZ_CHECK(closed.n_read == (is_whole ? 12345678901 : 0));
	if (!strstr(name, "\" flags "))
		FUZZ_CHECK(strcmp(opened.path, closed.path) == 0);
	sftp_log_release(&l);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct sftp_log l = { 0 };
	struct sftp_log_event e;

	if (n == 0)
		return 0;
	if (*p & 1) {
		fuzz_name(p + 1, n - 1);
		return 0;
	}
	feed(&l, (const char *)p + 1, n - 1, &e);
	/* However it was left, so much of the same ends it. */
	for (int i = 0; i < 4; i++) {
		char text[512];

		memset(text, 'x', sizeof(text));
		memcpy(text + sizeof(text) - 2, "\r\n", 2);
		feed(&l, text, sizeof(text), &e);
	}
	FUZZ_CHECK(feed(&l, "remove name \"a\"\r\n", 17, &e) == 1);
	sftp_log_release(&l);
	return 0;
}
