/*
 * The files of snapshots and who may ask for them; see session.h. Invariant: a
 * file has a row, which is written before it and deleted behind it. Whatever is
 * not finished when berthd begins is undone.
 */
#include "sandbox/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "sandbox/job.h"
#include "sandbox/stage.h"
#include "sessions/manager/session.h"

#define SNAPSHOT_SUFFIX ".tar.zst"

char *
snapshot_program(const char *sandbox_path)
{
	const char *slash = strrchr(sandbox_path, '/');

	return xasprintf("%.*sberth-archive",
	    slash ? (int)(slash + 1 - sandbox_path) : 0, sandbox_path);
}

void
snapshot_path(const struct manager *m, const char *id, char *out, size_t size)
{
	snprintf(
	    out, size, "%s/%s" SNAPSHOT_SUFFIX, m->conf->sandbox.snapshots, id);
}

static int
snapshot_unlink(const char *path, struct err *e)
{
	if (unlink(path) == 0 || errno == ENOENT || errno == ENOTDIR)
		return 0;
	return err_sys(e, -errno, "cannot remove %s", path);
}

int
snapshot_drop(struct manager *m, const char *id, struct err *e)
{
	char path[SANDBOX_PATH_MAX];
	autofree char *part = NULL;
	int rc;

	snapshot_path(m, id, path, sizeof(path));
	part = xasprintf("%s" SNAPSHOT_PART, path);
	rc = snapshot_unlink(part, e);
	if (rc == 0)
		rc = snapshot_unlink(path, e);
	if (rc < 0)
		return rc;
	rc = store_snapshot_delete(m->store, id);
	return rc < 0 ? err_sys(e, rc, "cannot forget snapshot %s", id) : 0;
}

/* ---- at the start ------------------------------------------------------------- */

#define SNAPSHOT_LOAD_MAX 64

struct snapshot_unfinished {
	struct store_snapshot row[SNAPSHOT_LOAD_MAX];
	size_t n;
};

static bool
snapshot_collect(const struct store_snapshot *r, void *arg)
{
	struct snapshot_unfinished *u = arg;

	if (strcmp(r->state, "making") == 0)
		u->row[u->n++] = *r;
	return u->n < SNAPSHOT_LOAD_MAX;
}

/* A sandbox that was asked to be suspended stays so. */
static void
snapshot_undo(struct manager *m, const struct store_snapshot *r)
{
	struct box *b = box_find(m, r->sandbox);
	struct err e = { .code = 0 };

	if (b && b->provider && b->provider->resume && b->provider->status &&
	    b->phase == SANDBOX_RUNNING)
		b->is_frozen = true;
	if (snapshot_drop(m, r->id, &e) < 0)
		log_err(
		    "snapshot_not_removed", "id", r->id, "why", e.msg, NULL);
	store_audit(m->store, "snapshot_failed", NULL, NULL, r->sandbox, NULL,
	    "berthd ended while it was made");
	log_warn("snapshot_failed", "sandbox", r->sandbox, "id", r->id, "why",
	    "berthd ended while it was made", NULL);
}

void
snapshots_load(struct manager *m)
{
	struct snapshot_unfinished *u = xcalloc(1, sizeof(*u));

	store_snapshot_each(m->store, NULL, snapshot_collect, u);
	for (size_t i = 0; i < u->n; i++)
		snapshot_undo(m, &u->row[i]);
	free(u);
}

static void
snapshot_on_swept(const struct task_report *r, void *arg)
{
	(void)arg;
	if (r->kind == TASK_RESULT && r->code < 0)
		log_warn("restore_not_undone", "why", r->line, NULL);
}

/* The name of the sandbox that ENTRY lies beside; false for other entries. */
static bool
snapshot_beside(const char *entry, char *out, size_t size)
{
	size_t n = strlen(entry), tail = strlen(STAGE_SUFFIX);

	if (entry[0] != STAGE_PREFIX[0] || n <= tail + 1 ||
	    strcmp(entry + n - tail, STAGE_SUFFIX) != 0)
		return false;
	snprintf(out, size, "%.*s", (int)(n - tail - 1), entry + 1);
	return sandbox_name_is_valid(out);
}

void
snapshots_sweep(struct manager *m)
{
	struct task t = { .op = TASK_UNSTAGE, .spec = m->spec };
	DIR *d = opendir(m->spec.dir);
	const struct dirent *entry;
	struct err e = { .code = 0 };

	/* Any provider of this host has the same files. */
	snprintf(t.spec.provider, sizeof(t.spec.provider), "local");
	while (d && (entry = readdir(d))) { /* NOLINT(concurrency-mt-unsafe) */
		if (!snapshot_beside(
			entry->d_name, t.spec.name, sizeof(t.spec.name)))
			continue;
		log_warn("restore_undone", "sandbox", t.spec.name, NULL);
		if (!job_start(m->base, m->sandbox_path, &t, MANAGER_COPY_MS,
			snapshot_on_swept, NULL, &e))
			log_warn("restore_not_undone", "why", e.msg, NULL);
	}
	if (d)
		closedir(d);
}

/* ---- requests ------------------------------------------------------------------ */

struct request *
manager_sandbox_snapshot(struct manager *m, const struct principal *who,
    const char *name, const char *label, const char *description, char *id_out,
    manager_answer_fn fn, void *arg)
{
	struct request *r = request_new(m, who, fn, arg);
	enum manager_code code = MANAGER_FAILED;
	struct err e = { .code = 0 };
	enum box_answer answer;

	if (!attach_may_own(r, name))
		return r;
	answer = box_snapshot(r, label, description, id_out, &code, &e);
	attach_box_answer(r, answer, code, &e);
	return r;
}

/* The row that REF names, which WHO may use and which is complete. */
static enum manager_code
snapshot_find(struct manager *m, const struct principal *who, const char *ref,
    struct store_snapshot *out, struct err *e)
{
	int rc = store_snapshot_find(m->store, ref, out);

	if (rc == -ENOTUNIQ) {
		err_set(e, rc, "more than one snapshot is meant by %s", ref);
		return MANAGER_NOT_FOUND;
	}
	if (rc < 0) {
		err_set(e, rc, "there is no snapshot %s", ref);
		return MANAGER_NOT_FOUND;
	}
	if (!who->is_admin &&
	    (who->role != ROLE_OWNER ||
		!principal_may_use(who, out->sandbox, NULL))) {
		err_set(e, -EACCES, "this key may not use %s", out->sandbox);
		return MANAGER_REFUSED;
	}
	if (strcmp(out->state, "complete") != 0) {
		err_set(e, -EBUSY, "snapshot %s is being made", out->id);
		return MANAGER_CONFLICT;
	}
	return MANAGER_OK;
}

struct request *
manager_sandbox_restore(struct manager *m, const struct principal *who,
    const char *ref, const char *to, char *name_out, manager_answer_fn fn,
    void *arg)
{
	struct request *r = request_new(m, who, fn, arg);
	struct store_snapshot row;
	struct err e = { .code = 0 };
	enum manager_code code = snapshot_find(m, who, ref, &row, &e);
	enum box_answer answer;

	if (code != MANAGER_OK) {
		request_fail(r, code, "%s", e.msg);
		return r;
	}
	if (!attach_may_own(r, to ? to : row.sandbox))
		return r;
	snprintf(name_out, SANDBOX_NAME_SIZE, "%s", r->sandbox);
	code = MANAGER_FAILED;
	answer = box_restore(r, &row, &code, &e);
	attach_box_answer(r, answer, code, &e);
	return r;
}

enum manager_code
manager_snapshot_forget(struct manager *m, const struct principal *who,
    const char *ref, struct err *e)
{
	struct store_snapshot row;
	enum manager_code code = snapshot_find(m, who, ref, &row, e);

	if (code != MANAGER_OK)
		return code;
	if (snapshot_drop(m, row.id, e) < 0)
		return MANAGER_FAILED;
	store_audit(m->store, "snapshot_forget", who->identity,
	    who->remote_addr, row.sandbox, NULL, row.id);
	return MANAGER_OK;
}
