/*
 * The client's side of authentication; see auth.h. Runs in berth-sshd and
 * decides nothing: an attempt becomes a question, a verdict becomes an answer.
 */
#include "sshd/connection/auth.h"

#include <libssh/server.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "sshd/connection/lib_log.h"
#include "sshd/connection/peer.h"

/* What the decoder at the other end takes. */
#define AUTH_KEY_BASE64_MAX 16384

/* Fills the key of MSG in; false if it has none that can be named. */
static bool
auth_take_key(ssh_message msg, struct wire_auth *a)
{
	ssh_key key = ssh_message_auth_pubkey(msg);
	const char *type;
	char *base64 = NULL;

	if (!key)
		return false;
	type = ssh_key_type_to_char(ssh_key_type(key));
	if (!type || strlen(type) >= sizeof(a->key_type))
		return false;
	if (ssh_pki_export_pubkey_base64(key, &base64) != SSH_OK)
		return false;
	if (strlen(base64) <= AUTH_KEY_BASE64_MAX) {
		snprintf(a->key_type, sizeof(a->key_type), "%s", type);
		a->key_base64 = xstrdup(base64);
	}
	ssh_string_free_char(base64);
	return a->key_base64 != NULL;
}

static enum wire_auth_method
auth_method(ssh_message msg, struct wire_auth *a)
{
	enum ssh_publickey_state_e state;

	if (ssh_message_subtype(msg) != SSH_AUTH_METHOD_PUBLICKEY)
		return AUTH_NONE;
	state = ssh_message_auth_publickey_state(msg);
	if (state != SSH_PUBLICKEY_STATE_NONE &&
	    state != SSH_PUBLICKEY_STATE_VALID)
		return AUTH_NONE;
	if (!auth_take_key(msg, a))
		return AUTH_NONE;
	return state == SSH_PUBLICKEY_STATE_VALID ? AUTH_KEY_PROVEN
						  : AUTH_KEY_PROBE;
}

void
auth_request(struct peer *p, ssh_message msg)
{
	struct held *h = peer_hold(p, msg, FRAME_AUTH);
	const char *user = ssh_message_auth_user(msg);
	const char *version = ssh_get_clientbanner(p->transport.session);
	struct wire_auth a = { 0 };
	struct buf b = { 0 };

	a.method = h->method = (uint8_t)auth_method(msg, &a);
	/* A name that does not fit is never valid; "" is not either. */
	if (user && strlen(user) < sizeof(a.user))
		snprintf(a.user, sizeof(a.user), "%s", user);
	if (version)
		snprintf(
		    a.client_version, sizeof(a.client_version), "%s", version);
	wire_auth_encode(&b, &a);
	p->is_auth_held = true;
	wire_send_buf(&p->manager, FRAME_AUTH, 0, h->tag, &b);
	buf_release(&b);
	wire_auth_release(&a);
}

static void
auth_allow(struct peer *p, const struct held *h)
{
	if (h->method == AUTH_KEY_PROBE) {
		ssh_message_auth_reply_pk_ok_simple(h->msg);
		return;
	}
	if (h->method != AUTH_KEY_PROVEN) {
		peer_end(p, "the manager allowed a login without a key");
		return;
	}
	ssh_message_auth_reply_success(h->msg, 0);
	p->phase = PHASE_SERVE;
	p->grace_ms = 0;
	lib_log_set_packets(false);
}

void
auth_reply(struct peer *p, struct held *h, const struct frame *f)
{
	struct reader r = reader_over(f->data, f->len);
	uint32_t may = reader_u32(&r);
	char why[256];

	reader_str_into(&r, why, sizeof(why));
	p->is_auth_held = false;
	if (!reader_done(&r) || f->arg > VERDICT_DISCONNECT) {
		peer_end(p, "the manager's verdict does not decode");
	} else if (f->arg == VERDICT_ALLOW) {
		p->may = may;
		auth_allow(p, h);
	} else if (f->arg == VERDICT_DENY) {
		ssh_message_reply_default(h->msg);
	} else {
		peer_goodbye(p, why, NULL);
	}
	peer_release_held(p, h);
}
