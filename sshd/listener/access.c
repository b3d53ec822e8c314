/* The decision about a key; see access.h. Runs in berthd. */
#include "sshd/listener/access.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text.h"
#include "conf/conf.h"
#include "sshd/listener/key_file.h"
#include "sshd/listener/source.h"

struct access {
	struct list files; /* struct key_file, in the order of the option */
	enum role default_role;
	bool allow_sk;
};

/* What was offered, decoded. */
struct access_offer {
	uint8_t *blob;
	size_t len;
	struct user_name name;
	bool is_name_ok;
};

static struct key_file *
access_find_file(struct list *files, const char *path)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, files) {
		struct key_file *f = list_entry(pos, struct key_file, node);

		if (strcmp(f->path, path) == 0)
			return f;
	}
	return NULL;
}

static void
access_drop_files(struct list *files)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, files) {
		list_remove(pos);
		key_file_free(list_entry(pos, struct key_file, node));
	}
}

/* Adds the files of the comma-separated LIST, reusing those of OLD. */
static void
access_add_files(struct access *a, const char *list, struct list *old)
{
	autofree char *copy = xstrdup(list);
	char *next = copy, *path;

	while ((path = strsep(&next, ","))) {
		struct key_file *f;

		path += strspn(path, " \t");
		path[strcspn(path, " \t")] = '\0';
		if (!*path || access_find_file(&a->files, path))
			continue;
		f = access_find_file(old, path);
		if (f)
			list_remove(&f->node);
		else
			f = key_file_new(path);
		list_append(&a->files, &f->node);
	}
}

void
access_reconfigure(struct access *a, const struct conf *c)
{
	struct list old;

	list_init(&old);
	while (!list_empty(&a->files)) {
		struct list *first = a->files.next;

		list_remove(first);
		list_append(&old, first);
	}
	access_add_files(a, c->access.authorized_keys, &old);
	access_drop_files(&old);
	a->allow_sk = c->access.allow_sk;
	if (role_parse(c->access.default_role, &a->default_role) < 0)
		a->default_role = ROLE_VIEWER;
}

struct access *
access_new(const struct conf *c)
{
	struct access *a = xcalloc(1, sizeof(*a));

	list_init(&a->files);
	access_reconfigure(a, c);
	return a;
}

void
access_free(struct access *a)
{
	if (!a)
		return;
	access_drop_files(&a->files);
	free(a);
}

void
access_refresh(struct access *a)
{
	struct list *pos, *tmp;

	list_for_each (pos, tmp, &a->files)
		key_file_refresh(list_entry(pos, struct key_file, node));
}

/* A comment is an identity only when it fits whole. */
static void
access_fill(const struct access *a, const struct key_line *k,
    const struct user_name *name, struct access_grant *out)
{
	struct principal *who = &out->who;
	bool has_comment =
	    k->comment[0] && strlen(k->comment) < sizeof(who->identity);

	*out = (struct access_grant){ 0 };
	snprintf(who->identity, sizeof(who->identity), "%s",
	    has_comment ? k->comment : k->fingerprint);
	snprintf(
	    who->fingerprint, sizeof(who->fingerprint), "%s", k->fingerprint);
	who->role = k->has_role ? k->role : a->default_role;
	who->is_admin = k->is_admin;
	who->may_pty = k->may_pty;
	who->forced_command = k->command ? xstrdup(k->command) : NULL;
	who->sandbox_globs =
	    k->sandbox_globs ? xstrdup(k->sandbox_globs) : NULL;
	who->session_globs =
	    k->session_globs ? xstrdup(k->session_globs) : NULL;
	snprintf(who->template, sizeof(who->template), "%s",
	    k->template ? k->template : "");
	out->name = *name;
	out->may_forward = k->may_forward;
	out->permit_open = k->permit_open ? xstrdup(k->permit_open) : NULL;
	out->permit_listen =
	    k->permit_listen ? xstrdup(k->permit_listen) : NULL;
}

/* Does this line let the offer in, here and now? */
static int
access_try(const struct access *a, const struct key_line *k,
    const struct access_query *q, const struct access_offer *o, struct err *e)
{
	struct principal who = {
		.sandbox_globs = k->sandbox_globs,
		.session_globs = k->session_globs,
	};

	if (key_line_is_sk(k) && !a->allow_sk)
		return err_set(e, -EACCES, "security keys are not allowed");
	if (k->from && !source_match(k->from, q->address))
		return err_set(e, -EACCES, "not from this address");
	if (k->expires_ms < q->now_ms)
		return err_set(e, -EACCES, "the key has expired");
	if (!o->is_name_ok)
		return err_set(e, -EACCES, "the user name is not valid");
	if (!principal_may_use(&who, o->name.sandbox, o->name.session))
		return err_set(
		    e, -EACCES, "the key is not for this sandbox or session");
	return 0;
}

/* Walks every key, found or not: the time tells nothing. */
static int
access_search(struct access *a, const struct access_query *q,
    const struct access_offer *o, const struct key_line **out, struct err *e)
{
	const struct key_line *hit = NULL;
	struct list *file, *pos, *tmp, *tmp2;
	struct err why = { 0 }, last;

	err_set(&last, -EACCES, "unknown key");
	list_for_each (file, tmp, &a->files) {
		struct key_file *f = list_entry(file, struct key_file, node);

		list_for_each (pos, tmp2, &f->keys) {
			struct key_line *k =
			    list_entry(pos, struct key_line, node);

			if (k->blob_len != o->len ||
			    !text_equal_ct(k->blob, o->blob, o->len) || hit)
				continue;
			if (access_try(a, k, q, o, &why) == 0)
				hit = k;
			else
				last = why;
		}
	}
	if (!hit)
		return err_set(e, last.code, "%s", last.msg);
	*out = hit;
	return 0;
}

/* libssh names certificates "...-cert-v01@openssh.com" or "..._cert01". */
static bool
access_is_certificate(const char *type)
{
	return strcasestr(type, "cert") != NULL;
}

int
access_check(struct access *a, const struct access_query *q,
    struct access_grant *out, char fingerprint_out[KEY_FINGERPRINT_MAX],
    struct err *e)
{
	struct access_offer o = { 0 };
	const struct key_line *k = NULL;
	bool has_key;
	int rc;

	access_refresh(a);
	o.is_name_ok = user_name_parse(q->user, &o.name) == 0;
	has_key = key_blob_decode(q->key_base64, strlen(q->key_base64), &o.blob,
		      &o.len) == 0;
	fingerprint_out[0] = '\0';
	if (has_key)
		key_blob_fingerprint(o.blob, o.len, fingerprint_out);
	rc = access_search(a, q, &o, &k, e);
	if (!has_key)
		rc = err_set(e, -EACCES, "no key was offered");
	else if (access_is_certificate(q->key_type))
		rc = err_set(e, -EACCES, "certificates are not accepted");
	else if (rc == 0 && k)
		access_fill(a, k, &o.name, out);
	free(o.blob);
	return rc;
}

void
access_grant_release(struct access_grant *g)
{
	principal_release(&g->who);
	free(g->permit_open);
	free(g->permit_listen);
	*g = (struct access_grant){ 0 };
}
