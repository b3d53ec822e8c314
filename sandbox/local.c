/*
 * The provider `local`: a workspace per sandbox under sandbox.dir, run by
 * sandbox.user when berthd is root, else by berthd's own user. Separates
 * nothing but files by uid; for development. Limits are those of a process and
 * of the user (rlimits). Nothing runs as uid 0.
 */
#include "sandbox/local.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "sandbox/dial.h"
#include "sandbox/proc_usage.h"
#include "sandbox/provider.h"
#include "sandbox/stage.h"
#include "sandbox/workspace.h"

static int
local_provision(
    const struct sandbox_spec *s, struct sandbox_made *out, struct err *e)
{
	autoclose int fd = workspace_make(s, e);

	if (fd < 0)
		return fd;
	/* Each process alone is held to the memory, not all of them. */
	snprintf(out->missing, sizeof(out->missing), "%s%s%s",
	    s->memory_bytes ? ", memory" : "", s->cpu_percent ? ", cpu" : "",
	    s->workspace_bytes ? ", workspace_size" : "");
	if (*out->missing)
		memmove(
		    out->missing, out->missing + 2, strlen(out->missing) - 1);
	return 0;
}

static enum sandbox_phase
local_status(const struct sandbox_spec *s)
{
	struct stat st;

	if (workspace_stat(s, &st) < 0)
		return SANDBOX_GONE;
	return S_ISDIR(st.st_mode) && st.st_uid == s->uid ? SANDBOX_RUNNING
							  : SANDBOX_FAILED;
}

/* A directory has no end that anybody could be told of. */
static int
local_watch(const struct sandbox_spec *s)
{
	(void)s;
	return -1;
}

/* Its processes are the sessions' and end with them. */
static int
local_halt(const struct sandbox_spec *s, struct err *e)
{
	(void)s;
	(void)e;
	return 0;
}

static int
local_exec(
    const struct sandbox_spec *s, struct sandbox_place *out, struct err *e)
{
	struct sandbox_place place = {
		.uid = s->uid,
		.gid = s->gid,
		.must_setuid = s->must_setuid,
		.max_processes = s->pids_max,
		.max_data = s->memory_bytes,
		.entry = { .pidfd = -1 },
	};
	autoclose int fd = workspace_open(s, e);

	if (fd < 0)
		return fd;
	snprintf(
	    place.workspace, sizeof(place.workspace), "%s/%s", s->dir, s->name);
	snprintf(place.user, sizeof(place.user), "%s", s->user);
	snprintf(place.shell, sizeof(place.shell), "%s", s->shell);
	snprintf(
	    place.sftp_server, sizeof(place.sftp_server), "%s", s->sftp_server);
	place.has_sftp_server = access(s->sftp_server, X_OK) == 0;
	*out = place;
	return 0;
}

/* The network is this machine's own, so the sandbox need not be there. */
static struct sandbox_call *
local_dial(const struct sandbox_spec *spec, const struct sandbox_socket *s,
    sandbox_socket_fn fn, void *arg)
{
	return sandbox_dial->connect(spec, s, fn, arg);
}

static struct sandbox_call *
local_listen(const struct sandbox_spec *spec, const struct sandbox_socket *s,
    sandbox_socket_fn fn, void *arg)
{
	return sandbox_dial->listen(spec, s, fn, arg);
}

/* Its processes are those of its sessions. */
static int
local_measure(const struct sandbox_spec *s, const char *sids,
    struct sandbox_metrics *out, struct err *e)
{
	struct proc_usage sum = { 0 };

	(void)s;
	(void)e;
	proc_usage_add_sessions(&sum, sids);
	*out = (struct sandbox_metrics){ -1, -1, -1, -1, -1, -1, -1, -1 };
	proc_usage_tell(&sum, out);
	return 0;
}

static const struct sandbox_provider local_provider = {
	.name = "local",
	.description = "a directory of this machine; separates nothing",
	.capabilities = SANDBOX_CAP_EXEC | SANDBOX_CAP_PORT_FORWARD |
			SANDBOX_CAP_METRICS | SANDBOX_CAP_SNAPSHOT,
	.is_quick = true,
	.provision = local_provision,
	.teardown = workspace_remove,
	.halt = local_halt,
	.snapshot = stage_pack,
	.unpack = stage_unpack,
	.restore = stage_replace,
	.status = local_status,
	.watch = local_watch,
	.exec = local_exec,
	.dial = local_dial,
	.listen = local_listen,
	.measure = local_measure,
};

const struct sandbox_provider *
sandbox_local(void)
{
	return &local_provider;
}
