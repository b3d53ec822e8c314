/*
 * Snapshots of sandboxes that an engine's client reaches; see command.h. In
 * berth-archive. Their files are the engine's: it makes the tar and takes it, and
 * nothing in it is looked at or made here.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/err.h"
#include "base/mem.h"
#include "sandbox/archive.h"
#include "sandbox/command.h"
#include "sandbox/engine.h"
#include "sandbox/leader.h"

static int
command_copies(
    const struct sandbox_spec *s, const struct command **out, struct err *e)
{
	*out = command_find(s->provider);
	if (!*out)
		return err_set(
		    e, -ENOENT, "provider %s has no commands", s->provider);
	if (!sandbox_archive)
		return err_set(e, -ENOSYS, "this program knows no archives");
	return 0;
}

/* Runs the command T, whose other end is FD, while the file is copied. */
static int
command_flow(const struct sandbox_spec *s, const struct command *c,
    enum command_text t, int file_fd, struct sandbox_copied *out, struct err *e)
{
	bool is_input = t == COMMAND_RESTORE;
	char **pack = leader_pack(c->text[COMMAND_HOME]);
	char **unpack = leader_unpack(c->text[COMMAND_HOME]);
	struct command_fill f = {
		.command = c,
		.spec = s,
		.pack = pack,
		.unpack = unpack,
	};
	struct engine_call call = { .env = c->env };
	struct err why = { .code = 0 };
	struct engine_flow flow;
	char **v = NULL;
	int rc = command_words(&f, t, &v, e), code;

	call.argv = v;
	if (rc == 0)
		rc = engine_flow_start(&call, is_input, &flow, e);
	if (rc == 0) {
		rc = is_input ? sandbox_archive->give(file_fd, flow.fd, out, e)
			      : sandbox_archive->take(flow.fd, file_fd, out, e);
		/* What it says is the reason, and not that it was heard. */
		code = engine_flow_end(&flow, c->timeout_ms, &why);
		if (code != 0 && rc != -ECANCELED)
			rc = err_set(e, code < 0 ? code : -EIO, "%s %s: %s",
			    c->name, command_key(t), why.msg);
	}
	strv_free(v);
	strv_free(pack);
	strv_free(unpack);
	return rc;
}

/* Nothing can be run in one that stands still. */
int
command_snapshot(const struct sandbox_spec *s, int out_fd,
    struct sandbox_copied *out, struct err *e)
{
	struct sandbox_made made = { .phase = SANDBOX_GONE };
	struct sandbox_spec there = *s;
	const struct command *c;
	bool is_suspended;
	int rc = command_copies(s, &c, e);

	if (rc == 0)
		rc = command_probe(s, &made, e);
	if (rc < 0)
		return rc;
	is_suspended = made.phase == SANDBOX_SUSPENDED;
	rc = command_provision(s, &made, e);
	if (rc < 0)
		return rc;
	snprintf(there.address, sizeof(there.address), "%s", made.address);
	rc = command_flow(&there, c, COMMAND_SNAPSHOT, out_fd, out, e);
	if (is_suspended)
		command_suspend(s, rc < 0 ? NULL : e);
	return rc;
}

/* Nothing lies beside: it is only seen whether it is what it was. */
int
command_unpack(const struct sandbox_spec *s, int in_fd,
    struct sandbox_copied *out, struct err *e)
{
	const struct command *c;
	int rc = command_copies(s, &c, e);

	if (in_fd < 0)
		return 0;
	return rc < 0 ? rc : sandbox_archive->give(in_fd, -1, out, e);
}

int
command_restore(const struct sandbox_spec *s, int in_fd, struct err *e)
{
	struct sandbox_made made = { .phase = SANDBOX_GONE };
	struct sandbox_copied copied;
	struct sandbox_spec there = *s;
	const struct command *c;
	int rc = command_copies(s, &c, e);

	if (rc == 0)
		rc = command_provision(s, &made, e);
	if (rc < 0)
		return rc;
	snprintf(there.address, sizeof(there.address), "%s", made.address);
	return command_flow(&there, c, COMMAND_RESTORE, in_fd, &copied, e);
}
