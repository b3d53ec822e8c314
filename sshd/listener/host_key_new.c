/* A new ed25519 host key; see host_key_new.h. Runs in berthd. */
#include "sshd/listener/host_key_new.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/text.h"

#define HOST_KEY_TYPE    "ssh-ed25519"
#define HOST_KEY_COMMENT "berth host key"
#define HOST_KEY_BLOCK   8 /* padding of the cipher "none" */
#define HOST_KEY_LINE    70

/* More than any of the texts below needs, so that no secret is left behind. */
#define HOST_KEY_ROOM 2048

struct host_key_pair {
	uint8_t pk[crypto_sign_PUBLICKEYBYTES];
	uint8_t sk[crypto_sign_SECRETKEYBYTES]; /* seed, then the public key */
};

static void
host_key_wipe(struct buf *b)
{
	if (b->data)
		sodium_memzero(b->data, b->cap);
	buf_release(b);
}

static void
host_key_public(const struct host_key_pair *kp, struct buf *out)
{
	buf_put_str(out, HOST_KEY_TYPE);
	buf_put_bytes(out, kp->pk, sizeof(kp->pk));
}

static void
host_key_private(const struct host_key_pair *kp, struct buf *out)
{
	uint32_t check = randombytes_random();

	buf_put_u32(out, check);
	buf_put_u32(out, check);
	host_key_public(kp, out);
	buf_put_bytes(out, kp->sk, sizeof(kp->sk));
	buf_put_str(out, HOST_KEY_COMMENT);
	for (uint8_t i = 1; buf_len(out) % HOST_KEY_BLOCK; i++)
		buf_put_u8(out, i);
}

/* BIN in base64, in lines, between the two markers. */
static void
host_key_armour(const struct buf *bin, struct buf *out)
{
	char b64[HOST_KEY_ROOM];
	size_t n;

	sodium_bin2base64(b64, sizeof(b64), buf_head(bin), buf_len(bin),
	    sodium_base64_VARIANT_ORIGINAL);
	n = strlen(b64);
	buf_put(out, "-----BEGIN OPENSSH PRIVATE KEY-----\n", 36);
	for (size_t i = 0; i < n; i += HOST_KEY_LINE) {
		size_t k = n - i < HOST_KEY_LINE ? n - i : HOST_KEY_LINE;

		buf_put(out, b64 + i, k);
		buf_put_u8(out, '\n');
	}
	buf_put(out, "-----END OPENSSH PRIVATE KEY-----\n", 34);
	sodium_memzero(b64, sizeof(b64));
}

static void
host_key_encode(const struct host_key_pair *kp, struct buf *out)
{
	static const char magic[] = "openssh-key-v1";
	struct buf bin = { 0 }, part = { 0 };

	buf_reserve(&bin, HOST_KEY_ROOM);
	buf_reserve(&part, HOST_KEY_ROOM);
	buf_reserve(out, HOST_KEY_ROOM);
	buf_put(&bin, magic, sizeof(magic));
	buf_put_str(&bin, "none");
	buf_put_str(&bin, "none");
	buf_put_str(&bin, "");
	buf_put_u32(&bin, 1);
	host_key_public(kp, &part);
	buf_put_bytes(&bin, buf_head(&part), buf_len(&part));
	buf_clear(&part);
	host_key_private(kp, &part);
	buf_put_bytes(&bin, buf_head(&part), buf_len(&part));
	host_key_armour(&bin, out);
	host_key_wipe(&part);
	host_key_wipe(&bin);
}

/* "ssh-ed25519 AAAA... berth host key" */
static void
host_key_encode_public(const struct host_key_pair *kp, struct buf *out)
{
	struct buf blob = { 0 };
	char b64[256];

	host_key_public(kp, &blob);
	sodium_bin2base64(b64, sizeof(b64), buf_head(&blob), buf_len(&blob),
	    sodium_base64_VARIANT_ORIGINAL);
	buf_put(out, HOST_KEY_TYPE " ", sizeof(HOST_KEY_TYPE));
	buf_put(out, b64, strlen(b64));
	buf_put(out, " " HOST_KEY_COMMENT "\n", sizeof(HOST_KEY_COMMENT) + 1);
	buf_release(&blob);
}

static void
host_key_sync_dir(const char *path)
{
	autofree char *copy = xstrdup(path);
	autoclose int fd =
	    open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		fsync(fd);
}

/*
 * Writes a temporary file beside PATH and gives it that name: by link(), which
 * never replaces, or by rename() if it may.
 */
static int
host_key_write(
    const char *path, mode_t mode, bool may_replace, const struct buf *b)
{
	autofree char *tmp = NULL;
	autoclose int fd = -1;
	char suffix[32];
	int rc;

	text_random_id("tmp-", 8, suffix, sizeof(suffix));
	tmp = xasprintf("%s.%s", path, suffix);
	fd = open(
	    tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	if (fd < 0)
		return -errno;
	rc = fd_write_all(fd, buf_head(b), buf_len(b));
	if (rc == 0 && fsync(fd) < 0)
		rc = -errno;
	if (rc == 0 && (may_replace ? rename(tmp, path) : link(tmp, path)) < 0)
		rc = -errno;
	if (rc < 0 || !may_replace)
		unlink(tmp);
	if (rc == 0)
		host_key_sync_dir(path);
	return rc;
}

int
host_key_new(const char *path, struct err *e)
{
	autofree char *pub_path = xasprintf("%s.pub", path);
	struct host_key_pair kp;
	struct buf pem = { 0 }, pub = { 0 };
	int rc;

	if (sodium_init() < 0)
		return err_set(e, -EIO, "libsodium does not start");
	crypto_sign_keypair(kp.pk, kp.sk);
	host_key_encode(&kp, &pem);
	host_key_encode_public(&kp, &pub);
	sodium_memzero(&kp, sizeof(kp));
	rc = host_key_write(path, 0600, false, &pem);
	host_key_wipe(&pem);
	if (rc == 0)
		rc = host_key_write(pub_path, 0644, true, &pub);
	buf_release(&pub);
	return rc < 0 ? err_sys(e, rc, "cannot make host key %s", path) : 0;
}
