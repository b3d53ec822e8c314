/*
 * The two tables of signal names; see signame.h. Pure functions, used by
 * berth-sshd.
 */
#include "sshd/connection/signame.h"

#include <signal.h>
#include <stdbool.h>

#include "base/mem.h"

struct signame_row {
	const char *name;
	int sig;
	bool from_client;
};

static const struct signame_row signame_rows[] = {
	{ "ABRT", SIGABRT, false },
	{ "ALRM", SIGALRM, false },
	{ "FPE", SIGFPE, false },
	{ "HUP", SIGHUP, true },
	{ "ILL", SIGILL, false },
	{ "INT", SIGINT, true },
	{ "KILL", SIGKILL, true },
	{ "PIPE", SIGPIPE, false },
	{ "QUIT", SIGQUIT, true },
	{ "SEGV", SIGSEGV, false },
	{ "TERM", SIGTERM, true },
	{ "USR1", SIGUSR1, true },
	{ "USR2", SIGUSR2, true },
};

int
signame_from_client(const char *name)
{
	if (strncmp(name, "SIG", 3) == 0)
		name += 3;
	for (size_t i = 0; i < ARRAY_LEN(signame_rows); i++) {
		if (signame_rows[i].from_client &&
		    strcmp(name, signame_rows[i].name) == 0)
			return signame_rows[i].sig;
	}
	return 0;
}

void
signame_for_exit(int sig, char *out, size_t size)
{
	const char *abbrev = sigabbrev_np(sig);

	for (size_t i = 0; i < ARRAY_LEN(signame_rows); i++) {
		if (signame_rows[i].sig == sig) {
			snprintf(out, size, "%s", signame_rows[i].name);
			return;
		}
	}
	if (abbrev)
		snprintf(out, size, "%s@berth", abbrev);
	else
		snprintf(out, size, "%d@berth", sig);
}
