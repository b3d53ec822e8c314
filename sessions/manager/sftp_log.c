/* Messages of sftp-server as events; see sftp_log.h. */
#include "sessions/manager/sftp_log.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define SFTP_LOG_MESSAGE_MAX 1200
#define SFTP_LOG_CUT         1021 /* so long is a message that was cut */

struct sftp_log_text {
	const char *p;
	size_t n;
};

void
sftp_log_release(struct sftp_log *l)
{
	buf_release(&l->message);
}

/* ---- texts ---------------------------------------------------------------- */

static bool
sftp_log_begins(struct sftp_log_text t, const char *with)
{
	size_t n = strlen(with);

	return t.n >= n && memcmp(t.p, with, n) == 0;
}

static void
sftp_log_skip(struct sftp_log_text *t, size_t n)
{
	t->p += n;
	t->n -= n;
}

/* Where MARK stands last in T, or NULL: a path may hold it too. */
static const char *
sftp_log_last(struct sftp_log_text t, const char *mark)
{
	size_t n = strlen(mark);

	for (size_t i = t.n; i >= n; i--) {
		if (memcmp(t.p + i - n, mark, n) == 0)
			return t.p + i - n;
	}
	return NULL;
}

/* Takes a number off the front of T; false if there is none or it is too big. */
static bool
sftp_log_number(struct sftp_log_text *t, uint64_t *out)
{
	size_t n = 0;
	char digits[24];

	while (n < t->n && t->p[n] >= '0' && t->p[n] <= '9')
		n++;
	if (n == 0 || n >= sizeof(digits))
		return false;
	memcpy(digits, t->p, n);
	digits[n] = '\0';
	sftp_log_skip(t, n);
	return text_parse_u64(digits, 0, INT64_MAX, out) == 0;
}

static bool
sftp_log_is_octal(struct sftp_log_text t)
{
	return t.n >= 4 && t.p[0] == '\\' && t.p[1] >= '0' && t.p[1] <= '3' &&
	       t.p[2] >= '0' && t.p[2] <= '7' && t.p[3] >= '0' && t.p[3] <= '7';
}

/* Undoes the log's own escapes: \ooo and \\. Returns the length. */
static size_t
sftp_log_decode(struct sftp_log_text t, uint8_t *out)
{
	size_t n = 0;

	while (t.n) {
		if (sftp_log_is_octal(t)) {
			out[n++] =
			    (uint8_t)((t.p[1] - '0') << 6 |
				      (t.p[2] - '0') << 3 | (t.p[3] - '0'));
			sftp_log_skip(&t, 4);
			continue;
		}
		if (t.n >= 2 && t.p[0] == '\\' && t.p[1] == '\\')
			sftp_log_skip(&t, 1);
		out[n++] = (uint8_t)t.p[0];
		sftp_log_skip(&t, 1);
	}
	return n;
}

/* True for a character that may stand in a terminal as it is. */
static bool
sftp_log_is_plain(const uint8_t *p, size_t n)
{
	char shown[16];

	if (n == 1 && p[0] == '"')
		return true;
	return text_escape_json((const char *)p, n, shown, sizeof(shown)) ==
		   n &&
	       memcmp(shown, p, n) == 0;
}

/* T as printable UTF-8 in OUT. */
static void
sftp_log_show(struct sftp_log_text t, char out[SFTP_LOG_PATH_MAX])
{
	uint8_t raw[SFTP_LOG_MESSAGE_MAX];
	size_t n = sftp_log_decode(t, raw), len = 0;

	for (size_t i = 0; i < n;) {
		int k = text_utf8_len(raw + i, n - i);
		size_t chars = k > 0 ? (size_t)k : 1;

		if (k > 0 && sftp_log_is_plain(raw + i, chars)) {
			memcpy(out + len, raw + i, chars);
			len += chars;
		} else {
			len += text_escape((const char *)raw + i, chars,
			    out + len, SFTP_LOG_PATH_MAX - len);
		}
		i += chars;
	}
	out[len] = '\0';
}

/* A path, cut where its message might have been: never inside an escape. */
static void
sftp_log_show_path(struct sftp_log_text t, char out[SFTP_LOG_PATH_MAX])
{
	struct sftp_log_text kept = { t.p, 0 };

	while (kept.n < t.n) {
		struct sftp_log_text rest = { t.p + kept.n, t.n - kept.n };
		size_t n = sftp_log_is_octal(rest)          ? 4
			   : rest.n >= 2 && *rest.p == '\\' ? 2
							    : 1;

		if (kept.n + n > SFTP_LOG_PATH_LOGGED) {
			sftp_log_show(kept, out);
			snprintf(out + strlen(out), 4, "...");
			return;
		}
		kept.n += n;
	}
	sftp_log_show(kept, out);
}

/* ---- messages ------------------------------------------------------------- */

/* `open "PATH" flags READ,WRITE,... mode 0644`; false: not at its end yet. */
static bool
sftp_log_open(struct sftp_log_text t, struct sftp_log_event *out)
{
	const char *tail = sftp_log_last(t, "\" flags ");
	bool is_cut = t.n + strlen("open \"") >= SFTP_LOG_CUT;

	if (!tail && !is_cut)
		return false;
	out->kind = SFTP_LOG_OPEN;
	out->is_write = true;
	if (tail) {
		struct sftp_log_text flags = { tail,
			(size_t)(t.p + t.n - tail) };

		out->is_write = sftp_log_last(flags, "WRITE") ||
				sftp_log_last(flags, "APPEND");
		t.n = (size_t)(tail - t.p);
	}
	sftp_log_show_path(t, out->path);
	return true;
}

/* `PATH" bytes read N written M`. */
static bool
sftp_log_close(
    struct sftp_log_text t, size_t n_before, struct sftp_log_event *out)
{
	static const char mark[] = "\" bytes read ", and[] = " written ";
	const char *tail = sftp_log_last(t, mark);
	struct sftp_log_text rest;

	out->kind = SFTP_LOG_CLOSE;
	if (tail) {
		rest = (struct sftp_log_text){ tail + strlen(mark),
			(size_t)(t.p + t.n - tail) - strlen(mark) };
		if (sftp_log_number(&rest, &out->n_read) &&
		    sftp_log_begins(rest, and)) {
			sftp_log_skip(&rest, strlen(and));
			if (sftp_log_number(&rest, &out->n_written) &&
			    rest.n == 0) {
				t.n = (size_t)(tail - t.p);
				sftp_log_show_path(t, out->path);
				return true;
			}
		}
	}
	out->n_read = out->n_written = 0;
	out->is_cut = true;
	sftp_log_show_path(t, out->path);
	return t.n + n_before >= SFTP_LOG_CUT;
}

static const char *const sftp_log_changes[] = {
	"remove name \"",
	"rename old \"",
	"posix-rename old \"",
	"hardlink old \"",
	"symlink old \"",
	"mkdir name \"",
	"rmdir name \"",
	"set \"",
	"copy-data from \"",
};

/* False: the message is not whole, its next line belongs to it. */
static bool
sftp_log_parse(struct sftp_log_text t, struct sftp_log_event *out)
{
	static const char open[] = "open \"", close[] = "close \"",
			  forced[] = "forced close \"",
			  status[] = "sent status ";

	*out = (struct sftp_log_event){ .kind = SFTP_LOG_OTHER };
	if (sftp_log_begins(t, open)) {
		sftp_log_skip(&t, strlen(open));
		return sftp_log_open(t, out);
	}
	out->is_forced = sftp_log_begins(t, forced);
	if (out->is_forced || sftp_log_begins(t, close)) {
		size_t n = out->is_forced ? strlen(forced) : strlen(close);

		sftp_log_skip(&t, n);
		return sftp_log_close(t, n, out);
	}
	if (sftp_log_begins(t, status)) {
		sftp_log_skip(&t, strlen(status));
		out->kind = SFTP_LOG_STATUS;
		sftp_log_show(t, out->path);
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(sftp_log_changes); i++) {
		if (sftp_log_begins(t, sftp_log_changes[i])) {
			out->kind = SFTP_LOG_CHANGE;
			sftp_log_show(t, out->path);
		}
	}
	return true;
}

bool
sftp_log_feed(
    struct sftp_log *l, const void *line, size_t n, struct sftp_log_event *out)
{
	struct buf *b = &l->message;
	bool has_end = n && ((const char *)line)[n - 1] == '\r';
	struct sftp_log_text t;

	/* What grows too long is none: begin anew with this line. */
	if (buf_len(b) + n + 2 > SFTP_LOG_MESSAGE_MAX)
		buf_clear(b);
	if (n + 2 > SFTP_LOG_MESSAGE_MAX)
		return false;
	buf_put(b, line, n);
	t = (struct sftp_log_text){ (const char *)buf_head(b),
		buf_len(b) - has_end };
	/* A name may hold a CR and LF: then the message is not whole yet. */
	if (!has_end || !sftp_log_parse(t, out)) {
		buf_put_u8(b, '\n');
		return false;
	}
	buf_release(b);
	return true;
}
