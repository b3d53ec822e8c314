/* Pattern lists of from=; see source.h. Runs in berthd. */
#include "sshd/listener/source.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/text.h"

#define SOURCE_ENTRY_MAX 256

struct source_addr {
	uint8_t bytes[16];
	unsigned bits; /* 32 or 128 */
};

/* One entry of a list, without its `!`. */
struct source_entry {
	char text[SOURCE_ENTRY_MAX];
	bool is_negated;
};

static int
source_parse_addr(const char *s, struct source_addr *out)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct source_addr a = { .bits = 32 };

	if (inet_pton(AF_INET, s, a.bytes) == 1) {
		*out = a;
		return 0;
	}
	a.bits = 128;
	if (inet_pton(AF_INET6, s, a.bytes) != 1)
		return -EINVAL;
	if (memcmp(a.bytes, mapped, sizeof(mapped)) == 0) {
		memmove(a.bytes, a.bytes + 12, 4);
		memset(a.bytes + 4, 0, 12);
		a.bits = 32;
	}
	*out = a;
	return 0;
}

/* Compares the first BITS bits. */
static bool
source_same_prefix(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

/* "10.0.0.0/8": -EINVAL unless it parses and no bit is behind the mask. */
static int
source_parse_cidr(const char *s, struct source_addr *net, unsigned *len_out)
{
	char text[SOURCE_ENTRY_MAX];
	const char *slash = strchr(s, '/');
	struct source_addr masked = { 0 };
	uint64_t len;
	size_t n = (size_t)(slash - s);

	memcpy(text, s, n);
	text[n] = '\0';
	if (source_parse_addr(text, net) < 0 ||
	    text_parse_u64(slash + 1, 0, net->bits, &len) < 0)
		return -EINVAL;
	*len_out = (unsigned)len;
	memcpy(masked.bytes, net->bytes, len / 8);
	if (len % 8)
		masked.bytes[len / 8] =
		    (uint8_t)(net->bytes[len / 8] & (0xff << (8 - len % 8)));
	return memcmp(masked.bytes, net->bytes, 16) == 0 ? 0 : -EINVAL;
}

/* The next entry of *LIST, which moves on: 1, 0 at the end, -EINVAL. */
static int
source_next(const char **list, struct source_entry *out)
{
	const char *s = *list;
	size_t n;

	if (!s)
		return 0;
	n = strcspn(s, ",");
	*list = s[n] ? s + n + 1 : NULL;
	out->is_negated = n > 0 && *s == '!';
	if (out->is_negated) {
		s++;
		n--;
	}
	if (n == 0 || n >= sizeof(out->text))
		return -EINVAL;
	memcpy(out->text, s, n);
	out->text[n] = '\0';
	return 1;
}

int
source_check(const char *list, struct err *e)
{
	struct source_entry en;
	struct source_addr net;
	unsigned len;
	int rc;

	while ((rc = source_next(&list, &en)) == 1) {
		if (strchr(en.text, '/') &&
		    source_parse_cidr(en.text, &net, &len) < 0)
			return err_set(e, -EINVAL,
			    "from=: %s is not an address block", en.text);
	}
	return rc < 0 ? err_set(e, -EINVAL, "from=: empty or long entry") : 0;
}

static bool
source_entry_match(const struct source_entry *en, const char *addr)
{
	struct source_addr want, have;
	unsigned len;

	if (source_parse_addr(addr, &have) < 0)
		return false;
	if (strchr(en->text, '/'))
		return source_parse_cidr(en->text, &want, &len) == 0 &&
		       want.bits == have.bits &&
		       source_same_prefix(want.bytes, have.bytes, len);
	if (source_parse_addr(en->text, &want) == 0)
		return want.bits == have.bits &&
		       memcmp(want.bytes, have.bytes, 16) == 0;
	return text_glob_list(en->text, addr);
}

bool
source_match(const char *list, const char *addr)
{
	struct source_entry en;
	bool is_match = false;
	int rc;

	while ((rc = source_next(&list, &en)) == 1) {
		if (!source_entry_match(&en, addr))
			continue;
		if (en.is_negated)
			return false;
		is_match = true;
	}
	return rc == 0 && is_match;
}
