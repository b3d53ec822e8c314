/*
 * Freezing a sandbox's control groups; see cgroup.h. v2 has it in every group,
 * whatever controllers it holds; v1 in a hierarchy of its own, and there what is
 * frozen does not even die. Both programs.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sandbox/cgroup.h"
#include "sandbox/cgroup_internal.h"

#define FREEZE_LOOK_MS 2

/* The file of v2 that says what is wished, and that of v1. */
#define FREEZE_V2 "cgroup.freeze"
#define FREEZE_V1 "freezer.state"

/* The group that freezes, and whether it is one of v1; NULL for none. */
static const char *
freeze_group(const struct cgroup *c, bool *is_v1_out)
{
	*is_v1_out = c->path[CGROUP_FREEZER][0] != '\0';
	if (*is_v1_out)
		return c->path[CGROUP_FREEZER];
	return cgroup_can_freeze(c->path[CGROUP_UNIFIED])
		   ? c->path[CGROUP_UNIFIED]
		   : NULL;
}

bool
cgroup_can_freeze(const char *unified)
{
	char text[16];

	return *unified &&
	       cgroup_read(unified, FREEZE_V2, text, sizeof(text)) > 0;
}

bool
cgroup_is_frozen(const struct cgroup *c)
{
	char text[32];
	bool is_v1;
	const char *dir = freeze_group(c, &is_v1);

	if (!dir)
		return false;
	if (is_v1)
		return cgroup_read(dir, FREEZE_V1, text, sizeof(text)) > 0 &&
		       strncmp(text, "THAWED", 6) != 0;
	return cgroup_read(dir, FREEZE_V2, text, sizeof(text)) > 0 &&
	       text[0] == '1';
}

/* ---- v2 -------------------------------------------------------------------- */

/* True once cgroup.events, at FD, says "frozen WANT". */
static bool
freeze_says(int fd, bool want)
{
	char text[256];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	const char *at;

	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, "frozen ");
	return at && at[strlen("frozen ")] == (want ? '1' : '0');
}

static int
freeze_v2(const char *dir, bool is_freeze, int wait_ms)
{
	autofree char *path = xasprintf("%s/cgroup.events", dir);
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct pollfd p = { .fd = fd, .events = POLLPRI };
	int64_t until_ms = clock_mono_ms() + wait_ms, left;
	int rc = fd < 0 ? -errno
			: cgroup_write(dir, FREEZE_V2, is_freeze ? "1" : "0");

	while (rc == 0 && !freeze_says(fd, is_freeze)) {
		left = until_ms - clock_mono_ms();
		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)left) < 0 && errno != EINTR)
			rc = -errno;
	}
	return rc;
}

/* ---- v1 -------------------------------------------------------------------- */

/* What is on its way out of the kernel may need to be asked more than once. */
static int
freeze_v1(const char *dir, bool is_freeze, int wait_ms)
{
	const struct timespec pause = { 0, FREEZE_LOOK_MS * 1000000L };
	const char *want = is_freeze ? "FROZEN" : "THAWED";
	int64_t until_ms = clock_mono_ms() + wait_ms;
	char text[32];

	for (;;) {
		int rc = cgroup_write(dir, FREEZE_V1, want);

		if (rc < 0)
			return rc;
		if (cgroup_read(dir, FREEZE_V1, text, sizeof(text)) > 0 &&
		    strncmp(text, want, strlen(want)) == 0)
			return 0;
		if (clock_mono_ms() >= until_ms)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
}

/* ---- both ------------------------------------------------------------------ */

static int
freeze_do(const struct cgroup *c, bool is_freeze, int wait_ms)
{
	bool is_v1;
	const char *dir = freeze_group(c, &is_v1);

	if (!dir)
		return -EOPNOTSUPP;
	return is_v1 ? freeze_v1(dir, is_freeze, wait_ms)
		     : freeze_v2(dir, is_freeze, wait_ms);
}

int
cgroup_freeze(const struct cgroup *c, int wait_ms)
{
	int rc = freeze_do(c, true, wait_ms);

	/* Half of it frozen is worse than none. */
	if (rc < 0 && rc != -EOPNOTSUPP)
		freeze_do(c, false, 0);
	return rc;
}

int
cgroup_thaw(const struct cgroup *c, int wait_ms)
{
	return freeze_do(c, false, wait_ms);
}

void
cgroup_let_die(const struct cgroup *c)
{
	if (c->path[CGROUP_FREEZER][0])
		cgroup_write(c->path[CGROUP_FREEZER], FREEZE_V1, "THAWED");
}
