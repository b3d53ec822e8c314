/* Lines of authorized_keys; see key_line.h. Runs in berthd. */
#include "sshd/listener/key_line.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "sshd/listener/key_option.h"

/* Certificates and DSA are not here: they are refused. */
static const char *const key_types[] = {
	"ssh-ed25519",
	"ssh-rsa",
	"ecdsa-sha2-nistp256",
	"ecdsa-sha2-nistp384",
	"ecdsa-sha2-nistp521",
	"sk-ssh-ed25519@openssh.com",
	"sk-ecdsa-sha2-nistp256@openssh.com",
};

int
key_blob_decode(const char *s, size_t n, uint8_t **blob_out, size_t *len_out)
{
	size_t cap = n / 4 * 3 + 3, len, type_len;
	autofree uint8_t *blob = xmalloc(cap);
	struct reader r;

	if (sodium_base642bin(blob, cap, s, n, NULL, &len, NULL,
		sodium_base64_VARIANT_ORIGINAL) != 0)
		return -EINVAL;
	r = reader_over(blob, len);
	reader_bytes(&r, 64, &type_len);
	if (r.failed || type_len == 0)
		return -EINVAL;
	*blob_out = take_ptr(blob);
	*len_out = len;
	return 0;
}

void
key_blob_fingerprint(
    const uint8_t *blob, size_t len, char out[KEY_FINGERPRINT_MAX])
{
	static const char prefix[] = "SHA256:";
	uint8_t hash[crypto_hash_sha256_BYTES];

	crypto_hash_sha256(hash, blob, len);
	memcpy(out, prefix, sizeof(prefix));
	sodium_bin2base64(out + sizeof(prefix) - 1,
	    KEY_FINGERPRINT_MAX - sizeof(prefix) + 1, hash, sizeof(hash),
	    sodium_base64_VARIANT_ORIGINAL_NO_PADDING);
}

static size_t
key_line_blank(const char *s)
{
	return strspn(s, " \t");
}

static size_t
key_line_word(const char *s)
{
	return strcspn(s, " \t");
}

/*
 * Takes "TYPE BASE64 COMMENT" from S: 0, or -ENOKEY when that is no key, so
 * that S may be options, or -EINVAL with a sentence.
 */
static int
key_line_key(const char *s, struct key_line *k, struct err *e)
{
	size_t type_len = key_line_word(s), n, embedded;
	const char *b64 = s + type_len + key_line_blank(s + type_len);
	const uint8_t *type;
	struct reader r;

	n = key_line_word(b64);
	if (type_len >= sizeof(k->type) ||
	    key_blob_decode(b64, n, &k->blob, &k->blob_len) < 0)
		return -ENOKEY;
	r = reader_over(k->blob, k->blob_len);
	type = reader_bytes(&r, sizeof(k->type), &embedded);
	if (!type || embedded != type_len || memcmp(type, s, type_len) != 0)
		return err_set(e, -EINVAL, "the key is not of the named type");
	memcpy(k->type, s, type_len);
	k->type[type_len] = '\0';
	b64 += n;
	k->comment = xstrdup(b64 + key_line_blank(b64));
	for (n = strlen(k->comment); n > 0; n--) {
		if (!strchr(" \t", k->comment[n - 1]))
			break;
		k->comment[n - 1] = '\0';
	}
	return 0;
}

static int
key_line_check_type(const struct key_line *k, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(key_types); i++) {
		if (strcmp(k->type, key_types[i]) == 0)
			return 0;
	}
	return err_set(e, -EINVAL, "keys of type %s are not accepted", k->type);
}

static int
key_line_fill(const char *s, struct key_line *k, struct err *e)
{
	int rc = key_line_key(s, k, e);

	if (rc == -ENOKEY) {
		rc = key_options_parse(&s, k, e);
		if (rc < 0)
			return rc;
		rc = key_line_key(s + key_line_blank(s), k, e);
	}
	if (rc == -ENOKEY)
		return err_set(e, -EINVAL, "no key on this line");
	return rc < 0 ? rc : key_line_check_type(k, e);
}

int
key_line_parse(const char *line, struct key_line **out, struct err *e)
{
	struct key_line *k;
	int rc;

	line += key_line_blank(line);
	if (*line == '\0' || *line == '#')
		return 0;
	if (strlen(line) > KEY_LINE_MAX)
		return err_set(e, -EINVAL, "the line is over 16 KiB long");
	k = xcalloc(1, sizeof(*k));
	list_init(&k->node);
	k->may_pty = k->may_forward = true;
	k->expires_ms = INT64_MAX;
	rc = key_line_fill(line, k, e);
	if (rc < 0) {
		key_line_free(k);
		return rc;
	}
	key_blob_fingerprint(k->blob, k->blob_len, k->fingerprint);
	*out = k;
	return 1;
}

void
key_line_free(struct key_line *k)
{
	if (!k)
		return;
	free(k->blob);
	free(k->comment);
	free(k->from);
	free(k->command);
	free(k->permit_open);
	free(k->permit_listen);
	free(k->sandbox_globs);
	free(k->template);
	free(k->session_globs);
	free(k);
}

bool
key_line_is_sk(const struct key_line *k)
{
	return strncmp(k->type, "sk-", 3) == 0;
}
