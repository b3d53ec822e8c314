/* Tar streams; see tar.h. */
#include "cli/tar.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"

/* Longer extended headers are refused: they hold two names and some numbers. */
#define TAR_EXTENDED_MAX (64U << 10)

/* So much may come behind the end: GNU tar's records have 10 KiB. */
#define TAR_TRAILER_MAX (4U << 20)

#define TAR_LONG_LINK 'K'
#define TAR_LONG_NAME 'L'
#define TAR_EXTENDED  'x'
#define TAR_GLOBAL    'g'

/* POSIX.1-2017, pax, "ustar Interchange Format". */
struct tar_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12];
	char chksum[8], typeflag, linkname[100];
	char magic[6], version[2], uname[32], gname[32];
	char devmajor[8], devminor[8], prefix[155], pad[12];
};

_Static_assert(sizeof(struct tar_header) == TAR_BLOCK, "a block");

size_t
tar_padding(uint64_t size)
{
	return (size_t)(-size % TAR_BLOCK);
}

static unsigned
tar_checksum(const struct tar_header *h)
{
	const uint8_t *p = (const uint8_t *)h;
	size_t at = offsetof(struct tar_header, chksum);
	unsigned sum = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= at && i < at + sizeof(h->chksum) ? ' ' : p[i];
	return sum;
}

/* ---- writing --------------------------------------------------------------- */

/* Octal digits, or in base 256 what does not fit. */
static void
tar_put_number(char *field, size_t n, uint64_t v)
{
	if (v >> (3 * (n - 1)) == 0) {
		snprintf(field, n, "%0*llo", (int)n - 1, (unsigned long long)v);
		return;
	}
	for (size_t i = n; i-- > 0; v >>= 8)
		field[i] = (char)v;
	field[0] = (char)0x80;
}

static void
tar_put_header(
    struct buf *b, const struct tar_entry *e, char type, uint64_t size)
{
	struct tar_header h = { .typeflag = type };
	char sum[8];

	memcpy(h.name, e->path, strnlen(e->path, sizeof(h.name)));
	memcpy(h.linkname, e->link, strnlen(e->link, sizeof(h.linkname)));
	tar_put_number(h.mode, sizeof(h.mode), e->mode & 07777);
	tar_put_number(h.uid, sizeof(h.uid), 0);
	tar_put_number(h.gid, sizeof(h.gid), 0);
	tar_put_number(h.size, sizeof(h.size), size);
	tar_put_number(h.mtime, sizeof(h.mtime),
	    e->mtime_s < 0 ? 0 : (uint64_t)e->mtime_s);
	memcpy(h.magic, "ustar ", sizeof(h.magic));
	memcpy(h.version, " ", 2);
	snprintf(sum, sizeof(sum), "%06o", tar_checksum(&h));
	memcpy(h.chksum, sum, 7);
	h.chksum[7] = ' ';
	buf_put(b, &h, sizeof(h));
}

/* GNU: the name is what a member of its own, without one, contains. */
static void
tar_put_long(struct buf *b, char type, const char *name)
{
	static const uint8_t zeros[TAR_BLOCK];
	struct tar_entry e = { .path = "././@LongLink", .mode = 0644 };
	size_t n = strlen(name) + 1;

	tar_put_header(b, &e, type, n);
	buf_put(b, name, n);
	buf_put(b, zeros, tar_padding(n));
}

void
tar_encode(struct buf *b, const struct tar_entry *e)
{
	if (strlen(e->link) > sizeof(((struct tar_header *)0)->linkname))
		tar_put_long(b, TAR_LONG_LINK, e->link);
	if (strlen(e->path) > sizeof(((struct tar_header *)0)->name))
		tar_put_long(b, TAR_LONG_NAME, e->path);
	tar_put_header(b, e, e->type, e->type == TAR_FILE ? e->size : 0);
}

/* ---- reading --------------------------------------------------------------- */

/* Bytes read, fewer than N only at the end of the stream. */
static ssize_t
tar_read(struct tar_reader *r, void *p, size_t n, struct err *e)
{
	size_t at = 0;

	while (at < n) {
		ssize_t k = read(r->fd, (char *)p + at, n - at);

		if (k < 0)
			return err_sys(e, -errno, "cannot read the stream");
		if (k == 0)
			break;
		at += (size_t)k;
		r->n_bytes += (uint64_t)k;
	}
	return (ssize_t)at;
}

static int
tar_read_all(struct tar_reader *r, void *p, size_t n, struct err *e)
{
	ssize_t k = tar_read(r, p, n, e);

	if (k < 0)
		return (int)k;
	if ((size_t)k < n)
		return err_set(e, -EPIPE, "the stream ends in the middle");
	return 0;
}

static int
tar_skip(struct tar_reader *r, struct err *e)
{
	uint64_t n = r->left + r->padding;
	char space[16384];

	while (n) {
		size_t part = n < sizeof(space) ? (size_t)n : sizeof(space);
		int rc = tar_read_all(r, space, part, e);

		if (rc < 0)
			return rc;
		n -= part;
	}
	r->left = 0;
	r->padding = 0;
	return 0;
}

/* Octal digits between blanks, or base 256; false for what is neither. */
static bool
tar_get_number(const char *field, size_t n, int64_t *out)
{
	const uint8_t *p = (const uint8_t *)field;
	uint64_t v = 0;
	size_t i = 0;

	if (p[0] & 0x80) {
		/* The sign is the next bit; no field holds more than 63. */
		bool is_negative = p[0] & 0x40;

		v = is_negative ? UINT64_MAX : 0;
		for (i = 0; i < n; i++)
			v = v << 8 | (i                ? p[i]
					 : is_negative ? 0xff
						       : p[0] & 0x3f);
		*out = (int64_t)v;
		return (*out < 0) == is_negative;
	}
	while (i < n && p[i] == ' ')
		i++;
	for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
		v = v << 3 | (uint64_t)(p[i] - '0');
	*out = (int64_t)v;
	return *out >= 0 && (i == n || p[i] == ' ' || p[i] == '\0');
}

static int
tar_parse(const struct tar_header *h, struct tar_entry *out, struct err *e)
{
	int64_t sum, mode, size, mtime;

	if (!tar_get_number(h->chksum, sizeof(h->chksum), &sum) ||
	    sum != (int64_t)tar_checksum(h) ||
	    !tar_get_number(h->mode, sizeof(h->mode), &mode) ||
	    !tar_get_number(h->size, sizeof(h->size), &size) || size < 0 ||
	    !tar_get_number(h->mtime, sizeof(h->mtime), &mtime))
		return err_set(e, -EPROTO, "the stream is no tar archive");
	/* A prefix is of POSIX; GNU has other things there. */
	if (memcmp(h->magic, "ustar", 6) == 0 && h->prefix[0])
		snprintf(out->path, sizeof(out->path), "%.155s/%.100s",
		    h->prefix, h->name);
	else
		snprintf(out->path, sizeof(out->path), "%.100s", h->name);
	snprintf(out->link, sizeof(out->link), "%.100s", h->linkname);
	out->type = h->typeflag;
	if (!out->type)
		out->type = TAR_FILE;
	out->mode = (mode_t)mode & 07777;
	out->size = (uint64_t)size;
	out->mtime_s = mtime;
	out->mtime_ns = 0;
	return 0;
}

/* What extended headers say of the entry behind them. */
struct tar_extended {
	bool has_path, has_link, has_size, has_mtime;
	char path[TAR_PATH_MAX], link[TAR_PATH_MAX];
	uint64_t size;
	int64_t mtime_s;
	uint32_t mtime_ns;
};

static int
tar_take_name(char out[TAR_PATH_MAX], const char *p, size_t n, struct err *e)
{
	if (n >= TAR_PATH_MAX)
		return err_set(e, -ENAMETOOLONG, "a name in it is too long");
	if (memchr(p, '\0', n))
		return err_set(e, -EPROTO, "a name in it has a NUL");
	memcpy(out, p, n);
	out[n] = '\0';
	return 0;
}

/* "SECONDS[.FRACTION]" */
static void
tar_take_time(struct tar_extended *x, const char *p, size_t n)
{
	bool is_negative = n > 0 && *p == '-';
	uint32_t unit = 100000000, ns = 0;
	int64_t s = 0;
	size_t i = is_negative;

	for (; i < n && p[i] >= '0' && p[i] <= '9' && s < INT64_MAX / 100; i++)
		s = s * 10 + (p[i] - '0');
	if (i < n && p[i] == '.')
		for (i++; i < n && p[i] >= '0' && p[i] <= '9'; i++, unit /= 10)
			ns += unit * (uint32_t)(p[i] - '0');
	x->has_mtime = true;
	x->mtime_s = is_negative ? -s : s;
	x->mtime_ns = is_negative ? 0 : ns;
}

static int
tar_take_record(struct tar_extended *x, const char *key, const char *value,
    size_t n, struct err *e)
{
	char number[24];

	if (strcmp(key, "path") == 0) {
		x->has_path = true;
		return tar_take_name(x->path, value, n, e);
	}
	if (strcmp(key, "linkpath") == 0) {
		x->has_link = true;
		return tar_take_name(x->link, value, n, e);
	}
	if (strcmp(key, "mtime") == 0)
		tar_take_time(x, value, n);
	if (strcmp(key, "size") != 0)
		return 0;
	snprintf(number, sizeof(number), "%.*s", (int)(n < 23 ? n : 23), value);
	x->has_size = true;
	return text_parse_u64(number, 0, INT64_MAX, &x->size) < 0
		   ? err_set(e, -EPROTO, "a size in it is no number")
		   : 0;
}

/* Records "LENGTH KEY=VALUE\n", one behind the other. */
static int
tar_take_records(struct tar_extended *x, const char *p, size_t n, struct err *e)
{
	while (n) {
		size_t digits = 0, len = 0;
		const char *key, *eq;
		char name[32];
		int rc;

		for (; digits < n && p[digits] >= '0' && p[digits] <= '9' &&
		       len <= n;
		     digits++)
			len = len * 10 + (size_t)(p[digits] - '0');
		if (digits == 0 || digits >= n || len > n || len < digits + 4 ||
		    p[digits] != ' ' || p[len - 1] != '\n')
			return err_set(
			    e, -EPROTO, "an extended header in it is broken");
		key = p + digits + 1;
		eq = memchr(key, '=', len - digits - 2);
		if (!eq)
			return err_set(
			    e, -EPROTO, "an extended header in it is broken");
		snprintf(name, sizeof(name), "%.*s", (int)(eq - key), key);
		rc = tar_take_record(
		    x, name, eq + 1, (size_t)(p + len - 1 - (eq + 1)), e);
		if (rc < 0)
			return rc;
		p += len;
		n -= len;
	}
	return 0;
}

/* The contents of ENTRY, which says something of the one behind it. */
static int
tar_take_extended(struct tar_reader *r, const struct tar_entry *entry,
    struct tar_extended *x, struct err *e)
{
	autofree char *text = NULL;
	int rc;

	if (entry->size > TAR_EXTENDED_MAX)
		return err_set(
		    e, -EPROTO, "an extended header in it is too long");
	text = xmalloc((size_t)entry->size + 1);
	rc = tar_read_all(r, text, (size_t)entry->size, e);
	if (rc < 0)
		return rc;
	r->left = 0;
	text[entry->size] = '\0';
	if (entry->type == TAR_EXTENDED)
		return tar_take_records(x, text, (size_t)entry->size, e);
	if (entry->type == TAR_LONG_NAME) {
		x->has_path = true;
		return tar_take_name(x->path, text, strlen(text), e);
	}
	x->has_link = true;
	return tar_take_name(x->link, text, strlen(text), e);
}

static void
tar_apply(const struct tar_extended *x, struct tar_entry *out)
{
	if (x->has_path)
		snprintf(out->path, sizeof(out->path), "%s", x->path);
	if (x->has_link)
		snprintf(out->link, sizeof(out->link), "%s", x->link);
	if (x->has_size)
		out->size = x->size;
	if (x->has_mtime) {
		out->mtime_s = x->mtime_s;
		out->mtime_ns = x->mtime_ns;
	}
	/* Of old: a directory is a file whose name says so. */
	if (out->type == TAR_FILE && out->path[0] &&
	    out->path[strlen(out->path) - 1] == '/')
		out->type = TAR_DIRECTORY;
}

/*
 * What is behind the end is not looked at, but read: its writer, who fills a
 * record, is not cut.
 */
static int
tar_drain(struct tar_reader *r, struct err *e)
{
	char space[16384];
	size_t left = TAR_TRAILER_MAX;
	ssize_t n;

	do {
		n = tar_read(r, space, sizeof(space), e);
		left -= sizeof(space);
	} while (n == (ssize_t)sizeof(space) && left);
	if (left == 0)
		return err_set(e, -EPROTO, "the stream goes on after its end");
	return n < 0 ? (int)n : 0;
}

static bool
tar_is_zero(const struct tar_header *h)
{
	const uint8_t *p = (const uint8_t *)h;

	for (size_t i = 0; i < TAR_BLOCK; i++) {
		if (p[i])
			return false;
	}
	return true;
}

int
tar_next(struct tar_reader *r, struct tar_entry *out, struct err *e)
{
	autofree struct tar_extended *x = xcalloc(1, sizeof(*x));

	for (;;) {
		struct tar_header h = { .typeflag = 0 };
		int rc = tar_skip(r, e);

		if (rc == 0)
			rc = tar_read_all(r, &h, sizeof(h), e);
		if (rc < 0)
			return rc;
		if (tar_is_zero(&h))
			return tar_drain(r, e);
		rc = tar_parse(&h, out, e);
		if (rc < 0)
			return rc;
		r->left = out->size;
		r->padding = tar_padding(out->size);
		if (out->type == TAR_EXTENDED || out->type == TAR_LONG_NAME ||
		    out->type == TAR_LONG_LINK) {
			rc = tar_take_extended(r, out, x, e);
			if (rc < 0)
				return rc;
			continue;
		}
		if (out->type == TAR_GLOBAL)
			continue;
		tar_apply(x, out);
		/* Links, directories and devices have no contents. */
		if (out->type >= TAR_HARD_LINK && out->type <= '6')
			out->size = 0;
		r->left = out->size;
		r->padding = tar_padding(out->size);
		return 1;
	}
}

ssize_t
tar_data(struct tar_reader *r, void *p, size_t n, struct err *e)
{
	int rc;

	if (n > r->left)
		n = (size_t)r->left;
	if (n == 0)
		return 0;
	rc = tar_read_all(r, p, n, e);
	if (rc < 0)
		return rc;
	r->left -= n;
	return (ssize_t)n;
}
