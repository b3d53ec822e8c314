/*
 * authorized_keys: a line that is accepted can be written down again from what
 * it was taken for and means the same; a file holds exactly the keys of its
 * lines; from= agrees with a slow reading of it; and no key opens more than
 * its line says. Input: u8 what to look at, then text.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <sodium.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/log.h"
#include "conf/conf.h"
#include "sshd/listener/access.h"
#include "sshd/listener/key_file.h"
#include "sshd/listener/source.h"
#include "tests/fuzz/fuzz.h"

#define KEYS_NOW_MS 1750000000000LL

/* ---- one line ------------------------------------------------------------ */

static void
keys_put(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

/* NAME="VALUE", with the only escape that there is. */
static void
keys_put_option(struct buf *b, const char *name, const char *value)
{
	if (!value)
		return;
	keys_put(b, ",");
	keys_put(b, name);
	keys_put(b, "=\"");
	for (; *value; value++) {
		if (*value == '"')
			keys_put(b, "\\");
		buf_put(b, value, 1);
	}
	keys_put(b, "\"");
}

static void
keys_put_permits(struct buf *b, const char *name, const char *list)
{
	autofree char *copy = list ? xstrdup(list) : NULL;
	char *next = copy, *one;

	while (next && (one = strsep(&next, ",")))
		keys_put_option(b, name, one);
}

static void
keys_put_base64(struct buf *b, const struct key_line *k)
{
	size_t size = sodium_base64_ENCODED_LEN(
	    k->blob_len, sodium_base64_VARIANT_ORIGINAL);
	autofree char *text = xmalloc(size);

	sodium_bin2base64(
	    text, size, k->blob, k->blob_len, sodium_base64_VARIANT_ORIGINAL);
	keys_put(b, text);
}

/* The line that says what K says, but for its time of expiry. */
static char *
keys_write(const struct key_line *k)
{
	struct buf b = { 0 };
	char *line;

	keys_put(&b, "restrict");
	keys_put(&b, k->may_pty ? ",pty" : "");
	keys_put(&b, k->may_forward ? ",port-forwarding" : "");
	keys_put(&b, k->is_admin ? ",admin" : "");
	keys_put_option(&b, "from", k->from);
	keys_put_option(&b, "command", k->command);
	keys_put_option(&b, "sandbox", k->sandbox_globs);
	keys_put_option(&b, "session", k->session_globs);
	keys_put_option(&b, "role", k->has_role ? role_name(k->role) : NULL);
	keys_put_permits(&b, "permitopen", k->permit_open);
	keys_put_permits(&b, "permitlisten", k->permit_listen);
	keys_put(&b, " ");
	keys_put(&b, k->type);
	keys_put(&b, " ");
	keys_put_base64(&b, k);
	keys_put(&b, " ");
	keys_put(&b, k->comment);
	line = xstrndup((const char *)buf_head(&b), buf_len(&b));
	buf_release(&b);
	return line;
}

static bool
keys_same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static void
keys_compare(const struct key_line *a, const struct key_line *b)
{
	FUZZ_CHECK(a->blob_len == b->blob_len);
	FUZZ_CHECK(memcmp(a->blob, b->blob, a->blob_len) == 0);
	FUZZ_CHECK(strcmp(a->type, b->type) == 0);
	FUZZ_CHECK(strcmp(a->fingerprint, b->fingerprint) == 0);
	FUZZ_CHECK(strcmp(a->comment, b->comment) == 0);
	FUZZ_CHECK(keys_same_text(a->from, b->from));
	FUZZ_CHECK(keys_same_text(a->command, b->command));
	FUZZ_CHECK(keys_same_text(a->permit_open, b->permit_open));
	FUZZ_CHECK(keys_same_text(a->permit_listen, b->permit_listen));
	FUZZ_CHECK(keys_same_text(a->sandbox_globs, b->sandbox_globs));
	FUZZ_CHECK(keys_same_text(a->session_globs, b->session_globs));
	FUZZ_CHECK(a->has_role == b->has_role && a->is_admin == b->is_admin);
	FUZZ_CHECK(!a->has_role || a->role == b->role);
	FUZZ_CHECK(a->may_pty == b->may_pty);
	FUZZ_CHECK(a->may_forward == b->may_forward);
}

static void
keys_check_line(const char *line)
{
	struct key_line *k = NULL, *k2 = NULL;
	struct err e = { 0 };
	int rc = key_line_parse(line, &k, &e);
	char *again;

	FUZZ_CHECK((rc == 1) == (k != NULL));
	FUZZ_CHECK(rc == 1 || rc == 0 || (rc == -EINVAL && e.msg[0]));
	if (!k)
		return;
	FUZZ_CHECK(strncmp(k->fingerprint, "SHA256:", 7) == 0);
	FUZZ_CHECK(strlen(k->fingerprint) == 7 + 43);
	FUZZ_CHECK(k->type[0] && k->blob_len > 4 && k->comment);
	again = keys_write(k);
	if (strlen(again) <= KEY_LINE_MAX) {
		FUZZ_CHECK(key_line_parse(again, &k2, &e) == 1);
		keys_compare(k, k2);
	}
	free(again);
	key_line_free(k);
	key_line_free(k2);
}

/* ---- from= --------------------------------------------------------------- */

/* The bits of an address from the left; a v4-mapped one as its IPv4. */
static unsigned
keys_bits(const char *s, bool bits[128])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	uint8_t raw[16];
	unsigned n = inet_pton(AF_INET, s, raw) == 1    ? 4
		     : inet_pton(AF_INET6, s, raw) == 1 ? 16
							: 0;

	if (n == 16 && memcmp(raw, mapped, 12) == 0) {
		memmove(raw, raw + 12, 4);
		n = 4;
	}
	for (unsigned i = 0; i < n * 8; i++)
		bits[i] = raw[i / 8] >> (7 - i % 8) & 1;
	return n * 8;
}

static bool
keys_glob(const char *g, const char *s)
{
	if (!*g)
		return !*s;
	if (*g == '*')
		return keys_glob(g + 1, s) || (*s && keys_glob(g, s + 1));
	return *s && (*g == '?' || *g == *s) && keys_glob(g + 1, s + 1);
}

static bool
keys_entry_hit(char *entry, const char *addr)
{
	bool want[128], have[128];
	unsigned n = keys_bits(addr, have), len;
	char *slash = strchr(entry, '/');

	if (!slash && keys_bits(entry, want) == 0)
		return keys_glob(entry, addr);
	len = slash ? (unsigned)strtoul(slash + 1, NULL, 10) : n;
	if (slash)
		*slash = '\0';
	return keys_bits(entry, want) == n &&
	       memcmp(want, have, len * sizeof(want[0])) == 0;
}

static void
keys_check_source(const char *list)
{
	static const char *const addrs[] = { "10.1.2.3", "192.168.0.255", "::1",
		"fe80::1", "::ffff:10.1.2.3", "2001:db8::ff", "0.0.0.0",
		"255.255.255.255" };
	struct err e = { 0 };

	unsigned stars = 0;

	for (const char *p = list; *p; p++)
		stars += *p == '*';
	/* the slow one is slow */
	if (strlen(list) > 200 || stars > 6 || source_check(list, &e) < 0)
		return;
	for (size_t i = 0; i < ARRAY_LEN(addrs); i++) {
		autofree char *copy = xstrdup(list);
		char *next = copy, *entry;
		bool is_yes = false, is_no = false, hit;

		while ((entry = strsep(&next, ","))) {
			bool is_negated = *entry == '!';

			hit = keys_entry_hit(entry + is_negated, addrs[i]);
			is_yes |= hit && !is_negated;
			is_no |= hit && is_negated;
		}
		FUZZ_CHECK(source_match(list, addrs[i]) == (is_yes && !is_no));
	}
}

/* ---- a file -------------------------------------------------------------- */

static int
keys_memfd(const void *p, size_t n, char path_out[64])
{
	int fd = memfd_create("keys", MFD_CLOEXEC);

	FUZZ_CHECK(fd >= 0 && fd_write_all(fd, p, n) == 0);
	FUZZ_CHECK(fchmod(fd, 0600) == 0);
	snprintf(path_out, 64, "/proc/self/fd/%d", fd);
	return fd;
}

/* What a line of a file is to the parser: NULL with a NUL in it. */
static char *
keys_line_of(const char *p, size_t n)
{
	if (n && p[n - 1] == '\r')
		n--;
	return n && memchr(p, '\0', n) ? NULL : xstrndup(n ? p : "", n);
}

/* Line by line the same keys in the same order. */
static void
keys_check_file(struct key_file *f, const char *p, size_t n)
{
	struct list *pos = f->keys.next;

	while (n) {
		const char *nl = memchr(p, '\n', n);
		size_t len = nl ? (size_t)(nl - p) : n;
		autofree char *line = keys_line_of(p, len);
		struct key_line *k = NULL;

		if (line && key_line_parse(line, &k, NULL) == 1) {
			FUZZ_CHECK(pos != &f->keys);
			keys_compare(list_entry(pos, struct key_line, node), k);
			pos = pos->next;
			key_line_free(k);
		}
		p += nl ? len + 1 : len;
		n -= nl ? len + 1 : len;
	}
	FUZZ_CHECK(pos == &f->keys);
}

/* Some line of the file must allow what was granted. */
static void
keys_check_grant(const struct key_file *f, const struct access_query *q,
    const struct access_grant *g, const char *fingerprint)
{
	const struct list *pos;
	bool is_allowed = false;

	for (pos = f->keys.next; pos != &f->keys; pos = pos->next) {
		const struct key_line *k = list_entry(
		    (struct list *)(uintptr_t)pos, struct key_line, node);
		struct principal who = { .sandbox_globs = k->sandbox_globs,
			.session_globs = k->session_globs };

		is_allowed |=
		    strcmp(k->fingerprint, fingerprint) == 0 &&
		    !key_line_is_sk(k) && k->expires_ms >= q->now_ms &&
		    (!k->from || source_match(k->from, q->address)) &&
		    principal_may_use(&who, g->name.sandbox, g->name.session) &&
		    g->who.is_admin == k->is_admin &&
		    g->who.may_pty == k->may_pty &&
		    g->may_forward == k->may_forward &&
		    keys_same_text(g->who.forced_command, k->command) &&
		    g->who.role == (k->has_role ? k->role : ROLE_WRITER);
	}
	FUZZ_CHECK(is_allowed);
}

static void
keys_check_access(const struct key_file *f, char *path, const char *user)
{
	static char role[] = "writer";
	struct conf c = { .access = {
			      .authorized_keys = path, .default_role = role } };
	struct access *a = access_new(&c);
	const struct list *pos;
	unsigned n = 0;

	for (pos = f->keys.next; pos != &f->keys && n < 16; pos = pos->next) {
		const struct key_line *k = list_entry(
		    (struct list *)(uintptr_t)pos, struct key_line, node);
		struct buf b64 = { 0 };
		struct access_query q = { .user = user,
			.key_type = k->type,
			.address = n % 2 ? "10.1.2.3" : "::1",
			.now_ms = KEYS_NOW_MS };
		struct access_grant g;
		char fingerprint[KEY_FINGERPRINT_MAX];

		keys_put_base64(&b64, k);
		buf_put_u8(&b64, 0);
		q.key_base64 = (const char *)buf_head(&b64);
		if (access_check(a, &q, &g, fingerprint, NULL) == 0) {
			keys_check_grant(f, &q, &g, fingerprint);
			access_grant_release(&g);
		}
		FUZZ_CHECK(strcmp(fingerprint, k->fingerprint) == 0);
		buf_release(&b64);
		n++;
	}
	access_free(a);
}

/* The first line is the user name, the rest is the file. */
static void
keys_check_whole(struct fuzz_input *in)
{
	const uint8_t *nl = in->n ? memchr(in->p, '\n', in->n) : NULL;
	size_t len = nl ? (size_t)(nl - in->p) : 0, skip;
	autofree char *user = xstrndup(len ? (const char *)in->p : "", len);
	struct key_file *f;
	char path[64];
	int fd;

	fuzz_take(in, nl ? len + 1 : 0, &skip);
	fd = keys_memfd(in->p, in->n, path);
	f = key_file_new(path);
	key_file_refresh(f);
	FUZZ_CHECK(f->is_loaded);
	keys_check_file(f, (const char *)in->p, in->n);
	key_file_refresh(f);
	keys_check_file(f, (const char *)in->p, in->n);
	keys_check_access(f, path, user);
	key_file_free(f);
	close(fd);
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct fuzz_input in = { p, n };
	unsigned what = fuzz_u8(&in) % 3;
	char *text;

	log_set_level(LOG_ERR);
	if (what == 2) {
		keys_check_whole(&in);
		return 0;
	}
	text = fuzz_str(&in);
	if (what == 0)
		keys_check_line(text);
	else
		keys_check_source(text);
	free(text);
	return 0;
}
