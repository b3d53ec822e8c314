/* Fills in the lock file; see state.h. */
#include "sessions/keeper/state.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"
#include "sessions/keeper/keeper.h"
#include "sessions/wire/state_file.h"

int
state_save(const struct keeper *k)
{
	const struct manager_link *m = &k->manager;
	struct state_file s = {
		.keeper_pid = (uint32_t)getpid(),
		.keeper_start = proc_start_time(getpid()),
		.pid = (uint32_t)k->child.pid,
		.pid_start = k->child.start_ticks,
		.started_ms = k->started_ms,
		.has_exited = k->is_reported,
		.exited = k->exited,
		.n_left = m->n_left,
	};
	int rc;

	memcpy(s.sid, k->launch.sid, sizeof(s.sid));
	memcpy(s.left, m->left, m->n_left * sizeof(s.left[0]));
	state_file_boot(s.boot);
	rc = state_file_write(k->lock_fd, &s);
	if (rc < 0)
		log_warn("state_not_saved", "why", strerrordesc_np(-rc), NULL);
	return rc;
}
