/*
 * Decides about logins; see login.h. Runs in berthd. The key that was proven
 * decides and the user name that came with the proof: a probe binds nothing.
 */
#include "sshd/listener/login.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/conf.h"
#include "sessions/wire/messages.h"
#include "sshd/listener/connection.h"
#include "sshd/listener/server.h"
#include "store/store.h"

#define LOGIN_USER_SHOWN 128 /* bytes of a user name in a log line */
#define LOGIN_TOO_MANY   "Too many authentication failures"

static void
login_reply(struct connection *c, uint16_t tag, enum wire_verdict verdict,
    uint32_t may, const char *why)
{
	struct buf b = { 0 };

	buf_put_u32(&b, may);
	buf_put_str(&b, why);
	wire_send_buf(&c->wire, FRAME_AUTH_REPLY, (uint8_t)verdict, tag, &b);
	buf_release(&b);
}

/*
 * Counts a refusal; true when it was one too many. The first "none" is how
 * every client asks for the methods; keys that are only offered have a bound of
 * their own, because an agent may hold many.
 */
static bool
login_count(struct connection *c, enum wire_auth_method method)
{
	uint64_t max = c->server->conf->server.max_auth_tries;

	if (method == AUTH_NONE && c->n_none++ == 0)
		return false;
	if (method == AUTH_KEY_PROBE)
		return ++c->n_offered > LOGIN_OFFERED_MAX;
	return ++c->n_tries >= max;
}

static void
login_refuse(struct connection *c, const struct frame *f,
    const struct wire_auth *m, const char *fingerprint, const char *why)
{
	char user[LOGIN_USER_SHOWN];
	bool is_last = login_count(c, m->method);

	snprintf(user, sizeof(user), "%s", m->user);
	if (m->method == AUTH_NONE && c->n_none == 1)
		log_debug("refused", "conn", c->id, "addr", c->remote, "user",
		    user, "why", why, NULL);
	else if (server_may_log(c->server))
		log_info("refused", "conn", c->id, "addr", c->remote, "user",
		    user, "key", *fingerprint ? fingerprint : NULL, "why", why,
		    NULL);
	if (!is_last) {
		login_reply(c, f->tag, VERDICT_DENY, 0, "");
		return;
	}
	if (server_may_log(c->server))
		log_info("refused", "conn", c->id, "addr", c->remote, "user",
		    user, "why", LOGIN_TOO_MANY, NULL);
	login_reply(c, f->tag, VERDICT_DISCONNECT, 0, LOGIN_TOO_MANY);
	connection_give_up(c);
}

static void
login_accept(struct connection *c, const struct frame *f,
    const struct wire_auth *m, struct access_grant *g)
{
	struct principal *who = &g->who;
	uint32_t may = (who->may_pty ? WIRE_MAY_PTY : 0U) |
		       (g->may_forward ? WIRE_MAY_FORWARD : 0U);

	snprintf(who->remote_addr, sizeof(who->remote_addr), "%s", c->remote);
	snprintf(who->client_version, sizeof(who->client_version), "%s",
	    m->client_version);
	log_info("accepted", "conn", c->id, "addr", c->remote, "user", m->user,
	    "identity", who->identity, "key", who->fingerprint, "role",
	    role_name(who->role), "client", m->client_version, NULL);
	store_audit(c->server->store, "login", who->identity, c->remote,
	    g->name.sandbox, NULL, who->fingerprint);
	connection_bind(c, g);
	login_reply(c, f->tag, VERDICT_ALLOW, may, "");
}

int
login_on_auth(struct connection *c, const struct frame *f)
{
	struct access_grant g = { 0 };
	struct wire_auth m;
	struct access_query q;
	char fingerprint[KEY_FINGERPRINT_MAX];
	struct err e = { 0 };
	int rc = wire_auth_decode(f->data, f->len, &m);

	if (rc < 0)
		return rc;
	q = (struct access_query){
		.user = m.user,
		.key_type = m.key_type,
		.key_base64 = m.key_base64,
		.address = c->address,
		.now_ms = clock_wall_ms(),
	};
	/* Asked for every method alike, so that the time tells nothing. */
	rc = access_check(c->server->access, &q, &g, fingerprint, &e);
	if (rc < 0 || m.method == AUTH_NONE)
		login_refuse(c, f, &m, fingerprint,
		    m.method == AUTH_NONE ? "no key was offered" : e.msg);
	else if (m.method == AUTH_KEY_PROBE)
		login_reply(c, f->tag, VERDICT_ALLOW, 0, "");
	else
		login_accept(c, f, &m, &g);
	access_grant_release(&g);
	wire_auth_release(&m);
	return 0;
}
