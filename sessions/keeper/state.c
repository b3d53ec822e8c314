/* Fills in the lock file; see state.h. */
#include "sessions/keeper/state.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"
#include "sessions/keeper/keeper.h"

void
state_init(struct state *s, int lock_fd)
{
	*s = (struct state){
		.fd = lock_fd,
		.file = { .keeper_pid = (uint32_t)getpid(),
		    .keeper_start = proc_start_time(getpid()) },
	};
	state_file_boot(s->file.boot);
}

void
state_release(struct state *s)
{
	close(take_fd(&s->fd));
}

int
state_save(struct keeper *k)
{
	const struct manager_link *m = &k->manager;
	struct state_file *s = &k->saved.file;
	int rc;

	memcpy(s->sid, k->launch.sid, sizeof(s->sid));
	s->pid = (uint32_t)k->child.pid;
	s->pid_start = k->child.start_ticks;
	s->started_ms = k->started_ms;
	s->has_exited = k->is_reported;
	s->exited = k->exited;
	s->n_left = m->n_left;
	memcpy(s->left, m->left, m->n_left * sizeof(s->left[0]));
	rc = state_file_write(k->saved.fd, s);
	if (rc < 0)
		log_warn("state_not_saved", "why", strerrordesc_np(-rc), NULL);
	return rc;
}
