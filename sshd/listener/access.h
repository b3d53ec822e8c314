/*
 * Who may come in: looks a key up in the authorized_keys files and says what
 * it may do under a user name. Lives in berthd. Answers the same questions for
 * every name and key, known or not, and tells the reason to the log only.
 */
#ifndef SSHD_LISTENER_ACCESS_H
#define SSHD_LISTENER_ACCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "sessions/manager/manager.h"
#include "sshd/listener/key_line.h"
#include "sshd/listener/user_name.h"

struct access;
struct conf;
struct err;

struct access_query {
	const char *user;       /* as the client sent it */
	const char *key_type;   /* as libssh names it */
	const char *key_base64; /* "" if no key was offered */
	const char *address;    /* numeric, without port */
	int64_t now_ms;         /* wall clock */
};

/* What a key may do; the caller releases it with access_grant_release(). */
struct access_grant {
	struct principal who; /* without remote_addr and client_version */
	struct user_name name;
	bool may_forward;
	char *permit_open, *permit_listen; /* as in struct key_line */
};

/* Nothing is read before access_refresh(). Frees with access_free(). */
struct access *access_new(const struct conf *c);
void access_free(struct access *a);

/* Takes over the files and rules of C; files that stay keep what is read. */
void access_reconfigure(struct access *a, const struct conf *c);

/* Reads what changed on disk; access_check() does it by itself. */
void access_refresh(struct access *a);

/*
 * Checks Q against the files as they are now. 0 and OUT when the key is known,
 * its restrictions hold and it may use that sandbox and session; else -EACCES
 * with the reason, for the log only. FINGERPRINT_OUT is filled in for every
 * key that decodes, else "".
 */
int access_check(struct access *a, const struct access_query *q,
    struct access_grant *out, char fingerprint_out[KEY_FINGERPRINT_MAX],
    struct err *e);

/* Frees what OUT of access_check() owns. */
void access_grant_release(struct access_grant *g);

#endif
