/* Roles and what a key's globs allow; see manager.h. */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/text.h"
#include "sessions/manager/manager.h"

/* In the byte of the role: a template follows. */
#define PRINCIPAL_HAS_TEMPLATE 0x80u

#define PRINCIPAL_STRING_MAX (64U << 10)

static const char *const role_names[] = {
	[ROLE_VIEWER] = "viewer",
	[ROLE_WRITER] = "writer",
	[ROLE_OWNER] = "owner",
};

const char *
role_name(enum role r)
{
	return role_names[r];
}

int
role_parse(const char *s, enum role *out)
{
	for (size_t i = 0; i < ARRAY_LEN(role_names); i++) {
		if (strcmp(s, role_names[i]) == 0) {
			*out = (enum role)i;
			return 0;
		}
	}
	return -EINVAL;
}

void
principal_release(struct principal *p)
{
	free(p->forced_command);
	free(p->sandbox_globs);
	free(p->session_globs);
	*p = (struct principal){ 0 };
}

/* NULL and "" differ: no restriction, and one that nothing meets. */
static void
principal_put(struct buf *b, const char *s)
{
	buf_put_u8(b, s != NULL);
	buf_put_str(b, s);
}

static char *
principal_take(struct reader *r)
{
	bool is_there = reader_u8(r) == 1;
	char *s = reader_str(r, PRINCIPAL_STRING_MAX);

	if (!is_there)
		free(take_ptr(s));
	return s;
}

void
principal_save(const struct principal *p, struct buf *b)
{
	buf_put_str(b, p->identity);
	buf_put_str(b, p->fingerprint);
	/* Who has no template is written as ever: others read it too. */
	buf_put_u8(b,
	    (uint8_t)p->role | (p->template[0] ? PRINCIPAL_HAS_TEMPLATE : 0));
	if (p->template[0])
		buf_put_str(b, p->template);
	buf_put_u8(b, p->is_admin);
	buf_put_u8(b, p->may_pty);
	principal_put(b, p->forced_command);
	principal_put(b, p->sandbox_globs);
	principal_put(b, p->session_globs);
	buf_put_str(b, p->remote_addr);
	buf_put_str(b, p->client_version);
}

void
principal_load(struct reader *r, struct principal *out)
{
	struct principal p = { 0 };
	uint8_t role;

	reader_str_into(r, p.identity, sizeof(p.identity));
	reader_str_into(r, p.fingerprint, sizeof(p.fingerprint));
	role = reader_u8(r);
	if (role & PRINCIPAL_HAS_TEMPLATE)
		reader_str_into(r, p.template, sizeof(p.template));
	p.role = role & ~(unsigned)PRINCIPAL_HAS_TEMPLATE;
	p.is_admin = reader_u8(r) == 1;
	p.may_pty = reader_u8(r) == 1;
	p.forced_command = principal_take(r);
	p.sandbox_globs = principal_take(r);
	p.session_globs = principal_take(r);
	reader_str_into(r, p.remote_addr, sizeof(p.remote_addr));
	reader_str_into(r, p.client_version, sizeof(p.client_version));
	if (p.role > ROLE_OWNER)
		r->failed = true;
	if (r->failed)
		principal_release(&p);
	*out = p;
}

bool
principal_may_use(
    const struct principal *p, const char *sandbox, const char *session)
{
	if (p->sandbox_globs && !text_glob_list(p->sandbox_globs, sandbox))
		return false;
	if (!session || !p->session_globs)
		return true;
	return text_glob_list(p->session_globs, session);
}
