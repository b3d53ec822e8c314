/*
 * One line of authorized_keys: options, key, comment. Quoting and meaning are
 * those of OpenSSH (sshd(8), AUTHORIZED_KEYS FILE FORMAT); sandbox=, session=,
 * role=, template= and admin are berth's own. Pure: what is not understood refuses the
 * line, because an ignored restriction would be a permission.
 */
#ifndef SSHD_LISTENER_KEY_LINE_H
#define SSHD_LISTENER_KEY_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "sessions/manager/manager.h"

struct err;

#define KEY_LINE_MAX        (16U << 10)
#define KEY_FINGERPRINT_MAX 64

struct key_line {
	struct list node; /* for whoever keeps it */
	uint8_t *blob;    /* RFC 4253 6.6 */
	size_t blob_len;
	char type[64];
	char fingerprint[KEY_FINGERPRINT_MAX]; /* "SHA256:..." */
	char *comment;                         /* "" if there is none */
	char *from; /* the rest is NULL when the option is absent */
	char *command;
	char *permit_open;   /* comma-separated host:port */
	char *permit_listen; /* the same, hosts may be globs */
	char *sandbox_globs, *session_globs;
	char *template;     /* of the sandboxes that it makes */
	int64_t expires_ms; /* wall clock; INT64_MAX = never */
	enum role role;
	bool has_role, is_admin, may_pty, may_forward;
};

/*
 * Parses LINE (terminated, without its newline). Returns 1 and fills *OUT,
 * which the caller frees with key_line_free(); 0 for a blank line or a comment;
 * -EINVAL with a sentence.
 */
int key_line_parse(const char *line, struct key_line **out, struct err *e);
void key_line_free(struct key_line *k);

/* True for security keys (sk-...), whose touch libssh does not check. */
bool key_line_is_sk(const struct key_line *k);

/*
 * Decodes the N characters of base64 at S into a new blob that the caller
 * frees. -EINVAL unless it is whole and begins with the name of a key type.
 */
int key_blob_decode(
    const char *s, size_t n, uint8_t **blob_out, size_t *len_out);

/* Writes "SHA256:" and the hash of the blob in base64 without padding. */
void key_blob_fingerprint(
    const uint8_t *blob, size_t len, char out[KEY_FINGERPRINT_MAX]);

#endif
